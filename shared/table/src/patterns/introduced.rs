//! Counts the devices that senders have introduced. Registers no device.

use ports::port;

use crate::db::{Db, Op, WriteOutcome, absent_or, add, upsert};
use crate::item::Attribute;
use crate::item::attribute::INTRODUCED;
use crate::keys::Key;
use crate::{Counting, Patterns, StoreError, StoreResult};

/// Counts the devices that a sender introduces, if the registry is too large for memory. Any function that may store
/// readings may write this count.
#[port(CountIntroduced, UpdateItem(Readings))]
impl<D: Db> Patterns<'_, D> {
    /// Adds `more` devices, at most `limit`, to the number that a sender has introduced, unless the sum would exceed
    /// `limit`. A repeat counts twice, so the number is never too small.
    pub async fn count_introduced(
        self,
        sender: &str,
        more: usize,
        limit: usize,
    ) -> StoreResult<Counting> {
        let Some(most) = limit.checked_sub(more) else {
            return Err(StoreError::Refused("more devices are counted than the limit".into()));
        };
        let counted = upsert(&Key::Introduced(sender.to_owned()))
            .when([absent_or(INTRODUCED, Op::AtMost, Attribute::number(most))])
            .with([add(INTRODUCED, Attribute::number(more))]);
        let WriteOutcome::Refused(known) = self.write(counted).await? else {
            return Ok(Counting::Counted);
        };

        let known = known.as_ref().and_then(|item| item.get(INTRODUCED));
        // If the stored value is not a number, no further device is permitted.
        let stored = match known {
            Some(Attribute::N(number)) => number.parse().unwrap_or(limit),
            _ => limit,
        };
        Ok(Counting::BeyondLimit { stored })
    }
}
