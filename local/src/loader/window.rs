//! Some days of a device in memory, for the folds: what the table has of them, and what becomes of it. Writes nothing
//! but the rooms that readings name.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::{Bucket, DeviceId, LocalDate, Order, RoomId, TimeRange, Timestamp};
use dynamodb::DynamoStore;
use table::{
    Expected, Invocation, NoteSeen, PutRollups, ReadRollups, ReadStoredReadings, RollupKey, Seen,
    StoreResult, StoredReading, StoredRollup,
};

/// The days.
#[derive(Debug)]
pub(super) struct Window<'a> {
    table: &'a DynamoStore,
    readings: BTreeMap<Timestamp, StoredReading>,
    rollups: Mutex<Rollups>,
}

#[derive(Debug)]
struct Rollups {
    now: BTreeMap<RollupKey, StoredRollup>,
    /// Those that were put, each with the version that it replaces.
    put: BTreeMap<RollupKey, Option<u64>>,
}

impl<'a> Window<'a> {
    /// The days with their readings, and the rollups that the table has.
    pub(super) fn of(
        table: &'a DynamoStore,
        readings: BTreeMap<Timestamp, StoredReading>,
        rollups: impl IntoIterator<Item = StoredRollup>,
    ) -> Self {
        let now = rollups.into_iter().map(|it| (it.key.clone(), it)).collect();
        Self { table, readings, rollups: Mutex::new(Rollups { now, put: BTreeMap::new() }) }
    }

    /// The rollups that were put, each with the version that it replaces.
    pub(super) fn into_put(self) -> Vec<(StoredRollup, Option<u64>)> {
        let Rollups { mut now, put } =
            self.rollups.into_inner().unwrap_or_else(PoisonError::into_inner);
        put.into_iter().filter_map(|(key, version)| Some((now.remove(&key)?, version))).collect()
    }

    fn rollups(&self) -> MutexGuard<'_, Rollups> {
        self.rollups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReadStoredReadings for Window<'_> {
    async fn stored_readings(
        &self,
        _device: &DeviceId,
        range: TimeRange,
        _invocation: &Invocation,
    ) -> StoreResult<Vec<StoredReading>> {
        let found = self.readings.range(range.from()..range.to());
        Ok(found.map(|(_, reading)| reading.clone()).collect())
    }
}

impl ReadRollups for Window<'_> {
    async fn rollup(
        &self,
        key: &RollupKey,
        _invocation: &Invocation,
    ) -> StoreResult<Option<StoredRollup>> {
        Ok(self.rollups().now.get(key).cloned())
    }

    async fn quarters(
        &self,
        _device: &DeviceId,
        range: TimeRange,
        _consistent: bool,
        _invocation: &Invocation,
    ) -> StoreResult<Vec<StoredRollup>> {
        let rollups = self.rollups();
        let is_of = |it: &&StoredRollup| matches!(it.key.bucket, Bucket::Quarter(quarter) if range.contains(quarter.start()));
        let mut found: Vec<_> = rollups.now.values().filter(is_of).cloned().collect();
        found.sort_by_key(|it| it.range.from());
        Ok(found)
    }

    async fn days(
        &self,
        _device: &DeviceId,
        (first, last): (LocalDate, LocalDate),
        order: Order,
        limit: usize,
        _invocation: &Invocation,
    ) -> StoreResult<Vec<StoredRollup>> {
        let rollups = self.rollups();
        let is_of = |it: &&StoredRollup| matches!(it.key.bucket, Bucket::Day(date) if first <= date && date <= last);
        let mut found: Vec<_> = rollups.now.values().filter(is_of).cloned().collect();
        found.sort_by_key(|it| it.range.from());
        if order == Order::Descending {
            found.reverse();
        }
        found.truncate(limit);
        Ok(found)
    }
}

impl PutRollups for Window<'_> {
    async fn put_rollup(
        &self,
        stored: &StoredRollup,
        expected: Expected,
        _invocation: &Invocation,
    ) -> StoreResult<bool> {
        let mut rollups = self.rollups();
        let known = rollups.now.get(&stored.key);
        let version = known.map(|known| known.version);
        let is_expected = match expected {
            Expected::Absent => version.is_none(),
            Expected::Version(expected) => version == Some(expected),
            // Of devices alone.
            Expected::Tombstone(_) => false,
        };
        let is_newer = known.is_none_or(|known| {
            known.settings <= stored.settings && stored.is_indexed_as_new_as(known)
        });
        if is_expected && is_newer {
            rollups.put.entry(stored.key.clone()).or_insert(version);
            rollups.now.insert(stored.key.clone(), stored.clone());
        }
        Ok(is_expected && is_newer)
    }
}

impl NoteSeen for Window<'_> {
    async fn seen(
        &self,
        room: &RoomId,
        device: &DeviceId,
        invocation: &Invocation,
    ) -> StoreResult<Option<Seen>> {
        self.table.seen(room, device, invocation).await
    }

    async fn put_seen(
        &self,
        seen: &Seen,
        expected: Expected,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        self.table.put_seen(seen, expected, invocation).await
    }
}
