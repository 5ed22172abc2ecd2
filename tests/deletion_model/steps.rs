//! A table in memory that deletes as the design says, and its stream.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard};

use chrono::TimeDelta;
use domain::{Deletion, Device, DeviceId, Reading, Timestamp};
use serde_json::Value;
use table::keys::Key;
use table::memory::MemoryStore;
use table::{
    BegunDeletion, Belonging, Belongings, DeleteReadings, FindRegistry as _, Invocation, Listing,
    LookUpRegistry as _, MarkDeletions as _, MergeReadings, PutOutcome, PutReadings,
    ReadRegistry as _, ReadingKey, RegisterDevices as _, Registration, RemoveBelongings,
    StoreResult,
};

use crate::faults::registry::record;
use crate::gate::{Gated, gated};

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
pub(super) type Steps = Gated<Table>;

#[derive(Debug, Clone)]
pub(super) struct Table {
    memory: MemoryStore,
    log: Arc<Mutex<Log>>,
    design: Design,
}

impl Deref for Table {
    type Target = MemoryStore;

    fn deref(&self) -> &MemoryStore {
        &self.memory
    }
}

gated!(
    Table: AddArrival, AddToken, CountIntroduced, EditAnnotations, EditRegistry, FindRegistry, FindToken, KeepRollupState, ListDevices,
    LookUpRegistry, MarkDeletions, MarkIndexed, MarkLateChanges, NoteSeen, PageRegistry,
    PutConditionsSchema, PutRollups, QueryConditions, QueryReadings, QueryRoomReadings,
    ReadAnnotations, ReadConditionsSchema, ReadLateChanges, ReadRefold, ReadRegistry,
    ReadRollupState, ReadRollups, ReadSeen,
    ReadStays, ReadStoredReadings, RegisterDevices, RemoveRooms, SearchDevices, TeachRegistry,
    UpdateRegistry, EditAlertRules, EditChannels, EditAlertStates, ReadToldMessages,
    ReadWaitingMessages, PutTestMessages
);

impl Table {
    pub(super) fn new(memory: &MemoryStore, log: &Arc<Mutex<Log>>, design: Design) -> Self {
        Self { memory: memory.clone(), log: Arc::clone(log), design }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().expect("no test panics while it holds the log")
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

    async fn devices(&self, invocation: &Invocation) -> StoreResult<Listing<Device>> {
        self.memory.devices(invocation).await.map(|it| self.listed(it))
    }

    async fn find_devices(
        &self,
        ids: &[DeviceId],
        invocation: &Invocation,
    ) -> StoreResult<Listing<Device>> {
        self.memory.find_devices(ids, invocation).await.map(|it| self.listed(it))
    }

    async fn deletion(
        &self,
        id: &DeviceId,
        invocation: &Invocation,
    ) -> StoreResult<Option<Deletion>> {
        Ok(self.memory.deletion(id, invocation).await?.map(|it| self.shown(it)))
    }

    async fn begin_deletion(
        &self,
        id: &DeviceId,
        at: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<BegunDeletion> {
        Ok(match self.memory.begin_deletion(id, at, invocation).await? {
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
        Ok(self.memory.note_found(id, at, invocation).await?.map(|it| self.shown(it)))
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

    async fn end_deletion(
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

    async fn register_device(
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

impl Steps {
    /// The calls of one step that stores or deletes `count` things.
    async fn put(&self, count: usize, put: impl Future<Output = PutOutcome> + Send) -> PutOutcome {
        let failed = |cause| PutOutcome { not_stored: (0..count).collect(), cause: Some(cause) };
        self.gate.step(async { Ok(put.await) }).await.unwrap_or_else(failed)
    }
}

impl PutReadings for Steps {
    async fn put_readings(
        &self,
        readings: &[Reading],
        _: Option<TimeDelta>,
        invocation: &Invocation,
    ) -> PutOutcome {
        self.put(readings.len(), self.table.store(readings, invocation)).await
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
        self.table.merge_readings(readings, retention, invocation).await
    }
}

/// No request of the model deletes single readings.
impl DeleteReadings for Steps {
    async fn delete_readings(&self, keys: &[ReadingKey], invocation: &Invocation) -> PutOutcome {
        self.table.delete_readings(keys, invocation).await
    }
}

impl RemoveBelongings for Steps {
    async fn belongings(
        &self,
        id: &DeviceId,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<Belongings> {
        self.gate.step(self.table.look(id, limit, invocation)).await
    }

    async fn remove_belongings(
        &self,
        belongings: &[Belonging],
        invocation: &Invocation,
    ) -> PutOutcome {
        self.put(belongings.len(), self.table.remove(belongings, invocation)).await
    }
}
