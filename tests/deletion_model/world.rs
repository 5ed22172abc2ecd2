//! The world of one schedule: devices that send, people who delete, move and edit, the stream, the queue, the
//! clock, and instances of the functions that crash, lag and work at the same time. Judges what they leave.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use domain::{
    Bucket, DeletedDevice, Device, DeviceId, DevicePatch, Edit, FoldRules, MetricPatch,
    QuarterHour, Reading, Rollup as Folded,
};
use fastrand::Rng;
use ingest::Ingest;
use query::Query;
use registry::Registry;
use rollup::{Retention, Rollup};
use runtime::clock::TestClock;
use runtime::dead_letters::MemoryQueue;
use runtime::telemetry::Telemetry;
use runtime::work_queue::{FoldRequest, MemoryWorkQueue, WorkQueue as _};
use serde_json::json;
use table::memory_db::MemoryDb;
use table::{
    Belongings, EditRegistry as _, FindRegistry as _, Invocation, Listing, LookUpRegistry as _,
    ReadingKey, RemoveBelongings as _,
};

use super::steps::{Design, Log, LoggedDesign, Steps};
use crate::gate::rules::Ruled;
use crate::gate::{Gated, Invoked, Step, any_of, deadline, first_failure, message_event};
use crate::given::{
    Answer, at, device, metric, number, open_ingest, open_query, placed, post, reading, request,
    room,
};

const DEVICES: [&str; 2] = ["a", "b"];
const ROOMS: [&str; 2] = ["x", "y"];
const METRIC: &str = "cumulative_kwh_p";
const VALUES: [&str; 3] = ["1", "2", "9"];
const INSTANCES: usize = 4;
const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
/// The quarters before now in which devices send.
const QUARTERS: i64 = 3;

/// One instance of each function, on one way to the table: one of them handles one event at a time.
struct Instance {
    ingest: Arc<Ingest<Steps, TestClock>>,
    query: Arc<Query<Steps, TestClock>>,
    registry: Arc<Registry<Steps, MemoryQueue, TestClock>>,
    rollup: Arc<Rollup<Steps, MemoryWorkQueue, MemoryQueue, TestClock>>,
    steps: Steps,
    clock: TestClock,
    task: Option<Task>,
}

struct Task {
    future: Invoked<Outcome>,
    event: Event,
    begun: i64,
}

#[derive(Debug, Clone)]
enum Event {
    Post(Vec<Reading>),
    DeleteDevice(&'static str),
    DeleteRoom(&'static str),
    /// The records from one position on, so many, to one consumer.
    Records(Consumer, usize, usize),
    Message(FoldRequest),
    Schedule,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Consumer {
    Registry,
    Rollup,
}

#[derive(Debug)]
enum Outcome {
    Answered(Answer),
    /// The first record to deliver again; for a message 0 if it failed.
    Handled(Option<usize>),
}

pub(super) struct World {
    rng: Rng,
    design: Design,
    memory: MemoryDb,
    log: Arc<Mutex<Log>>,
    queue: MemoryWorkQueue,
    /// Everything before is delivered.
    positions: BTreeMap<Consumer, usize>,
    /// Milliseconds from the start that tests count from.
    now: i64,
    instances: Vec<Instance>,
    invocation: Invocation,
    /// The number of ends of deletions that are judged.
    ended: BTreeMap<DeviceId, usize>,
    wrong: Vec<String>,
}

impl Event {
    /// The time after which the function is killed, as the template says.
    const fn limit(&self) -> i64 {
        match self {
            Self::Post(_) | Self::DeleteDevice(_) | Self::DeleteRoom(_) => 25 * SECOND,
            Self::Records(Consumer::Registry, ..) => MINUTE,
            Self::Records(Consumer::Rollup, ..) | Self::Message(_) | Self::Schedule => 5 * MINUTE,
        }
    }
}

impl World {
    pub(super) fn new(seed: u64, design: Design) -> Self {
        let mut world = Self {
            rng: Rng::with_seed(seed),
            design,
            memory: MemoryDb::default(),
            log: Arc::default(),
            queue: MemoryWorkQueue::default(),
            positions: [(Consumer::Registry, 0), (Consumer::Rollup, 0)].into(),
            now: 100 * MINUTE,
            instances: Vec::new(),
            invocation: Invocation::until(deadline()),
            ended: BTreeMap::new(),
            wrong: Vec::new(),
        };
        world.instances = (0..INSTANCES).map(|_| world.instance()).collect();
        world
    }

    fn instance(&self) -> Instance {
        let rules = LoggedDesign { design: self.design, log: Arc::clone(&self.log) };
        let steps = Gated::new(Ruled::new(&self.memory, rules));
        let clock = TestClock::at(at(self.now));
        let (letters, silent) = (MemoryQueue::default, Telemetry::silent);
        let query = open_query(steps.clone(), clock.clone());
        let ingest = open_ingest(steps.clone(), clock.clone());
        let registry = Registry::new(steps.clone(), letters(), clock.clone(), silent());
        let settings = rollup::Settings {
            zone: "UTC".parse().expect("a zone"),
            retention: Retention::default(),
            following: rollups::Following::default(),
            max_read_units: u32::MAX,
            max_write_units: u32::MAX,
        };
        let work = self.queue.clone();
        let rollup = Rollup::new(steps.clone(), work, letters(), clock.clone(), silent(), settings);
        Instance {
            ingest: Arc::new(ingest),
            query: Arc::new(query),
            registry: Arc::new(registry),
            rollup: Arc::new(rollup),
            steps,
            clock,
            task: None,
        }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().expect("no test panics while it holds the log")
    }

    // ---- Life ----------------------------------------------------------------------------------

    /// A random schedule.
    pub(super) async fn live(&mut self) {
        for _ in 0..self.rng.usize(60..240) {
            match self.rng.u8(..100) {
                0..10 => self.write(),
                10..16 => self.delete_device(),
                16..18 => self.delete_room(),
                18..20 => self.choose().await,
                20..22 => self.change_settings().await,
                22..34 => {
                    let seconds = [1, 5, 20, 61, 200, 420, 900];
                    let seconds = seconds[self.rng.usize(..seconds.len())];
                    self.advance(seconds).await;
                }
                34..44 => self.deliver(),
                44..46 => self.begin(Event::Schedule),
                46..48 => self.take_message().await,
                48..49 => self.crash().await,
                _ => self.step_any().await,
            }
            self.observe().await;
        }
    }

    fn begin(&mut self, event: Event) {
        if let Some(n) = self.any(false) {
            self.start(n, event);
        }
    }

    /// A request with readings of now or of before, some sent again.
    fn write(&mut self) {
        let readings: BTreeMap<ReadingKey, Reading> = (0..self.rng.usize(1..4))
            .map(|_| {
                let id = DEVICES[self.rng.usize(..DEVICES.len())];
                let quarter = self.rng.i64(0..QUARTERS);
                let millis = (self.now - quarter * 15 * MINUTE).div_euclid(MINUTE) * MINUTE;
                let value = VALUES[self.rng.usize(..VALUES.len())];
                let sent = reading(id, millis, &[(METRIC, value)]);
                let sent = match self.rng.usize(..ROOMS.len() + 2) {
                    n if n < ROOMS.len() => placed(sent, ROOMS[n]),
                    _ => sent,
                };
                (ReadingKey::of(&sent), sent)
            })
            .collect();
        self.begin(Event::Post(readings.into_values().collect()));
    }

    fn delete_device(&mut self) {
        // One of them more often, so that two people delete it at once.
        let id = DEVICES[usize::from(self.rng.u8(..4) == 0)];
        self.begin(Event::DeleteDevice(id));
    }

    fn delete_room(&mut self) {
        let id = ROOMS[self.rng.usize(..ROOMS.len())];
        self.begin(Event::DeleteRoom(id));
    }

    async fn choose(&mut self) {
        let into = match self.rng.usize(..=ROOMS.len()) {
            n if n < ROOMS.len() => Edit::Set(room(ROOMS[n])),
            _ => Edit::Clear,
        };
        self.edit(DevicePatch { room: into, ..DevicePatch::default() }).await;
    }

    /// Whose rollups are folded again then.
    async fn change_settings(&mut self) {
        let max_w = Edit::Set(number(["1", "50000"][self.rng.usize(..2)]));
        let patch = MetricPatch { max_w, ..MetricPatch::default() };
        let metrics = [(metric(METRIC), patch)].into();
        self.edit(DevicePatch { metrics, ..DevicePatch::default() }).await;
    }

    async fn edit(&mut self, patch: DevicePatch) {
        let id = device(DEVICES[self.rng.usize(..DEVICES.len())]);
        // One that is not registered, or is being deleted, is not edited.
        let edited = self.memory.edit_device(&id, &patch, at(self.now), &self.invocation).await;
        edited.expect("memory");
    }

    /// Whatever runs longer than its function may is killed.
    async fn advance(&mut self, seconds: i64) {
        self.now += seconds * SECOND;
        for n in 0..self.instances.len() {
            self.instances[n].clock.set(at(self.now));
            let is_late = |it: &Task| self.now - it.begun >= it.event.limit();
            if self.instances[n].task.as_ref().is_some_and(is_late) {
                self.kill(n).await;
            }
        }
    }

    // ---- Invocations ---------------------------------------------------------------------------

    fn any(&mut self, is_busy: bool) -> Option<usize> {
        any_of(&mut self.rng, self.instances.iter().map(|it| it.task.is_some() == is_busy))
    }

    fn start(&mut self, n: usize, event: Event) {
        let instance = &self.instances[n];
        let delete = |path: String| {
            let (function, event) =
                (Arc::clone(&instance.query), request("DELETE", &path, "", None));
            async move { Outcome::Answered(Answer::of(&function.handle(event, deadline()).await)) }
        };
        let future: Invoked<Outcome> = match &event {
            Event::Post(readings) => {
                let (function, event) = (Arc::clone(&instance.ingest), post(readings));
                Box::pin(async move {
                    let reply = function.handle(event, deadline()).await.expect("it answers");
                    let reply = serde_json::to_value(reply).expect("JSON");
                    Outcome::Answered(Answer::of(&reply))
                })
            }
            Event::DeleteDevice(id) => Box::pin(delete(format!("/devices/{id}"))),
            Event::DeleteRoom(id) => Box::pin(delete(format!("/rooms/{id}"))),
            Event::Records(consumer, from, count) => {
                let records = json!({"Records": &self.log().stream[*from..from + count]});
                let batch = serde_json::from_value(records).expect("an event");
                let (registry, rollup) =
                    (Arc::clone(&instance.registry), Arc::clone(&instance.rollup));
                let consumer = *consumer;
                Box::pin(async move {
                    let answer = match consumer {
                        Consumer::Registry => registry.handle(batch, deadline()).await,
                        Consumer::Rollup => rollup.handle_stream(batch, deadline()).await,
                    };
                    Outcome::Handled(first_failure(answer))
                })
            }
            Event::Message(request) => {
                let event = message_event(request);
                let function = Arc::clone(&instance.rollup);
                Box::pin(async move {
                    let answer = function.handle_queue(event, deadline()).await;
                    Outcome::Handled((!answer.batch_item_failures.is_empty()).then_some(0))
                })
            }
            Event::Schedule => {
                let function = Arc::clone(&instance.rollup);
                Box::pin(async move {
                    // An error is answered by the next invocation.
                    let _ = function.handle_schedule(deadline()).await;
                    Outcome::Handled(None)
                })
            }
        };
        self.instances[n].task = Some(Task { future, event, begun: self.now });
    }

    /// A batch from the position on, sometimes from before it.
    fn deliver(&mut self) {
        let consumer = [Consumer::Registry, Consumer::Rollup][self.rng.usize(..2)];
        let position = self.positions[&consumer];
        let from = position - self.rng.usize(..=position.min(6)) * self.rng.usize(..2);
        let left = self.log().stream.len() - from;
        if left > 0 {
            let count = self.rng.usize(1..=left.min(6));
            self.begin(Event::Records(consumer, from, count));
        }
    }

    async fn take_message(&mut self) {
        let mut messages = self.queue.take();
        if let Some(n) = self.any(false).filter(|_| !messages.is_empty()) {
            let one = messages.swap_remove(self.rng.usize(..messages.len()));
            self.start(n, Event::Message(one));
        }
        self.queue.send(&messages, &self.invocation).await.expect("memory");
    }

    /// An instance dies. Its records are delivered again because the position stays; a message comes back.
    async fn crash(&mut self) {
        if let Some(n) = self.any(true) {
            self.kill(n).await;
        }
    }

    async fn kill(&mut self, n: usize) {
        let task = self.instances[n].task.take().expect("busy");
        self.instances[n] = self.instance();
        if let Event::Message(request) = task.event {
            self.queue.send(&[request], &self.invocation).await.expect("memory");
        }
    }

    async fn step_any(&mut self) {
        let Some(n) = self.any(true) else { return };
        let step = Step::any(&mut self.rng, false);
        self.step(n, step).await;
    }

    /// Runs an instance up to its next operation.
    async fn step(&mut self, n: usize, step: Step) {
        let Instance { steps, task, .. } = &mut self.instances[n];
        let Some(running) = task else { return };
        let Some(outcome) = steps.gate.run(&mut running.future, step).await else { return };
        let Task { event, .. } = task.take().expect("it runs");
        self.settle(event, outcome).await;
    }

    async fn settle(&mut self, event: Event, outcome: Outcome) {
        match (event, outcome) {
            (Event::Records(consumer, from, count), Outcome::Handled(failed)) => {
                let position = self.positions.get_mut(&consumer).expect("it is a consumer");
                if from <= *position {
                    *position = (*position).max(failed.unwrap_or(from + count));
                }
            }
            (Event::Message(request), Outcome::Handled(Some(_))) => {
                self.queue.send(&[request], &self.invocation).await.expect("memory");
            }
            (event, Outcome::Answered(answer)) => {
                let statuses: &[i64] = match event {
                    Event::Post(_) => &[201, 207, 410, 503],
                    Event::DeleteDevice(_) => &[200, 202, 404, 503],
                    _ => &[200, 404, 409, 503],
                };
                if !statuses.contains(&answer.status) {
                    self.wrong.push(format!("{event:?} is answered with {answer:?}"));
                }
            }
            _ => {}
        }
    }

    async fn finish(&mut self, n: usize) {
        while self.instances[n].task.is_some() {
            self.step(n, Step::Done).await;
            self.observe().await;
        }
    }

    async fn run(&mut self, event: Event) {
        self.start(0, event);
        self.finish(0).await;
    }

    // ---- Rest ----------------------------------------------------------------------------------

    /// All deletions go on to their ends, beside what else is under way.
    pub(super) async fn end_deletions(&mut self) {
        for id in DEVICES {
            for _ in 0..20 {
                if self.is_being_deleted(id).await {
                    self.finish(0).await;
                    self.run(Event::DeleteDevice(id)).await;
                    self.advance(400).await;
                }
            }
            if self.is_being_deleted(id).await {
                self.wrong.push(format!("the deletion of {id} does not end"));
            }
        }
    }

    /// All invocations end, and everything is delivered once more.
    pub(super) async fn come_to_rest(&mut self) {
        for n in 0..INSTANCES {
            self.finish(n).await;
        }
        self.end_deletions().await;
        for _ in 0..2 {
            let count = self.log().stream.len();
            for consumer in [Consumer::Registry, Consumer::Rollup] {
                self.run(Event::Records(consumer, 0, count)).await;
            }
            for seconds in [61 * 60, 60] {
                self.advance(seconds).await;
                self.run(Event::Schedule).await;
            }
            for message in self.queue.take() {
                self.run(Event::Message(message)).await;
            }
        }
        for id in DEVICES {
            self.judge_at_rest(&device(id)).await;
        }
    }

    async fn is_being_deleted(&self, id: &str) -> bool {
        let deletion = self.memory.deletion(&device(id), &self.invocation).await;
        deletion.expect("memory").is_some_and(|it| it.ended.is_none())
    }

    // ---- Judgement -----------------------------------------------------------------------------

    async fn belongings(&self, id: &DeviceId) -> Belongings {
        self.memory.belongings(id, 10_000, &self.invocation).await.expect("memory")
    }

    /// The readings of a device that were stored behind that many of all: the last of each timestamp.
    fn stored_since(&self, id: &DeviceId, count: usize) -> BTreeMap<ReadingKey, Reading> {
        let log = self.log();
        let own = log.stored[count..].iter().filter(|it| it.device == *id);
        own.map(|it| (ReadingKey::of(it), it.clone())).collect()
    }

    fn stored(&self, id: &DeviceId) -> BTreeMap<ReadingKey, Reading> {
        let own = self.memory.readings().into_iter().filter(|it| it.device == *id);
        own.map(|it| (ReadingKey::of(&it), it)).collect()
    }

    /// When a deletion ends, nothing is left but what has come since nothing was found.
    async fn observe(&mut self) {
        let ended = self.log().ended.clone();
        for (id, looked) in &ended {
            if self.ended.get(id) == Some(looked) {
                continue;
            }
            let left = self.belongings(id).await.found;
            if self.stored(id) != self.stored_since(id, *looked)
                || left.len() > self.stored(id).len()
            {
                self.wrong.push(format!("{id} is deleted, and there is {left:?}"));
            }
        }
        self.ended = ended;
    }

    async fn judge_at_rest(&mut self, id: &DeviceId) {
        let ended = self.log().ended.get(id).copied();
        let expected = self.stored_since(id, ended.unwrap_or_default());
        let stored = self.stored(id);
        let mut wrong = Vec::new();
        if stored != expected {
            wrong.push(format!("{id} has {stored:?}, and was sent {expected:?}"));
        }
        let Listing { found, deleted, .. } = self
            .memory
            .find_devices(std::slice::from_ref(id), &self.invocation)
            .await
            .expect("memory");
        match (&found[..], &deleted[..]) {
            ([], [DeletedDevice { .. }]) if ended.is_some() && stored.is_empty() => {}
            ([], []) if ended.is_none() && stored.is_empty() => {}
            ([device], []) if !stored.is_empty() => wrong.extend(self.wrong_room(device).await),
            other => wrong.push(format!("{id} is registered as {other:?} with {stored:?}")),
        }
        let left = self.belongings(id).await.found;
        if stored.is_empty() && !left.is_empty() {
            wrong.push(format!("{id} has no readings, and there is {left:?}"));
        }
        if let [device] = &found[..] {
            wrong.extend(self.wrong_rollups(device, &stored));
        }
        self.wrong.append(&mut wrong);
    }

    /// The room of a device is registered.
    async fn wrong_room(&self, device: &Device) -> Option<String> {
        let room = device.place().room()?;
        let found = self.memory.find_rooms(std::slice::from_ref(room), &self.invocation).await;
        let is_there = !found.expect("memory").found.is_empty();
        (!is_there).then(|| format!("{} is in {room}, which is not there", device.id()))
    }

    /// Each rollup of 15 minutes is the fold of the readings that there are.
    fn wrong_rollups(
        &self,
        device: &Device,
        stored: &BTreeMap<ReadingKey, Reading>,
    ) -> Vec<String> {
        let rules = FoldRules::of(device);
        let mut folded: BTreeMap<QuarterHour, Folded> = BTreeMap::new();
        for rollup in self.memory.rollups().into_iter().filter(|it| it.key.device == *device.id()) {
            if let Bucket::QuarterHour(quarter) = rollup.key.bucket {
                folded.insert(quarter, rollup.rollup);
            }
        }
        let quarters: BTreeSet<QuarterHour> = folded
            .keys()
            .copied()
            .chain(stored.keys().map(|key| QuarterHour::of(key.at)))
            .collect();
        let expected = |quarter: &QuarterHour| {
            let own = stored.values().filter(|it| quarter.range().contains(it.at));
            Folded::fold(own, &rules)
        };
        let is_wrong =
            |it: &QuarterHour| folded.get(it).cloned().unwrap_or_default() != expected(it);
        let wrong = quarters.into_iter().filter(is_wrong);
        wrong.map(|it| format!("the rollup of {} from {}", device.id(), it.start())).collect()
    }

    /// What was wrong.
    pub(super) fn wrong(self) -> Vec<String> {
        self.wrong
    }
}
