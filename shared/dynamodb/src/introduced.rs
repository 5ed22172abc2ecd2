//! `UpdateItem` on the numbers of devices that senders have introduced. Registers no device.

use crate::DynamoStore;
use crate::update::Update;
use table::item::attribute::INTRODUCED;
use table::keys::Key;
use table::{CountIntroduced, Invocation, StoreError, StoreResult, UpdateOutcome};

impl CountIntroduced for DynamoStore {
    async fn count_introduced(
        &self,
        sender: &str,
        more: usize,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<Option<usize>> {
        let Some(most) = limit.checked_sub(more) else {
            return Err(StoreError::Refused("more devices are counted than the limit".into()));
        };
        let mut update = Update::or_put(Key::Introduced(sender.to_owned()));
        update.add_number(&[INTRODUCED], more);
        update.only_if_at_most(&[INTRODUCED], most);
        let UpdateOutcome::ConditionFailed(item) = update.send(self, invocation).await? else {
            return Ok(None);
        };
        let known = item.as_ref().and_then(|item| item.get(INTRODUCED)?.as_n().ok());
        // What is no number permits no further device.
        Ok(Some(known.and_then(|number: &String| number.parse().ok()).unwrap_or(limit)))
    }
}
