//! The ports of rollups in memory. Folds nothing.

use std::collections::BTreeSet;

use super::MemoryStore;
use super::page::list_page;
use crate::{
    Backlog, DeleteReadings, Expected, InsertOutcome, Invocation, KeepRollupState, LateChanges,
    LateMark, ListDevices, ListPage, Listing, MarkLateChanges, PutOutcome, PutRollups, QueueDepth,
    ReadLateChanges, ReadRefold, ReadRollupState, ReadRollups, ReadStoredReadings, ReadingKey,
    Refold, RollupKey, RollupState, RoomWalk, StoreResult, StoredReading, StoredRollup,
};
use domain::{Bucket, Device, DeviceId, LocalDate, Order, TimeRange, Timestamp};

impl MemoryStore {
    /// Every rollup.
    #[must_use]
    pub fn rollups(&self) -> Vec<StoredRollup> {
        self.state().rollups.values().cloned().collect()
    }

    /// Deletes a rollup, as only `DynamoDB` does, after its expiry.
    pub fn delete_rollup(&self, key: &RollupKey) {
        self.state().rollups.remove(key);
    }

    /// Deletes the readings that have expired, as `DynamoDB` does some time after.
    pub fn delete_expired_readings(&self, now: Timestamp) {
        let mut state = self.state();
        let expired = state.expiries.iter().filter(|(_, expires)| **expires <= now);
        let expired: Vec<ReadingKey> = expired.map(|(key, _)| key.clone()).collect();
        for key in expired {
            state.readings.remove(&key);
            state.expiries.remove(&key);
        }
    }

    fn rollups_of(
        &self,
        device: &DeviceId,
        keep: impl Fn(&Bucket) -> bool,
    ) -> StoreResult<Vec<StoredRollup>> {
        let state = self.read()?;
        let found = state.rollups.iter();
        let found = found.filter(|(key, _)| key.device == *device && keep(&key.bucket));
        Ok(found.map(|(_, rollup)| rollup.clone()).collect())
    }
}

impl ReadRollups for MemoryStore {
    async fn rollup(
        &self,
        key: &RollupKey,
        _invocation: &Invocation,
    ) -> StoreResult<Option<StoredRollup>> {
        Ok(self.read()?.rollups.get(key).cloned())
    }

    async fn quarters(
        &self,
        device: &DeviceId,
        range: TimeRange,
        _consistent: bool,
        _invocation: &Invocation,
    ) -> StoreResult<Vec<StoredRollup>> {
        self.rollups_of(device, |bucket| match bucket {
            Bucket::QuarterHour(quarter) => range.contains(quarter.start()),
            Bucket::Day(_) => false,
        })
    }

    async fn days(
        &self,
        device: &DeviceId,
        (first, last): (LocalDate, LocalDate),
        order: Order,
        limit: usize,
        _invocation: &Invocation,
    ) -> StoreResult<Vec<StoredRollup>> {
        let mut found = self.rollups_of(device, |bucket| match bucket {
            Bucket::QuarterHour(_) => false,
            Bucket::Day(date) => (first..=last).contains(date),
        })?;
        if order == Order::Descending {
            found.reverse();
        }
        found.truncate(limit);
        Ok(found)
    }
}

impl ReadStoredReadings for MemoryStore {
    async fn stored_readings(
        &self,
        device: &DeviceId,
        range: TimeRange,
        _invocation: &Invocation,
    ) -> StoreResult<Vec<StoredReading>> {
        let (stored, time) = {
            let state = self.read()?;
            let found = state.readings.iter();
            let found = found.filter(|(key, _)| key.device == *device && range.contains(key.at));
            let stored = found.map(|(key, reading)| StoredReading {
                reading: reading.clone(),
                expires: state.expiries.get(key).copied(),
            });
            (stored.collect::<Vec<_>>(), state.reading_time)
        };
        let time = time * u32::try_from(stored.len()).expect("few");
        if !time.is_zero() {
            tokio::time::sleep(time).await;
        }
        Ok(stored)
    }
}

impl PutRollups for MemoryStore {
    async fn put_rollup(
        &self,
        stored: &StoredRollup,
        expected: Expected,
        _invocation: &Invocation,
    ) -> StoreResult<bool> {
        let mut state = self.write()?;
        let known = state.rollups.get(&stored.key);
        let is_as_expected = match expected {
            Expected::Absent => known.is_none(),
            Expected::Present => known.is_some(),
            Expected::Version(version) => known.is_some_and(|it| {
                it.version == version
                    && it.settings <= stored.settings
                    && stored.is_indexed_as_new_as(it)
            }),
        };
        if is_as_expected {
            state.rollups.insert(stored.key.clone(), stored.clone());
        }
        Ok(is_as_expected)
    }
}

impl ReadRollupState for MemoryStore {
    async fn rollup_state(&self, _invocation: &Invocation) -> StoreResult<Option<RollupState>> {
        Ok(self.read()?.sealing.clone())
    }

    async fn room_walk(&self, _invocation: &Invocation) -> StoreResult<Option<RoomWalk>> {
        Ok(self.read()?.room_walk.clone())
    }
}

impl ReadLateChanges for MemoryStore {
    async fn late_changes(&self, _invocation: &Invocation) -> StoreResult<LateChanges> {
        Ok(self.read()?.late.clone())
    }
}

impl MarkLateChanges for MemoryStore {
    async fn put_late_marks(
        &self,
        marks: &[LateMark],
        expected: u64,
        _invocation: &Invocation,
    ) -> StoreResult<Option<LateChanges>> {
        let late = &mut self.write()?.late;
        if late.version != expected {
            return Ok(Some(late.clone()));
        }
        late.version += 1;
        late.marks = marks.to_vec();
        Ok(None)
    }
}

impl ReadRefold for MemoryStore {
    async fn refold(&self, device: &DeviceId, _invocation: &Invocation) -> StoreResult<Refold> {
        Ok(self.read()?.refolds.get(device).copied().unwrap_or_default())
    }
}

impl KeepRollupState for MemoryStore {
    async fn begin_rollups(
        &self,
        state: &RollupState,
        _invocation: &Invocation,
    ) -> StoreResult<InsertOutcome<RollupState>> {
        match &mut self.write()?.sealing {
            Some(known) => Ok(InsertOutcome::Exists(known.clone())),
            none => {
                *none = Some(state.clone());
                Ok(InsertOutcome::Inserted)
            }
        }
    }

    async fn advance_sealed(
        &self,
        groups: &BTreeSet<usize>,
        sealed: Timestamp,
        queue: Option<QueueDepth>,
        _invocation: &Invocation,
    ) -> StoreResult<()> {
        if let Some(state) = &mut self.write()?.sealing {
            state.queue = queue.or(state.queue);
            for group in groups {
                state.sealed[*group] = state.sealed[*group].max(sealed);
            }
        }
        Ok(())
    }

    async fn set_back_sealed(
        &self,
        groups: &BTreeSet<usize>,
        sealed: Timestamp,
        _invocation: &Invocation,
    ) -> StoreResult<()> {
        if let Some(state) = &mut self.write()?.sealing {
            for group in groups {
                state.sealed[*group] = state.sealed[*group].min(sealed);
            }
        }
        Ok(())
    }

    async fn note_backlog(&self, backlog: Backlog, _invocation: &Invocation) -> StoreResult<()> {
        self.write()?.late.backlog = Some(backlog);
        Ok(())
    }

    async fn distrust_conditions(&self, _invocation: &Invocation) -> StoreResult<()> {
        self.write()?.conditions.distrust();
        Ok(())
    }

    async fn set_rebuilt(
        &self,
        since: Timestamp,
        zone: &str,
        _invocation: &Invocation,
    ) -> StoreResult<()> {
        if let Some(state) = &mut self.write()?.sealing {
            state.since = since;
            zone.clone_into(&mut state.zone);
        }
        Ok(())
    }

    async fn set_room_walk(&self, walk: &RoomWalk, _invocation: &Invocation) -> StoreResult<()> {
        let known = &mut self.write()?.room_walk;
        if known.as_ref().is_none_or(|known| !known.is_done) {
            *known = Some(walk.clone());
        }
        Ok(())
    }

    async fn set_refold(
        &self,
        device: &DeviceId,
        refold: &Refold,
        _invocation: &Invocation,
    ) -> StoreResult<()> {
        self.write()?.refolds.insert(device.clone(), *refold);
        Ok(())
    }
}

impl ListDevices for MemoryStore {
    async fn device_page(
        &self,
        after: Option<&DeviceId>,
        limit: usize,
        _invocation: &Invocation,
    ) -> StoreResult<ListPage<Device>> {
        Ok(list_page(self.read()?.devices.values(), |it| Some(it.id()) > after, limit))
    }

    async fn all_devices(&self, _invocation: &Invocation) -> StoreResult<Listing<Device>> {
        let state = self.read()?;
        let found = state.devices.values().cloned().collect();
        Ok(Listing { found, deleted: state.deleted(|_| true), ..Listing::default() })
    }
}

impl DeleteReadings for MemoryStore {
    async fn delete_readings(
        &self,
        readings: &[ReadingKey],
        _invocation: &Invocation,
    ) -> PutOutcome {
        let mut state = self.call();
        if let Some(cause) = state.pop_failure() {
            return PutOutcome { not_stored: (0..readings.len()).collect(), cause: Some(cause) };
        }
        for key in readings {
            state.readings.remove(key);
            state.expiries.remove(key);
        }
        PutOutcome::default()
    }
}
