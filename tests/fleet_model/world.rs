//! The world of one schedule: devices that move and flap, people who edit, the stream, and instances of the
//! registry function that crash, lag and work at the same time. Judges what they leave, at every step.

use std::collections::BTreeMap;

use domain::{Device, DevicePatch, Edit, Place, Reading, Stay, Timestamp};
use table::{EditRegistry as _, FindRegistry as _, PutReadings as _, ReadStays as _, StayQuery};

use super::steps::Design;
use crate::gate::Step;
use crate::gate::instances::{Crew, Event, Instance};
use crate::given::{always, at, device, label, placed, reading, room};
use crate::home::{Consumer, Options};

const DEVICES: [&str; 2] = ["a", "b"];
const ROOMS: [&str; 3] = ["x", "y", "z"];
const INSTANCES: usize = 3;
const MINUTE: i64 = 60_000;

pub(super) struct World {
    /// Its time is in minutes from the start that tests count from.
    crew: Crew<Design, ()>,
    design: Design,
    readings: Vec<Reading>,
    /// The stays of each device as they were after the last step.
    histories: BTreeMap<&'static str, Vec<Stay>>,
    wrong: Vec<String>,
}

impl World {
    pub(super) fn new(seed: u64, design: Design) -> Self {
        let (histories, crew) = (BTreeMap::new(), Crew::new(seed, 100));
        let mut world = Self { crew, design, readings: Vec::new(), histories, wrong: Vec::new() };
        world.crew.instances = (0..INSTANCES).map(|_| world.instance()).collect();
        world
    }

    fn instance(&self) -> Instance<Design, ()> {
        Instance::new(&self.crew.memory, self.design, Options::at(at(60 * MINUTE)))
    }

    // ---- Life ----------------------------------------------------------------------------------

    /// A random schedule.
    pub(super) async fn live(&mut self) {
        for _ in 0..self.crew.rng.usize(60..240) {
            match self.crew.rng.u8(..100) {
                0..16 => self.write().await,
                16..20 => self.choose().await,
                20..23 => self.edit(Edit::Clear, None, Edit::Keep).await,
                23..25 => self.rename().await,
                25..34 => self.crew.now += [1, 5, 16, 40][self.crew.rng.usize(..4)],
                34..46 => self.deliver(),
                46..48 => self.crash().await,
                48..50 => self.crew.give_up_any().await,
                _ => self.step_any().await,
            }
        }
    }

    /// A reading of now, a late one, or one that is sent again with another room.
    async fn write(&mut self) {
        let id = DEVICES[self.crew.rng.usize(..DEVICES.len())];
        let minute = match self.crew.rng.u8(..4) {
            0 => self.crew.now - self.crew.rng.i64(1..60),
            _ => self.crew.now,
        };
        let sent = reading(id, minute * MINUTE, &[("temperature", "21.5")]);
        let sent = match self.crew.rng.usize(..ROOMS.len() + 2) {
            n if n < ROOMS.len() => placed(sent, ROOMS[n]),
            _ => sent,
        };
        self.crew
            .memory
            .put_readings(std::slice::from_ref(&sent), None, &self.crew.invocation)
            .await;
        self.crew.stream.store(&sent);
        self.readings.push(sent);
    }

    async fn choose(&mut self) {
        let into = room(ROOMS[self.crew.rng.usize(..ROOMS.len())]);
        let since =
            self.crew.rng.bool().then(|| at((self.crew.now - self.crew.rng.i64(0..90)) * MINUTE));
        self.edit(Edit::Set(into), since, Edit::Keep).await;
    }

    async fn rename(&mut self) {
        let name = format!("name {}", self.crew.rng.u8(..3));
        self.edit(Edit::Keep, None, Edit::Set(label(&name))).await;
    }

    async fn edit(
        &mut self,
        into: Edit<domain::RoomId>,
        room_since: Option<Timestamp>,
        name: Edit<domain::Label>,
    ) {
        let id = device(DEVICES[self.crew.rng.usize(..DEVICES.len())]);
        let patch = DevicePatch { room: into, room_since, name, ..DevicePatch::default() };
        // One that is not registered, or that cannot have been there since then, is not edited.
        let edited = self
            .crew
            .memory
            .edit_device(&id, &patch, at(self.crew.now * MINUTE), &self.crew.invocation)
            .await;
        edited.expect("memory");
        self.observe().await;
    }

    // ---- Invocations ---------------------------------------------------------------------------

    /// A batch from the position on, sometimes from before it, and sometimes beside another.
    fn deliver(&mut self) {
        if self.crew.is_delivering() && self.crew.rng.u8(..3) > 0 {
            return;
        }
        if let Some((n, batch)) = self.crew.any_batch(Consumer::Registry, 6, 6) {
            self.crew.start(n, batch);
        }
    }

    async fn crash(&mut self) {
        let Some(n) = self.crew.any(true) else { return };
        let other = self.instance();
        self.crew.crash(n, other).await;
    }

    async fn step_any(&mut self) {
        let Some(n) = self.crew.any(true) else { return };
        let step = Step::any(&mut self.crew.rng, true);
        self.step(n, step).await;
    }

    /// Runs an instance up to its next operation, and looks at what it wrote.
    async fn step(&mut self, n: usize, step: Step) {
        let writes = |world: &Self| world.crew.instances[n].home.store.db.writes();
        let before = writes(self);
        self.crew.step(n, step).await;
        if writes(self) > before {
            self.observe().await;
        }
    }

    async fn finish(&mut self, n: usize) {
        while self.crew.instances[n].task.is_some() {
            self.step(n, Step::Done).await;
        }
    }

    // ---- Rest ----------------------------------------------------------------------------------

    /// All invocations end, and everything is delivered once more.
    pub(super) async fn come_to_rest(&mut self) {
        for n in 0..INSTANCES {
            self.finish(n).await;
        }
        let all = 0..self.crew.stream.len();
        self.crew.start(0, Event::Records(Consumer::Registry, all));
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
        self.crew.memory.find_devices(&ids, &self.crew.invocation).await.expect("memory").found
    }

    /// Compares each history with what it was, and with the device.
    async fn observe(&mut self) {
        for device in self.devices().await {
            let query = StayQuery { range: always(), after: None, limit: 10_000 };
            let page = self.crew.memory.stays_of(device.id(), &query, &self.crew.invocation).await;
            let history: Vec<Stay> =
                page.expect("memory").items.into_iter().map(|of| of.stay).collect();
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
