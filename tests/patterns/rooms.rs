//! What a room of ten devices costs, in a registry of 1,000 and of 10,000 devices that memory holds. Checks no value.

use domain::{
    Bucket, FoldRules, Month, QuarterHour, Reading, Rollup, Room, SWEEP_GROUPS, TimeRange,
    Timestamp, Zone,
};
use dynamodb::DynamoStore;
use rollups::part_of_day;
use table::item::{self, Kind as _};
use table::{
    Expected, KeepRollupState as _, NoteSeen as _, PutRollups as _, ReadRollups as _,
    ReadSeen as _, RollupKey, RoomVisit, StoredRollup,
};

use super::{Row, cost, costs, row};
use crate::engine::{Engine, Table};
use crate::given::{
    answer, at, device, device_of, percent_encoded, placed, put_first, reading,
    register_devices_of, room, seal, stored_rollup,
};
use crate::home::Home;
use crate::stored::{note_seen, put};

const MINUTE: i64 = 60_000;
const DAY: i64 = 86_400_000;
const HOUR: i64 = 60 * MINUTE;
/// Midnight, eight days after that of the start of the tests' time.
const MIDNIGHT: i64 = 8 * DAY + 8 * HOUR;
/// The time of day, a little after midnight, at which most is asked.
const FOUR: i64 = MIDNIGHT + 4 * HOUR;
/// The time for which nothing is rolled up yet.
const UNSEALED: i64 = 30 * MINUTE;
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

/// The time up to which all is rolled up.
fn sealed_at(now: i64) -> Timestamp {
    QuarterHour::of(at(now - UNSEALED)).start()
}

/// A house at a moment.
struct House {
    table: Table,
    store: DynamoStore,
    now: i64,
    /// Has loaded the registry of this moment.
    home: Home<DynamoStore>,
}

impl House {
    /// A house of a thousand devices, five minutes after midnight.
    async fn build() -> Self {
        let table = Engine::embedded().await.table_without_stream(&[]).await;
        let store = table.store();
        let now = MIDNIGHT - DAY;
        seal(&store, "UTC", sealed_at(now)).await;
        let home = Home::at(store.clone(), at(now));
        // The first by its port, which also notes in how many partitions devices are.
        register_devices_of(&store, &[measured(0, 0)]).await;
        let mut house = Self { table, store, now, home };
        house.register(0..1_000).await;
        for n in 0..10 {
            for day in 2..=8 {
                house.roll_up_day(n, MIDNIGHT - day * DAY).await;
            }
            let seen = RoomVisit::begun(room(ROOM), device(&name(n)), Month::of(at(0)));
            note_seen(&house.store, &seen).await;
        }
        house.advance(MIDNIGHT + 5 * MINUTE).await;
        house
    }

    /// Readings come and are rolled up until a moment.
    async fn advance(&mut self, now: i64) {
        let sealed = [self.now, now].map(sealed_at);
        let newest = TimeRange::new(at(self.now), at(now)).expect("a range");
        for n in 0..10 {
            put(&self.store, &readings(n, newest)).await;
            let mut quarter = QuarterHour::of(sealed[0]);
            while quarter.end() <= sealed[1] {
                self.roll_up(n, Bucket::QuarterHour(quarter), quarter.range()).await;
                quarter = quarter.next();
            }
            for midnight in [MIDNIGHT - DAY, MIDNIGHT] {
                let day = Zone::UTC.day(Zone::UTC.date(at(midnight))).expect("it exists");
                let [before, part] = sealed.map(|until| part_of_day(day, until));
                if let Some(part) = part.filter(|_| part != before) {
                    self.roll_up_part(n, part).await;
                }
            }
        }
        let groups = (0..SWEEP_GROUPS).collect();
        answer!(self.store.advance_sealed(&groups, sealed[1], None));
        self.now = now;
        self.load().await;
    }

    async fn load(&mut self) {
        self.home = Home::at(self.store.clone(), at(self.now));
        Box::pin(self.home.query().load()).await;
    }

    /// Puts a local day, or a longer part of it than before.
    async fn roll_up_part(&self, n: usize, part: TimeRange) {
        let known = device_of([&measured(n, 0)]);
        let bucket = Bucket::Day(Zone::UTC.date(part.from()));
        let key = RollupKey { device: known.id().clone(), bucket };
        let stored = answer!(self.store.rollup(&key));
        let rollup = Rollup::fold(&readings(n, part), &FoldRules::of(&known));
        let version = stored.map(|it| it.version);
        let rollup = StoredRollup {
            version: version.unwrap_or(0) + 1,
            ..stored_rollup(known.id(), bucket, part, rollup)
        };
        let expected = version.map_or(Expected::Absent, Expected::Version);
        assert!(answer!(self.store.put_rollup(&rollup, expected)));
    }

    async fn roll_up_day(&self, n: usize, midnight: i64) {
        let date = Zone::UTC.date(at(midnight));
        let range = Zone::UTC.day(date).expect("it exists");
        self.roll_up(n, Bucket::Day(date), range).await;
    }

    /// Puts devices as the registry has them, each ten with their room.
    async fn register(&self, devices: std::ops::Range<usize>) {
        let layout = self.table.layout();
        let rooms = devices.clone().step_by(10).map(|n| {
            let id = measured(n, 0).room.expect("a room");
            Room::new(id, at(0)).item()
        });
        let devices = devices.map(|n| item::from_device(&device_of([&measured(n, 0)]), layout));
        self.table.put_all(devices.chain(rooms)).await;
    }

    async fn roll_up(&self, n: usize, bucket: Bucket, range: TimeRange) {
        let known = device_of([&measured(n, 0)]);
        let rollup = Rollup::fold(&readings(n, range), &FoldRules::of(&known));
        put_first(&self.store, &stored_rollup(known.id(), bucket, range, rollup)).await;
    }

    /// Asks for the room's last seven days and today, by day, and for their energy. The days that are over cost the
    /// same at any time; of today's rest, and of yesterday's until its day is folded, the readings cost what they weigh.
    async fn check_week(&self, time: i64, expected: (f64, f64)) {
        let to = at(MIDNIGHT + time);
        assert_eq!(to, at(self.now));
        let week = format!("from=2026-01-13T00:00:00Z&to={to}&every=1d");
        let of = |kind: &str| format!("/rooms/{ROOM}/{kind}");
        let series = format!("{week}&metric=temperature");
        let (series, _) = self.asked(&of("series"), &series, "/data").await;
        let (energy, _) = self.asked(&of("energy"), &week, "/data").await;
        assert_eq!((series, energy), expected, "{to}");
    }

    /// What an answer costs that has something at `place`, the second time within a minute.
    async fn asked(&self, path: &str, query: &str, place: &str) -> (f64, f64) {
        let answer = super::answer_of(&self.home, path, query).await;
        let found = answer.body.pointer(place);
        let found = found.filter(|it| it.as_array().is_none_or(|it| !it.is_empty()));
        assert!(found.is_some(), "{path}?{query}: {}", answer.body);
        answer.units()
    }
}

pub(super) async fn rows() -> Vec<Row> {
    let mut house = House::build().await;
    let mut rows = noted_rows(&house.store).await;
    rows.extend(Box::pin(asked_rows(&mut house)).await);
    rows
}

/// What it costs to note and to find who was in a room.
async fn noted_rows(store: &DynamoStore) -> Vec<Row> {
    let noted = RoomVisit::begun(room(ROOM), device("new"), Month::of(at(0)));
    let put = cost(async |invocation| {
        assert!(store.seen(&noted.room, &noted.device, invocation).await.expect("read").is_none());
        assert!(store.put_seen(&noted, Expected::Absent, invocation).await.expect("written"));
    });
    let mut rows =
        vec![row("15a", "note that a device is seen in a room for the first time", put.await)];
    let months = noted.first..=noted.last;
    let next = noted.widened(&(noted.first..="2026-02".parse().expect("a month")));
    rows.push(
        costs("15b", "the same in a further month", async |invocation| {
            assert!(
                store.seen(&noted.room, &noted.device, invocation).await.expect("read").is_some()
            );
            assert!(
                store.put_seen(&next, Expected::Version(1), invocation).await.expect("written")
            );
        })
        .await,
    );
    rows.push(
        costs("15c", "the devices that were seen in a room in some months", async |invocation| {
            let found =
                store.seen_in(&room(ROOM), months.clone(), 100, invocation).await.expect("read");
            assert_eq!(found.len(), 11);
        })
        .await,
    );
    rows
}

/// What answers about the room cost.
async fn asked_rows(house: &mut House) -> Vec<Row> {
    let mut rows = Vec::new();
    house.check_week(5 * MINUTE, (16.5, 21.5)).await;
    house.advance(FOUR).await;
    house.check_week(4 * HOUR, (11.5, 16.5)).await;
    let week = "from=2026-01-13T00:00:00Z&to=2026-01-20T04:00:00Z";
    let series = format!("{week}&every=1d&metric=temperature");
    let (path, data) = (format!("/rooms/{ROOM}"), "/data");
    rows.push(row(
        "16a",
        "a week by day of a room of ten devices, in a registry of 1,000",
        house.asked(&format!("{path}/series"), &series, data).await,
    ));
    house.register(1_000..10_000).await;
    house.load().await;
    rows.push(row(
        "16b",
        "the same in a registry of 10,000",
        house.asked(&format!("{path}/series"), &series, data).await,
    ));
    rows.push(row(
        "16c",
        "its energy",
        house.asked(&format!("{path}/energy"), &format!("{week}&every=1d"), data).await,
    ));
    let day = "from=2026-01-20T00:00:00Z&to=2026-01-20T04:00:00Z&temperature=20..22";
    rows.push(row(
        "16d",
        "four hours' conditions of it",
        house.asked(&format!("{path}/conditions"), day, data).await,
    ));
    let influxql = format!(
        "SELECT mean(\"value\") FROM \"temperature\" WHERE room = '{ROOM}' AND time >= '2026-01-13' AND time < '2026-01-20' GROUP BY time(1d)"
    );
    let influxql = format!("db=home&q={}", percent_encoded(&influxql));
    rows.push(row(
        "16e",
        "InfluxQL: a week by day of it",
        house.asked("/query", &influxql, "/results/0/series/0/values").await,
    ));
    rows.push(row(
        "16f",
        "the newest values of it",
        house.asked(&format!("{path}/devices"), "latest=1", data).await,
    ));
    for (hour, expected) in
        [(8, (16.5, 21.5)), (12, (11.5, 16.5)), (16, (16.5, 21.5)), (20, (11.5, 16.5))]
    {
        house.advance(MIDNIGHT + hour * HOUR).await;
        house.check_week(hour * HOUR, expected).await;
    }
    house.advance(MIDNIGHT + DAY - 10 * MINUTE).await;
    house.check_week(DAY - 10 * MINUTE, (16.5, 21.5)).await;
    rows
}
