//! A table in memory whose every call is a step of the schedule, and its stream. Deletes as the design says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use chrono::TimeDelta;
use domain::{
    ConditionsSchema, Deletion, Device, DeviceId, DevicePatch, DevicePatchError, DeviceUpdate,
    Hints, HomeId, LocalDate, Month, Order, Reading, Room, RoomId, RoomPatch, Stay, TimeRange,
    Timestamp, Token, TokenHash,
};
use serde_json::Value;
use table::keys::Key;
use table::memory::MemoryStore;
use table::{
    AddArrival, Added, Backlog, BegunDeletion, Belonging, Belongings, ConditionsPage,
    DeleteReadings, EditRegistry, Edited, Expected, FindRegistry, FindToken, IndexedQuarter,
    InsertOutcome, Invocation, KeepRollupState, LateChanges, LateMark, ListDevices, ListPage,
    Listing, LookUpRegistry, MarkDeletions, MarkIndexed, MarkLateChanges, MergeReadings, NoteSeen,
    Page, PageRegistry, PutConditionsSchema, PutOutcome, PutReadings, PutRollups, QueryConditions,
    QueryReadings, QueryRoomReadings, QueueDepth, RangeQuery, ReadConditionsSchema,
    ReadLateChanges, ReadRegistry, ReadRollupState, ReadRollups, ReadSeen, ReadStays,
    ReadStoredReadings, ReadingKey, Refold, RegisterDevices, Registration, RemoveBelongings,
    RemoveRooms, RollupKey, RollupState, RoomWalk, SearchDevices, SearchPage, SearchQuery, Seen,
    StayPage, StayQuery, StoreResult, StoredReading, StoredRollup, StoredSchema, TeachDevice,
    UpdateOutcome, UpdateRegistry,
};

use crate::faults::registry::record;
use crate::gate::Gate;

/// A design of deletions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Design {
    /// A mark, a time without anything, and a tombstone.
    Ours,
    /// The device's item goes when the deletion ends.
    NoTombstone,
    /// The deletion ends as soon as nothing is found.
    NoQuiet,
    /// A device that is being deleted is registered by its next reading.
    IgnoredMark,
}

/// What all instances share beside the table.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// The records of the stream.
    pub(super) stream: Vec<Value>,
    /// Every reading that was stored, in order.
    pub(super) stored: Vec<Reading>,
    /// How many were stored before the newest look that found nothing of a device.
    looked: BTreeMap<DeviceId, usize>,
    /// How many were stored before the look after which the deletion of a device ended.
    pub(super) ended: BTreeMap<DeviceId, usize>,
}

/// The table as one instance of the functions sees it.
#[derive(Debug, Clone)]
pub(super) struct Steps {
    memory: MemoryStore,
    log: Arc<Mutex<Log>>,
    design: Design,
    pub(super) gate: Gate,
}

impl Steps {
    pub(super) fn new(memory: &MemoryStore, log: &Arc<Mutex<Log>>, design: Design) -> Self {
        Self { memory: memory.clone(), log: Arc::clone(log), design, gate: Gate::default() }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().expect("no test panics while it holds the log")
    }

    /// The calls of one step that stores or deletes `count` things.
    async fn put(&self, count: usize, put: impl Future<Output = PutOutcome> + Send) -> PutOutcome {
        let failed = |cause| PutOutcome { not_stored: (0..count).collect(), cause: Some(cause) };
        self.gate.step(async { Ok(put.await) }).await.unwrap_or_else(failed)
    }

    fn shown(&self, mut deletion: Deletion) -> Deletion {
        if self.design == Design::NoQuiet {
            deletion.found = Timestamp::MIN;
        }
        deletion
    }

    /// The devices as the design lists them.
    fn listed(&self, mut listing: Listing<Device>) -> Listing<Device> {
        if self.design == Design::IgnoredMark {
            listing.deleted = Vec::new();
        }
        listing
    }

    async fn store(&self, readings: &[Reading], invocation: &Invocation) -> PutOutcome {
        let outcome = self.memory.put_readings(readings, None, invocation).await;
        let mut log = self.log();
        for reading in readings {
            let record = record(log.stream.len(), reading);
            log.stream.push(record);
            log.stored.push(reading.clone());
        }
        outcome
    }

    async fn remove(&self, belongings: &[Belonging], invocation: &Invocation) -> PutOutcome {
        let is_removed = |reading: &Reading| {
            let key = Key::Reading(reading.device.clone(), reading.at);
            let (pk, sk) = (key.pk(), key.sk());
            belongings.iter().flat_map(|it| &it.0).any(|it| it.pk == pk && it.sk == sk)
        };
        let mut removed = self.memory.readings();
        removed.retain(is_removed);
        self.note_removed(&removed);
        self.memory.remove_belongings(belongings, invocation).await
    }

    fn note_removed(&self, readings: &[Reading]) {
        let mut log = self.log();
        for reading in readings {
            let mut record = record(log.stream.len(), reading);
            record["eventName"] = "REMOVE".into();
            let image = record["dynamodb"]["NewImage"].take();
            record["dynamodb"]["OldImage"] = image;
            log.stream.push(record);
        }
    }

    async fn look(
        &self,
        id: &DeviceId,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<Belongings> {
        let found = self.memory.belongings(id, limit, invocation).await?;
        if found.found.is_empty() {
            let mut log = self.log();
            let stored = log.stored.len();
            log.looked.insert(id.clone(), stored);
        }
        Ok(found)
    }

    async fn end(
        &self,
        id: &DeviceId,
        known: &Deletion,
        at: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let mut known = *known;
        if self.design == Design::NoQuiet
            && let Some(now) = self.memory.deletion(id, invocation).await?
        {
            known = now;
        }
        let is_ended = self.memory.end_deletion(id, &known, at, invocation).await?;
        if is_ended {
            let mut log = self.log();
            let looked = log.looked[id];
            log.ended.insert(id.clone(), looked);
        }
        if is_ended && self.design == Design::NoTombstone {
            self.memory.delete_tombstone(id);
        }
        Ok(is_ended)
    }

    async fn register(
        &self,
        device: &Device,
        invocation: &Invocation,
    ) -> StoreResult<Registration> {
        if self.design == Design::IgnoredMark {
            self.memory.delete_tombstone(device.id());
        }
        self.memory.register_device(device, invocation).await
    }
}

/// Ports that the design leaves as they are: each call is a step.
macro_rules! gated {
    ($($port:ident: $($call:ident($($name:ident: $of:ty),*) -> $answer:ty),+;)+) => {
        $(impl $port for Steps {
            $(async fn $call(
                &self,
                $($name: $of,)*
                invocation: &Invocation,
            ) -> StoreResult<$answer> {
                self.gate.step(self.memory.$call($($name,)* invocation)).await
            })+
        })+
    };
}

gated! {
    AddArrival: add_arrival(reading: &Reading, id: &str, retention: Option<TimeDelta>) -> Added;
    QueryReadings: device_readings(device: &DeviceId, query: &RangeQuery) -> Page;
    PageRegistry:
        room_page(after: Option<&RoomId>, limit: usize) -> ListPage<Room>,
        room_device_page(
            room: &RoomId, after: Option<&DeviceId>, limit: usize
        ) -> Option<ListPage<Device>>;
    ListDevices:
        device_page(after: Option<&DeviceId>, limit: usize) -> ListPage<Device>,
        all_devices() -> Listing<Device>;
    SearchDevices:
        is_indexed() -> bool,
        search(query: &SearchQuery<'_>) -> SearchPage;
    MarkIndexed: mark_indexed(now: Timestamp) -> bool;
    FindToken: token(hash: &TokenHash) -> Option<Token>;
    EditRegistry:
        edit_device(
            id: &DeviceId, patch: &DevicePatch, now: Timestamp
        ) -> UpdateOutcome<Edited, DevicePatchError>,
        edit_room(id: &RoomId, patch: &RoomPatch) -> UpdateOutcome<Room>;
    TeachDevice:
        teach_device(known: &Device, hints: &Hints) -> UpdateOutcome<Device>;
    UpdateRegistry:
        update_device(known: &Device, learned: &DeviceUpdate) -> UpdateOutcome<Device>,
        begin_stay(known: &Device, stay: &Stay) -> UpdateOutcome<Device>,
        update_room(id: &RoomId, first_seen: Timestamp) -> UpdateOutcome<Room>;
    ReadStays:
        stays_of(device: &DeviceId, query: &StayQuery) -> StayPage,
        stays_in(room: &RoomId, query: &StayQuery) -> StayPage;
    RemoveRooms:
        remove_room(id: &RoomId) -> (),
        put_back_room(room: &Room) -> (),
        leave_home(room: &RoomId, home: &HomeId) -> bool;
    ReadStoredReadings:
        stored_readings(device: &DeviceId, range: TimeRange) -> Vec<StoredReading>;
    ReadRollups:
        rollup(key: &RollupKey) -> Option<StoredRollup>,
        quarters(device: &DeviceId, range: TimeRange, consistent: bool) -> Vec<StoredRollup>,
        days(
            device: &DeviceId, dates: (LocalDate, LocalDate), order: Order, limit: usize
        ) -> Vec<StoredRollup>;
    NoteSeen:
        seen(room: &RoomId, device: &DeviceId) -> Option<Seen>,
        put_seen(seen: &Seen, expected: Expected) -> bool;
    ReadSeen: seen_in(room: &RoomId, months: (Month, Month), limit: usize) -> Vec<Seen>;
    PutRollups: put_rollup(stored: &StoredRollup, expected: Expected) -> bool;
    ReadRollupState:
        rollup_state() -> Option<RollupState>,
        room_walk() -> Option<RoomWalk>;
    ReadLateChanges: late_changes() -> LateChanges;
    MarkLateChanges:
        put_late_marks(marks: &[LateMark], expected: u64) -> Option<LateChanges>;
    KeepRollupState:
        begin_rollups(state: &RollupState) -> InsertOutcome<RollupState>,
        advance_sealed(
            groups: &BTreeSet<usize>, sealed: Timestamp, queue: Option<QueueDepth>
        ) -> (),
        set_back_sealed(groups: &BTreeSet<usize>, sealed: Timestamp) -> (),
        note_backlog(backlog: Backlog) -> (),
        distrust_conditions() -> (),
        set_room_walk(walk: &RoomWalk) -> (),
        set_rebuilt(since: Timestamp, zone: &str) -> (),
        refold(device: &DeviceId) -> Refold,
        set_refold(device: &DeviceId, refold: &Refold) -> ();
    PutConditionsSchema:
        put_conditions_schema(schema: &ConditionsSchema, expected: Expected) -> bool;
    QueryConditions:
        indexed_quarters(
            of: (&DeviceId, Timestamp), addresses: (&[u8], &[u8]),
            after: Option<&IndexedQuarter>, limit: usize
        ) -> ConditionsPage;
}

impl QueryRoomReadings for Steps {
    fn has_room_index(&self) -> bool {
        true
    }

    async fn room_readings(
        &self,
        room: &RoomId,
        devices: &[DeviceId],
        query: &RangeQuery,
        invocation: &Invocation,
    ) -> StoreResult<Page> {
        self.gate.step(self.memory.room_readings(room, devices, query, invocation)).await
    }
}

/// The table has no index by conditions.
impl ReadConditionsSchema for Steps {
    async fn conditions_schema(&self, _: &Invocation) -> StoreResult<Option<StoredSchema>> {
        Ok(None)
    }

    fn has_conditions_index(&self) -> bool {
        false
    }
}

impl PutReadings for Steps {
    async fn put_readings(
        &self,
        readings: &[Reading],
        _: Option<TimeDelta>,
        invocation: &Invocation,
    ) -> PutOutcome {
        self.put(readings.len(), self.store(readings, invocation)).await
    }
}

/// No request of the model merges.
impl MergeReadings for Steps {
    async fn merge_readings(
        &self,
        readings: &[Reading],
        retention: Option<TimeDelta>,
        invocation: &Invocation,
    ) -> PutOutcome {
        self.memory.merge_readings(readings, retention, invocation).await
    }
}

/// No request of the model deletes single readings.
impl DeleteReadings for Steps {
    async fn delete_readings(&self, keys: &[ReadingKey], invocation: &Invocation) -> PutOutcome {
        self.memory.delete_readings(keys, invocation).await
    }
}

impl ReadRegistry for Steps {
    async fn devices(&self, invocation: &Invocation) -> StoreResult<Listing<Device>> {
        self.gate.step(self.memory.devices(invocation)).await.map(|it| self.listed(it))
    }

    async fn rooms(&self, invocation: &Invocation) -> StoreResult<Listing<Room>> {
        self.gate.step(self.memory.rooms(invocation)).await
    }
}

impl FindRegistry for Steps {
    async fn find_devices(
        &self,
        ids: &[DeviceId],
        invocation: &Invocation,
    ) -> StoreResult<Listing<Device>> {
        let found = self.gate.step(self.memory.find_devices(ids, invocation)).await;
        found.map(|it| self.listed(it))
    }

    async fn find_rooms(
        &self,
        ids: &[RoomId],
        invocation: &Invocation,
    ) -> StoreResult<Listing<Room>> {
        self.gate.step(self.memory.find_rooms(ids, invocation)).await
    }
}

impl LookUpRegistry for Steps {
    async fn device(&self, id: &DeviceId, invocation: &Invocation) -> StoreResult<Option<Device>> {
        self.gate.step(self.memory.device(id, invocation)).await
    }

    async fn deletion(
        &self,
        id: &DeviceId,
        invocation: &Invocation,
    ) -> StoreResult<Option<Deletion>> {
        let found = self.gate.step(self.memory.deletion(id, invocation)).await?;
        Ok(found.map(|it| self.shown(it)))
    }

    async fn room(&self, id: &RoomId, invocation: &Invocation) -> StoreResult<Option<Room>> {
        self.gate.step(self.memory.room(id, invocation)).await
    }
}

impl RegisterDevices for Steps {
    async fn register_device(
        &self,
        device: &Device,
        invocation: &Invocation,
    ) -> StoreResult<Registration> {
        self.gate.step(self.register(device, invocation)).await
    }

    async fn register_room(
        &self,
        room: &Room,
        invocation: &Invocation,
    ) -> StoreResult<InsertOutcome<Room>> {
        self.gate.step(self.memory.register_room(room, invocation)).await
    }

    async fn introduce_room(
        &self,
        device: &DeviceId,
        room: &RoomId,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Device>> {
        self.gate.step(self.memory.introduce_room(device, room, invocation)).await
    }
}

impl MarkDeletions for Steps {
    async fn begin_deletion(
        &self,
        id: &DeviceId,
        at: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<BegunDeletion> {
        Ok(match self.gate.step(self.memory.begin_deletion(id, at, invocation)).await? {
            BegunDeletion::Deletion(it) => BegunDeletion::Deletion(self.shown(it)),
            other => other,
        })
    }

    async fn note_found(
        &self,
        id: &DeviceId,
        at: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<Option<Deletion>> {
        let noted = self.gate.step(self.memory.note_found(id, at, invocation)).await?;
        Ok(noted.map(|it| self.shown(it)))
    }

    async fn end_deletion(
        &self,
        id: &DeviceId,
        known: &Deletion,
        at: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        self.gate.step(self.end(id, known, at, invocation)).await
    }
}

impl RemoveBelongings for Steps {
    async fn belongings(
        &self,
        id: &DeviceId,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<Belongings> {
        self.gate.step(self.look(id, limit, invocation)).await
    }

    async fn remove_belongings(
        &self,
        belongings: &[Belonging],
        invocation: &Invocation,
    ) -> PutOutcome {
        self.put(belongings.len(), self.remove(belongings, invocation)).await
    }
}
