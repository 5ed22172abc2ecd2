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
    AddArrival, Added, CountIntroduced, Counting, FindRegistry, FindToken, InsertOutcome,
    Invocation, LateMark, Listing, MarkLateChanges, MarksOutcome, MergeReadings, Page, PutOutcome,
    PutReadings, QueryReadings, RangeQuery, ReadRegistry, ReadRollupState, RegisterDevices,
    Registration, RollupState, StoreResult, UpdateOutcome, UpdateRegistry,
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

    /// Takes all held readings out, without their `about`, which the registry has already.
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
            // The registry function sees only one of the two readings, so the new reading keeps the `about` of the
            // earlier one.
            let said = known.as_ref().and_then(|known| known.reading.about.clone());

            let mut new = HeldReading { reading: reading.clone(), is_merged };
            if let Some(known) = known.filter(|_| is_merged) {
                new = HeldReading { reading: known.reading.as_after_merging(reading), ..known };
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
                    Some(known) if held.is_merged => known.as_after_merging(&held.reading),
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

impl MarkLateChanges for Holding {
    /// Marks nothing, because nothing is stored yet. The loader sets the marks when it stores the held readings.
    async fn put_late_marks(
        &self,
        _marks: &[LateMark],
        _expected: u64,
        _invocation: &Invocation,
    ) -> StoreResult<MarksOutcome> {
        Ok(MarksOutcome::Stored)
    }
}

/// Implements ports by calling the table directly, as if no reading were held back.
macro_rules! hand_on {
    ($($port:ident { $(
        fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty;
    )+ })+) => { $(
        impl $port for Holding { $(
            async fn $name(
                &self,
                $($argument: $type,)*
                invocation: &Invocation,
            ) -> StoreResult<$result> {
                self.table.$name($($argument,)* invocation).await
            }
        )+ }
    )+ };
}

hand_on! {
    UpdateRegistry {
        fn update_device(known: &Device, learned: &DeviceUpdate) -> UpdateOutcome<Device>;
        fn begin_stay(known: &Device, stay: &Stay) -> UpdateOutcome<Device>;
        fn update_room(id: &RoomId, first_seen: Timestamp) -> UpdateOutcome<Room>;
        fn introduce_room(device: &DeviceId, room: &RoomId) -> UpdateOutcome<Device>;
        fn name_room(id: &RoomId, name: &Label) -> UpdateOutcome<Room>;
    }

    AddArrival {
        fn add_arrival(reading: &Reading, arrival: &str, retention: Option<TimeDelta>) -> Added;
    }

    ReadRegistry {
        fn devices() -> Listing<Device>;
        fn rooms() -> Listing<Room>;
    }

    FindRegistry {
        fn find_devices(ids: &[DeviceId]) -> Listing<Device>;
        fn find_some_devices(ids: &[DeviceId]) -> (Listing<Device>, Vec<DeviceId>);
        fn find_rooms(ids: &[RoomId]) -> Listing<Room>;
    }

    RegisterDevices {
        fn register_device(device: &Device) -> Registration;
        fn register_room(room: &Room) -> InsertOutcome<Room>;
    }

    FindToken {
        fn token(hash: &TokenHash) -> Option<Token>;
    }

    CountIntroduced {
        fn count_introduced(sender: &str, more: usize, limit: usize) -> Counting;
    }

    ReadRollupState {
        fn rollup_state() -> Option<RollupState>;
    }
}
