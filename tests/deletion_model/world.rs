//! The world of one schedule: devices that send, people who delete, move and edit, the stream, the queue, the
//! clock, and instances of the functions that crash, lag and work at the same time. Judges what they leave.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use domain::{
    Bucket, DeletedDevice, Device, DeviceId, DevicePatch, Edit, FoldRules, MetricPatch,
    QuarterHour, Reading, Rollup as Folded,
};
use table::{
    Belongings, EditRegistry as _, FindRegistry as _, Listing, LookUpRegistry as _, ReadingKey,
    RemoveBelongings as _,
};

use super::steps::{Design, Log, LoggedDesign};
use crate::gate::Step;
use crate::gate::instances::{Crew, Event, Instance, Outcome};
use crate::given::{at, device, metric, number, placed, reading, room};
use crate::home::{Consumer, Options};

const DEVICES: [&str; 2] = ["a", "b"];
const ROOMS: [&str; 2] = ["x", "y"];
const METRIC: &str = "cumulative_kwh_p";
const VALUES: [&str; 3] = ["1", "2", "9"];
const INSTANCES: usize = 4;
const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
/// The quarters before now in which devices send.
const QUARTERS: i64 = 3;

/// What somebody asks for.
#[derive(Debug, Clone)]
enum Request {
    Post(Vec<Reading>),
    DeleteDevice(&'static str),
    DeleteRoom(&'static str),
}

pub(super) struct World {
    /// Its time is in milliseconds from the start that tests count from.
    crew: Crew<LoggedDesign, Request>,
    design: Design,
    log: Arc<Mutex<Log>>,
    /// The number of ends of deletions that are judged.
    ended: BTreeMap<DeviceId, usize>,
    wrong: Vec<String>,
}

/// The time after which a function is killed, as the template says.
const fn limit(event: &Event<Request>) -> i64 {
    match event {
        Event::Own(_) => 25 * SECOND,
        Event::Records(Consumer::Registry, ..) => MINUTE,
        Event::Records(Consumer::Rollup, ..) | Event::Message(_) | Event::Schedule => 5 * MINUTE,
    }
}

impl World {
    pub(super) fn new(seed: u64, design: Design) -> Self {
        let (crew, log) = (Crew::new(seed, 100 * MINUTE), Arc::<Mutex<Log>>::default());
        let (ended, wrong) = (BTreeMap::new(), Vec::new());
        let mut world = Self { crew, design, log, ended, wrong };
        world.log().stream = world.crew.stream.clone();
        world.crew.instances = (0..INSTANCES).map(|_| world.instance()).collect();
        world
    }

    fn instance(&self) -> Instance<LoggedDesign, Request> {
        let rules = LoggedDesign { design: self.design, log: Arc::clone(&self.log) };
        let options = Options { work: self.crew.queue.clone(), ..Options::at(at(self.crew.now)) };
        Instance::new(&self.crew.memory, rules, options)
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().expect("no test panics while it holds the log")
    }

    // ---- Life ----------------------------------------------------------------------------------

    /// A random schedule.
    pub(super) async fn live(&mut self) {
        for _ in 0..self.crew.rng.usize(60..240) {
            match self.crew.rng.u8(..100) {
                0..10 => self.write(),
                10..16 => self.delete_device(),
                16..18 => self.delete_room(),
                18..20 => self.choose().await,
                20..22 => self.change_settings().await,
                22..34 => {
                    let seconds = [1, 5, 20, 61, 200, 420, 900];
                    let seconds = seconds[self.crew.rng.usize(..seconds.len())];
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

    fn begin(&mut self, event: Event<Request>) {
        if let Some(n) = self.crew.any(false) {
            self.start(n, event);
        }
    }

    fn start(&mut self, n: usize, event: Event<Request>) {
        let Event::Own(request) = &event else { return self.crew.start(n, event) };
        let (home, request) = (Arc::clone(&self.crew.instances[n].home), request.clone());
        let future = Box::pin(async move {
            let delete = async |path: String| home.ask("DELETE", &path, "", None).await;
            Outcome::Answered(match request {
                Request::Post(readings) => home.post(&readings).await,
                Request::DeleteDevice(id) => delete(format!("/devices/{id}")).await,
                Request::DeleteRoom(id) => delete(format!("/rooms/{id}")).await,
            })
        });
        self.crew.begin(n, event, future);
    }

    /// A request with readings of now or of before, some sent again.
    fn write(&mut self) {
        let readings: BTreeMap<ReadingKey, Reading> = (0..self.crew.rng.usize(1..4))
            .map(|_| {
                let id = DEVICES[self.crew.rng.usize(..DEVICES.len())];
                let quarter = self.crew.rng.i64(0..QUARTERS);
                let millis = (self.crew.now - quarter * 15 * MINUTE).div_euclid(MINUTE) * MINUTE;
                let value = VALUES[self.crew.rng.usize(..VALUES.len())];
                let sent = reading(id, millis, &[(METRIC, value)]);
                let sent = match self.crew.rng.usize(..ROOMS.len() + 2) {
                    n if n < ROOMS.len() => placed(sent, ROOMS[n]),
                    _ => sent,
                };
                (ReadingKey::of(&sent), sent)
            })
            .collect();
        self.begin(Event::Own(Request::Post(readings.into_values().collect())));
    }

    fn delete_device(&mut self) {
        // One of them more often, so that two people delete it at once.
        let id = DEVICES[usize::from(self.crew.rng.u8(..4) == 0)];
        self.begin(Event::Own(Request::DeleteDevice(id)));
    }

    fn delete_room(&mut self) {
        let id = ROOMS[self.crew.rng.usize(..ROOMS.len())];
        self.begin(Event::Own(Request::DeleteRoom(id)));
    }

    async fn choose(&mut self) {
        let into = match self.crew.rng.usize(..=ROOMS.len()) {
            n if n < ROOMS.len() => Edit::Set(room(ROOMS[n])),
            _ => Edit::Clear,
        };
        self.edit(DevicePatch { room: into, ..DevicePatch::default() }).await;
    }

    /// Whose rollups are folded again then.
    async fn change_settings(&mut self) {
        let max_w = Edit::Set(number(["1", "50000"][self.crew.rng.usize(..2)]));
        let patch = MetricPatch { max_w, ..MetricPatch::default() };
        let metrics = [(metric(METRIC), Some(patch))].into();
        self.edit(DevicePatch { metrics, ..DevicePatch::default() }).await;
    }

    async fn edit(&mut self, patch: DevicePatch) {
        let id = device(DEVICES[self.crew.rng.usize(..DEVICES.len())]);
        // One that is not registered, or is being deleted, is not edited.
        let edited = self
            .crew
            .memory
            .edit_device(&id, &patch, at(self.crew.now), &self.crew.invocation)
            .await;
        edited.expect("memory");
    }

    /// Whatever runs longer than its function may is killed.
    async fn advance(&mut self, seconds: i64) {
        self.crew.now += seconds * SECOND;
        for n in 0..self.crew.instances.len() {
            self.crew.instances[n].home.clock.set(at(self.crew.now));
            let now = self.crew.now;
            let task = self.crew.instances[n].task.as_ref();
            if task.is_some_and(|task| now - task.begun >= limit(&task.event)) {
                self.kill(n).await;
            }
        }
    }

    // ---- Invocations ---------------------------------------------------------------------------

    /// A batch from the position on, sometimes from before it.
    fn deliver(&mut self) {
        let consumer = [Consumer::Registry, Consumer::Rollup][self.crew.rng.usize(..2)];
        let position = self.crew.position(consumer);
        let from = position - self.crew.rng.usize(..=position.min(6)) * self.crew.rng.usize(..2);
        let left = self.crew.stream.len() - from;
        if left > 0 {
            let count = self.crew.rng.usize(1..=left.min(6));
            self.begin(Event::Records(consumer, from..from + count));
        }
    }

    async fn take_message(&mut self) {
        if let Some((n, message)) = self.crew.any_message(false).await {
            self.start(n, message);
        }
    }

    async fn crash(&mut self) {
        if let Some(n) = self.crew.any(true) {
            self.kill(n).await;
        }
    }

    async fn kill(&mut self, n: usize) {
        let other = self.instance();
        self.crew.crash(n, other).await;
    }

    async fn step_any(&mut self) {
        let over = self.crew.step_any(false).await;
        self.judge_answer(over);
    }

    fn judge_answer(&mut self, over: Option<(Event<Request>, Outcome)>) {
        let Some((Event::Own(request), Outcome::Answered(answer))) = over else { return };
        let statuses: &[i64] = match request {
            Request::Post(_) => &[201, 207, 410, 503],
            Request::DeleteDevice(_) => &[200, 202, 404, 503],
            Request::DeleteRoom(_) => &[200, 404, 409, 503],
        };
        if !statuses.contains(&answer.status) {
            self.wrong.push(format!("{request:?} is answered with {answer:?}"));
        }
    }

    async fn finish(&mut self, n: usize) {
        while self.crew.instances[n].task.is_some() {
            let over = self.crew.step(n, Step::Done).await;
            self.judge_answer(over);
            self.observe().await;
        }
    }

    async fn run(&mut self, event: Event<Request>) {
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
                    self.run(Event::Own(Request::DeleteDevice(id))).await;
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
            let count = self.crew.stream.len();
            for consumer in [Consumer::Registry, Consumer::Rollup] {
                self.run(Event::Records(consumer, 0..count)).await;
            }
            for seconds in [61 * 60, 60] {
                self.advance(seconds).await;
                self.run(Event::Schedule).await;
            }
            for message in self.crew.queue.take() {
                self.run(Event::Message(message)).await;
            }
        }
        for id in DEVICES {
            self.judge_at_rest(&device(id)).await;
        }
    }

    async fn is_being_deleted(&self, id: &str) -> bool {
        let deletion = self.crew.memory.deletion(&device(id), &self.crew.invocation).await;
        deletion.expect("memory").is_some_and(|it| it.ended.is_none())
    }

    // ---- Judgement -----------------------------------------------------------------------------

    async fn belongings(&self, id: &DeviceId) -> Belongings {
        self.crew.memory.belongings(id, 10_000, &self.crew.invocation).await.expect("memory")
    }

    /// The readings of a device that were stored behind that many of all: the last of each timestamp.
    fn stored_since(&self, id: &DeviceId, count: usize) -> BTreeMap<ReadingKey, Reading> {
        let log = self.log();
        let own = log.stored[count..].iter().filter(|it| it.device == *id);
        own.map(|it| (ReadingKey::of(it), it.clone())).collect()
    }

    fn stored(&self, id: &DeviceId) -> BTreeMap<ReadingKey, Reading> {
        let own = self.crew.memory.readings().into_iter().filter(|it| it.device == *id);
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
        let ids = std::slice::from_ref(id);
        let listing = self.crew.memory.find_devices(ids, &self.crew.invocation).await;
        let Listing { found, deleted, .. } = listing.expect("memory");
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
        let found =
            self.crew.memory.find_rooms(std::slice::from_ref(room), &self.crew.invocation).await;
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
        for rollup in
            self.crew.memory.rollups().into_iter().filter(|it| it.key.device == *device.id())
        {
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
