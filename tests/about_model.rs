//! What senders say of their devices, under random schedules: instances with stale caches, a registry that does not
//! answer, requests that are repeated until they are stored, batches that fail, are repeated or come late. At rest the
//! registry has all that stored readings say, and no request was refused for it. A request is lines, or the same
//! readings in JSON with `about`.

use std::collections::{BTreeMap, BTreeSet};

use api::AboutBody;
use domain::{About, DeviceId, Reading, RoomId, Timestamp};
use fastrand::Rng;
use serde_json::json;
use table::db::{Write, WriteChange};
use table::item::Item;
use table::item::attribute::SAID_ABOUT;
use table::memory_db::{MemoryDb, on};
use table::{Action, ReadRegistry as _, StoreError, Target};

use crate::gate::deadline;
use crate::gate::rules::{Ruled, Rules};
use crate::given::at;
use crate::home::{Consumer, Home, Options};
use crate::records::Stream;
use crate::schedules::{asleep, assert_each_seen, assert_right};

const DEVICES: usize = 3;
const TAGS: usize = 4;
const ROOMS: usize = 4;
const INSTANCES: usize = 2;
/// The schedules of a normal run: some seconds.
const SCHEDULES: u64 = 300;

/// A design of the way on which the registry learns what senders say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Design {
    Ours,
    /// Readings say nothing: only what the function ingest registers is known.
    Unsaid,
    /// A batch is delivered once, whether it fails or not.
    OneAttempt,
}

impl Rules for Design {
    fn are_ours(&self) -> bool {
        *self != Self::Unsaid
    }

    fn made(&self, mut write: Write, _known: Option<Item>) -> Option<Write> {
        if let WriteChange::Update(_, changes) = &mut write.change {
            changes.retain(|change| *change.path() != SAID_ABOUT.into());
        }
        Some(write)
    }
}

struct World {
    rng: Rng,
    design: Design,
    memory: MemoryDb,
    instances: Vec<Home<Ruled<Design>>>,
    stream: Stream,
    /// All records before are delivered.
    position: usize,
    stored: BTreeMap<(DeviceId, Timestamp), Reading>,
    /// By device its tags with the values, and by device its metrics, as lines said that are stored.
    tags: BTreeMap<(usize, usize), BTreeSet<String>>,
    metrics: BTreeSet<(usize, String)>,
    rooms: BTreeSet<usize>,
    now: i64,
    wrong: Vec<String>,
}

/// A line, and what it says.
struct Said {
    text: String,
    device: usize,
    tag: (usize, String),
    metric: String,
    room: Option<usize>,
}

impl World {
    fn new(seed: u64, design: Design) -> Self {
        let memory = MemoryDb::default();
        let options = || Options { deadline, ..Options::at(at(0)) };
        let instance = |_| Home::with(Ruled::new(&memory, design), options());
        Self {
            rng: Rng::with_seed(seed),
            design,
            instances: (0..INSTANCES).map(instance).collect(),
            memory,
            stream: Stream::default(),
            position: 0,
            stored: BTreeMap::new(),
            tags: BTreeMap::new(),
            metrics: BTreeSet::new(),
            rooms: BTreeSet::new(),
            now: 0,
            wrong: Vec::new(),
        }
    }

    async fn live(&mut self) {
        for _ in 0..self.rng.usize(10..40) {
            match self.rng.u8(..10) {
                0..5 => self.send().await,
                5..8 => self.deliver().await,
                8 => self.deliver_again().await,
                _ => self.pass_time(),
            }
        }
    }

    /// Caches are read anew after a minute.
    fn pass_time(&mut self) {
        self.now += [1_000, 20_000, 61_000][self.rng.usize(..3)];
        for home in &self.instances {
            home.clock.set(at(self.now));
        }
    }

    fn line(&mut self) -> Said {
        let device = self.rng.usize(..DEVICES);
        let tag = (self.rng.usize(..TAGS), format!("v{}", self.rng.u8(..3)));
        let metric = format!("f{}", self.rng.u8(..6));
        let room = self.rng.bool().then(|| self.rng.usize(..ROOMS));
        let area = room.map_or_else(String::new, |room| format!(",area=Room\\ {room}"));
        self.now += 1;
        let text = format!(
            "{metric},host=d{device},t{}={}{area} value=1 {}000000\n",
            tag.0,
            tag.1,
            at(self.now).as_millis()
        );
        Said { text, device, tag, metric, room }
    }

    /// Sends lines until they are stored, at first beside troubles of the registry.
    async fn send(&mut self) {
        let said: Vec<Said> = (0..self.rng.usize(1..5)).map(|_| self.line()).collect();
        let body: String = said.iter().map(|line| line.text.as_str()).collect();
        let throttled = || StoreError::Throttled("now".into());
        let may_be_refused = self.rng.u8(..4) == 0;
        if may_be_refused {
            let after = self.rng.usize(..4);
            self.memory.fail(on(Action::UpdateItem, Target::Readings), after, throttled());
        }
        for target in [Target::Devices, Target::Rooms] {
            if self.rng.bool() {
                let after = self.rng.usize(..2);
                self.memory.fail(on(Action::PutItem, target), after, throttled());
            }
        }

        let n = self.rng.usize(..INSTANCES);
        let mut status = self.write(n, &body).await;
        if !is_stored(status) && !may_be_refused {
            self.wrong.push(format!("{status} though only the registry does not answer"));
        }
        self.memory.end_troubles();
        while status == 503 {
            let n = self.rng.usize(..INSTANCES);
            status = self.write(n, &body).await;
        }

        for Said { device, tag: (tag, value), metric, room, .. } in said {
            self.tags.entry((device, tag)).or_default().insert(value);
            self.metrics.insert((device, metric));
            self.rooms.extend(room);
        }
    }

    async fn write(&mut self, instance: usize, lines: &str) -> i64 {
        let (path, query, body) = if self.rng.bool() {
            let body = in_json(lines, at(self.now));
            ("/readings", "merge=true", body)
        } else {
            ("/write", "device_tags=host&room_tag=area", lines.to_owned())
        };
        let event = json!({
            "version": "2.0", "rawPath": path, "rawQueryString": query, "body": body,
            "requestContext": {"requestId": "r", "http": {"method": "POST", "path": path}},
            "isBase64Encoded": false,
        });
        let event = serde_json::from_value(event).expect("an event");
        let answer = self.instances[instance].send(event).await;

        for reading in self.memory.readings() {
            let key = (reading.device.clone(), reading.at);
            if self.stored.get(&key) != Some(&reading) {
                self.stream.store(&reading);
                self.stored.insert(key, reading);
            }
        }
        answer.status
    }

    /// Hands the next records to the function registry, which the table refuses some writes.
    async fn deliver(&mut self) {
        let left = self.stream.len() - self.position;
        let records = self.stream.records(self.position..self.position + self.rng.usize(..=left));
        if self.rng.bool() {
            let target = if self.rng.bool() { Target::Devices } else { Target::Rooms };
            let after = self.rng.usize(..3);
            let throttled = StoreError::Throttled("now".into());
            self.memory.fail(on(Action::UpdateItem, target), after, throttled);
        }

        let n = self.rng.usize(..INSTANCES);
        let failed = self.instances[n].hand(Consumer::Registry, &records).await;
        self.memory.end_troubles();
        let is_given_up = self.design == Design::OneAttempt;
        self.position = match failed {
            Some(number) if !is_given_up => number,
            _ => self.position + records.len(),
        };
    }

    async fn deliver_again(&mut self) {
        let begin = self.rng.usize(..=self.position);
        let records = self.stream.records(begin..self.position);
        let n = self.rng.usize(..INSTANCES);
        self.instances[n].hand(Consumer::Registry, &records).await;
    }

    async fn come_to_rest(&mut self) {
        while self.position < self.stream.len() {
            self.deliver().await;
        }
        let invocation = table::Invocation::until(deadline());
        let devices = self.memory.all_devices();
        let rooms = self.memory.rooms(&invocation).await.expect("memory").found;

        for ((device, tag), values) in &self.tags {
            let id = format!("d{device}");
            let known = devices.iter().find(|known| known.id().as_str() == id);
            let value = known.and_then(|known| known.source().tags.get(&format!("t{tag}")));
            if value.is_none_or(|value| !values.contains(value)) {
                self.wrong.push(format!("{id} lacks the tag t{tag}: {known:?}"));
            }
        }
        for (device, metric) in &self.metrics {
            let id = format!("d{device}");
            let known = devices.iter().find(|known| known.id().as_str() == id);
            let fields = known.map(|known| &known.source().fields);
            if fields.is_none_or(|fields| fields.keys().all(|name| name.as_str() != metric)) {
                self.wrong.push(format!("{id} lacks the field {metric}: {known:?}"));
            }
        }
        for room in &self.rooms {
            let id: RoomId = format!("Room_{room}").parse().expect("an id");
            let known = rooms.iter().find(|known| known.id == id);
            let name = known.and_then(|known| known.name.as_ref());
            if name.is_none_or(|name| name.as_str() != format!("Room {room}")) {
                self.wrong.push(format!("{id} has no name: {known:?}"));
            }
            if devices.iter().all(|device| !device.introduced_rooms().contains(&id)) {
                self.wrong.push(format!("no device notes that it introduced {id}"));
            }
        }
    }
}

const fn is_stored(status: i64) -> bool {
    matches!(status, 201 | 204)
}

/// The readings of lines as the body of `POST /readings`, with what the lines say about devices.
fn in_json(lines: &str, now: Timestamp) -> String {
    let rules = ingest::LineRules {
        device_tags: vec!["host".to_owned()],
        room_tag: Some("area".to_owned()),
        prefix: None,
    };
    let read = ingest::read_points(lines.as_bytes(), now, &rules);
    let readings = read.expect("lines").readings.into_iter().map(|reading| {
        let about = reading.about.clone().map_or_else(About::default, |about| *about);
        let mut body = json!({
            "device_id": reading.device,
            "timestamp": reading.at,
            "room": reading.named_room,
            "about": AboutBody::from(about),
        });
        let metrics = reading.metrics().iter();
        let members = body.as_object_mut().expect("an object");
        members.extend(metrics.map(|(name, value)| (name.to_string(), json!(value))));
        body
    });
    json!(readings.collect::<Vec<_>>()).to_string()
}

fn run(seed: u64, design: Design) -> Vec<String> {
    asleep(async {
        let mut world = World::new(seed, design);
        world.live().await;
        world.come_to_rest().await;
        world.wrong
    })
}

#[test]
fn the_registry_has_what_stored_readings_say() {
    assert_right(SCHEDULES, |seed| run(seed, Design::Ours));
}

#[test]
fn each_wrong_design_is_seen() {
    assert_each_seen(&[(Design::Unsaid, 1), (Design::OneAttempt, 1)], SCHEDULES, run);
}
