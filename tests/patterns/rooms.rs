//! What a room of ten devices costs, in a registry of 1,000 and of 10,000 devices that memory holds. Checks no value.

use std::time::Duration;

use domain::{
    Bucket, DeviceId, DeviceObservation, FoldRules, Month, Quarter, Reading, Rollup, Room,
    SWEEP_GROUPS, TimeRange, Timestamp, Zone,
};
use dynamodb::DynamoStore;
use futures_util::{StreamExt as _, stream};
use runtime::clock::TestClock;
use runtime::telemetry::Telemetry;
use table::{
    Expected, KeepRollupState as _, NoteSeen as _, PutReadings as _, PutRollups as _,
    ReadSeen as _, RegisterDevices as _, RollupKey, RollupState, RoomWalk, Seen, StoredRollup,
};

use super::{Row, cost};
use crate::engine::Engine;
use crate::given::{
    Answer, at, device, invocation, minute, percent_encoded, placed, reading, request, room,
};

const MINUTE: i64 = 60_000;
const DAY: i64 = 86_400_000;
/// The days for which there are rollups, from that of the start of the tests' time on; the day after is four hours old.
const DAYS: i64 = 9;
const NOW: i64 = 8 * DAY + 12 * 60 * MINUTE;
/// The time up to which all is rolled up.
const SEALED: i64 = NOW - 30 * MINUTE;
const ROOM: &str = "room-0000";

fn name(n: usize) -> String {
    format!("device-{n:05}")
}

/// The reading of a device: one every ten minutes; ten devices share a room.
fn measured(n: usize, millis: i64) -> Reading {
    let minute = millis / MINUTE + 10_000;
    let (temperature, kwh) = (format!("2{}.5", minute / 10 % 10), format!("{minute}.5"));
    let metrics = [("temperature", temperature.as_str()), ("cumulative_kwh_p", &kwh)];
    placed(reading(&name(n), millis, &metrics), &format!("room-{:04}", n / 10))
}

fn readings(n: usize, range: TimeRange) -> Vec<Reading> {
    let step = 10 * MINUTE;
    let millis = |at: Timestamp| at.since(self::at(0)).num_milliseconds();
    let steps = [range.from(), range.to()].map(|at| (millis(at) + step - 1).div_euclid(step));
    (steps[0]..steps[1]).map(|it| measured(n, it * step)).collect()
}

struct House {
    _engine: Engine,
    store: DynamoStore,
}

impl House {
    async fn build() -> Self {
        let engine = Engine::embedded().await;
        let store = engine.table(true).await.store();
        let sealed = [at(SEALED); SWEEP_GROUPS];
        let (zone, since) = ("UTC".to_owned(), Timestamp::MIN);
        let state = RollupState { zone, since, sealed, queue: None };
        store.begin_rollups(&state, &invocation()).await.expect("written");
        let walk = RoomWalk { begun: at(0), after: None, is_done: true };
        store.set_room_walk(&walk, &invocation()).await.expect("written");
        let house = Self { _engine: engine, store };
        house.register(0..1_000).await;
        for n in 0..10 {
            house.roll_up(n).await;
        }
        house
    }

    /// Registers devices, each ten with their room.
    async fn register(&self, devices: std::ops::Range<usize>) {
        stream::iter(devices)
            .for_each_concurrent(16, |n| async move {
                let first = measured(n, 0);
                if n % 10 == 0 {
                    let place = first.room.clone().expect("a room");
                    let place = Room::new(place, at(0));
                    self.store.register_room(&place, &invocation()).await.expect("written");
                }
                let new = DeviceObservation::of(&first).new_device(first.device, |_| true);
                self.store.register_device(&new, &invocation()).await.expect("written");
            })
            .await;
    }

    async fn roll_up(&self, n: usize) {
        let id = device(&name(n));
        let rules = DeviceObservation::of(&measured(n, 0)).new_device(id.clone(), |_| true);
        let rules = FoldRules::of(&rules);
        for day in 0..DAYS {
            let date = Zone::UTC.date(at(day * DAY));
            let range = Zone::UTC.day(date).expect("it exists");
            let rollup = Rollup::fold(&readings(n, range), &rules);
            self.put(&id, Bucket::Day(date), range, Some("UTC".to_owned()), rollup).await;
        }
        let mut quarter = Quarter::of(at(8 * DAY));
        while quarter.end() <= at(SEALED) {
            let rollup = Rollup::fold(&readings(n, quarter.range()), &rules);
            self.put(&id, Bucket::Quarter(quarter), quarter.range(), None, rollup).await;
            quarter = quarter.next();
        }
        let newest = TimeRange::new(at(8 * DAY), at(NOW)).expect("a range");
        let put = self.store.put_readings(&readings(n, newest), None, &invocation()).await;
        assert!(put.not_stored.is_empty());
        let seen = Seen::begun(room(ROOM), id, Month::of(at(0)));
        assert!(
            self.store.put_seen(&seen, Expected::Absent, &invocation()).await.expect("written")
        );
    }

    async fn put(
        &self,
        id: &DeviceId,
        bucket: Bucket,
        range: TimeRange,
        zone: Option<String>,
        rollup: Rollup,
    ) {
        let stored = StoredRollup {
            key: RollupKey { device: id.clone(), bucket },
            range,
            zone,
            version: 1,
            settings: 0,
            raw_until: None,
            expires: None,
            is_frozen: false,
            indexed: None,
            rollup,
        };
        let put = self.store.put_rollup(&stored, Expected::Absent, &invocation()).await;
        assert!(put.expect("written"));
    }

    /// What an answer costs that has something at `place`, the second time within a minute.
    async fn asked(&self, path: &str, query: &str, place: &str) -> (f64, f64) {
        let settings = query::Settings {
            registry_max_age: Duration::from_secs(60),
            auth: false,
            ..query::Settings::default()
        };
        let clock = TestClock::at(at(NOW));
        let function = query::Query::new(self.store.clone(), clock, Telemetry::silent(), settings);
        function.load().await;
        function.handle(request("GET", path, query, None), minute()).await;
        let answer =
            Answer::of(&function.handle(request("GET", path, query, None), minute()).await);
        assert_eq!(answer.status, 200, "{}", answer.body);
        super::assert_estimate(path, &answer);
        let found = answer.body.pointer(place);
        let found = found.filter(|it| it.as_array().is_none_or(|it| !it.is_empty()));
        assert!(found.is_some(), "{path}?{query}: {}", answer.body);
        let units = |name: &str| {
            let text = answer.headers[name].as_str().expect("text");
            text.parse::<f64>().expect("a number")
        };
        (units("x-consumed-read-units"), units("x-consumed-write-units"))
    }
}

const SEEN: &str = "pk = `SEEN_IN#<room>`, sk BETWEEN `!` AND `~`; pk = `ROLLUP#<device>`";

const fn row(
    number: &'static str,
    pattern: &'static str,
    operation: &'static str,
    condition: &'static str,
    expected: (f64, f64),
    measured: (f64, f64),
) -> Row {
    Row { number, pattern, operation, condition, expected, measured }
}

pub(super) async fn rows() -> Vec<Row> {
    let house = House::build().await;
    let mut rows = noted_rows(&house.store).await;
    rows.extend(asked_rows(&house).await);
    rows
}

/// What it costs to note and to find who was in a room.
async fn noted_rows(store: &DynamoStore) -> Vec<Row> {
    let noted = Seen::begun(room(ROOM), device("new"), Month::of(at(0)));
    let put = cost(async |invocation| {
        assert!(store.seen(&noted.room, &noted.device, invocation).await.expect("read").is_none());
        assert!(store.put_seen(&noted, Expected::Absent, invocation).await.expect("written"));
    });
    let mut rows = vec![row(
        "15a",
        "note that a device is seen in a room for the first time",
        "GetItem, TransactWriteItems",
        "pk = `SEEN_IN#<room>`, sk = `<device>`; pk = `ROLLUP#<device>`, sk = `SEEN_IN#<room>`",
        (1.0, 4.0),
        put.await,
    )];
    let months = (noted.first, noted.last);
    let next = noted.widened((noted.first, "2026-02".parse().expect("a month")));
    rows.push(row(
        "15b",
        "the same in a further month",
        "GetItem, PutItem, if as it was read",
        "pk = `SEEN_IN#<room>`, sk = `<device>`",
        (1.0, 1.0),
        cost(async |invocation| {
            assert!(
                store.seen(&noted.room, &noted.device, invocation).await.expect("read").is_some()
            );
            assert!(
                store.put_seen(&next, Expected::Version(1), invocation).await.expect("written")
            );
        })
        .await,
    ));
    rows.push(row(
        "15c",
        "the devices that were seen in a room in some months",
        "Query",
        "pk = `SEEN_IN#<room>`, sk BETWEEN `!` AND `~`",
        (0.5, 0.0),
        cost(async |invocation| {
            let found = store.seen_in(&room(ROOM), months, 100, invocation).await.expect("read");
            assert_eq!(found.len(), 11);
        })
        .await,
    ));
    rows
}

/// What answers about the room cost.
async fn asked_rows(house: &House) -> Vec<Row> {
    let mut rows = Vec::new();
    let week = "from=2026-01-13T00:00:00Z&to=2026-01-20T04:00:00Z";
    let series = format!("{week}&every=1d&metric=temperature&explain=1");
    let (path, data) = (format!("/rooms/{ROOM}"), "/data");
    rows.push(row(
        "16a",
        "a week by day of a room of ten devices, in a registry of 1,000",
        "GetItem, Query, 30 × Query",
        SEEN,
        (16.5, 0.0),
        house.asked(&format!("{path}/series"), &series, data).await,
    ));
    house.register(1_000..10_000).await;
    rows.push(row(
        "16b",
        "the same in a registry of 10,000",
        "GetItem, Query, 30 × Query",
        SEEN,
        (16.5, 0.0),
        house.asked(&format!("{path}/series"), &series, data).await,
    ));
    rows.push(row(
        "16c",
        "its energy",
        "GetItem, Query, 50 × Query",
        SEEN,
        (26.5, 0.0),
        house.asked(&format!("{path}/energy"), &format!("{week}&every=1d&explain=1"), data).await,
    ));
    let day = "from=2026-01-20T00:00:00Z&to=2026-01-20T04:00:00Z&temperature=20..22";
    rows.push(row(
        "16d",
        "four hours' conditions of it",
        "GetItem, Query, 20 × Query",
        SEEN,
        (11.5, 0.0),
        house.asked(&format!("{path}/conditions"), day, data).await,
    ));
    let influxql = format!(
        "SELECT mean(\"value\") FROM \"temperature\" WHERE room = '{ROOM}' AND time >= '2026-01-13' AND time < '2026-01-20' GROUP BY time(1d)"
    );
    let influxql = format!("db=home&q={}", percent_encoded(&influxql));
    rows.push(row(
        "16e",
        "InfluxQL: a week by day of it",
        "GetItem, Query, 10 × Query",
        SEEN,
        (6.5, 0.0),
        house.asked("/query", &influxql, "/results/0/series/0/values").await,
    ));
    rows.push(row(
        "16f",
        "the newest values of it",
        "10 × Query, newest first",
        super::READINGS_OF_DEVICE,
        (5.0, 0.0),
        house.asked(&format!("{path}/latest"), "", data).await,
    ));
    rows
}
