//! Some days of a device in memory, which folds read and change instead of the table. Writes only the rooms that
//! readings name.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::{Bucket, DeviceId, LocalDate, Order, RoomId, TimeRange, Timestamp};
use table::{
    Expected, Invocation, NoteSeen, PutRollups, ReadRollups, ReadStoredReadings, RollupKey,
    RoomVisit, StoreResult, StoredReading, StoredRollup,
};

use crate::{NamedRooms, named_by_rollup};

/// Some days of a device, as the table had them. Folds put their rollups here. The rollups may be stored only if the
/// table still has the versions that were read.
#[derive(Debug)]
pub struct Snapshot<'a, S> {
    table: &'a S,
    readings: BTreeMap<Timestamp, StoredReading>,
    rollups: Mutex<Rollups>,
    has_flags: bool,
    has_notes: bool,
}

#[derive(Debug)]
struct Rollups {
    now: BTreeMap<RollupKey, StoredRollup>,
    /// Rollups that were put, each with the rollup of the table that it replaces.
    put: BTreeMap<RollupKey, Option<StoredRollup>>,
}

/// A folded rollup, and the rollup that the table must still have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The rollup.
    pub rollup: StoredRollup,
    /// The rollup to replace; `None`: the table must not have a rollup yet.
    pub replaced: Option<StoredRollup>,
}

impl Change {
    /// The version of the rollup to replace; `None`: the table must not have a rollup yet.
    pub fn replaced_version(&self) -> Option<u64> {
        self.replaced.as_ref().map(|replaced| replaced.version)
    }
}

/// A limit above the number of days in any range.
const UNLIMITED: usize = usize::MAX - 1;

impl<'a, S: ReadRollups + ReadStoredReadings> Snapshot<'a, S> {
    /// Reads the rollups and readings of a range, and the rollups of the days in `dates`.
    pub async fn read(
        table: &'a S,
        device: &DeviceId,
        range: TimeRange,
        dates: RangeInclusive<LocalDate>,
        invocation: &Invocation,
    ) -> StoreResult<Self> {
        // As in every fold, the source is read after the version: quarters after days, and readings after both. So a
        // fold that reads later also puts later.
        let mut rollups =
            table.days(device, dates, Order::Ascending, UNLIMITED, invocation).await?;
        rollups.extend(table.quarters(device, range, true, invocation).await?);
        let readings = table.stored_readings(device, range, invocation).await?;

        let now = rollups.into_iter().map(|rollup| (rollup.key.clone(), rollup)).collect();
        Ok(Self {
            table,
            readings: readings.into_iter().map(|stored| (stored.reading.at, stored)).collect(),
            rollups: Mutex::new(Rollups { now, put: BTreeMap::new() }),
            has_flags: true,
            has_notes: true,
        })
    }
}

impl<S> Snapshot<'_, S> {
    /// The same snapshot, in which folds flag no rollup as frozen, for a caller that changes no reading. A flag says
    /// that a reading has changed.
    #[must_use]
    pub fn without_flags(self) -> Self {
        Self { has_flags: false, ..self }
    }

    /// The same snapshot, whose folds note no rooms: nothing at all is written.
    #[must_use]
    pub fn without_notes(self) -> Self {
        Self { has_notes: false, ..self }
    }

    /// The readings, by their timestamps.
    pub const fn readings(&mut self) -> &mut BTreeMap<Timestamp, StoredReading> {
        &mut self.readings
    }

    /// The rooms that the rollups name.
    pub fn named_rooms(&self) -> NamedRooms {
        self.rollups().now.values().flat_map(named_by_rollup).collect()
    }

    /// The rollups that folds have put, and the unchanged rollups.
    pub fn into_rollups(self) -> (Vec<Change>, Vec<StoredRollup>) {
        let Rollups { mut now, put } =
            self.rollups.into_inner().unwrap_or_else(PoisonError::into_inner);
        let change = |(key, replaced)| Some(Change { rollup: now.remove(&key)?, replaced });
        let changes = put.into_iter().filter_map(change).collect();
        (changes, now.into_values().collect())
    }

    fn rollups(&self) -> MutexGuard<'_, Rollups> {
        self.rollups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Send + Sync> ReadStoredReadings for Snapshot<'_, S> {
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

impl<S: Send + Sync> ReadRollups for Snapshot<'_, S> {
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
        let is_of = |rollup: &&StoredRollup| matches!(rollup.key.bucket, Bucket::QuarterHour(quarter) if range.contains(quarter.start()));
        let mut found: Vec<_> = rollups.now.values().filter(is_of).cloned().collect();
        found.sort_by_key(|rollup| rollup.range.from());
        Ok(found)
    }

    async fn days(
        &self,
        _device: &DeviceId,
        dates: RangeInclusive<LocalDate>,
        order: Order,
        limit: usize,
        _invocation: &Invocation,
    ) -> StoreResult<Vec<StoredRollup>> {
        let rollups = self.rollups();
        let is_of = |rollup: &&StoredRollup| matches!(rollup.key.bucket, Bucket::Day(date) if dates.contains(&date));
        let mut found: Vec<_> = rollups.now.values().filter(is_of).cloned().collect();
        found.sort_by_key(|rollup| rollup.range.from());
        if order == Order::Descending {
            found.reverse();
        }
        found.truncate(limit);
        Ok(found)
    }
}

impl<S: Send + Sync> PutRollups for Snapshot<'_, S> {
    async fn put_rollup(
        &self,
        stored: &StoredRollup,
        expected: Expected,
        _invocation: &Invocation,
    ) -> StoreResult<bool> {
        if stored.is_frozen && !self.has_flags {
            return Ok(true);
        }

        let mut rollups = self.rollups();
        let known = rollups.now.get(&stored.key);
        let version = known.map(|known| known.version);

        let is_expected = match expected {
            Expected::Absent => version.is_none(),
            Expected::Present => version.is_some(),
            Expected::Version(expected) => version == Some(expected),
        };
        let is_newer = known.is_none_or(|known| {
            known.settings <= stored.settings && stored.is_indexed_as_new_as(known)
        });

        if is_expected && is_newer {
            let replaced = rollups.now.insert(stored.key.clone(), stored.clone());
            rollups.put.entry(stored.key.clone()).or_insert(replaced);
        }

        Ok(is_expected && is_newer)
    }
}

impl<S: NoteSeen> NoteSeen for Snapshot<'_, S> {
    async fn seen(
        &self,
        room: &RoomId,
        device: &DeviceId,
        invocation: &Invocation,
    ) -> StoreResult<Option<RoomVisit>> {
        if !self.has_notes {
            return Ok(None);
        }
        self.table.seen(room, device, invocation).await
    }

    async fn put_seen(
        &self,
        seen: &RoomVisit,
        expected: Expected,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        if !self.has_notes {
            return Ok(true);
        }
        self.table.put_seen(seen, expected, invocation).await
    }
}
