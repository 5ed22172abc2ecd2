//! The world of one schedule: people and devices, the stream, the queue, the clock, and instances of the
//! function that crash, lag and work at the same time. Judges what they leave.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::TimeDelta;
use domain::{
    Bucket, DeviceId, DeviceParts, DevicePatch, Edit, FoldRules, LocalDate, MetricInfo,
    MetricPatch, QuarterHour, Reading, Rollup as Folded, Zone, sweep_group,
};
use fastrand::Rng;
use rollup::{Retention, Rollup, Settings};
use rollups::{newest_sealable_edge, part_of_day};
use runtime::clock::TestClock;
use runtime::dead_letters::MemoryQueue;
use runtime::telemetry::Telemetry;
use runtime::work_queue::{FoldRequest, MemoryWorkQueue, WorkQueue as _};
use serde_json::{Value, json};
use table::memory_db::MemoryDb;
use table::{
    DeleteReadings as _, EditRegistry as _, FindRegistry as _, Invocation, PutReadings as _,
    ReadingKey, RegisterDevices as _, RollupKey, StoredRollup,
};

use super::design::{Design, InstanceDesign, Steps};
use super::rebuild::Rebuild;
use crate::gate::rules::Ruled;
use crate::gate::{Gated, Invoked, Step, any_of, deadline, first_failure, message_event};
use crate::given::{at, device, device_of, metric, number, reading};

const DEVICES: [&str; 2] = ["a", "b"];
/// The minutes of readings: two in each of three quarters before an edge of a local day's parts, and three after.
const MINUTES: [i64; 12] = [-105, -104, -90, -89, -75, -74, -60, -59, -45, -44, -30, -29];
/// Totals of a counter: with one setting 9 behind 1 is a step, with the other it cannot be.
const VALUES: [&str; 3] = ["1", "2", "9"];
const METRIC: &str = "cumulative_kwh_p";
/// The largest difference of an instance's clock from the right one: two differ by at most a minute.
const MAX_SKEW: i64 = 30_000;
const INSTANCES: usize = 4;
const MINUTE: i64 = 60_000;
/// The edge is midnight in the first zone, in the others the end of the part of an open day that is folded.
const ZONES: [&str; 4] = ["Asia/Tokyo", "America/Phoenix", "Asia/Tokyo", "Africa/Lagos"];

type Function = Rollup<Steps, MemoryWorkQueue, MemoryQueue, TestClock>;

/// One instance of the function: it handles one event at a time.
struct Instance {
    function: Arc<Function>,
    steps: Steps,
    clock: TestClock,
    skew: i64,
    task: Option<Task>,
}

struct Task {
    future: Invoked<Answer>,
    event: Event,
    /// Nobody waits for it any more: its event was delivered again.
    is_given_up: bool,
}

#[derive(Debug, Clone)]
enum Event {
    /// The records from one position on, so many.
    Records(usize, usize),
    Message(FoldRequest),
    Schedule,
    /// A rebuild of a device, in a transaction or not.
    Rebuild(DeviceId, bool),
}

/// The first record to deliver again; for a message 0 if it failed.
type Answer = Option<usize>;

pub(super) struct World {
    rng: Rng,
    design: Design,
    memory: MemoryDb,
    queue: MemoryWorkQueue,
    stream: Vec<Value>,
    /// Everything before is delivered.
    position: usize,
    /// Milliseconds from the start that tests count from.
    now: i64,
    instances: Vec<Instance>,
    invocation: Invocation,
    /// The zone of the days.
    zone: Zone,
    retention: Retention,
    /// It is a month later: readings expire.
    is_old: bool,
    /// Some clocks are ahead.
    pub(super) has_wrong_clocks: bool,
    /// Somebody rebuilds rollups.
    pub(super) has_rebuilds: bool,
}

impl World {
    pub(super) async fn new(seed: u64, design: Design) -> Self {
        let mut world = Self {
            rng: Rng::with_seed(seed),
            design,
            memory: MemoryDb::default(),
            queue: MemoryWorkQueue::default(),
            stream: Vec::new(),
            position: 0,
            now: MINUTES[0] * MINUTE,
            instances: Vec::new(),
            invocation: Invocation::until(deadline()),
            zone: ZONES[usize::try_from(seed).unwrap_or(0) % ZONES.len()].parse().expect("a zone"),
            retention: kept([30, 60, 90]),
            is_old: false,
            has_wrong_clocks: false,
            has_rebuilds: false,
        };
        for _ in 0..INSTANCES {
            let instance = world.instance();
            world.instances.push(instance);
        }
        for id in DEVICES {
            if world.rng.u8(..3) > 0 {
                world.register(id).await;
            }
        }
        world
    }

    fn instance(&mut self) -> Instance {
        let steps = Gated::new(Ruled::new(&self.memory, InstanceDesign::new(self.design)));
        let skew = self.rng.i64(-MAX_SKEW..=MAX_SKEW);
        let clock = TestClock::at(at(self.now + skew));
        let settings = Settings {
            zone: self.zone,
            retention: self.retention,
            following: rollups::Following::default(),
            max_read_units: u32::MAX,
            max_write_units: u32::MAX,
        };
        let function = Arc::new(Rollup::new(
            steps.clone(),
            self.queue.clone(),
            MemoryQueue::default(),
            clock.clone(),
            Telemetry::silent(),
            settings,
        ));
        Instance { function, steps, clock, skew, task: None }
    }

    // ---- Life ----------------------------------------------------------------------------------

    /// A random schedule.
    pub(super) async fn live(&mut self) {
        let length = self.rng.usize(40..160);
        for _ in 0..length {
            if self.has_wrong_clocks && self.rng.u8(..10) == 0 {
                self.start_ahead().await;
            }
            if self.has_rebuilds && self.rng.u8(..10) == 0 {
                self.rebuild();
            }
            match self.rng.u8(..100) {
                0..12 => self.write().await,
                12..18 => self.delete().await,
                18..20 if self.is_old => self.memory.delete_expired_readings(at(self.now)),
                18..20 => self.change_settings().await,
                20..22 => self.register_any().await,
                22..30 => {
                    let minutes = [1, 1, 5, if self.is_old { 9 * 60 } else { 14 }];
                    let minutes = minutes[self.rng.usize(..4)];
                    self.advance(minutes);
                }
                30..40 => self.deliver(),
                40..46 => self.sweep(),
                46..50 => self.take_message().await,
                50..52 => self.crash().await,
                52..54 => self.give_up().await,
                _ => self.step_any().await,
            }
        }
    }

    /// A reading of about now, or a late one.
    async fn write(&mut self) {
        let id = DEVICES[self.rng.usize(..DEVICES.len())];
        let written: Vec<i64> =
            MINUTES.into_iter().filter(|minute| minute * MINUTE <= self.now).collect();
        let last = written.len() - 1;
        let position = if self.rng.bool() { last } else { self.rng.usize(..=last) };
        let value = VALUES[self.rng.usize(..VALUES.len())];
        let reading = reading(id, written[position] * MINUTE, &[(METRIC, value)]);
        if self.stored().contains(&reading) {
            return; // A write that changes nothing emits no record.
        }
        let kept = self.retention.readings;
        self.memory.put_readings(std::slice::from_ref(&reading), kept, &self.invocation).await;
        self.record("INSERT", &ReadingKey::of(&reading));
    }

    async fn delete(&mut self) {
        let stored = self.stored();
        if stored.is_empty() {
            return;
        }
        let key = ReadingKey::of(&stored[self.rng.usize(..stored.len())]);
        self.memory.delete_readings(std::slice::from_ref(&key), &self.invocation).await;
        self.record("REMOVE", &key);
    }

    async fn change_settings(&mut self) {
        let id = DEVICES[self.rng.usize(..DEVICES.len())];
        let max_w = Edit::Set(number(["1", "50000"][self.rng.usize(..2)]));
        let patch = MetricPatch { max_w, ..MetricPatch::default() };
        let metrics = [(metric(METRIC), patch)].into();
        let patch = DevicePatch { metrics, ..DevicePatch::default() };
        // A device that is not registered is not edited.
        let _ = self.memory.edit_device(&device(id), &patch, at(0), &self.invocation).await;
    }

    async fn register_any(&mut self) {
        let id = DEVICES[self.rng.usize(..DEVICES.len())];
        self.register(id).await;
    }

    async fn register(&mut self, id: &str) {
        let observed = reading(id, MINUTES[0] * MINUTE, &[(METRIC, "1")]);
        let mut new = device_of([&observed]);
        // What a sender says is in a device from its registration on.
        if self.rng.bool() {
            let hinted = |info: &mut MetricInfo| info.max_w = Some(number("1"));
            let hinted = |it: &mut DeviceParts| it.metrics.values_mut().for_each(hinted);
            new = new.changed(hinted).expect("a device");
        }
        self.memory.register_device(&new, &self.invocation).await.expect("memory");
    }

    fn advance(&mut self, minutes: i64) {
        self.now += minutes * MINUTE;
        let no_grace = i64::from(self.design == Design::NoGrace) * 11 * MINUTE;
        for instance in &self.instances {
            let is_sweeping =
                instance.task.as_ref().is_some_and(|it| matches!(it.event, Event::Schedule));
            let ahead = if is_sweeping { no_grace } else { 0 };
            instance.clock.set(at(self.now + instance.skew + ahead));
        }
    }

    fn record(&mut self, event: &str, key: &ReadingKey) {
        let sk = table::keys::reading_sk(key.at);
        self.stream.push(json!({
            "eventID": "1", "eventName": event, "awsRegion": "eu-west-1",
            "dynamodb": {
                "Keys": {"pk": {"S": key.device}, "sk": {"S": sk}},
                "SequenceNumber": self.stream.len().to_string(), "SizeBytes": 1,
            },
        }));
    }

    // ---- Invocations ---------------------------------------------------------------------------

    fn any(&mut self, is_busy: bool) -> Option<usize> {
        any_of(&mut self.rng, self.instances.iter().map(|it| it.task.is_some() == is_busy))
    }

    fn start(&mut self, n: usize, event: Event) {
        let no_grace = self.design == Design::NoGrace && matches!(event, Event::Schedule);
        let zone = self.zone;
        let instance = &mut self.instances[n];
        let ahead = if no_grace { 11 * MINUTE } else { 0 };
        instance.clock.set(at(self.now + instance.skew + ahead));
        instance.steps.db.rules.begin(matches!(event, Event::Records(..)));
        let function = Arc::clone(&instance.function);
        let future: Invoked<Answer> = match event.clone() {
            Event::Records(from, count) => {
                let records = json!({"Records": &self.stream[from..from + count]});
                let batch = serde_json::from_value(records).expect("an event");
                Box::pin(
                    async move { first_failure(function.handle_stream(batch, deadline()).await) },
                )
            }
            Event::Message(request) => {
                let event = message_event(&request);
                Box::pin(async move {
                    let answer = function.handle_queue(event, deadline()).await;
                    (!answer.batch_item_failures.is_empty()).then_some(0)
                })
            }
            Event::Schedule => Box::pin(async move {
                // An error is answered by the next invocation.
                let _ = function.handle_schedule(deadline()).await;
                None
            }),
            Event::Rebuild(id, is_transaction) => {
                let steps = instance.steps.clone();
                let rebuild = Rebuild {
                    zone,
                    dates: days(zone),
                    retention: self.retention,
                    now: at(self.now + instance.skew),
                    is_transaction,
                };
                Box::pin(async move {
                    // What fails is rebuilt by the next one, if there is one.
                    let _ = rebuild.run(&steps, &id).await;
                    None
                })
            }
        };
        instance.task = Some(Task { future, event, is_given_up: false });
    }

    /// A batch from the position on, sometimes from before it, and sometimes beside another.
    fn deliver(&mut self) {
        let is_under_way = self
            .instances
            .iter()
            .filter_map(|it| it.task.as_ref())
            .any(|task| !task.is_given_up && matches!(task.event, Event::Records(..)));
        if is_under_way && self.rng.u8(..4) > 0 {
            return;
        }
        let from = self.position - self.rng.usize(..=self.position.min(3)) * self.rng.usize(..2);
        let left = self.stream.len() - from;
        let Some(n) = self.any(false).filter(|_| left > 0) else { return };
        let count = self.rng.usize(1..=left.min(8));
        self.start(n, Event::Records(from, count));
    }

    /// An invocation by the schedule, in a minute in which a device is swept.
    fn sweep(&mut self) {
        let id = device(DEVICES[self.rng.usize(..DEVICES.len())]);
        let group = i64::try_from(sweep_group(&id)).expect("small");
        let Some(n) = self.any(false) else { return };
        let minute = (at(self.now).as_millis() + self.instances[n].skew).div_euclid(MINUTE);
        self.advance((group - minute).rem_euclid(15));
        self.start(n, Event::Schedule);
    }

    fn rebuild(&mut self) {
        let id = device(DEVICES[self.rng.usize(..DEVICES.len())]);
        let is_transaction = self.rng.bool();
        if let Some(n) = self.any(false) {
            self.start(n, Event::Rebuild(id, is_transaction));
        }
    }

    /// An instance starts with a clock that is ahead, and sweeps: its clock is right again when it is done, or
    /// goes on as it is beside the others.
    async fn start_ahead(&mut self) {
        let Some(n) = self.any(false) else { return };
        let is_far = self.rng.bool();
        let skew = self.instances[n].skew.min(MAX_SKEW);
        self.instances[n].skew = skew + if is_far { 9 * 60 * MINUTE } else { 20 * MINUTE };
        self.start(n, Event::Schedule);
        if !is_far || self.rng.bool() {
            self.finish(n).await;
            self.instances[n].skew = skew;
        }
    }

    /// Delivers a message of the queue, and leaves it there sometimes.
    async fn take_message(&mut self) {
        let mut messages = self.queue.take();
        if let Some(n) = self.any(false).filter(|_| !messages.is_empty()) {
            let one = messages.swap_remove(self.rng.usize(..messages.len()));
            if self.rng.u8(..4) == 0 {
                messages.push(one.clone());
            }
            self.start(n, Event::Message(one));
        }
        self.queue.send(&messages, &self.invocation).await.expect("memory");
    }

    /// An instance dies; its event is delivered again.
    async fn crash(&mut self) {
        let Some(n) = self.any(true) else { return };
        let task = self.instances[n].task.take().expect("busy");
        self.instances[n] = self.instance();
        self.deliver_again(task.event, task.is_given_up).await;
    }

    /// Nobody waits for an invocation any more; it goes on.
    async fn give_up(&mut self) {
        let Some(n) = self.any(true) else { return };
        let task = self.instances[n].task.as_mut().expect("busy");
        let (event, was_given_up) = (task.event.clone(), task.is_given_up);
        task.is_given_up = true;
        self.deliver_again(event, was_given_up).await;
    }

    /// Records are delivered again because the position stays; a message comes back.
    async fn deliver_again(&mut self, event: Event, was_given_up: bool) {
        if let (Event::Message(request), false) = (event, was_given_up) {
            self.queue.send(&[request], &self.invocation).await.expect("memory");
        }
    }

    // ---- Steps ---------------------------------------------------------------------------------

    async fn step_any(&mut self) {
        let Some(n) = self.any(true) else { return };
        let step = Step::any(&mut self.rng, true);
        self.step(n, step).await;
    }

    /// Runs an instance up to its next operation.
    async fn step(&mut self, n: usize, step: Step) {
        let Instance { steps, task, .. } = &mut self.instances[n];
        let Some(running) = task else { return };
        let Some(answer) = steps.gate.run(&mut running.future, step).await else { return };
        let Task { event, is_given_up, .. } = task.take().expect("it runs");
        if !is_given_up {
            self.settle(event, answer).await;
        }
    }

    async fn settle(&mut self, event: Event, answer: Answer) {
        match event {
            Event::Records(from, count) => {
                let done = answer.unwrap_or(from + count);
                if from <= self.position {
                    self.position = self.position.max(done);
                }
            }
            Event::Message(request) if answer.is_some() => {
                self.queue.send(&[request], &self.invocation).await.expect("memory");
            }
            Event::Message(_) | Event::Schedule | Event::Rebuild(..) => {}
        }
    }

    async fn finish(&mut self, n: usize) {
        while self.instances[n].task.is_some() {
            self.step(n, Step::Done).await;
        }
    }

    // ---- Rest ----------------------------------------------------------------------------------

    /// Lets a month pass, until the readings expire within a day by every clock, and chooses other retentions.
    /// Returns the quarters that hold readings which will be gone.
    pub(super) fn grow_old(&mut self) -> Vec<StoredRollup> {
        self.is_old = true;
        self.now = (MINUTES[11] + 32 * 24 * 60 + 1) * MINUTE;
        let retentions =
            [kept([30, 60, 90]), kept([1, 1, 1]), kept([365; 3]), Retention::default()];
        self.retention = retentions[self.rng.usize(..4)];
        self.instances = (0..INSTANCES).map(|_| self.instance()).collect();
        let is_quarter = |it: &StoredRollup| matches!(it.key.bucket, Bucket::QuarterHour(_));
        let rollups = self.memory.rollups().into_iter();
        rollups.filter(|it| is_quarter(it) && !it.rollup.is_empty()).collect()
    }

    /// Everything is delivered and swept. Some invocations of before end last of all.
    pub(super) async fn come_to_rest(&mut self) {
        for id in DEVICES {
            self.register(id).await;
        }
        for n in 0..INSTANCES {
            let task = self.instances[n].task.as_mut().filter(|task| !task.is_given_up);
            if let Some(task) = task {
                task.is_given_up = true;
                let event = task.event.clone();
                self.deliver_again(event, false).await;
            }
        }
        let fresh = self.instance();
        let late = std::mem::replace(&mut self.instances, vec![fresh]);
        self.settle_everything(0).await;
        self.advance(24 * 60);
        self.settle_everything(0).await;
        self.instances.extend(late);
        for n in 1..self.instances.len() {
            let instance = &self.instances[n];
            instance.clock.set(at(self.now + instance.skew));
            self.finish(n).await;
        }
        self.settle_everything(0).await;
    }

    /// Delivers all records and messages, and sweeps all groups, which have all missed their turns, with one
    /// instance.
    async fn settle_everything(&mut self, n: usize) {
        for minutes in [61, 1] {
            self.advance(minutes);
            self.start(n, Event::Schedule);
            self.finish(n).await;
        }
        while self.position < self.stream.len() {
            self.start(n, Event::Records(self.position, self.stream.len() - self.position));
            self.finish(n).await;
        }
        for request in self.queue.take() {
            self.start(n, Event::Message(request));
            self.finish(n).await;
        }
    }

    // ---- Judgement -----------------------------------------------------------------------------

    fn stored(&self) -> Vec<Reading> {
        self.memory.readings()
    }

    /// The rollups that are not what they have to be.
    pub(super) fn wrong(&self) -> Vec<String> {
        let mut wrong = self.wrong_days();
        let rollups = self.rollups();
        let readings = self.design.folded(&self.memory);
        for id in DEVICES.map(device) {
            let rules = self.rules(&id);
            for minute in MINUTES.into_iter().step_by(2) {
                let quarter = QuarterHour::of(at(minute * MINUTE));
                let is_folded = |reading: &&Reading| {
                    reading.device == id && quarter.range().contains(reading.at)
                };
                let expected = Folded::fold(readings.iter().filter(is_folded), &rules);
                let stored = rollups.get(&RollupKey::quarter(id.clone(), quarter));
                let stored = stored.map(|it| it.rollup.clone());
                if stored.unwrap_or_default() != expected {
                    wrong.push(format!("{id} {}", quarter.start()));
                }
            }
        }
        wrong
    }

    /// The quarters that are not as they were, and the days that are not their quarters.
    pub(super) fn changed_since(&self, good: &[StoredRollup]) -> Vec<String> {
        let rollups = self.rollups();
        let is_changed =
            |it: &&StoredRollup| rollups.get(&it.key).is_none_or(|now| now.rollup != it.rollup);
        let mut wrong = self.wrong_days();
        wrong.extend(good.iter().filter(is_changed).map(|it| format!("{:?} has changed", it.key)));
        wrong
    }

    fn wrong_days(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let rollups = self.rollups();
        for id in DEVICES.map(device) {
            let rules = self.rules(&id);
            for date in days(self.zone) {
                let whole = self.zone.day(date).expect("a day");
                let until = newest_sealable_edge(at(self.now));
                let Some(part) = part_of_day(whole, until) else { continue };
                let stored = rollups.get(&RollupKey::day(id.clone(), date));
                // A longer one, of a clock that was ahead, is not believed yet.
                if stored.is_some_and(|day| day.range.to() > until) {
                    continue;
                }
                let range = stored.map_or(part, |day| day.range);
                if range != part {
                    wrong.push(format!("{id} {date} is {range:?}"));
                }
                let mut expected = Folded::default();
                for (key, rollup) in &rollups {
                    let is_inside =
                        matches!(key.bucket, Bucket::QuarterHour(it) if range.contains(it.start()));
                    if key.device == id && is_inside {
                        expected.append(&rollup.rollup, &rules);
                    }
                }
                match stored {
                    Some(day) if day.rollup != expected => wrong.push(format!("{id} {date}")),
                    None if !expected.is_empty() => {
                        wrong.push(format!("{id} {date} is missing"));
                    }
                    _ => {}
                }
            }
        }
        wrong
    }

    fn rollups(&self) -> BTreeMap<RollupKey, StoredRollup> {
        self.memory.rollups().into_iter().map(|it| (it.key.clone(), it)).collect()
    }

    fn rules(&self, id: &DeviceId) -> FoldRules {
        let ids = [id.clone()];
        let found = self.memory.find_devices(&ids, &self.invocation);
        let found = futures_util::FutureExt::now_or_never(found).expect("memory does not wait");
        found.expect("memory").found.first().map_or_else(FoldRules::default, FoldRules::of)
    }
}

/// The days of the readings.
fn days(zone: Zone) -> Vec<LocalDate> {
    let dates = [MINUTES[0], MINUTES[11]].map(|minute| zone.date(at(minute * MINUTE)));
    Vec::from_iter(BTreeSet::from(dates))
}

/// The retention of readings, quarters and days, in days.
fn kept(days: [i64; 3]) -> Retention {
    let [readings, quarters, days] = days.map(|days| Some(TimeDelta::days(days)));
    Retention { readings, quarters, days }
}
