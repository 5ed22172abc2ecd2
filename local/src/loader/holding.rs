//! A table that holds readings back: the ingest function writes them, and the registry function sees them as if they
//! were stored. Stores no held reading.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;
use domain::{
    Device, DeviceId, DeviceUpdate, Label, Order, Reading, Room, RoomId, Stay, Timestamp, Token,
    TokenHash,
};
use dynamodb::DynamoStore;
use table::{
    AddArrival, Added, CountIntroduced, FindRegistry, FindToken, InsertOutcome, Invocation,
    LateChanges, LateMark, Listing, MarkLateChanges, MergeReadings, Page, PutOutcome, PutReadings,
    QueryReadings, RangeQuery, ReadRegistry, ReadRollupState, RegisterDevices, Registration,
    RollupState, StoreResult, UpdateOutcome, UpdateRegistry,
};

/// Readings that are held back, by device and time.
pub(super) type Held = BTreeMap<DeviceId, BTreeMap<Timestamp, HeldReading>>;

/// A reading that is held back.
#[derive(Debug, Clone)]
pub(super) struct HeldReading {
    pub(super) reading: Reading,
    /// Whether the reading is merged into the stored one, instead of replacing it.
    pub(super) is_merged: bool,
}

/// The table and the readings that are held back from it. Clones share both.
#[derive(Debug, Clone)]
pub(super) struct Holding {
    table: DynamoStore,
    held: Arc<Mutex<Held>>,
}

impl Holding {
    pub(super) fn of(table: DynamoStore) -> Self {
        Self { table, held: Arc::default() }
    }

    /// Takes all held readings out.
    pub(super) fn take(&self) -> Held {
        std::mem::take(&mut *self.held())
    }

    /// Takes all held readings out, without what they say of their devices: the registry has it already.
    pub(super) fn take_learned(&self) -> Held {
        let mut held = self.take();
        for held in held.values_mut().flat_map(BTreeMap::values_mut) {
            held.reading.about = None;
        }
        held
    }

    /// Moves the held readings into a new `Holding` of the same table.
    pub(super) fn split_off(&self) -> Self {
        Self { table: self.table.clone(), held: Arc::new(Mutex::new(self.take())) }
    }

    /// Returns the held readings, in any order.
    pub(super) fn readings(&self) -> Vec<Reading> {
        self.held().values().flat_map(BTreeMap::values).map(|held| held.reading.clone()).collect()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold(&self, readings: &[Reading], is_merged: bool) {
        let mut held = self.held();
        for reading in readings {
            let of_device = held.entry(reading.device.clone()).or_default();
            let known = of_device.remove(&reading.at);
            // The registry function sees only one of the two readings, so the new one keeps what the earlier said of
            // the device.
            let said = known.as_ref().and_then(|known| known.reading.about.clone());
            let mut new = HeldReading { reading: reading.clone(), is_merged };
            if let Some(known) = known.filter(|_| is_merged) {
                new = HeldReading { reading: known.reading.merged(reading), ..known };
            }
            for about in said.into_iter().chain(new.reading.about.take()) {
                new.reading = new.reading.with_about(*about);
            }
            of_device.insert(reading.at, new);
        }
    }
}

impl PutReadings for Holding {
    async fn put_readings(
        &self,
        readings: &[Reading],
        _retention: Option<TimeDelta>,
        _invocation: &Invocation,
    ) -> PutOutcome {
        self.hold(readings, false);
        PutOutcome::default()
    }
}

impl MergeReadings for Holding {
    async fn merge_readings(
        &self,
        readings: &[Reading],
        _retention: Option<TimeDelta>,
        _invocation: &Invocation,
    ) -> PutOutcome {
        self.hold(readings, true);
        PutOutcome::default()
    }
}

impl QueryReadings for Holding {
    async fn device_readings(
        &self,
        device: &DeviceId,
        query: &RangeQuery,
        invocation: &Invocation,
    ) -> StoreResult<Page<Reading>> {
        let page = self.table.device_readings(device, query, invocation).await?;
        let is_descending = query.order == Order::Descending;
        let is_behind = |one: Timestamp, other: Timestamp| {
            if is_descending { one < other } else { one > other }
        };
        // The table may have more readings after the last one of this page.
        let last = page.items.last().map(|reading| reading.at).filter(|_| page.has_more);
        let is_of_page = |at: Timestamp| {
            query.after.as_ref().is_none_or(|after| is_behind(at, after.at))
                && last.is_none_or(|last| !is_behind(at, last))
        };
        let mut all: BTreeMap<_, _> =
            page.items.into_iter().map(|reading| (reading.at, reading)).collect();
        if let Some(held) = self.held().get(device) {
            let held = held.range(query.range.from()..query.range.to());
            for (at, held) in held.filter(|(at, _)| is_of_page(**at)) {
                let now = match all.get(at) {
                    Some(known) if held.is_merged => known.merged(&held.reading),
                    _ => held.reading.clone(),
                };
                all.insert(*at, now);
            }
        }
        let mut readings: Vec<_> = all.into_values().collect();
        if is_descending {
            readings.reverse();
        }
        let has_more = page.has_more || readings.len() > query.limit;
        readings.truncate(query.limit);
        Ok(Page { items: readings, has_more })
    }
}

impl UpdateRegistry for Holding {
    async fn update_device(
        &self,
        known: &Device,
        learned: &DeviceUpdate,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Device>> {
        self.table.update_device(known, learned, invocation).await
    }

    async fn begin_stay(
        &self,
        known: &Device,
        stay: &Stay,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Device>> {
        self.table.begin_stay(known, stay, invocation).await
    }

    async fn update_room(
        &self,
        id: &RoomId,
        first_seen: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Room>> {
        self.table.update_room(id, first_seen, invocation).await
    }

    async fn introduce_room(
        &self,
        device: &DeviceId,
        room: &RoomId,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Device>> {
        self.table.introduce_room(device, room, invocation).await
    }

    async fn name_room(
        &self,
        id: &RoomId,
        name: &Label,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Room>> {
        self.table.name_room(id, name, invocation).await
    }
}

impl MarkLateChanges for Holding {
    /// Marks nothing, because nothing is stored yet. The loader sets the marks when it stores the held readings.
    async fn put_late_marks(
        &self,
        _marks: &[LateMark],
        _expected: u64,
        _invocation: &Invocation,
    ) -> StoreResult<Option<LateChanges>> {
        Ok(None)
    }
}

impl AddArrival for Holding {
    async fn add_arrival(
        &self,
        reading: &Reading,
        arrival: &str,
        retention: Option<TimeDelta>,
        invocation: &Invocation,
    ) -> StoreResult<Added> {
        self.table.add_arrival(reading, arrival, retention, invocation).await
    }
}

impl ReadRegistry for Holding {
    async fn devices(&self, invocation: &Invocation) -> StoreResult<Listing<Device>> {
        self.table.devices(invocation).await
    }

    async fn rooms(&self, invocation: &Invocation) -> StoreResult<Listing<Room>> {
        self.table.rooms(invocation).await
    }
}

impl FindRegistry for Holding {
    async fn find_devices(
        &self,
        ids: &[DeviceId],
        invocation: &Invocation,
    ) -> StoreResult<Listing<Device>> {
        self.table.find_devices(ids, invocation).await
    }

    async fn find_some_devices(
        &self,
        ids: &[DeviceId],
        invocation: &Invocation,
    ) -> StoreResult<(Listing<Device>, Vec<DeviceId>)> {
        self.table.find_some_devices(ids, invocation).await
    }

    async fn find_rooms(
        &self,
        ids: &[RoomId],
        invocation: &Invocation,
    ) -> StoreResult<Listing<Room>> {
        self.table.find_rooms(ids, invocation).await
    }
}

impl RegisterDevices for Holding {
    async fn register_device(
        &self,
        device: &Device,
        invocation: &Invocation,
    ) -> StoreResult<Registration> {
        self.table.register_device(device, invocation).await
    }

    async fn register_room(
        &self,
        room: &Room,
        invocation: &Invocation,
    ) -> StoreResult<InsertOutcome<Room>> {
        self.table.register_room(room, invocation).await
    }
}

impl FindToken for Holding {
    async fn token(&self, hash: &TokenHash, invocation: &Invocation) -> StoreResult<Option<Token>> {
        self.table.token(hash, invocation).await
    }
}

impl CountIntroduced for Holding {
    async fn count_introduced(
        &self,
        sender: &str,
        more: usize,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<Option<usize>> {
        self.table.count_introduced(sender, more, limit, invocation).await
    }
}

impl ReadRollupState for Holding {
    async fn rollup_state(&self, invocation: &Invocation) -> StoreResult<Option<RollupState>> {
        self.table.rollup_state(invocation).await
    }
}
