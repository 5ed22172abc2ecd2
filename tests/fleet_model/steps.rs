//! A table in memory whose every call is a step of the schedule. Begins stays as the design says.

use domain::{Device, DeviceId, DeviceUpdate, Room, RoomId, Stay, Timestamp};
use table::memory::MemoryStore;
use table::{
    FindRegistry, InsertOutcome, Invocation, Listing, Page, QueryReadings, RangeQuery,
    RegisterDevices, Registration, StoreResult, UpdateOutcome, UpdateRegistry,
};

use crate::gate::Gate;

/// A design of the stays that are learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Design {
    /// A stay is written for the version and the place that were read.
    Ours,
    /// A stay is written whatever is there now.
    Blind,
}

/// The table as one instance of the function sees it.
#[derive(Debug, Clone)]
pub(super) struct Steps {
    memory: MemoryStore,
    design: Design,
    pub(super) gate: Gate,
}

impl Steps {
    pub(super) fn new(memory: &MemoryStore, design: Design) -> Self {
        Self { memory: memory.clone(), design, gate: Gate::default() }
    }

    async fn begun(
        &self,
        known: &Device,
        stay: &Stay,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Device>> {
        let now = self.memory.find_devices(std::slice::from_ref(known.id()), invocation).await?;
        let Some(now) = now.found.into_iter().next() else {
            return self.memory.begin_stay(known, stay, invocation).await;
        };
        let expected = match self.design {
            Design::Ours => known.clone(),
            Design::Blind => now,
        };
        self.memory.begin_stay(&expected, stay, invocation).await
    }
}

impl FindRegistry for Steps {
    async fn find_devices(
        &self,
        ids: &[DeviceId],
        invocation: &Invocation,
    ) -> StoreResult<Listing<Device>> {
        self.gate.step(self.memory.find_devices(ids, invocation)).await
    }

    async fn find_rooms(
        &self,
        ids: &[RoomId],
        invocation: &Invocation,
    ) -> StoreResult<Listing<Room>> {
        self.gate.step(self.memory.find_rooms(ids, invocation)).await
    }
}

impl RegisterDevices for Steps {
    async fn register_device(
        &self,
        device: &Device,
        invocation: &Invocation,
    ) -> StoreResult<Registration> {
        self.gate.step(self.memory.register_device(device, invocation)).await
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

impl UpdateRegistry for Steps {
    async fn update_device(
        &self,
        known: &Device,
        learned: &DeviceUpdate,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Device>> {
        self.gate.step(self.memory.update_device(known, learned, invocation)).await
    }

    async fn begin_stay(
        &self,
        known: &Device,
        stay: &Stay,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Device>> {
        self.gate.step(self.begun(known, stay, invocation)).await
    }

    async fn update_room(
        &self,
        id: &RoomId,
        first_seen: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Room>> {
        self.gate.step(self.memory.update_room(id, first_seen, invocation)).await
    }
}

impl QueryReadings for Steps {
    async fn device_readings(
        &self,
        device: &DeviceId,
        query: &RangeQuery,
        invocation: &Invocation,
    ) -> StoreResult<Page> {
        self.gate.step(self.memory.device_readings(device, query, invocation)).await
    }
}
