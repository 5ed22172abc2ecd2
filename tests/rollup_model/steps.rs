//! A table in memory whose every call is a step of the schedule. Stores what the design says.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::{Device, DeviceId, LocalDate, Order, RoomId, SWEEP_GROUPS, TimeRange, Timestamp};
use table::memory::MemoryStore;
use table::{
    Backlog, Expected, FindRegistry, InsertOutcome, Invocation, KeepRollupState, ListDevices,
    ListPage, Listing, NoteSeen, Page, PutRollups, QueryReadings, QueueDepth, RangeQuery,
    ReadConditionsSchema, ReadRollupState, ReadRollups, ReadStoredReadings, Refold, RollupKey,
    RollupState, RoomWalk, Seen, StoreResult, StoredReading, StoredRollup, StoredSchema,
};

use super::design::Design;
use crate::gate::Gate;

/// The table as one instance of the function sees it.
#[derive(Debug, Clone)]
pub(super) struct Steps {
    memory: MemoryStore,
    design: Design,
    /// Whether the instance is at a batch of the stream.
    is_streaming: Arc<AtomicBool>,
    pub(super) gate: Gate,
}

impl Steps {
    pub(super) fn new(memory: &MemoryStore, design: Design) -> Self {
        let (is_streaming, gate) = (Arc::default(), Gate::default());
        Self { memory: memory.clone(), design, is_streaming, gate }
    }

    /// Notes what the instance is at.
    pub(super) fn begin(&self, is_streaming: bool) {
        self.is_streaming.store(is_streaming, Ordering::Relaxed);
    }
}

impl ReadStoredReadings for Steps {
    async fn stored_readings(
        &self,
        device: &DeviceId,
        range: TimeRange,
        invocation: &Invocation,
    ) -> StoreResult<Vec<StoredReading>> {
        self.gate.step(self.design.readings(&self.memory, device, range, invocation)).await
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

impl ReadRollups for Steps {
    async fn rollup(
        &self,
        key: &RollupKey,
        invocation: &Invocation,
    ) -> StoreResult<Option<StoredRollup>> {
        let found = self.gate.step(self.memory.rollup(key, invocation)).await?;
        Ok(found.map(|it| self.design.shown(it)))
    }

    async fn quarters(
        &self,
        device: &DeviceId,
        range: TimeRange,
        consistent: bool,
        invocation: &Invocation,
    ) -> StoreResult<Vec<StoredRollup>> {
        let found =
            self.gate.step(self.memory.quarters(device, range, consistent, invocation)).await?;
        Ok(found.into_iter().map(|it| self.design.shown(it)).collect())
    }

    async fn days(
        &self,
        device: &DeviceId,
        dates: (LocalDate, LocalDate),
        order: Order,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<Vec<StoredRollup>> {
        self.gate.step(self.memory.days(device, dates, order, limit, invocation)).await
    }
}

impl PutRollups for Steps {
    async fn put_rollup(
        &self,
        stored: &StoredRollup,
        expected: Expected,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        self.gate.step(self.design.put(&self.memory, stored, expected, invocation)).await
    }
}

impl NoteSeen for Steps {
    async fn seen(
        &self,
        room: &RoomId,
        device: &DeviceId,
        invocation: &Invocation,
    ) -> StoreResult<Option<Seen>> {
        self.gate.step(self.memory.seen(room, device, invocation)).await
    }

    async fn put_seen(
        &self,
        seen: &Seen,
        expected: Expected,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        self.gate.step(self.memory.put_seen(seen, expected, invocation)).await
    }
}

impl ReadRollupState for Steps {
    async fn rollup_state(&self, invocation: &Invocation) -> StoreResult<Option<RollupState>> {
        let found = self.gate.step(self.memory.rollup_state(invocation)).await?;
        let is_hidden = self.design.hides_marks() && self.is_streaming.load(Ordering::Relaxed);
        let hidden = |state| RollupState { sealed: [Timestamp::MIN; SWEEP_GROUPS], ..state };
        Ok(if is_hidden { found.map(hidden) } else { found })
    }

    /// The walk touches no rollup, so it is no step.
    async fn room_walk(&self, invocation: &Invocation) -> StoreResult<Option<RoomWalk>> {
        self.memory.room_walk(invocation).await
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

impl KeepRollupState for Steps {
    async fn begin_rollups(
        &self,
        state: &RollupState,
        invocation: &Invocation,
    ) -> StoreResult<InsertOutcome<RollupState>> {
        self.gate.step(self.memory.begin_rollups(state, invocation)).await
    }

    async fn advance_sealed(
        &self,
        groups: &BTreeSet<usize>,
        sealed: Timestamp,
        queue: Option<QueueDepth>,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        self.gate.step(self.memory.advance_sealed(groups, sealed, queue, invocation)).await
    }

    async fn set_back_sealed(
        &self,
        groups: &BTreeSet<usize>,
        sealed: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        if self.design == Design::OnlyForward {
            return Ok(());
        }
        self.gate.step(self.memory.set_back_sealed(groups, sealed, invocation)).await
    }

    async fn note_backlog(&self, backlog: Backlog, invocation: &Invocation) -> StoreResult<()> {
        self.gate.step(self.memory.note_backlog(backlog, invocation)).await
    }

    async fn set_room_walk(&self, walk: &RoomWalk, invocation: &Invocation) -> StoreResult<()> {
        self.memory.set_room_walk(walk, invocation).await
    }

    async fn distrust_conditions(&self, invocation: &Invocation) -> StoreResult<()> {
        self.memory.distrust_conditions(invocation).await
    }

    async fn set_rebuilt(
        &self,
        since: Timestamp,
        zone: &str,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        self.gate.step(self.memory.set_rebuilt(since, zone, invocation)).await
    }

    async fn refold(&self, device: &DeviceId, invocation: &Invocation) -> StoreResult<Refold> {
        self.gate.step(self.memory.refold(device, invocation)).await
    }

    async fn set_refold(
        &self,
        device: &DeviceId,
        refold: &Refold,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        self.gate.step(self.memory.set_refold(device, refold, invocation)).await
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
    ) -> StoreResult<Listing<domain::Room>> {
        self.gate.step(self.memory.find_rooms(ids, invocation)).await
    }
}

impl ListDevices for Steps {
    async fn device_page(
        &self,
        after: Option<&DeviceId>,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<ListPage<Device>> {
        self.gate.step(self.memory.device_page(after, limit, invocation)).await
    }

    async fn all_devices(&self, invocation: &Invocation) -> StoreResult<Listing<Device>> {
        self.gate.step(self.memory.all_devices(invocation)).await
    }
}
