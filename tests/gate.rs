//! A gate before the calls of a table in memory: each waits until the schedule of a test lets it go on, and
//! happens, fails, or happens and seems to fail, as the schedule says. Knows no model.

mod alerts;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use aws_lambda_events::event::streams::DynamoDbEventResponse;
use fastrand::Rng;
use runtime::clock::Deadline;
use runtime::work_queue::FoldRequest;
use serde::de::DeserializeOwned;
use serde_json::json;
use table::{StoreError, StoreResult};

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
    /// Mostly a call happens; sometimes it fails, or its answer is lost, or it is impossible if it may be.
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

/// One of those that are so, if any is.
pub(crate) fn any_of(rng: &mut Rng, are_so: impl Iterator<Item = bool>) -> Option<usize> {
    let all: Vec<usize> = are_so.enumerate().filter(|(_, is_so)| *is_so).map(|(n, _)| n).collect();
    (!all.is_empty()).then(|| all[rng.usize(..all.len())])
}

/// The position of the first record of a batch that failed.
pub(crate) fn first_failure(answer: DynamoDbEventResponse) -> Option<usize> {
    let failure = answer.batch_item_failures.into_iter().next()?;
    Some(failure.item_identifier?.parse().expect("a position"))
}

/// A message of the work queue, as the function is invoked with it.
pub(crate) fn message_event<T: DeserializeOwned>(request: &FoldRequest) -> T {
    let body = serde_json::to_string(request).expect("JSON");
    let event = json!({"Records": [{"messageId": "m", "body": body}]});
    serde_json::from_value(event).expect("an event")
}

/// More than any schedule lasts.
pub(crate) fn deadline() -> Deadline {
    Deadline::after(Duration::from_secs(1_000_000))
}

/// The gate of one instance of a function. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// The number of calls that wait: a task may have several under way.
    waiting: usize,
    granted: Option<Step>,
}

/// A call that waits, until it goes on or its task is dropped.
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
    /// Runs an invocation up to its next call; returns its answer where it ends before.
    pub(crate) async fn run<T>(&self, invoked: &mut Invoked<T>, step: Step) -> Option<T> {
        if self.is_waiting() {
            self.state().granted = Some(step);
        }
        let mut context = Context::from_waker(Waker::noop());
        loop {
            match invoked.as_mut().poll(&mut context) {
                Poll::Ready(answer) => {
                    self.state().granted = None;
                    return Some(answer);
                }
                Poll::Pending if self.is_waiting() => return None,
                // It sleeps before another attempt.
                Poll::Pending => tokio::time::advance(Duration::from_millis(400)).await,
            }
        }
    }

    /// Whether a call waits. A task that is not done and has no such call is asleep.
    fn is_waiting(&self) -> bool {
        self.state().waiting > 0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics while it holds the gate")
    }

    /// A call, as one step.
    pub(crate) async fn step<T>(
        &self,
        call: impl Future<Output = StoreResult<T>> + Send,
    ) -> StoreResult<T> {
        let waiting = Waiting::begin(self);
        let step = poll_fn(|context| match self.state().granted.take() {
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

/// A table between a gate and the memory that it dereferences to: what it does not do itself, that does.
#[derive(Debug, Clone)]
pub(crate) struct Gated<T> {
    pub(crate) table: T,
    pub(crate) gate: Gate,
    /// The calls that are no step, because a model looks at nothing that they touch.
    free: &'static [&'static str],
}

impl<T> Gated<T> {
    pub(crate) fn new(table: T, free: &'static [&'static str]) -> Self {
        Self { table, gate: Gate::default(), free }
    }

    /// A call, as one step if it is one.
    pub(crate) async fn call<A>(
        &self,
        name: &str,
        call: impl Future<Output = StoreResult<A>> + Send,
    ) -> StoreResult<A> {
        if self.free.contains(&name) { call.await } else { self.gate.step(call).await }
    }
}

/// Implements ports for `Gated<$table>`: each call is a step, and then a call of the table.
macro_rules! gated {
    ($table:ty: $($port:ident),+ $(,)?) => {
        #[allow(clippy::wildcard_imports, reason = "a model names ports, not what they speak of")]
        const _: () = {
            use domain::*;
            use table::*;

            use $crate::gate::{Gated, gated};

            $(gated!(@$port $table);)+
        };
    };
    (@AddArrival $table:ty) => { gated! { @impl AddArrival for $table:
        add_arrival(reading: &Reading, id: &str, retention: Option<chrono::TimeDelta>) -> Added;
    } };
    (@AddToken $table:ty) => { gated! { @impl AddToken for $table:
        add_token(token: &Token) -> ();
    } };
    (@CountIntroduced $table:ty) => { gated! { @impl CountIntroduced for $table:
        count_introduced(sender: &str, more: usize, limit: usize) -> Option<usize>;
    } };
    (@EditAnnotations $table:ty) => { gated! { @impl EditAnnotations for $table:
        put_annotation(annotation: &Annotation) -> ();
        delete_annotation(id: &AnnotationId) -> bool;
    } };
    (@EditRegistry $table:ty) => { gated! { @impl EditRegistry for $table:
        edit_device(id: &DeviceId, patch: &DevicePatch, now: Timestamp)
            -> UpdateOutcome<Edited, DevicePatchError>;
        edit_room(id: &RoomId, patch: &RoomPatch) -> UpdateOutcome<Room>;
    } };
    (@FindRegistry $table:ty) => { gated! { @impl FindRegistry for $table:
        find_devices(ids: &[DeviceId]) -> Listing<Device>;
        find_some_devices(ids: &[DeviceId]) -> (Listing<Device>, Vec<DeviceId>);
        find_rooms(ids: &[RoomId]) -> Listing<Room>;
    } };
    (@FindToken $table:ty) => { gated! { @impl FindToken for $table:
        token(hash: &TokenHash) -> Option<Token>;
    } };
    (@KeepRollupState $table:ty) => { gated! { @impl KeepRollupState for $table:
        begin_rollups(state: &RollupState) -> InsertOutcome<RollupState>;
        advance_sealed(
            groups: &std::collections::BTreeSet<usize>, sealed: Timestamp, queue: Option<QueueDepth>
        ) -> ();
        set_back_sealed(groups: &std::collections::BTreeSet<usize>, sealed: Timestamp) -> ();
        note_backlog(backlog: Backlog) -> ();
        distrust_conditions() -> ();
        set_room_walk(walk: &RoomWalk) -> ();
        set_rebuilt(since: Timestamp, zone: &str) -> ();
        set_refold(device: &DeviceId, refold: &Refold) -> ();
    } };
    (@ListDevices $table:ty) => { gated! { @impl ListDevices for $table:
        device_page(after: Option<&DeviceId>, limit: usize) -> ListPage<Device>;
        all_devices() -> Listing<Device>;
    } };
    (@LookUpRegistry $table:ty) => { gated! { @impl LookUpRegistry for $table:
        device(id: &DeviceId) -> Option<Device>;
        deletion(id: &DeviceId) -> Option<Deletion>;
        room(id: &RoomId) -> Option<Room>;
    } };
    (@MarkDeletions $table:ty) => { gated! { @impl MarkDeletions for $table:
        begin_deletion(id: &DeviceId, at: Timestamp) -> BegunDeletion;
        note_found(id: &DeviceId, at: Timestamp) -> Option<Deletion>;
        end_deletion(id: &DeviceId, known: &Deletion, at: Timestamp) -> bool;
    } };
    (@MarkIndexed $table:ty) => { gated! { @impl MarkIndexed for $table:
        mark_indexed(now: Timestamp) -> bool;
    } };
    (@MarkLateChanges $table:ty) => { gated! { @impl MarkLateChanges for $table:
        put_late_marks(marks: &[LateMark], expected: u64) -> Option<LateChanges>;
    } };
    (@NoteSeen $table:ty) => { gated! { @impl NoteSeen for $table:
        seen(room: &RoomId, device: &DeviceId) -> Option<Seen>;
        put_seen(seen: &Seen, expected: Expected) -> bool;
    } };
    (@PageRegistry $table:ty) => { gated! { @impl PageRegistry for $table:
        room_page(after: Option<&RoomId>, limit: usize) -> ListPage<Room>;
        room_device_page(room: &RoomId, after: Option<&DeviceId>, limit: usize)
            -> Option<ListPage<Device>>;
    } };
    (@PutConditionsSchema $table:ty) => { gated! { @impl PutConditionsSchema for $table:
        put_conditions_schema(schema: &ConditionsSchema, expected: Expected) -> bool;
    } };
    (@PutRollups $table:ty) => { gated! { @impl PutRollups for $table:
        put_rollup(stored: &StoredRollup, expected: Expected) -> bool;
    } };
    (@QueryConditions $table:ty) => { gated! { @impl QueryConditions for $table:
        indexed_quarters(
            of: (&DeviceId, Timestamp), addresses: (&[u8], &[u8]),
            after: Option<&IndexedQuarter>, limit: usize
        ) -> ConditionsPage;
    } };
    (@QueryReadings $table:ty) => { gated! { @impl QueryReadings for $table:
        device_readings(device: &DeviceId, query: &RangeQuery) -> Page;
    } };
    (@ReadLateChanges $table:ty) => { gated! { @impl ReadLateChanges for $table:
        late_changes() -> LateChanges;
    } };
    (@ReadRegistry $table:ty) => { gated! { @impl ReadRegistry for $table:
        devices() -> Listing<Device>;
        rooms() -> Listing<Room>;
    } };
    (@ReadRollups $table:ty) => { gated! { @impl ReadRollups for $table:
        rollup(key: &RollupKey) -> Option<StoredRollup>;
        quarters(device: &DeviceId, range: TimeRange, consistent: bool) -> Vec<StoredRollup>;
        days(device: &DeviceId, dates: (LocalDate, LocalDate), order: Order, limit: usize)
            -> Vec<StoredRollup>;
    } };
    (@ReadRefold $table:ty) => { gated! { @impl ReadRefold for $table:
        refold(device: &DeviceId) -> Refold;
    } };
    (@ReadRollupState $table:ty) => { gated! { @impl ReadRollupState for $table:
        rollup_state() -> Option<RollupState>;
        room_walk() -> Option<RoomWalk>;
    } };
    (@ReadSeen $table:ty) => { gated! { @impl ReadSeen for $table:
        seen_in(room: &RoomId, months: (Month, Month), limit: usize) -> Vec<Seen>;
    } };
    (@ReadStays $table:ty) => { gated! { @impl ReadStays for $table:
        stays_of(device: &DeviceId, query: &StayQuery) -> StayPage;
        stays_in(room: &RoomId, query: &StayQuery) -> StayPage;
    } };
    (@ReadStoredReadings $table:ty) => { gated! { @impl ReadStoredReadings for $table:
        stored_readings(device: &DeviceId, range: TimeRange) -> Vec<StoredReading>;
    } };
    (@RegisterDevices $table:ty) => { gated! { @impl RegisterDevices for $table:
        register_device(device: &Device) -> Registration;
        register_room(room: &Room) -> InsertOutcome<Room>;
        introduce_room(device: &DeviceId, room: &RoomId) -> UpdateOutcome<Device>;
    } };
    (@RemoveRooms $table:ty) => { gated! { @impl RemoveRooms for $table:
        remove_room(id: &RoomId) -> ();
        put_back_room(room: &Room) -> ();
        leave_home(room: &RoomId, home: &HomeId) -> bool;
    } };
    (@SearchDevices $table:ty) => { gated! { @impl SearchDevices for $table:
        is_indexed() -> bool;
        search(query: &SearchQuery<'_>) -> SearchPage;
    } };
    (@TeachRegistry $table:ty) => { gated! { @impl TeachRegistry for $table:
        teach_device(known: &Device, hints: &Hints) -> UpdateOutcome<Device>;
        name_room(id: &RoomId, name: &Label) -> UpdateOutcome<Room>;
    } };
    (@UpdateRegistry $table:ty) => { gated! { @impl UpdateRegistry for $table:
        update_device(known: &Device, learned: &DeviceUpdate) -> UpdateOutcome<Device>;
        begin_stay(known: &Device, stay: &Stay) -> UpdateOutcome<Device>;
        update_room(id: &RoomId, first_seen: Timestamp) -> UpdateOutcome<Room>;
    } };
    (@EditAlertRules $table:ty) => { gated! { @impl EditAlertRules for $table:
        put_alert_rule(rule: &StoredRule) -> bool;
        delete_alert_rule(id: &RuleId) -> bool;
    } };
    (@EditChannels $table:ty) => { gated! { @impl EditChannels for $table:
        put_channel(channel: &StoredChannel, secret: Option<&ChannelSecret>) -> bool;
        delete_channel(id: &ChannelId) -> ();
    } };
    (@EditAlertStates $table:ty) => { gated! { @impl EditAlertStates for $table:
        put_alert_state(state: &StoredAlertState) -> bool;
    } };
    (@ReadToldMessages $table:ty) => { gated! { @impl ReadToldMessages for $table:
        told_messages(query: &ToldQuery) -> ListPage<ToldMessage>;
    } };
    (@ReadWaitingMessages $table:ty) => { gated! { @impl ReadWaitingMessages for $table:
        waiting_messages(
            channel: &ChannelId, now: Timestamp, after: Option<&WaitingKey>, limit: usize
        ) -> ListPage<WaitingMessage>;
    } };
    (@PutTestMessages $table:ty) => { gated! { @impl PutTestMessages for $table:
        put_test_message(message: &WaitingMessage) -> bool;
    } };
    (@QueryRoomReadings $table:ty) => { gated! {
        @impl QueryRoomReadings (has_room_index) for $table:
        room_readings(room: &RoomId, devices: &[DeviceId], query: &RangeQuery) -> Page;
    } };
    (@ReadAnnotations $table:ty) => { gated! { @impl ReadAnnotations for $table:
        annotations(query: &AnnotationQuery) -> AnnotationPage;
    } };
    (@ReadConditionsSchema $table:ty) => { gated! {
        @impl ReadConditionsSchema (has_conditions_index) for $table:
        conditions_schema() -> Option<StoredSchema>;
    } };
    (@impl $port:ident $(($has:ident))? for $table:ty:
        $($call:ident($($name:ident: $of:ty),*) -> $answer:ty;)+
    ) => {
        impl $port for Gated<$table> {
            $(fn $has(&self) -> bool {
                self.table.$has()
            })?

            $(async fn $call(
                &self,
                $($name: $of,)*
                invocation: &Invocation,
            ) -> StoreResult<$answer> {
                self.call(stringify!($call), self.table.$call($($name,)* invocation)).await
            })+
        }
    };
}
pub(crate) use gated;
