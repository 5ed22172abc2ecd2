//! `DeleteItem` on readings, several at once. Chooses none.

use futures_util::{StreamExt as _, stream};

use crate::DynamoStore;
use table::keys::Key;
use table::{DeleteReadings, Invocation, PutOutcome, ReadingKey, StoreResult};

/// How many readings are deleted at once. A role that may delete in batches may also put in batches, and
/// nobody who deletes readings should be able to replace one.
const DELETE_CONCURRENCY: usize = 16;

impl DeleteReadings for DynamoStore {
    async fn delete_readings(
        &self,
        readings: &[ReadingKey],
        invocation: &Invocation,
    ) -> PutOutcome {
        let deleting: Vec<_> =
            readings.iter().map(|reading| self.delete(reading, invocation)).collect();
        let deleted: Vec<StoreResult<()>> =
            stream::iter(deleting).buffered(DELETE_CONCURRENCY).collect().await;
        let mut outcome = PutOutcome::default();
        for (position, deleted) in deleted.into_iter().enumerate() {
            if let Err(error) = deleted {
                outcome.not_stored.push(position);
                outcome.cause.get_or_insert(error);
            }
        }
        outcome
    }
}

impl DynamoStore {
    async fn delete(&self, reading: &ReadingKey, invocation: &Invocation) -> StoreResult<()> {
        let key = Key::Reading(reading.device.clone(), reading.at);
        self.delete_item(key.pk(), key.sk(), invocation).await
    }
}
