//! The world of one schedule: devices that move and flap, people who edit, the stream, and instances of the
//! registry function that crash, lag and work at the same time. Judges what they leave, at every step.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use domain::{Device, DevicePatch, Edit, Place, Reading, Stay, Timestamp};
use fastrand::Rng;
use registry::Registry;
use runtime::clock::TestClock;
use runtime::dead_letters::MemoryQueue;
use runtime::telemetry::Telemetry;
use serde_json::{Value, json};
use table::memory_db::MemoryDb;
use table::{
    EditRegistry as _, FindRegistry as _, Invocation, PutReadings as _, ReadStays as _, StayQuery,
};

use super::steps::{Design, Steps};
use crate::faults::registry::record;
use crate::gate::rules::Ruled;
use crate::gate::{Gated, Invoked, Step, any_of, deadline, first_failure};
use crate::given::{always, at, clock, device, label, placed, reading, room};

const DEVICES: [&str; 2] = ["a", "b"];
const ROOMS: [&str; 3] = ["x", "y", "z"];
const INSTANCES: usize = 3;
const MINUTE: i64 = 60_000;

type Function = Registry<Steps, MemoryQueue, TestClock>;

/// One instance of the function: it handles one batch at a time.
struct Instance {
    function: Arc<Function>,
    steps: Steps,
    task: Option<Task>,
}

struct Task {
    future: Invoked<Option<usize>>,
    /// The positions of its records.
    records: Range<usize>,
    /// Nobody waits for it any more: its records were delivered again.
    is_given_up: bool,
}

pub(super) struct World {
    rng: Rng,
    design: Design,
    memory: MemoryDb,
    stream: Vec<Value>,
    /// Everything before is delivered.
    position: usize,
    /// Minutes from the start that tests count from.
    now: i64,
    readings: Vec<Reading>,
    instances: Vec<Instance>,
    invocation: Invocation,
    /// The stays of each device as they were after the last step.
    histories: BTreeMap<&'static str, Vec<Stay>>,
    wrong: Vec<String>,
}

impl World {
    pub(super) fn new(seed: u64, design: Design) -> Self {
        let mut world = Self {
            rng: Rng::with_seed(seed),
            design,
            memory: MemoryDb::default(),
            stream: Vec::new(),
            position: 0,
            now: 100,
            readings: Vec::new(),
            instances: Vec::new(),
            invocation: Invocation::until(deadline()),
            histories: BTreeMap::new(),
            wrong: Vec::new(),
        };
        world.instances = (0..INSTANCES).map(|_| world.instance()).collect();
        world
    }

    fn instance(&self) -> Instance {
        let steps = Gated::new(Ruled::new(&self.memory, self.design));
        let (queue, silent) = (MemoryQueue::default(), Telemetry::silent());
        let function = Arc::new(Registry::new(steps.clone(), queue, clock(), silent));
        Instance { function, steps, task: None }
    }

    // ---- Life ----------------------------------------------------------------------------------

    /// A random schedule.
    pub(super) async fn live(&mut self) {
        for _ in 0..self.rng.usize(60..240) {
            match self.rng.u8(..100) {
                0..16 => self.write().await,
                16..20 => self.choose().await,
                20..23 => self.edit(Edit::Clear, None, Edit::Keep).await,
                23..25 => self.rename().await,
                25..34 => self.now += [1, 5, 16, 40][self.rng.usize(..4)],
                34..46 => self.deliver(),
                46..48 => self.crash(),
                48..50 => self.give_up(),
                _ => self.step_any().await,
            }
        }
    }

    /// A reading of now, a late one, or one that is sent again with another room.
    async fn write(&mut self) {
        let id = DEVICES[self.rng.usize(..DEVICES.len())];
        let minute = match self.rng.u8(..4) {
            0 => self.now - self.rng.i64(1..60),
            _ => self.now,
        };
        let sent = reading(id, minute * MINUTE, &[("temperature", "21.5")]);
        let sent = match self.rng.usize(..ROOMS.len() + 2) {
            n if n < ROOMS.len() => placed(sent, ROOMS[n]),
            _ => sent,
        };
        self.memory.put_readings(std::slice::from_ref(&sent), None, &self.invocation).await;
        self.stream.push(record(self.stream.len(), &sent));
        self.readings.push(sent);
    }

    async fn choose(&mut self) {
        let into = room(ROOMS[self.rng.usize(..ROOMS.len())]);
        let since = self.rng.bool().then(|| at((self.now - self.rng.i64(0..90)) * MINUTE));
        self.edit(Edit::Set(into), since, Edit::Keep).await;
    }

    async fn rename(&mut self) {
        let name = format!("name {}", self.rng.u8(..3));
        self.edit(Edit::Keep, None, Edit::Set(label(&name))).await;
    }

    async fn edit(
        &mut self,
        into: Edit<domain::RoomId>,
        room_since: Option<Timestamp>,
        name: Edit<domain::Label>,
    ) {
        let id = device(DEVICES[self.rng.usize(..DEVICES.len())]);
        let patch = DevicePatch { room: into, room_since, name, ..DevicePatch::default() };
        // One that is not registered, or that cannot have been there since then, is not edited.
        let edited =
            self.memory.edit_device(&id, &patch, at(self.now * MINUTE), &self.invocation).await;
        edited.expect("memory");
        self.observe().await;
    }

    // ---- Invocations ---------------------------------------------------------------------------

    fn any(&mut self, is_busy: bool) -> Option<usize> {
        any_of(&mut self.rng, self.instances.iter().map(|it| it.task.is_some() == is_busy))
    }

    fn start(&mut self, n: usize, records: Range<usize>) {
        let instance = &mut self.instances[n];
        let function = Arc::clone(&instance.function);
        let batch = json!({"Records": &self.stream[records.clone()]});
        let batch = serde_json::from_value(batch).expect("an event");
        let future =
            Box::pin(async move { first_failure(function.handle(batch, deadline()).await) });
        instance.task = Some(Task { future, records, is_given_up: false });
    }

    /// A batch from the position on, sometimes from before it, and sometimes beside another.
    fn deliver(&mut self) {
        let mut tasks = self.instances.iter().filter_map(|it| it.task.as_ref());
        if tasks.any(|task| !task.is_given_up) && self.rng.u8(..3) > 0 {
            return;
        }
        let from = self.position - self.rng.usize(..=self.position.min(6)) * self.rng.usize(..2);
        let left = self.stream.len() - from;
        let Some(n) = self.any(false).filter(|_| left > 0) else { return };
        let count = self.rng.usize(1..=left.min(6));
        self.start(n, from..from + count);
    }

    /// An instance dies; its records are delivered again, because the position stays.
    fn crash(&mut self) {
        let Some(n) = self.any(true) else { return };
        self.instances[n] = self.instance();
    }

    /// Nobody waits for an invocation any more; it goes on.
    fn give_up(&mut self) {
        let Some(n) = self.any(true) else { return };
        self.instances[n].task.as_mut().expect("busy").is_given_up = true;
    }

    async fn step_any(&mut self) {
        let Some(n) = self.any(true) else { return };
        let step = Step::any(&mut self.rng, true);
        self.step(n, step).await;
    }

    /// Runs an instance up to its next operation.
    async fn step(&mut self, n: usize, step: Step) {
        let Instance { steps, task, .. } = &mut self.instances[n];
        let Some(running) = task else { return };
        let writes = steps.db.writes();
        let answer = steps.gate.run(&mut running.future, step).await;
        let is_written = steps.db.writes() > writes;

        if let Some(failed) = answer {
            let Task { records, is_given_up, .. } = task.take().expect("it runs");
            if !is_given_up && records.start <= self.position {
                self.position = self.position.max(failed.unwrap_or(records.end));
            }
        }
        if is_written {
            self.observe().await;
        }
    }

    async fn finish(&mut self, n: usize) {
        while self.instances[n].task.is_some() {
            self.step(n, Step::Done).await;
        }
    }

    // ---- Rest ----------------------------------------------------------------------------------

    /// All invocations end, and everything is delivered once more.
    pub(super) async fn come_to_rest(&mut self) {
        for n in 0..INSTANCES {
            self.finish(n).await;
        }
        self.start(0, 0..self.stream.len());
        self.finish(0).await;
        for device in self.devices().await {
            let own = self.readings.iter().filter(|it| it.device == *device.id());
            let newest = own.map(|it| it.at).max().expect("a registered device has readings");
            if let Some(missing) = device.settled(newest) {
                self.wrong
                    .push(format!("{} has settled, but there is no {missing:?}", device.id()));
            }
        }
    }

    // ---- Judgement -----------------------------------------------------------------------------

    async fn devices(&self) -> Vec<Device> {
        let ids = DEVICES.map(device);
        self.memory.find_devices(&ids, &self.invocation).await.expect("memory").found
    }

    /// Compares each history with what it was, and with the device.
    async fn observe(&mut self) {
        for device in self.devices().await {
            let query = StayQuery { range: always(), after: None, limit: 10_000 };
            let page = self.memory.stays_of(device.id(), &query, &self.invocation).await;
            let history: Vec<Stay> =
                page.expect("memory").stays.into_iter().map(|of| of.stay).collect();
            let id = DEVICES[usize::from(device.id().as_str() != DEVICES[0])];
            let before = self.histories.insert(id, history.clone()).unwrap_or_default();
            let mut wrong = self.judged(&device, &before, &history);
            self.wrong.append(&mut wrong);
        }
    }

    fn judged(&self, device: &Device, before: &[Stay], history: &[Stay]) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut expect = |is_right: bool, what: &str| {
            if !is_right {
                wrong.push(format!("{what}: {device:?}, {before:?}, {history:?}"));
            }
        };
        let is_kept = before.iter().zip(history).all(|(was, is)| {
            was == is
                || (was.until.is_none()
                    && is.until.is_some()
                    && was.ended(at(0)) == is.ended(at(0)))
        });
        expect(is_kept && before.len() <= history.len(), "the history is rewritten");
        expect(device.stay() == history.last(), "the device has another newest stay");
        expect(history.iter().all(|it| it.until.is_none_or(|end| it.since < end)), "an empty stay");
        let is_apart = |pair: &[Stay]| pair[0].until.is_some_and(|end| end <= pair[1].since);
        expect(history.windows(2).all(is_apart), "stays overlap");
        let open = device.open_stay();
        match device.place() {
            Place::Unknown => expect(open.is_none(), "a stay in a room without a room"),
            Place::Chosen(room) => {
                expect(open.is_some_and(|it| it.room == *room), "no stay in the chosen room");
            }
            Place::Learned(..) => {}
        }
        // What readings alone began needs a reading that is so much later.
        let is_new = before.len() < history.len();
        if let (true, Place::Learned(..), Some(open)) = (is_new, device.place(), open) {
            let mut own = self.readings.iter().filter(|it| it.device == *device.id());
            let has_held = own.any(|it| it.at.since(open.since) >= domain::SETTLING);
            expect(has_held, "a stay in a room that has not held");
        }
        wrong
    }

    /// What was wrong.
    pub(super) fn wrong(self) -> Vec<String> {
        self.wrong
    }
}
