//! What every access pattern costs, measured on a known home, and that docs/develop/access-patterns.md says the same.

mod conditions;
mod fleet;
mod rooms;
mod search;
mod series;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use domain::{
    DeviceObservation, DevicePatch, DeviceUpdate, Edit, Hints, Order, Reading, Room, Scope, Stay,
    TimeRange, Token, TokenHash,
};
use dynamodb::DynamoStore;
use futures_util::future::join_all;
use table::{
    AddArrival as _, Added, BegunDeletion, EditRegistry as _, FindRegistry as _, FindToken as _,
    Invocation, LookUpRegistry as _, ManageTokens as _, MarkDeletions as _, MergeReadings as _,
    PutReadings as _, QueryReadings as _, QueryRoomReadings as _, RangeQuery, ReadRegistry as _,
    ReadStays as _, RegisterDevices as _, RemoveBelongings as _, StayQuery, TeachDevice as _,
    UpdateOutcome, UpdateRegistry as _,
};

use runtime::telemetry::Telemetry;

use crate::engine::Engine;
use crate::given::{
    Answer, always, at, clock, device, invocation, label, minute, placed, range, reading, request,
    room,
};

const HEAD: &str = "\
| # | Pattern | Operation | Key condition | Units |
| --- | --- | --- | --- | --- |
";
const READINGS_OF_DEVICE: &str = "pk = `<device>`, sk BETWEEN `TS#<from>` AND `TS#<to>`";
const READINGS_OF_ROOM: &str = "room = `<room>`, sk BETWEEN `TS#<from>` AND `TS#<to>`";
const DAY: i64 = 86_400_000;
const MINUTE: i64 = 60_000;

/// One row of the table of access patterns.
struct Row {
    number: &'static str,
    pattern: &'static str,
    operation: &'static str,
    condition: &'static str,
    /// Read units as measured, then write units.
    expected: (f64, f64),
    measured: (f64, f64),
}

impl Row {
    fn markdown(&self) -> String {
        let Self { number, pattern, operation, condition, expected: (reads, writes), .. } = self;
        let units = match (*reads > 0.0, *writes > 0.0) {
            (true, true) => format!("{reads} read, {writes} write"),
            (true, false) => format!("{reads} read"),
            _ => format!("{writes} write"),
        };
        format!("| {number} | {pattern} | {operation} | {condition} | {units} |\n")
    }
}

/// The home: ten devices in two rooms, a reading of three metrics every ten minutes for a day, and one
/// device with a reading a minute for a thousand minutes.
struct Home {
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

impl Home {
    async fn build() -> Self {
        let engine = Engine::embedded().await;
        let stores = [engine.table(true).await.store(), engine.table(false).await.store()];
        for store in &stores {
            for n in 0..10 {
                let new = DeviceObservation::of(&measured_at(n, 0))
                    .new_device(device(&device_name(n)), |_| true);
                store.register_device(&new, &invocation()).await.expect("written");
                let day: Vec<_> = (0..144).map(|i| measured_at(n, i * 10 * MINUTE)).collect();
                let put = store.put_readings(&day, None, &invocation()).await;
                assert!(put.not_stored.is_empty());
            }
            for id in ["chiyoda1-a", "chiyoda1-b"] {
                let new = Room::new(room(id), at(0));
                store.register_room(&new, &invocation()).await.expect("written");
            }
            let scope = Scope::Write([device("meter")].into());
            let hash = TokenHash::of("a");
            let token = Token { hash, scope, name: None, created: at(0), revoked: None };
            store.add_token(&token, &invocation()).await.expect("written");
            let minutes: Vec<_> = (0..1_000)
                .map(|i| placed(reading("meter", i * MINUTE, &METRICS), "chiyoda1-b"))
                .collect();
            assert!(store.put_readings(&minutes, None, &invocation()).await.not_stored.is_empty());
        }
        let [with_index, without_index] = stores;
        Self { _engine: engine, with_index, without_index }
    }
}

fn query(range: TimeRange, order: Order, limit: usize) -> RangeQuery {
    RangeQuery { range, order, after: None, limit, consistent: false }
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
        assert_eq!(page.readings.len(), count);
    })
    .await
}

async fn of_room(store: &DynamoStore) -> (f64, f64) {
    let devices: Vec<_> = (0..5).map(|n| device(&device_name(n))).collect();
    let day = query(range(0, DAY), Order::Ascending, 1_000);
    cost(async |invocation| {
        let page = store
            .room_readings(&room("chiyoda1-a"), &devices, &day, invocation)
            .await
            .expect("read");
        assert_eq!(page.readings.len(), 5 * 144);
    })
    .await
}

/// Devices and rooms, read.
async fn registry_rows(home: &Home) -> Vec<Row> {
    let store = &home.with_index;
    vec![
        Row {
            number: "2a",
            pattern: "list 10 devices",
            operation: "Query, consistent",
            condition: "pk = `DEVICE`",
            expected: (1.0, 0.0),
            measured: cost(async |invocation| {
                assert_eq!(store.devices(invocation).await.expect("read").found.len(), 10);
            })
            .await,
        },
        Row {
            number: "2b",
            pattern: "list 2 rooms",
            operation: "Query, consistent",
            condition: "pk = `ROOM`",
            expected: (1.0, 0.0),
            measured: cost(async |invocation| {
                assert_eq!(store.rooms(invocation).await.expect("read").found.len(), 2);
            })
            .await,
        },
        Row {
            number: "2d",
            pattern: "look up 10 devices or rooms of a batch",
            operation: "BatchGetItem, consistent",
            condition: "pk = `DEVICE`, sk = `<device>`",
            expected: (10.0, 0.0),
            measured: cost(async |invocation| {
                let ids: Vec<_> = (0..10).map(|n| device(&device_name(n))).collect();
                let found = store.find_devices(&ids, invocation).await.expect("read").found;
                assert_eq!(found.len(), 10);
            })
            .await,
        },
        Row {
            number: "2c",
            pattern: "look up one device or room that the cache does not know",
            operation: "GetItem, consistent",
            condition: "pk = `DEVICE`, sk = `<device>`",
            expected: (1.0, 0.0),
            measured: cost(async |invocation| {
                let found = store.device(&device("sensor-00"), invocation).await.expect("read");
                assert!(found.is_some());
            })
            .await,
        },
        Row {
            number: "9",
            pattern: "look up an access token, once in 30 seconds",
            operation: "GetItem, consistent",
            condition: "pk = `TOKEN`, sk = `<hash>`",
            expected: (1.0, 0.0),
            measured: cost(async |invocation| {
                let found = store.token(&TokenHash::of("a"), invocation).await.expect("read");
                assert!(found.is_some());
            })
            .await,
        },
    ]
}

/// What the newest values of a device cost whose registry knows 256 metrics; it sends those of one
/// reading.
async fn latest_of_device(store: &DynamoStore, sent: &Reading) -> (f64, f64) {
    let id = sent.device.as_str();
    let mut new = DeviceObservation::of(sent);
    new.metrics
        .extend((new.metrics.len()..256).map(|n| crate::given::metric(&format!("gone_{n}"))));
    store
        .register_device(&new.new_device(sent.device.clone(), |_| true), &invocation())
        .await
        .expect("written");
    let settings = query::Settings {
        registry_max_age: Duration::from_secs(60),
        auth: false,
        ..query::Settings::default()
    };
    let function = query::Query::new(store.clone(), clock(), Telemetry::silent(), settings);
    function.load().await;
    let path = format!("/devices/{id}/latest");
    let answer = function.handle(request("GET", &path, "", None), minute()).await;
    assert_eq!(answer.status_code, 200, "{answer:?}");
    let units = |name: &str| {
        let value = answer.headers[name].to_str().expect("text");
        value.parse::<f64>().expect("a number")
    };
    (units("x-consumed-read-units"), units("x-consumed-write-units"))
}

/// Holds an answer's estimate, where it has one, against what it cost.
pub(crate) fn assert_estimate(path: &str, answer: &Answer) {
    let units = |name: &str| answer.body["explain"][name].as_f64();
    if let (Some(estimated), Some(consumed)) =
        (units("estimated_read_units"), units("consumed_read_units"))
    {
        let ratio = estimated / consumed;
        assert!((0.5..=2.0).contains(&ratio), "{path}: {estimated} estimated, {consumed} consumed");
    }
}

/// Readings, read.
async fn range_rows(home: &Home) -> Vec<Row> {
    let store = &home.with_index;
    let day = range(0, DAY);
    let newest = || query(always(), Order::Descending, 1);
    vec![
        Row {
            number: "3a",
            pattern: "a day of one device, 144 readings",
            operation: "Query",
            condition: READINGS_OF_DEVICE,
            expected: (2.0, 0.0),
            measured: of_device(store, "sensor-00", query(day, Order::Ascending, 1_000), 144).await,
        },
        Row {
            number: "3b",
            pattern: "a page of 1,000 readings of one device",
            operation: "Query",
            condition: READINGS_OF_DEVICE,
            expected: (11.0, 0.0),
            measured: of_device(store, "meter", query(always(), Order::Ascending, 1_000), 1_000)
                .await,
        },
        Row {
            number: "4",
            pattern: "the newest reading of one device",
            operation: "Query, newest first",
            condition: READINGS_OF_DEVICE,
            expected: (0.5, 0.0),
            measured: of_device(store, "sensor-00", newest(), 1).await,
        },
        Row {
            number: "5",
            pattern: "the newest readings of 10 devices",
            operation: "10 × Query, newest first",
            condition: READINGS_OF_DEVICE,
            expected: (5.0, 0.0),
            measured: cost(async |invocation| {
                let one = async |n: usize| {
                    let id = device(&device_name(n));
                    let page =
                        store.device_readings(&id, &newest(), invocation).await.expect("read");
                    assert_eq!(page.readings.len(), 1);
                };
                join_all((0..10).map(one)).await;
            })
            .await,
        },
        Row {
            number: "5b",
            pattern: "the newest value of each metric of a device that no longer sends one of them",
            operation: "3 × Query, newest first, the last of days",
            condition: READINGS_OF_DEVICE,
            expected: (1.5, 0.0),
            measured: latest_of_device(store, &placed(reading("meter", 0, &METRICS), "chiyoda1-b"))
                .await,
        },
        Row {
            number: "6a",
            pattern: "a day of one room, 5 devices × 144 readings",
            operation: "Query on room-index",
            condition: READINGS_OF_ROOM,
            expected: (8.5, 0.0),
            measured: of_room(store).await,
        },
        Row {
            number: "6b",
            pattern: "the same with `RoomIndex=off`",
            operation: "5 × Query",
            condition: READINGS_OF_DEVICE,
            expected: (10.0, 0.0),
            measured: of_room(&home.without_index).await,
        },
    ]
}

/// Readings and the registry, written; last, because they change what is read.
async fn write_rows(home: &Home) -> Vec<Row> {
    let store = &home.with_index;
    vec![
        Row {
            number: "1a",
            pattern: "store 25 readings",
            operation: "BatchWriteItem",
            condition: "pk = `<device>`, sk = `TS#<timestamp>`",
            expected: (0.0, 50.0),
            measured: storing(store).await,
        },
        Row {
            number: "1b",
            pattern: "the same with `RoomIndex=off`",
            operation: "BatchWriteItem",
            condition: "pk = `<device>`, sk = `TS#<timestamp>`",
            expected: (0.0, 25.0),
            measured: storing(&home.without_index).await,
        },
        Row {
            number: "1c",
            pattern: "add metrics to 25 readings",
            operation: "25 × UpdateItem",
            condition: "pk = `<device>`, sk = `TS#<timestamp>`",
            expected: (0.0, 50.0),
            measured: cost(async |invocation| {
                let readings: Vec<_> =
                    (0..25).map(|n| measured_at(n % 10, 2 * DAY + millis(n))).collect();
                let merged = store.merge_readings(&readings, None, invocation).await;
                assert!(merged.not_stored.is_empty());
            })
            .await,
        },
        Row {
            number: "1d",
            pattern: "the same to 50 readings, all of them new",
            operation: "2 × BatchExecuteStatement, INSERT",
            condition: "pk = `<device>`, sk = `TS#<timestamp>`",
            expected: (0.0, 100.0),
            measured: cost(async |invocation| {
                let readings: Vec<_> =
                    (0..50).map(|n| measured_at(n % 10, 4 * DAY + millis(n))).collect();
                let merged = store.merge_readings(&readings, None, invocation).await;
                assert!(merged.not_stored.is_empty());
            })
            .await,
        },
        Row {
            number: "1e",
            pattern: "store a reading without a timestamp",
            operation: "PutItem if absent",
            condition: "pk = `<device>`, sk = `TS#<timestamp>`",
            expected: (0.0, 2.0),
            measured: cost(async |invocation| {
                let reading = measured_at(0, 3 * DAY);
                let added = store.add_arrival(&reading, "id", None, invocation).await;
                assert_eq!(added.expect("written"), Added::Stored);
            })
            .await,
        },
    ]
}

/// The registry, written.
async fn registry_write_rows(home: &Home) -> Vec<Row> {
    let store = &home.with_index;
    vec![
        Row {
            number: "7a",
            pattern: "register a device, once in its life",
            operation: "PutItem if absent",
            condition: "pk = `DEVICE`, sk = `<device>`",
            expected: (0.0, 2.0),
            measured: cost(async |invocation| {
                let new =
                    DeviceObservation::of(&measured_at(0, 0)).new_device(device("new"), |_| true);
                store.register_device(&new, invocation).await.expect("written");
            })
            .await,
        },
        Row {
            number: "7b",
            pattern: "add a new metric of a device",
            operation: "UpdateItem",
            condition: "pk = `DEVICE`, sk = `<device>`",
            expected: (0.0, 2.0),
            measured: cost(async |invocation| {
                let metrics = [crate::given::metric("battery")].into();
                let learned = DeviceUpdate { metrics, ..DeviceUpdate::default() };
                let known =
                    DeviceObservation::of(&measured_at(0, 0)).new_device(device("new"), |_| true);
                store.update_device(&known, &learned, invocation).await.expect("written");
            })
            .await,
        },
        Row {
            number: "7c",
            pattern: "record that a device introduces a room",
            operation: "UpdateItem",
            condition: "pk = `DEVICE`, sk = `<device>`",
            expected: (0.0, 2.0),
            measured: cost(async |invocation| {
                let kitchen = room("kitchen");
                let noted = store.introduce_room(&device("new"), &kitchen, invocation).await;
                assert!(matches!(noted, Ok(UpdateOutcome::Updated(_))));
            })
            .await,
        },
        Row {
            number: "7d",
            pattern: "add what a sender teaches of a device, once",
            operation: "UpdateItem",
            condition: "pk = `DEVICE`, sk = `<device>`",
            expected: (0.0, 2.0),
            measured: cost(async |invocation| {
                let known =
                    DeviceObservation::of(&measured_at(0, 0)).new_device(device("new"), |_| true);
                let tags = [("host".to_owned(), "pi".to_owned())].into();
                let hints = Hints { tags, ..Hints::default() };
                let taught = store.teach_device(&known, &hints, invocation).await;
                assert!(matches!(taught, Ok(UpdateOutcome::Updated(_))));
            })
            .await,
        },
        Row {
            number: "8a",
            pattern: "edit a device",
            operation: "GetItem, UpdateItem; DeleteItem of the mark of an index that there is not",
            condition: "pk = `DEVICE`, sk = `<device>`; pk = `ATTR#`, sk = `indexed`",
            expected: (1.0, 3.0),
            measured: cost(async |invocation| {
                let patch =
                    DevicePatch { name: Edit::Set(label("Sensor")), ..DevicePatch::default() };
                store
                    .edit_device(&device("new"), &patch, at(0), invocation)
                    .await
                    .expect("written");
            })
            .await,
        },
        Row {
            number: "8b",
            pattern: "put a device into a new room, both or neither",
            operation: "2 × GetItem, TransactWriteItems",
            condition: "pk = `DEVICE`, `ROOM`, `STAYS_OF#<device>`, `STAYS_IN#<room>`",
            expected: (2.0, 10.0),
            measured: cost(async |invocation| {
                let patch =
                    DevicePatch { room: Edit::Set(room("attic")), ..DevicePatch::default() };
                let moved = store.edit_device(&device("new"), &patch, at(0), invocation).await;
                moved.expect("written");
            })
            .await,
        },
    ]
}

/// Devices behind meters.
async fn meter_rows(home: &Home) -> Vec<Row> {
    let store = &home.with_index;
    vec![Row {
        number: "8d",
        pattern: "put a device behind a meter that is behind another, checked to the end",
        operation: "3 × GetItem, TransactWriteItems",
        condition: "pk = `DEVICE`, sk = `<device>`",
        expected: (3.0, 8.0),
        measured: {
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
        },
    }]
}

/// Deletion of a device, after all else that is done with it.
async fn deletion_rows(home: &Home) -> Vec<Row> {
    let store = &home.with_index;
    vec![
        Row {
            number: "13a",
            pattern: "begin to delete a device",
            operation: "GetItem, UpdateItem",
            condition: "pk = `DEVICE`, sk = `<device>`",
            expected: (1.0, 2.0),
            measured: cost(async |invocation| {
                let begun = store.begin_deletion(&device("new"), at(9), invocation).await;
                assert!(matches!(begun.expect("written"), BegunDeletion::Deletion(_)));
            })
            .await,
        },
        Row {
            number: "13b",
            pattern: "remove 144 readings of a device",
            operation: "144 × DeleteItem",
            condition: "pk = `<device>`, sk = `TS#<timestamp>`",
            expected: (0.0, 288.0),
            measured: {
                let id = device(&device_name(0));
                let found = store.belongings(&id, 144, &invocation()).await.expect("read");
                cost(async |invocation| {
                    let removed = store.remove_belongings(&found.found, invocation).await;
                    assert!(removed.cause.is_none());
                })
                .await
            },
        },
        Row {
            number: "13c",
            pattern: "end the deletion of a device",
            operation: "UpdateItem",
            condition: "pk = `DEVICE`, sk = `<device>`",
            expected: (0.0, 1.0),
            measured: {
                let id = device("new");
                let known = store.deletion(&id, &invocation()).await.expect("read");
                let known = known.expect("it began");
                cost(async |invocation| {
                    let ended = store.end_deletion(&id, &known, at(99), invocation).await;
                    assert!(ended.expect("written"));
                })
                .await
            },
        },
    ]
}

/// Stays, written and read; after the edits that begin the first.
async fn stay_rows(home: &Home) -> Vec<Row> {
    let store = &home.with_index;
    vec![
        Row {
            number: "8c",
            pattern: "record that a device has moved, 15 minutes after",
            operation: "TransactWriteItems",
            condition: "pk = `DEVICE`, `STAYS_OF#<device>`, `STAYS_IN#<room>`",
            expected: (0.0, 11.0),
            measured: cost(async |invocation| {
                let known = store.device(&device("new"), &crate::given::invocation()).await;
                let known = known.expect("read").expect("registered");
                let begun = Stay::begun(room("kitchen"), at(DAY));
                let written = store.begin_stay(&known, &begun, invocation).await;
                assert!(matches!(written, Ok(UpdateOutcome::Updated(_))));
            })
            .await,
        },
        Row {
            number: "11",
            pattern: "the rooms in which a device has been",
            operation: "Query, consistent",
            condition: "pk = `STAYS_OF#<device>`, sk BETWEEN `<first>` AND `<to>`",
            expected: (1.0, 0.0),
            measured: cost(async |invocation| {
                let query = StayQuery { range: always(), after: None, limit: 100 };
                let page = store.stays_of(&device("new"), &query, invocation).await;
                assert_eq!(page.expect("read").stays.len(), 2);
            })
            .await,
        },
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
    assert!(store.put_readings(&readings, None, &invocation()).await.not_stored.is_empty());
    let (reads, _) = latest_of_device(&store, &readings[0]).await;
    assert!(reads <= 6.0, "{reads} units");
}

#[tokio::test]
async fn every_pattern_costs_what_its_page_says() {
    let home = Box::pin(Home::build()).await;
    let mut rows = Box::pin(registry_rows(&home)).await;
    rows.extend(Box::pin(fleet::rows(&home)).await);
    rows.extend(Box::pin(range_rows(&home)).await);
    rows.extend(Box::pin(series::rows()).await);
    rows.extend(Box::pin(conditions::rows()).await);
    rows.extend(Box::pin(write_rows(&home)).await);
    rows.extend(Box::pin(registry_write_rows(&home)).await);
    rows.extend(Box::pin(meter_rows(&home)).await);
    rows.extend(Box::pin(stay_rows(&home)).await);
    rows.extend(Box::pin(deletion_rows(&home)).await);
    rows.extend(Box::pin(search::rows()).await);
    rows.extend(Box::pin(rooms::rows()).await);
    let near = |(a, b): (f64, f64), (c, d): (f64, f64)| (a - c).abs() + (b - d).abs() < 0.01;
    let wrong: Vec<_> = rows.iter().filter(|row| !near(row.expected, row.measured)).collect();
    let mut problems = String::new();
    for Row { number, pattern, expected, measured, .. } in wrong {
        writeln!(
            problems,
            "{number} {pattern}: expected {expected:?} units, measured {measured:?}"
        )
        .expect("writing to memory does not fail");
    }
    assert!(problems.is_empty(), "read and write units\n{problems}");

    rows.sort_by_key(|row| row.number);
    let table: String = rows.iter().map(Row::markdown).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/develop/access-patterns.md");
    let document = fs::read_to_string(path).unwrap_or_default();
    let missing: Vec<_> = rows.iter().filter(|row| !document.contains(&row.markdown())).collect();
    assert!(
        missing.is_empty(),
        "docs/develop/access-patterns.md does not hold these rows:\n\n{HEAD}{table}"
    );
}
