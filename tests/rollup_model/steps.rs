//! A table in memory whose every call is a step: it waits until the schedule lets it go on, and happens,
//! fails, or happens and seems to fail, as the schedule says.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;

use domain::{Device, DeviceId, LocalDate, Order, TimeRange, Timestamp};
use table::memory::MemoryStore;
use table::{
    Expected, FindRegistry, InsertOutcome, Invocation, KeepRollupState, ListDevices, ListPage,
    Listing, Page, PutRollups, QueryReadings, QueueDepth, RangeQuery, ReadRollupState, ReadRollups,
    ReadStoredReadings, Refold, RollupKey, RollupState, StoreError, StoreResult, StoredReading,
    StoredRollup,
};

use super::design::Design;

/// The outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// It happens.
    Done,
    /// It does not happen, and may later.
    Failed,
    /// It happens, and its answer is lost.
    AnswerLost,
    /// It does not happen, and never would.
    Impossible,
}

/// The table as one instance of the function sees it.
#[derive(Debug, Clone)]
pub(super) struct Steps {
    memory: MemoryStore,
    design: Design,
    gate: Arc<Mutex<Gate>>,
}

#[derive(Debug, Default)]
struct Gate {
    /// The number of calls that wait: a task may have several under way.
    waiting: usize,
    granted: Option<Step>,
}

/// A call that waits, until it goes on or its task is dropped.
struct Waiting<'a>(&'a Steps);

impl<'a> Waiting<'a> {
    fn begin(steps: &'a Steps) -> Self {
        steps.gate().waiting += 1;
        Self(steps)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut gate = self.0.gate();
        gate.waiting = gate.waiting.saturating_sub(1);
    }
}

impl Steps {
    pub(super) fn new(memory: &MemoryStore, design: Design) -> Self {
        Self { memory: memory.clone(), design, gate: Arc::default() }
    }

    /// Whether a call waits. A task that is not done and has no such call is asleep.
    pub(super) fn is_waiting(&self) -> bool {
        self.gate().waiting > 0
    }

    /// Lets the call that waits go on.
    pub(super) fn grant(&self, step: Step) {
        self.gate().granted = Some(step);
    }

    /// Takes back what was granted to a task that was dropped.
    pub(super) fn reset(&self) {
        self.gate().granted = None;
    }

    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().expect("no test panics while it holds the gate")
    }

    async fn step<T>(&self, call: impl Future<Output = StoreResult<T>> + Send) -> StoreResult<T> {
        let waiting = Waiting::begin(self);
        let step = poll_fn(|context| match self.gate().granted.take() {
            Some(step) => Poll::Ready(step),
            None => {
                // Of several calls that wait at once, each is asked again whenever the task is.
                context.waker().wake_by_ref();
                Poll::Pending
            }
        });
        let step = step.await;
        drop(waiting);
        let lost = || StoreError::Unavailable("the schedule wants it so".into());
        match step {
            Step::Done => call.await,
            Step::Failed => Err(lost()),
            Step::AnswerLost => call.await.and_then(|_| Err(lost())),
            Step::Impossible => Err(StoreError::Inapplicable("the schedule wants it so".into())),
        }
    }
}

impl ReadStoredReadings for Steps {
    async fn stored_readings(
        &self,
        device: &DeviceId,
        range: TimeRange,
        invocation: &Invocation,
    ) -> StoreResult<Vec<StoredReading>> {
        self.step(self.design.readings(&self.memory, device, range, invocation)).await
    }
}

impl QueryReadings for Steps {
    async fn device_readings(
        &self,
        device: &DeviceId,
        query: &RangeQuery,
        invocation: &Invocation,
    ) -> StoreResult<Page> {
        self.step(self.memory.device_readings(device, query, invocation)).await
    }
}

impl ReadRollups for Steps {
    async fn rollup(
        &self,
        key: &RollupKey,
        invocation: &Invocation,
    ) -> StoreResult<Option<StoredRollup>> {
        let found = self.step(self.memory.rollup(key, invocation)).await?;
        Ok(found.map(|it| self.design.shown(it)))
    }

    async fn quarters(
        &self,
        device: &DeviceId,
        range: TimeRange,
        consistent: bool,
        invocation: &Invocation,
    ) -> StoreResult<Vec<StoredRollup>> {
        let found = self.step(self.memory.quarters(device, range, consistent, invocation)).await?;
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
        self.step(self.memory.days(device, dates, order, limit, invocation)).await
    }
}

impl PutRollups for Steps {
    async fn put_rollup(
        &self,
        stored: &StoredRollup,
        expected: Expected,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        self.step(self.design.put(&self.memory, stored, expected, invocation)).await
    }
}

impl ReadRollupState for Steps {
    async fn rollup_state(&self, invocation: &Invocation) -> StoreResult<Option<RollupState>> {
        self.step(self.memory.rollup_state(invocation)).await
    }
}

impl KeepRollupState for Steps {
    async fn begin_rollups(
        &self,
        state: &RollupState,
        invocation: &Invocation,
    ) -> StoreResult<InsertOutcome<RollupState>> {
        self.step(self.memory.begin_rollups(state, invocation)).await
    }

    async fn advance_sealed(
        &self,
        groups: &BTreeSet<usize>,
        sealed: Timestamp,
        queue: Option<QueueDepth>,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        self.step(self.memory.advance_sealed(groups, sealed, queue, invocation)).await
    }

    async fn set_rebuilt(
        &self,
        since: Timestamp,
        zone: &str,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        self.step(self.memory.set_rebuilt(since, zone, invocation)).await
    }

    async fn refold(&self, device: &DeviceId, invocation: &Invocation) -> StoreResult<Refold> {
        self.step(self.memory.refold(device, invocation)).await
    }

    async fn set_refold(
        &self,
        device: &DeviceId,
        refold: &Refold,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        self.step(self.memory.set_refold(device, refold, invocation)).await
    }
}

impl FindRegistry for Steps {
    async fn find_devices(
        &self,
        ids: &[DeviceId],
        invocation: &Invocation,
    ) -> StoreResult<Listing<Device>> {
        self.step(self.memory.find_devices(ids, invocation)).await
    }

    async fn find_rooms(
        &self,
        ids: &[domain::RoomId],
        invocation: &Invocation,
    ) -> StoreResult<Listing<domain::Room>> {
        self.step(self.memory.find_rooms(ids, invocation)).await
    }
}

impl ListDevices for Steps {
    async fn device_page(
        &self,
        after: Option<&DeviceId>,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<ListPage<Device>> {
        self.step(self.memory.device_page(after, limit, invocation)).await
    }

    async fn all_devices(&self, invocation: &Invocation) -> StoreResult<Listing<Device>> {
        self.step(self.memory.all_devices(invocation)).await
    }
}
