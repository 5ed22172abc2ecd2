//! A gate before the operations of a table: each waits until the schedule of a test lets it go on, and happens, fails,
//! or happens and seems to fail, as the schedule says. Knows no model.

pub(crate) mod instances;
pub(crate) mod rules;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;
use std::time::Duration;

use fastrand::Rng;
use runtime::clock::Deadline;
use table::db::{Db, Each, ItemQuery, Items, RefusedWrites, Write, WriteOutcome};
use table::item::Item;
use table::layout::Layout;
use table::{Invocation, ItemKey, PutOutcome, StoreError, StoreResult, Target};

/// What is no step: no model has a rule of alerts, or the index by conditions.
const FREE: [Target; 9] = [
    Target::AlertChannels,
    Target::AlertRechecks,
    Target::AlertRules,
    Target::AlertRunning,
    Target::AlertSecrets,
    Target::AlertStates,
    Target::AlertTold,
    Target::AlertWaiting,
    Target::ConditionsSchema,
];

/// The outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It happens.
    Done,
    /// It does not happen, and may later.
    Failed,
    /// It happens, and its answer is lost.
    AnswerLost,
    /// It does not happen, and never would.
    Impossible,
}

impl Step {
    /// Mostly an operation happens; sometimes it fails, or its answer is lost, or it is impossible if it may be.
    pub(crate) fn any(rng: &mut Rng, may_be_impossible: bool) -> Self {
        match rng.u8(..100) {
            0..3 => Self::Failed,
            3..7 => Self::AnswerLost,
            7 if may_be_impossible => Self::Impossible,
            _ => Self::Done,
        }
    }
}

/// An invocation of a function.
pub(crate) type Invoked<T> = Pin<Box<dyn Future<Output = T>>>;

/// More than any schedule lasts.
pub(crate) fn deadline() -> Deadline {
    Deadline::after(Duration::from_secs(1_000_000))
}

/// The gate of one instance of a function. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The number of operations that wait: a task may have several under way.
    waiting: usize,
    granted: Option<Step>,
}

/// An operation that waits, until it goes on or its task is dropped.
struct Waiting<'a>(&'a Gate);

impl<'a> Waiting<'a> {
    fn begin(gate: &'a Gate) -> Self {
        gate.state().waiting += 1;
        Self(gate)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.waiting = state.waiting.saturating_sub(1);
    }
}

impl Gate {
    /// Runs an invocation up to its next operation; returns its answer where it ends before. Time goes on while it sleeps.
    pub(crate) async fn run<T>(&self, invoked: &mut Invoked<T>, step: Step) -> Option<T> {
        if self.is_waiting() {
            self.state().granted = Some(step);
        }
        let answer = poll_fn(|context| match invoked.as_mut().poll(context) {
            Poll::Pending if self.is_waiting() => Poll::Ready(None),
            running => running.map(Some),
        });
        let answer = answer.await;
        if answer.is_some() {
            self.state().granted = None;
        }
        answer
    }

    /// Whether an operation waits. A task that is not done and has no such operation is asleep.
    fn is_waiting(&self) -> bool {
        self.state().waiting > 0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics while it holds the gate")
    }

    /// An operation, as one step.
    pub(crate) async fn step<T>(
        &self,
        operation: impl Future<Output = StoreResult<T>> + Send,
    ) -> StoreResult<T> {
        let waiting = Waiting::begin(self);
        let step = poll_fn(|context| match self.state().granted.take() {
            Some(step) => Poll::Ready(step),
            None => {
                // Of several operations that wait at once, each is asked again whenever the task is.
                context.waker().wake_by_ref();
                Poll::Pending
            }
        });
        let step = step.await;
        drop(waiting);
        let lost = || StoreError::Unavailable("the schedule wants it so".into());
        match step {
            Step::Done => operation.await,
            Step::Failed => Err(lost()),
            Step::AnswerLost => operation.await.and_then(|_| Err(lost())),
            Step::Impossible => Err(StoreError::Inapplicable("the schedule wants it so".into())),
        }
    }
}

/// A table behind a gate: each operation is a step, unless all that it touches is free.
#[derive(Clone)]
pub(crate) struct Gated<D> {
    pub(crate) db: D,
    pub(crate) gate: Gate,
}

impl<D: Db> Gated<D> {
    pub(crate) fn new(db: D) -> Self {
        // No model asks in how many partitions the devices are, so the question is no step.
        db.has_checked_shards().store(true, Ordering::Relaxed);
        Self { db, gate: Gate::default() }
    }

    /// An operation on these items, as one step if it is one.
    async fn step<T>(
        &self,
        touched: impl IntoIterator<Item = Target>,
        operation: impl Future<Output = StoreResult<T>> + Send,
    ) -> StoreResult<T> {
        let is_free = touched.into_iter().all(|target| FREE.contains(&target));
        if is_free { operation.await } else { self.gate.step(operation).await }
    }
}

impl<D: Db> Db for Gated<D> {
    fn layout(&self) -> Layout {
        self.db.layout()
    }

    fn has_checked_shards(&self) -> &AtomicBool {
        self.db.has_checked_shards()
    }

    async fn get(&self, key: &ItemKey, invocation: &Invocation) -> StoreResult<Option<Item>> {
        self.step([target(key)], self.db.get(key, invocation)).await
    }

    async fn get_all(
        &self,
        keys: Vec<ItemKey>,
        invocation: &Invocation,
        each: Each<'_>,
    ) -> StoreResult<Vec<ItemKey>> {
        let touched: Vec<Target> = keys.iter().map(target).collect();
        self.step(touched, self.db.get_all(keys, invocation, each)).await
    }

    async fn query(
        &self,
        query: &ItemQuery,
        invocation: &Invocation,
        each: Each<'_>,
    ) -> StoreResult<Option<Item>> {
        let in_table = || Target::of_partition(&query.partition);
        let touched = query.index.map_or_else(in_table, Target::of_index);
        self.step([touched], self.db.query(query, invocation, each)).await
    }

    async fn write(&self, write: Write, invocation: &Invocation) -> StoreResult<WriteOutcome> {
        self.step([target(&write.key())], self.db.write(write, invocation)).await
    }

    async fn transact(
        &self,
        writes: Vec<Write>,
        invocation: &Invocation,
    ) -> StoreResult<Result<(), RefusedWrites>> {
        let touched: Vec<Target> = writes.iter().map(|write| target(&write.key())).collect();
        self.step(touched, self.db.transact(writes, invocation)).await
    }

    async fn put_all(&self, items: &impl Items, invocation: &Invocation) -> PutOutcome {
        let put = async { Ok(self.db.put_all(items, invocation).await) };
        let failed = |cause| {
            let not_stored = (0..items.count()).collect();
            PutOutcome { not_stored, cause: Some(cause) }
        };
        self.gate.step(put).await.unwrap_or_else(failed)
    }

    async fn insert_all(
        &self,
        items: &impl Items,
        positions: &[usize],
        invocation: &Invocation,
    ) -> Vec<bool> {
        let insert = async { Ok(self.db.insert_all(items, positions, invocation).await) };
        self.gate.step(insert).await.unwrap_or_else(|_| vec![false; positions.len()])
    }
}

fn target(key: &ItemKey) -> Target {
    Target::of_partition(&key.pk)
}
