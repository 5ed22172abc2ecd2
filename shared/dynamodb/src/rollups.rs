//! `Query`, `GetItem` and the conditional `PutItem` on rollups, and readings with their expiry. Folds nothing.

use domain::{DeviceId, LocalDate, Order, TimeRange};

use crate::DynamoStore;
use crate::put::Put;
use crate::range::Range;
use table::item::attribute::{CONDITIONS_VERSION, SETTINGS};
use table::item::{self, Decode};
use table::keys::{self, Key};
use table::{
    Expected, Invocation, PutRollups, ReadRollups, ReadStoredReadings, RollupKey, StoreResult,
    StoredReading, StoredRollup, UpdateOutcome,
};

/// A limit that no range reaches.
const UNLIMITED: usize = usize::MAX - 1;

impl ReadRollups for DynamoStore {
    async fn rollup(
        &self,
        key: &RollupKey,
        invocation: &Invocation,
    ) -> StoreResult<Option<StoredRollup>> {
        self.find(&Key::Rollup(key.device.clone(), key.bucket), invocation).await
    }

    async fn quarters(
        &self,
        device: &DeviceId,
        range: TimeRange,
        consistent: bool,
        invocation: &Invocation,
    ) -> StoreResult<Vec<StoredRollup>> {
        let range = Range {
            partition: keys::rollup_pk(device),
            between: keys::quarter_range(range),
            consistent,
            ..whole()
        };
        self.all(range, invocation).await
    }

    async fn days(
        &self,
        device: &DeviceId,
        (first, last): (LocalDate, LocalDate),
        order: Order,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<Vec<StoredRollup>> {
        let range = Range {
            partition: keys::rollup_pk(device),
            between: keys::day_range(first, last),
            order,
            limit: limit.min(UNLIMITED),
            ..whole()
        };
        self.all(range, invocation).await
    }
}

impl ReadStoredReadings for DynamoStore {
    async fn stored_readings(
        &self,
        device: &DeviceId,
        range: TimeRange,
        invocation: &Invocation,
    ) -> StoreResult<Vec<StoredReading>> {
        let range = Range {
            partition: device.to_string(),
            between: keys::reading_range(range),
            consistent: true,
            ..whole()
        };
        self.all(range, invocation).await
    }
}

impl PutRollups for DynamoStore {
    async fn put_rollup(
        &self,
        stored: &StoredRollup,
        expected: Expected,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let mut put = Put::new(item::from_rollup(stored), expected);
        put.at_most = Some((SETTINGS, stored.settings));
        let indexed = stored.indexed.as_ref();
        put.absent_or_at_most = indexed.map(|it| (CONDITIONS_VERSION, it.schema.into()));
        let outcome = put.send(self, invocation).await?;
        Ok(matches!(outcome, UpdateOutcome::Updated(())))
    }
}

/// All items of a partition, oldest first.
fn whole() -> Range {
    Range {
        index: None,
        partition: String::new(),
        between: (String::new(), String::new()),
        order: Order::Ascending,
        start: None,
        limit: UNLIMITED,
        consistent: false,
        filter: None,
    }
}

impl DynamoStore {
    async fn all<T: Decode + Send + 'static>(
        &self,
        range: Range,
        invocation: &Invocation,
    ) -> StoreResult<Vec<T>> {
        Ok(self.range(range, |_| true, |_| 0, invocation).await?.items)
    }
}
