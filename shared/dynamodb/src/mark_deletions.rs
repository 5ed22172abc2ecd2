//! `UpdateItem` and `GetItem` on the mark of a device that is being deleted. Removes nothing else.

use domain::{Deletion, DeviceId, Timestamp};

use crate::DynamoStore;
use crate::update::Update;
use table::item::attribute::{DELETED, ENDED, FOUND};
use table::item::{self, Attribute, DeviceItem};
use table::keys::TTL;
use table::{Invocation, LookUpRegistry as _, MarkDeletions, StoreResult, UpdateOutcome};

impl MarkDeletions for DynamoStore {
    async fn begin_deletion(
        &self,
        id: &DeviceId,
        at: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<Option<Deletion>> {
        let Some(device) = self.device(id, invocation).await? else {
            return self.deletion(id, invocation).await;
        };
        let mut update = Update::of(self.layout.device_key(id));
        let begun = Deletion::begin(at, device.fold_settings.number);
        update.set(&[DELETED], text(at));
        update.set(&[FOUND], text(at));
        item::DESCRIPTION.iter().for_each(|name| update.remove(&[name]));
        match update.send(self, invocation).await? {
            UpdateOutcome::Updated(_) => Ok(Some(begun)),
            // Somebody has just done the same.
            UpdateOutcome::ConditionFailed(_) => self.deletion(id, invocation).await,
        }
    }

    async fn note_found(
        &self,
        id: &DeviceId,
        at: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<Option<Deletion>> {
        let mut update = Update::of_marked(self.layout.device_key(id));
        update.only_if_still(&[ENDED], None);
        update.set(&[FOUND], text(at));
        Ok(match update.send_and_read::<DeviceItem>(self, invocation).await? {
            UpdateOutcome::Updated(now) => now.deletion(),
            UpdateOutcome::ConditionFailed(_) => None,
        })
    }

    async fn end_deletion(
        &self,
        id: &DeviceId,
        known: &Deletion,
        at: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let mut update = Update::of_marked(self.layout.device_key(id));
        update.only_if_still(&[ENDED], None);
        update.only_if_still(&[FOUND], Some(text(known.found)));
        update.set(&[ENDED], text(at));
        update.set(&[TTL], item::tombstone_expiry(at));
        let ended = update.send(self, invocation).await?;
        Ok(matches!(ended, UpdateOutcome::Updated(_)))
    }
}

fn text(at: Timestamp) -> Attribute {
    Attribute::S(at.to_string())
}
