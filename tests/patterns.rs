//! What every access pattern costs, measured on a known home, and that docs/develop/access-patterns.md says the same.

mod alerts;
mod annotations;
mod conditions;
mod fleet;
mod rooms;
mod search;
mod series;
mod sources;
mod tariffs;

use std::fs;
use std::path::Path;

use domain::{
    About, Device, DeviceObservation, DevicePatch, DeviceUpdate, Edit, Order, Reading, Scope, Stay,
    TokenHash,
};
use dynamodb::DynamoStore;
use futures_util::future::join_all;
use table::given;
use table::{
    AddArrival as _, AddToken as _, Added, BegunDeletion, CountIntroduced as _, Counting,
    EditRegistry as _, FindRegistry as _, FindToken as _, Invocation, LookUpRegistry as _,
    MarkDeletions as _, MergeReadings as _, PutReadings as _, QueryReadings as _,
    QueryRoomReadings as _, RangeQuery, ReadRegistry as _, ReadStays as _, RegisterDevices as _,
    RemoveBelongings as _, StayQuery, UpdateOutcome, UpdateRegistry as _,
};

use crate::engine::Engine;
use crate::given::{
    Answer, always, answer, at, device, device_of, into_room, invocation, named, placed, range,
    reading, room, store_home,
};
use crate::home::Home;
use crate::stored::{first_page, put};

const DAY: i64 = 86_400_000;
const MINUTE: i64 = 60_000;

/// A measured row of the table of access patterns. Its page says which requests it is, and what they cost.
struct Row {
    number: &'static str,
    pattern: &'static str,
    /// Read units, then write units.
    measured: (f64, f64),
}

const fn row(number: &'static str, pattern: &'static str, measured: (f64, f64)) -> Row {
    Row { number, pattern, measured }
}

impl Row {
    /// The beginning and the end of its line in the table of the page.
    fn ends(&self) -> (String, String) {
        let (reads, writes) = self.measured;
        let units = match (reads > 0.0, writes > 0.0) {
            (true, true) => format!("{reads} read, {writes} write"),
            (true, false) => format!("{reads} read"),
            _ => format!("{writes} write"),
        };
        (format!("| {} | {} | ", self.number, self.pattern), format!(" | {units} |"))
    }
}

/// Two tables of the same home: ten devices in two rooms, a reading of three metrics every ten minutes for a day, and one
/// device with a reading a minute for a thousand minutes.
struct TwoTables {
    _engine: Engine,
    with_index: DynamoStore,
    without_index: DynamoStore,
}

const METRICS: [(&str, &str); 3] = [("temperature", "21.5"), ("humidity", "45"), ("co2", "612")];

fn device_name(n: usize) -> String {
    format!("sensor-{n:02}")
}

fn room_of(n: usize) -> &'static str {
    if n < 5 { "chiyoda1-a" } else { "chiyoda1-b" }
}

fn measured_at(n: usize, millis: i64) -> Reading {
    placed(reading(&device_name(n), millis, &METRICS), room_of(n))
}

/// A device that is not registered at first.
fn new_device() -> Device {
    device_of([&placed(reading("new", 0, &METRICS), room_of(0))])
}

impl TwoTables {
    async fn build() -> Self {
        let engine = Engine::embedded().await;
        let stores = [engine.table(true).await.store(), engine.table(false).await.store()];
        for store in &stores {
            for n in 0..10 {
                let day: Vec<_> = (0..144).map(|i| measured_at(n, i * 10 * MINUTE)).collect();
                store_home(store, &day).await;
            }
            let token = given::token("a", Scope::Write([device("meter")].into()));
            answer!(store.add_token(&token));
            let minutes: Vec<_> = (0..1_000)
                .map(|i| placed(reading("meter", i * MINUTE, &METRICS), "chiyoda1-b"))
                .collect();
            put(store, &minutes).await;
        }
        let [with_index, without_index] = stores;
        Self { _engine: engine, with_index, without_index }
    }
}

/// A row of what an operation consumes.
async fn costs(
    number: &'static str,
    pattern: &'static str,
    operation: impl AsyncFnOnce(&Invocation),
) -> Row {
    row(number, pattern, cost(operation).await)
}

/// What an operation consumes.
async fn cost(operation: impl AsyncFnOnce(&Invocation)) -> (f64, f64) {
    let invocation = invocation();
    operation(&invocation).await;
    (invocation.read_units(), invocation.write_units())
}

fn millis(n: usize) -> i64 {
    i64::try_from(n).expect("few")
}

async fn storing(store: &DynamoStore) -> (f64, f64) {
    let readings: Vec<_> = (0..25).map(|n| measured_at(n % 10, DAY + millis(n))).collect();
    cost(async |invocation| {
        let put = store.put_readings(&readings, None, invocation).await;
        assert!(put.not_stored.is_empty());
    })
    .await
}

async fn of_device(store: &DynamoStore, id: &str, query: RangeQuery, count: usize) -> (f64, f64) {
    cost(async |invocation| {
        let page = store.device_readings(&device(id), &query, invocation).await.expect("read");
        assert_eq!(page.items.len(), count);
    })
    .await
}

async fn of_room(store: &DynamoStore) -> (f64, f64) {
    let devices: Vec<_> = (0..5).map(|n| device(&device_name(n))).collect();
    let day = first_page(range(0, DAY), Order::Ascending, 1_000);
    cost(async |invocation| {
        let page = store
            .room_readings(&room("chiyoda1-a"), &devices, &day, invocation)
            .await
            .expect("read");
        assert_eq!(page.items.len(), 5 * 144);
    })
    .await
}

/// Devices and rooms, read.
async fn registry_rows(tables: &TwoTables) -> Vec<Row> {
    let store = &tables.with_index;
    vec![
        costs(
            "2a",
            "list 10 devices, for a list if the last read was two seconds ago",
            async |invocation| {
                assert_eq!(store.devices(invocation).await.expect("read").found.len(), 10);
            },
        )
        .await,
        costs(
            "2b",
            "list 2 rooms, for a list if the last read was two seconds ago",
            async |invocation| {
                assert_eq!(store.rooms(invocation).await.expect("read").found.len(), 2);
            },
        )
        .await,
        costs("2d", "look up 10 devices or rooms of a batch", async |invocation| {
            let ids: Vec<_> = (0..10).map(|n| device(&device_name(n))).collect();
            let found = store.find_devices(&ids, invocation).await.expect("read").found;
            assert_eq!(found.len(), 10);
        })
        .await,
        costs(
            "2c",
            "look up one device or room that the cache does not know",
            async |invocation| {
                let found = store.device(&device("sensor-00"), invocation).await.expect("read");
                assert!(found.is_some());
            },
        )
        .await,
        costs("9", "look up an access token, once in 30 seconds", async |invocation| {
            let hash = TokenHash::of(&given::secret("a"));
            let found = store.token(&hash, invocation).await.expect("read");
            assert!(found.is_some());
        })
        .await,
    ]
}

/// What the newest values of a device cost whose registry knows 256 metrics; it sends those of one
/// reading.
async fn latest_of_device(store: &DynamoStore, sent: &Reading) -> (f64, f64) {
    let id = sent.device.as_str();
    let mut new = DeviceObservation::of(sent);
    new.metrics
        .extend((new.metrics.len()..256).map(|n| crate::given::metric(&format!("gone_{n}"))));
    answer!(store.register_device(&new.new_device(sent.device.clone(), |_| true)));
    let home = Home::at(store.clone(), at(60 * MINUTE));
    home.query().load().await;
    home.found(&format!("/devices/{id}/latest"), "").await.units()
}

/// An answer's second time within a minute: the first also reads the state of the rollups. A busy machine has no time for
/// some requests.
pub(crate) async fn answer_of(home: &Home<DynamoStore>, path: &str, parameters: &str) -> Answer {
    home.found_in_the_end(path, parameters).await;
    home.found_in_the_end(path, parameters).await
}

/// Readings, read.
async fn range_rows(tables: &TwoTables) -> Vec<Row> {
    let store = &tables.with_index;
    let day = range(0, DAY);
    let newest = || first_page(always(), Order::Descending, 1);
    vec![
        row(
            "3a",
            "a day of one device, 144 readings",
            of_device(store, "sensor-00", first_page(day, Order::Ascending, 1_000), 144).await,
        ),
        row(
            "3b",
            "a page of 1,000 readings of one device",
            of_device(store, "meter", first_page(always(), Order::Ascending, 1_000), 1_000).await,
        ),
        row(
            "4",
            "the newest reading of one device",
            of_device(store, "sensor-00", newest(), 1).await,
        ),
        costs("5", "the newest readings of 10 devices", async |invocation| {
            let one = async |n: usize| {
                let id = device(&device_name(n));
                let page = store.device_readings(&id, &newest(), invocation).await.expect("read");
                assert_eq!(page.items.len(), 1);
            };
            join_all((0..10).map(one)).await;
        })
        .await,
        row(
            "5b",
            "the newest value of each metric of a device that no longer sends one of them",
            latest_of_device(store, &placed(reading("meter", 0, &METRICS), "chiyoda1-b")).await,
        ),
        row("6a", "a day of one room, 5 devices × 144 readings", of_room(store).await),
        row("6b", "the same with `RoomIndex=off`", of_room(&tables.without_index).await),
    ]
}

/// Readings and the registry, written; last, because they change what is read.
async fn write_rows(tables: &TwoTables) -> Vec<Row> {
    let store = &tables.with_index;
    vec![
        row("1a", "store 25 readings", storing(store).await),
        row("1b", "the same with `RoomIndex=off`", storing(&tables.without_index).await),
        costs("1c", "add metrics to 25 readings", async |invocation| {
            let readings: Vec<_> =
                (0..25).map(|n| measured_at(n % 10, 2 * DAY + millis(n))).collect();
            let merged = store.merge_readings(&readings, None, invocation).await;
            assert!(merged.not_stored.is_empty());
        })
        .await,
        costs("1d", "the same to 50 readings, all of them new", async |invocation| {
            let readings: Vec<_> =
                (0..50).map(|n| measured_at(n % 10, 4 * DAY + millis(n))).collect();
            let merged = store.merge_readings(&readings, None, invocation).await;
            assert!(merged.not_stored.is_empty());
        })
        .await,
        costs("1e", "store a reading without a timestamp", async |invocation| {
            let reading = measured_at(0, 3 * DAY);
            let added = store.add_arrival(&reading, "id", None, invocation).await;
            assert_eq!(added.expect("written"), Added::Stored);
        })
        .await,
    ]
}

/// The registry, written.
async fn registry_write_rows(tables: &TwoTables) -> Vec<Row> {
    let store = &tables.with_index;
    vec![
        costs("7a", "register a device, once in its life", async |invocation| {
            store.register_device(&new_device(), invocation).await.expect("written");
        })
        .await,
        costs("7b", "add a new metric of a device", async |invocation| {
            let metrics = [crate::given::metric("battery")].into();
            let learned = DeviceUpdate { metrics, ..DeviceUpdate::default() };
            store.update_device(&new_device(), &learned, invocation).await.expect("written");
        })
        .await,
        costs("7c", "record that a device introduces a room", async |invocation| {
            let kitchen = room("kitchen");
            let noted = store.introduce_room(&device("new"), &kitchen, invocation).await;
            assert!(matches!(noted, Ok(UpdateOutcome::Updated(_))));
        })
        .await,
        costs("7d", "add what a sender says of a device, once", async |invocation| {
            let tags = [("host".to_owned(), "pi".to_owned())].into();
            let about = Some(About { tags, ..About::default() });
            let learned = DeviceUpdate { about, ..DeviceUpdate::default() };
            let updated = store.update_device(&new_device(), &learned, invocation).await;
            assert!(matches!(updated, Ok(UpdateOutcome::Updated(_))));
        })
        .await,
        costs(
            "7e",
            "count the devices that a request introduces, in a registry beyond memory",
            async |invocation| {
                let counted = store.count_introduced("mqtt:plug", 3, 32, invocation).await;
                assert!(matches!(counted, Ok(Counting::Counted)));
            },
        )
        .await,
        costs("8a", "edit a device", async |invocation| {
            let patch = named("Sensor");
            store.edit_device(&device("new"), &patch, at(0), invocation).await.expect("written");
        })
        .await,
        costs("8b", "put a device into a new room, both or neither", async |invocation| {
            let patch = into_room("attic");
            let moved = store.edit_device(&device("new"), &patch, at(0), invocation).await;
            moved.expect("written");
        })
        .await,
    ]
}

/// Devices behind meters.
async fn meter_rows(tables: &TwoTables) -> Vec<Row> {
    let store = &tables.with_index;
    vec![row("8d", "put a device behind a meter that is behind another, checked to the end", {
        let behind = |meter: usize| DevicePatch {
            behind: Edit::Set(device(&device_name(meter))),
            ..DevicePatch::default()
        };
        let [first, second] = [1, 2].map(|n| device(&device_name(n)));
        let given = invocation();
        store.edit_device(&second, &behind(3), at(0), &given).await.expect("written");
        cost(async |invocation| {
            let edited = store.edit_device(&first, &behind(2), at(0), invocation).await;
            let edited = edited.expect("asked");
            assert!(matches!(edited, UpdateOutcome::Updated(_)), "{edited:?}");
        })
        .await
    })]
}

/// Deletion of a device, after all else that is done with it.
async fn deletion_rows(tables: &TwoTables) -> Vec<Row> {
    let store = &tables.with_index;
    vec![
        costs("13a", "begin to delete a device", async |invocation| {
            let begun = store.begin_deletion(&device("new"), at(9), invocation).await;
            assert!(matches!(begun.expect("written"), BegunDeletion::Deletion(_)));
        })
        .await,
        row("13b", "remove 144 readings of a device", {
            let id = device(&device_name(0));
            let found = answer!(store.belongings(&id, 144));
            cost(async |invocation| {
                let removed = store.remove_belongings(&found.found, invocation).await;
                assert!(removed.cause.is_none());
            })
            .await
        }),
        row("13c", "end the deletion of a device", {
            let id = device("new");
            let known = answer!(store.deletion(&id));
            let known = known.expect("it began");
            cost(async |invocation| {
                let ended = store.end_deletion(&id, &known, at(99), invocation).await;
                assert!(ended.expect("written"));
            })
            .await
        }),
    ]
}

/// Stays, written and read; after the edits that begin the first.
async fn stay_rows(tables: &TwoTables) -> Vec<Row> {
    let store = &tables.with_index;
    vec![
        costs("8c", "record that a device has moved, 15 minutes after", async |invocation| {
            let known = store.device(&device("new"), &crate::given::invocation()).await;
            let known = known.expect("read").expect("registered");
            let begun = Stay::begun(room("kitchen"), at(DAY));
            let written = store.begin_stay(&known, &begun, invocation).await;
            assert!(matches!(written, Ok(UpdateOutcome::Updated(_))));
        })
        .await,
        costs("11", "the rooms in which a device has been", async |invocation| {
            let query = StayQuery { range: always(), after: None, limit: 100 };
            let page = store.stays_of(&device("new"), &query, invocation).await;
            assert_eq!(page.expect("read").items.len(), 2);
        })
        .await,
    ]
}

/// Readings as large as they can be, and a registry that knows metrics that none of them has.
#[tokio::test]
async fn the_newest_values_of_the_largest_device_cost_a_few_units() {
    let engine = Engine::embedded().await;
    let store = engine.table(true).await.store();
    let names: Vec<String> = (0..64).map(|n| format!("m{n:02}_{}", "x".repeat(60))).collect();
    let number = "-1.2345678901234567890123456789012345678E-100";
    let metrics: Vec<_> = names.iter().map(|name| (name.as_str(), number)).collect();
    let readings: Vec<_> = (0..200).map(|n| reading("large", n, &metrics)).collect();
    put(&store, &readings).await;
    let (reads, _) = latest_of_device(&store, &readings[0]).await;
    assert!(reads <= 12.0, "{reads} units");
}

#[tokio::test]
async fn every_pattern_costs_what_its_page_says() {
    let tables = Box::pin(TwoTables::build()).await;
    let mut rows = Box::pin(registry_rows(&tables)).await;
    rows.extend(Box::pin(fleet::rows(&tables)).await);
    rows.extend(Box::pin(range_rows(&tables)).await);
    rows.extend(Box::pin(series::rows()).await);
    rows.extend(Box::pin(conditions::rows()).await);
    rows.extend(Box::pin(write_rows(&tables)).await);
    rows.extend(Box::pin(registry_write_rows(&tables)).await);
    rows.extend(Box::pin(meter_rows(&tables)).await);
    rows.extend(Box::pin(stay_rows(&tables)).await);
    rows.extend(Box::pin(deletion_rows(&tables)).await);
    rows.extend(Box::pin(search::rows()).await);
    rows.extend(Box::pin(rooms::rows()).await);
    rows.extend(Box::pin(alerts::rows()).await);
    rows.extend(Box::pin(annotations::rows()).await);
    rows.extend(Box::pin(sources::rows()).await);
    rows.extend(Box::pin(tariffs::rows()).await);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/develop/access-patterns.md");
    let document = fs::read_to_string(path).expect("the page");
    let is_row = |line: &&str| line.starts_with("| ") && line.as_bytes()[2].is_ascii_digit();
    let lines: Vec<&str> = document.lines().filter(is_row).collect();
    let is_told = |row: &&Row| {
        let (beginning, end) = row.ends();
        lines.iter().any(|line| line.starts_with(&beginning) && line.ends_with(&end))
    };
    let untold: Vec<_> = rows.iter().filter(|row| !is_told(row)).map(Row::ends).collect();
    assert!(untold.is_empty(), "docs/develop/access-patterns.md does not hold {untold:#?}");
    assert_eq!(rows.len(), lines.len(), "each row of the page is measured");
}
