//! Rooms of devices that move, fall silent and send late: any partition of a room's or a home's range adds up,
//! and each part is what an oracle of its own counts. The oracle knows readings only, and computes in integers.

use std::collections::BTreeSet;

use domain::{Edit, Month, Reading, RoomPatch};
use fastrand::Rng;
use serde_json::{Value, json};
use table::memory_db::MemoryDb;
use table::{EditRegistry as _, RoomVisit};

use crate::engine::Engine;
use crate::given::{
    answer, at, device, placed, reading, register_devices_of, register_room, room, seal,
};
use crate::home::{Consumer, Home, Options};
use crate::records;
use crate::stored::{note_seen, put};

const MINUTE: i64 = 60_000;
const DAY: i64 = 86_400_000;
/// The length of a story.
const END: i64 = 4 * DAY;
const ROOMS: [&str; 3] = ["room-a", "room-b", "room-c"];
/// The rooms of the home.
const HOME: [&str; 2] = ["room-a", "room-b"];

/// What a device measured: watt hours, which never fall.
#[derive(Debug, Clone)]
struct Measured {
    at: i64,
    room: &'static str,
    watt_hours: i64,
}

/// A device's readings in order; it moves and falls silent as it likes.
fn story(random: &mut Rng) -> Vec<Measured> {
    let (mut now, mut watt_hours) = (random.i64(0..DAY), random.i64(1..500_000));
    let mut room = *random.choice(ROOMS.iter()).expect("there are rooms");
    let mut all = Vec::new();
    while now < END {
        all.push(Measured { at: now, room, watt_hours });
        now += match random.u8(0..40) {
            0 => random.i64(6..40) * 60 * MINUTE,
            1..4 => random.i64(1..5) * 60 * MINUTE,
            _ => random.i64(1..25) * MINUTE + random.i64(0..999),
        };
        watt_hours += random.i64(0..1_500);
        if random.u8(0..25) == 0 {
            room = *random.choice(ROOMS.iter()).expect("there are rooms");
        }
    }
    all
}

/// The billionths of a kWh that a device counted in some rooms in a range: its share of each step between two
/// neighbours there, the part before an edge being rounded down.
fn counted(story: &[Measured], rooms: &[&str], (from, to): (i64, i64)) -> i128 {
    let steps = story.windows(2).filter(|pair| pair.iter().all(|it| rooms.contains(&it.room)));
    let share = |pair: &[Measured]| {
        let (begin, end) = (pair[0].at, pair[1].at);
        let step = i128::from(pair[1].watt_hours - pair[0].watt_hours) * 1_000_000;
        let until = |edge: i64| {
            let elapsed = i128::from(edge.clamp(begin, end) - begin);
            (step * elapsed).div_euclid(i128::from(end - begin))
        };
        until(to) - until(from)
    };
    steps.map(share).sum()
}

struct House {
    home: Home<MemoryDb>,
    sent: usize,
}

impl House {
    async fn new() -> Self {
        let zone = "Europe/Berlin".parse().expect("a zone");
        let home = Home::with(MemoryDb::default(), Options { zone, ..Options::at(at(0)) });
        home.schedule_at(0).await;
        for id in ROOMS {
            register_room(&home.store, id, at(0)).await;
        }
        for id in HOME {
            let into = Edit::Set("home".parse().expect("an id"));
            let patch = RoomPatch { home: into, ..RoomPatch::default() };
            answer!(home.store.edit_room(&room(id), &patch));
        }
        Self { home, sent: 0 }
    }

    /// Stores readings, and delivers them to the function that rolls them up.
    async fn send(&mut self, readings: &[Reading]) {
        put(&self.home.store, readings).await;
        for batch in readings.chunks(50) {
            let records = records::all_stored(self.sent, batch);
            self.sent += records.len();
            assert_eq!(self.home.hand(Consumer::Rollup, &records).await, None);
        }
    }
}

fn sent(id: &str, measured: &Measured) -> Reading {
    let kwh = format!("{}.{:03}", measured.watt_hours / 1_000, measured.watt_hours % 1_000);
    placed(reading(id, measured.at, &[("cumulative_kwh_p", &kwh)]), measured.room)
}

/// The billionths of a kWh of an answer; no value is 0.
async fn answered(home: &Home<MemoryDb>, path: &str, (from, to): (i64, i64)) -> i128 {
    let answer = home.found(path, &format!("from={}&to={}", at(from), at(to))).await;
    let kwh = answer.body["total_kwh"].as_f64().unwrap_or(0.0);
    #[expect(clippy::cast_possible_truncation, reason = "a few thousand kWh")]
    let billionths = (kwh * 1e9).round() as i128;
    billionths
}

#[tokio::test]
async fn any_partition_of_a_rooms_or_a_homes_range_adds_up() {
    let (mut silent, mut moved) = (0, 0);
    for seed in 0..12 {
        let mut random = Rng::with_seed(seed);
        let stories: Vec<Vec<Measured>> = (0..4).map(|_| story(&mut random)).collect();
        let mut house = House::new().await;
        let mut waiting: Vec<Reading> = Vec::new();
        for (n, story) in stories.iter().enumerate() {
            let id = format!("meter-{n}");
            let own: Vec<Reading> = story.iter().map(|it| sent(&id, it)).collect();
            register_devices_of(&house.home.store, &own).await;
            waiting.extend(own);
        }
        waiting.sort_by_key(|it| it.at);
        // Some come late, and some are first stored with another room and another figure.
        let (late, waiting): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|_| random.u8(0..20) == 0);
        let wrong = |it: &Reading| {
            placed(
                reading(
                    it.device.as_str(),
                    it.at.as_millis() - at(0).as_millis(),
                    &[("cumulative_kwh_p", "7")],
                ),
                "room-c",
            )
        };
        let (overwritten, _): (Vec<_>, Vec<_>) =
            waiting.clone().into_iter().partition(|_| random.u8(0..30) == 0);
        for begin in (0..END).step_by(usize::try_from(DAY / 4).expect("small")) {
            let is_now = |it: &&Reading| (at(begin)..at(begin + DAY / 4)).contains(&it.at);
            house.home.clock.set(at(begin + DAY / 8));
            let now: Vec<Reading> = waiting.iter().filter(is_now).cloned().collect();
            let first: Vec<Reading> = overwritten.iter().filter(is_now).map(wrong).collect();
            house.send(&first).await;
            house.send(&now).await;
            house.home.schedule_at(begin + DAY / 4 + 30 * MINUTE).await;
        }
        house.send(&late).await;
        for _ in 0..3 {
            house.home.schedule_at(END + 60 * MINUTE).await;
        }
        let subjects = ROOMS.iter().map(|it| (format!("/rooms/{it}/energy"), vec![*it]));
        for (path, rooms) in subjects.chain([("/homes/home/energy".to_owned(), HOME.to_vec())]) {
            for _ in 0..4 {
                let mut edges: BTreeSet<i64> =
                    (0..random.usize(2..7)).map(|_| random.i64(0..END)).collect();
                // Quarters of an hour and days are read as rollups.
                edges.extend(
                    (0..random.usize(0..3)).map(|_| random.i64(0..END / MINUTE / 15) * 15 * MINUTE),
                );
                let edges: Vec<i64> = edges.into_iter().collect();
                let mut sum = 0;
                for part in edges.windows(2).map(|it| (it[0], it[1])) {
                    let expected: i128 = stories.iter().map(|it| counted(it, &rooms, part)).sum();
                    let found = answered(&house.home, &path, part).await;
                    assert_eq!(found, expected, "seed {seed}: {path} {part:?}");
                    sum += found;
                    silent += stories
                        .iter()
                        .filter(|story| {
                            let is_silent =
                                !story.iter().any(|it| (part.0..part.1).contains(&it.at));
                            is_silent && counted(story, &rooms, part) > 0
                        })
                        .count();
                }
                if let (Some(first), Some(last)) = (edges.first(), edges.last())
                    && first < last
                {
                    assert_eq!(
                        answered(&house.home, &path, (*first, *last)).await,
                        sum,
                        "seed {seed}: {path}"
                    );
                }
                moved += 1;
            }
        }
    }
    assert!(silent > 30, "only {silent} silent devices had a share");
    assert!(moved > 100, "{moved} partitions");
}

#[tokio::test]
async fn without_the_index_by_room_a_range_has_the_devices_that_have_moved() {
    let engine = Engine::embedded().await;
    let store = engine.table(false).await.store();
    for id in ["room-a", "room-b"] {
        register_room(&store, id, at(0)).await;
    }
    let values = [("temperature", "21.5")];
    let readings =
        [("room-a", 0), ("room-b", MINUTE)].map(|(id, at)| placed(reading("d", at, &values), id));
    let [former, now] = &readings;
    register_devices_of(&store, std::slice::from_ref(now)).await;
    put(&store, &readings).await;
    seal(&store, "UTC", at(0)).await;
    let seen = RoomVisit::begun(room("room-a"), device("d"), Month::of(at(0)));
    note_seen(&store, &seen).await;

    let asked = format!("from={}&to={}", at(0), at(2 * MINUTE));
    let home = Home::at(store, at(2 * MINUTE));
    let answer = home.found("/rooms/room-a/readings", &asked).await;
    let found = answer.body["data"].as_array().expect("rows");
    let times: Vec<&Value> = found.iter().map(|row| &row["timestamp"]).collect();
    assert_eq!(times, [&json!(former.at.to_string())]);
}
