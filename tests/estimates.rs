//! What `explain` estimates against what is consumed, by random questions about devices that send seldom, have many
//! metrics, move, or are behind a meter. Checks no value.

use std::collections::{BTreeMap, BTreeSet};

use domain::{Bucket, FoldRules, Month, QuarterHour, Reading, Rollup, TimeRange, Timestamp, Zone};
use serde_json::json;
use table::item::Kind as _;
use table::{RegisterDevices as _, Seen};

use crate::engine::{Engine, Table};
use crate::given::{
    at, device_of, invocation, placed, reading, register_room, seal, stored_rollup,
};
use crate::home::Home;
use crate::patterns::answer_of;
use crate::stored::{end_room_walk, note_seen, put};

const MINUTE: i64 = 60_000;
const DAY: i64 = 86_400_000;
const DAYS: i64 = 60;
/// The middle of the day after the last one that is rolled up.
const NOW: i64 = DAYS * DAY;
const SEALED: i64 = NOW - 30 * MINUTE;
const ROOM: &str = "attic";
const OTHER_ROOM: &str = "cellar";

/// Readings that are stored, rolled up and noted in their room.
async fn store(table: &Table, readings: &[Reading]) {
    let (store, first, invocation) = (table.store(), &readings[0], &invocation());
    let known = device_of(readings);
    store.register_device(&known, invocation).await.expect("written");
    for some in readings.chunks(500) {
        put(&store, some).await;
    }
    let mut buckets: BTreeMap<(Timestamp, Timestamp), (Bucket, Vec<Reading>)> = BTreeMap::new();
    for reading in readings.iter().filter(|it| it.at < at(SEALED)) {
        let (quarter, date) = (QuarterHour::of(reading.at), Zone::UTC.date(reading.at));
        let day = Zone::UTC.day(date).expect("it exists");
        let rolled = [(Bucket::QuarterHour(quarter), quarter.range()), (Bucket::Day(date), day)];
        for (bucket, range) in rolled.into_iter().filter(|(_, range)| range.to() <= at(SEALED)) {
            let found = buckets.entry((range.from(), range.to()));
            found.or_insert((bucket, Vec::new())).1.push(reading.clone());
        }
    }
    let rules = FoldRules::of(&known);
    let rollups = buckets.into_iter().map(|((from, to), (bucket, readings))| {
        let range = TimeRange::new(from, to).expect("a range");
        let rollup = Rollup::fold(&readings, &rules);
        stored_rollup(&first.device, bucket, range, rollup).item()
    });
    table.put_all(rollups).await;

    let rooms: BTreeSet<_> = readings.iter().filter_map(|it| it.room.clone()).collect();
    for room in rooms {
        let mut seen = Seen::begun(room, first.device.clone(), Month::of(first.at));
        seen.last = Month::of(at(NOW));
        note_seen(&store, &seen).await;
    }
}

/// A reading of a thermometer that meters too, every so many days.
fn seldom(id: &str, days: i64) -> Vec<Reading> {
    let each = (0..DAYS).step_by(usize::try_from(days).expect("few")).map(|day| {
        let kwh = format!("{}.5", 100 + day);
        let metrics = [("temperature", "21.5"), ("cumulative_kwh_p", &kwh)];
        placed(reading(id, day * DAY + 3 * 60 * MINUTE, &metrics), ROOM)
    });
    each.collect()
}

/// A day of a device with sixty metrics, every quarter of an hour: all in one reading, or a reading each.
fn wide(id: &str, are_apart: bool) -> Vec<Reading> {
    let names: Vec<String> = (0..60).map(|n| format!("channel_{n:02}")).collect();
    let times = (-96..0).map(|n| NOW + n * 15 * MINUTE);
    let each = times.flat_map(|time| -> Vec<Reading> {
        if are_apart {
            let apart = names.iter().zip(0..);
            let apart = apart.map(|(name, n)| reading(id, time + n * 1_000, &[(name, "21.5")]));
            return apart.map(|it| placed(it, ROOM)).collect();
        }
        let metrics: Vec<_> = names.iter().map(|name| (name.as_str(), "21.5")).collect();
        vec![placed(reading(id, time, &metrics), ROOM)]
    });
    each.collect()
}

/// Twelve days of a meter, every half an hour, which is for some days in the one room and for some in the other.
fn moving(id: &str, days: i64) -> Vec<Reading> {
    let each = (0..12 * 48).map(|n| {
        let time = NOW - (12 * 48 - n) * 30 * MINUTE;
        let (kwh, watts) = (format!("{}.25", 100 + n), (n % 7 * 100).to_string());
        let metrics = [("cumulative_kwh_p", &*kwh), ("current_w", &watts)];
        // In the middle of a day.
        let is_away = (n + 20) / (48 * days) % 2 == 1;
        placed(reading(id, time, &metrics), if is_away { OTHER_ROOM } else { ROOM })
    });
    each.collect()
}

#[tokio::test]
async fn estimates_are_near_what_is_consumed() {
    let engine = Engine::embedded().await;
    let table = engine.table(true).await;
    let opened = table.store();
    seal(&opened, "UTC", at(SEALED)).await;
    end_room_walk(&opened).await;
    register_room(&opened, ROOM, at(0)).await;
    register_room(&opened, OTHER_ROOM, at(0)).await;

    for readings in [
        seldom("daily", 1),
        seldom("rare", 3),
        wide("wide", false),
        wide("apart", true),
        moving("meter", 3),
        moving("plug", 5),
        moving("lamp", 12),
    ] {
        store(&table, &readings).await;
    }
    let home = Home::at(opened, at(NOW));
    home.query().load().await;
    let month = format!("from={}&to={}&explain=1", at(20 * DAY), at(NOW));
    let week = format!("from={}&to={}&explain=1", at(NOW - 6 * DAY), at(NOW));
    let wide = "&metric=channel_00,channel_01,channel_59";
    let mut asked = Vec::new();
    for (path, metric) in [
        ("/devices/daily", ""),
        ("/devices/rare", ""),
        ("/devices/wide", wide),
        ("/devices/apart", wide),
        (&*format!("/rooms/{ROOM}"), "&metric=temperature,channel_00"),
        ("", "&metric=temperature,channel_00"),
    ] {
        asked.push((format!("{path}/series"), format!("{month}{metric}")));
        for every in ["1mo", "1d"] {
            asked.push((format!("{path}/series"), format!("{month}{metric}&every={every}")));
        }
        for every in ["1h", "15m"] {
            asked.push((format!("{path}/series"), format!("{week}{metric}&every={every}")));
        }
    }
    for path in ["/devices/daily", "/devices/rare", &format!("/rooms/{ROOM}"), ""] {
        for every in ["1d", "1h"] {
            asked.push((format!("{path}/energy"), format!("{month}&every={every}")));
        }
    }
    for (path, parameters) in asked {
        answer_of(&home, &path, &parameters).await;
    }
    for (path, patch) in [
        ("/devices/plug", json!({"behind": "meter"})),
        ("/devices/lamp", json!({"behind": "plug"})),
        (&*format!("/rooms/{ROOM}"), json!({"home": "house"})),
        (&*format!("/rooms/{OTHER_ROOM}"), json!({"home": "house"})),
    ] {
        let answer = home.ask("PATCH", path, "", Some(&patch)).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }
    let mut random = fastrand::Rng::with_seed(21);
    let other_room = format!("/rooms/{OTHER_ROOM}");
    let room = format!("/rooms/{ROOM}");
    let paths = ["/devices/meter", "/devices/lamp", &*room, &*other_room, "/homes/house", ""];
    for _ in 0..40 {
        let path = random.choice(paths).expect("one");
        let from = random.i64(NOW - 20 * DAY..NOW - MINUTE);
        let to = random.i64(from + 1..=NOW);
        let every = random.choice(["", "&every=15m", "&every=1h", "&every=1d"]).expect("one");
        let mut more = String::new();
        if !path.starts_with("/devices") {
            more += random.choice(["", "&devices=1"]).expect("one");
        }
        let what = random.choice(["energy", "energy", "series"]).expect("one");
        more += match what {
            "series" if random.bool() => "&metric=cumulative_kwh_p&fn=increase",
            "series" => "&metric=current_w&fn=time_mean,mean",
            _ if random.u8(0..4) == 0 => "&events=1",
            _ => "",
        };
        let parameters = format!("from={}&to={}&explain=1{every}{more}", at(from), at(to));
        answer_of(&home, &format!("{path}/{what}"), &parameters).await;
    }
}
