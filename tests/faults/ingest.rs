//! Ingest under faults: a 2xx means stored, anything else names what is not, and in time.

use std::time::Duration;

use domain::Reading;
use dynamodb::DynamoStore;
use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use runtime::clock::{Deadline, Stopwatch};
use serde_json::{Value, json};

use super::proxy::{Effect, Fault, Proxy, Share};
use super::seeded;
use crate::engine::{Engine, Table};
use crate::given::{Answer, at, minute, post, reading, reading_in, request, sent};
use crate::home::Home;

/// A home whose readings are of now.
fn on(store: DynamoStore) -> Home<DynamoStore> {
    Home::at(store, at(60_000))
}

/// A home that reaches the table through the proxy.
fn by_way_of(proxy: &Proxy, table: &Table) -> Home<DynamoStore> {
    on(table.store_by_way_of(proxy.url()))
}

/// A home that reaches its table through a proxy which passes on everything.
struct Behind {
    table: Table,
    proxy: Proxy,
    home: Home<DynamoStore>,
}

async fn behind_a_proxy() -> Behind {
    let table = Engine::embedded().await.table(true).await;
    let proxy = Proxy::start(table.endpoint(), |_| None).await;
    let home = by_way_of(&proxy, &table);
    Behind { table, proxy, home }
}

async fn send(home: &Home<DynamoStore>, readings: &[Reading], deadline: Deadline) -> Answer {
    home.send_until(post(readings), deadline).await
}

async fn merge(home: &Home<DynamoStore>, readings: &[Reading], deadline: Deadline) -> Answer {
    let body: Value = readings.iter().map(sent).collect();
    let request = request("POST", "/readings", "merge=true", Some(&body));
    home.send_until(ingest::Event::Http(Box::new(request)), deadline).await
}

/// Readings of three devices in two rooms, each at a timestamp of its own.
fn readings(count: i64) -> Vec<Reading> {
    (0..count)
        .map(|n| {
            reading_in(&format!("d{}", n % 3), n, if n % 2 == 0 { "room-a" } else { "room-b" })
        })
        .collect()
}

/// The sort keys of a device's readings.
async fn stored(table: &Table, id: &str) -> Vec<Value> {
    table.items(id).await.iter().map(|item| item["sk"]["S"].clone()).collect()
}

async fn is_stored(table: &Table, readings: &[Reading]) -> Vec<bool> {
    let mut found = Vec::new();
    for id in ["d0", "d1", "d2"] {
        found.extend(stored(table, id).await.into_iter().map(|sk| (id, sk)));
    }
    let key = |reading: &Reading| Value::from(format!("TS#{}", reading.at));
    readings
        .iter()
        .map(|reading| {
            found.iter().any(|(id, sk)| *id == reading.device.as_str() && *sk == key(reading))
        })
        .collect()
}

/// The readings that an answer says are not stored, after checking that it says so as it should.
fn not_stored(answer: &Answer) -> Vec<usize> {
    match answer.status {
        201 => {
            assert_eq!(answer.body["not_stored"], Value::Null);
            Vec::new()
        }
        503 => {
            assert_eq!(answer.headers["retry-after"], "2", "{answer:?}");
            let named = answer.body["not_stored"].as_array().expect("those not stored are named");
            assert!(!named.is_empty(), "{answer:?}");
            let place = |n: &Value| n.as_u64().and_then(|n| usize::try_from(n).ok());
            named.iter().map(|n| place(n).expect("a place")).collect()
        }
        _ => panic!("neither stored nor to be sent again: {answer:?}"),
    }
}

#[tokio::test]
async fn storing_costs_one_request_for_25_readings_and_reads_nothing() {
    let Behind { table: _table, proxy, home } = behind_a_proxy().await;
    home.ingest().load().await;
    assert_eq!(proxy.take_operations(), ["Query", "Query"], "devices and rooms");
    assert_eq!(send(&home, &readings(6), minute()).await.status, 201);
    let mut first = proxy.take_operations();
    first.sort();
    let looked_up = ["BatchGetItem"; 2];
    let puts = ["PutItem"; 5];
    assert_eq!(
        first,
        [&looked_up[..], &["BatchWriteItem"], &puts, &["Query"]].concat(),
        "three devices and two rooms are new, and no device told yet in how many partitions they are"
    );
    for count in [1, 25, 26, 1_000] {
        let answer = send(&home, &readings(count), minute()).await;
        assert_eq!(answer.status, 201);
        let batches = usize::try_from(count).expect("few").div_ceil(25);
        assert_eq!(proxy.take_operations(), vec!["BatchWriteItem"; batches], "{count} readings");
    }
}

#[tokio::test]
async fn readings_of_the_past_are_marked_first_at_most_three_times_in_ten_seconds() {
    const DAY: i64 = 86_400_000;
    let Behind { table, proxy, home } = behind_a_proxy().await;
    send(&home, &readings(6), minute()).await;
    proxy.take_operations();
    let mut marks = 0;
    for n in 1..40 {
        let device = if n < 20 { "d0" } else { "d2" };
        let past = [reading_in(device, -n * DAY, "room-a")];
        assert_eq!(send(&home, &past, minute()).await.status, 201);
        let mut operations = proxy.take_operations();
        assert_eq!(operations.pop().as_deref(), Some("BatchWriteItem"), "the last");
        assert!(operations.iter().all(|it| it == "UpdateItem"), "{operations:?}");
        marks += operations.len();
    }
    assert_eq!(marks, 3, "of a day, of all time, and of all devices");
    // Nothing is stored if no answer could tell that rollups lack it.
    let home = by_way_of(&proxy, &table);
    home.ingest().load().await;
    proxy.replan(|call| (call.operation == "UpdateItem").then_some(Fault::Throttled));
    let past = [reading_in("d0", -50 * DAY, "room-a")];
    let refused = send(&home, &past, Deadline::after(Duration::from_secs(2))).await;
    assert_eq!(not_stored(&refused), [0]);
    assert_eq!(is_stored(&table, &past).await, [false]);
}

#[tokio::test]
async fn what_is_acknowledged_is_stored_and_the_rest_is_named() {
    let engine = Engine::embedded().await;
    let plans = (0..60_u64).map(|seed| {
        let engine = engine.clone();
        async move {
            let table = engine.table(true).await;
            let percent = [20, 50, 80, 95][usize::try_from(seed % 4).expect("below 4")];
            let proxy = Proxy::start(table.endpoint(), seeded(seed, percent)).await;
            let home = by_way_of(&proxy, &table);
            let readings = readings(60);
            let answer = send(&home, &readings, Deadline::after(Duration::from_secs(3))).await;
            let unacknowledged = not_stored(&answer);
            let found = is_stored(&table, &readings).await;
            for (n, found) in found.iter().enumerate() {
                assert!(
                    *found || unacknowledged.contains(&n),
                    "seed {seed}: reading {n} is lost: {answer:?}"
                );
            }
            // What is not acknowledged is sent again, with or without the rest.
            proxy.replan(seeded(seed, 10));
            let mut again: Vec<_> = unacknowledged.iter().map(|n| readings[*n].clone()).collect();
            while !again.is_empty() {
                let answer = send(&home, &again, minute()).await;
                again = not_stored(&answer).iter().map(|n| again[*n].clone()).collect();
            }
            assert!(is_stored(&table, &readings).await.iter().all(|found| *found), "seed {seed}");
            for id in ["d0", "d1", "d2"] {
                assert_eq!(
                    stored(&table, id).await.len(),
                    20,
                    "seed {seed}: nothing is stored twice"
                );
            }
            unacknowledged.len()
        }
    });
    let not_stored: Vec<usize> = stream::iter(plans).buffer_unordered(20).collect().await;
    let (all, some) = (
        not_stored.iter().filter(|n| **n == 0).count(),
        not_stored.iter().filter(|n| **n > 0).count(),
    );
    assert!(all > 5 && some > 5, "the plans are neither harmless nor hopeless: {all} and {some}");
}

#[tokio::test]
async fn many_that_are_merged_are_inserted_where_they_are_new() {
    let Behind { table: _table, proxy, home } = behind_a_proxy().await;
    assert_eq!(send(&home, &readings(6), minute()).await.status, 201);
    let asked = async |from: usize, to: i64| {
        proxy.take_operations();
        let answer = merge(&home, &readings(to)[from..], minute()).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let operations = proxy.take_operations();
        let of = |name: &str| operations.iter().filter(|it| *it == name).count();
        let found = (of("BatchExecuteStatement"), of("UpdateItem"));
        assert_eq!(found.0 + found.1, operations.len(), "{operations:?}");
        found
    };
    assert_eq!(asked(6, 38).await, (0, 32), "so many updates run at once");
    assert_eq!(asked(38, 71).await, (2, 0));
    assert_eq!(asked(71, 1_071).await, (40, 0));
    assert_eq!(asked(1_060, 1_160).await, (4, 11), "11 are stored");
    assert_eq!(asked(1_060, 1_160).await, (1, 100), "most of the first batch are stored");
}

/// A sender who merges two metrics of each reading, one after the other, through faults.
#[tokio::test]
async fn what_is_merged_through_faults_is_there_whole() {
    let engine = Engine::embedded().await;
    let part = |name: &'static str| -> Vec<Reading> {
        let value = |n: i64| format!("{n}.5");
        let one = |n: i64| reading(&format!("d{}", n % 3), n, &[(name, value(n).as_str())]);
        (0..90).map(one).collect()
    };
    let (first, second) = (&part("a"), &part("b"));
    let plans = (0..40_u64).map(|seed| {
        let engine = engine.clone();
        async move {
            let table = engine.table(seed % 2 == 0).await;
            let percent = [10, 30, 60, 90][usize::try_from(seed % 4).expect("below 4")];
            let proxy = Proxy::start(table.endpoint(), seeded(seed, percent)).await;
            let home = by_way_of(&proxy, &table);
            let mut refused = 0;
            // Of the second part the first sixty meet what is stored.
            for readings in [&first[..60], &second[..], &first[60..]] {
                let mut left = readings.to_vec();
                let mut deadline = Deadline::after(Duration::from_secs(3));
                while !left.is_empty() {
                    let answer = merge(&home, &left, deadline).await;
                    left = not_stored(&answer).iter().map(|n| left[*n].clone()).collect();
                    refused += left.len();
                    proxy.replan(seeded(seed + 1_000, 10));
                    deadline = minute();
                }
            }
            let mut items = Vec::new();
            for id in ["d0", "d1", "d2"] {
                items.extend(table.items(id).await);
            }
            for (n, (a, b)) in first.iter().zip(second).enumerate() {
                let (id, sk) = (json!(a.device.as_str()), json!(format!("TS#{}", a.at)));
                let item = items.iter().find(|it| it["pk"]["S"] == id && it["sk"]["S"] == sk);
                let item = item.unwrap_or_else(|| panic!("seed {seed}: reading {n} is lost"));
                let value = |of: &Reading| of.metrics().iter().next().expect("one").1.to_string();
                assert_eq!(
                    (&item["a"]["N"], &item["b"]["N"]),
                    (&json!(value(a)), &json!(value(b)))
                );
            }
            refused
        }
    });
    let refused: Vec<usize> = stream::iter(plans).buffer_unordered(20).collect().await;
    let some = refused.iter().filter(|n| **n > 0).count();
    assert!(some >= 5, "the plans are harmless: {refused:?}");
}

#[tokio::test]
async fn what_is_never_done_ends_before_the_deadline() {
    let table = Engine::embedded().await.table(true).await;
    for fault in [
        Fault::Unprocessed(Share::All),
        Fault::Throttled,
        Fault::Failed(Effect::None),
        Fault::NoService,
        Fault::Reset(Effect::None),
        Fault::CutShort,
        Fault::Silent(Effect::None),
    ] {
        let proxy = Proxy::start(table.endpoint(), |_| None).await;
        let home = by_way_of(&proxy, &table);
        home.ingest().load().await;
        proxy.replan(move |_| Some(fault));
        let limit = Duration::from_millis(1_200);
        let watch = Stopwatch::start();
        let answer = send(&home, &readings(30), Deadline::after(limit)).await;
        let took = watch.elapsed();
        assert!(took < limit + Duration::from_millis(300), "{fault:?} took {took:?}");
        assert_eq!(not_stored(&answer), (0..30).collect::<Vec<_>>(), "{fault:?}");
        let throttled = matches!(fault, Fault::Throttled | Fault::Unprocessed(_));
        let kind = if throttled { "throttled" } else { "unavailable" };
        assert_eq!(answer.body["type"], format!("urn:roomtide:problem:{kind}"), "{fault:?}");
    }
}

#[tokio::test]
async fn what_is_throttled_as_a_whole_is_tried_for_longer_than_the_sdk_does() {
    let Behind { table: _table, proxy, home } = behind_a_proxy().await;
    home.ingest().load().await;
    for operation in ["BatchWriteItem", "UpdateItem"] {
        // The SDK tries four times. Each further refusal costs seconds of the sender's patience.
        let mut left = 5;
        proxy.replan(move |call| {
            let throttled = call.operation == operation && left > 0;
            left -= i32::from(throttled);
            throttled.then_some(Fault::Throttled)
        });
        let answer = match operation {
            "UpdateItem" => merge(&home, &readings(1), minute()).await,
            _ => send(&home, &readings(1), minute()).await,
        };
        assert_eq!(answer.status, 201, "{operation}: {answer:?}");
    }
}

#[tokio::test]
async fn one_silent_connection_is_given_up_and_the_batch_sent_again() {
    for effect in [Effect::None, Effect::Done] {
        let table = Engine::embedded().await.table(true).await;
        let mut first = true;
        let silent_once = move |call: &super::Call| {
            let silent = call.operation == "BatchWriteItem" && std::mem::take(&mut first);
            silent.then_some(Fault::Silent(effect))
        };
        let proxy = Proxy::start(table.endpoint(), silent_once).await;
        let home = by_way_of(&proxy, &table);
        let readings = readings(10);
        let answer = send(&home, &readings, minute()).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        assert!(is_stored(&table, &readings).await.iter().all(|found| *found));
    }
}

#[tokio::test]
async fn fifty_that_meet_a_device_at_once_leave_one_item_and_its_name() {
    let table = Engine::embedded().await.table(true).await;
    let homes: Vec<_> = (0..50).map(|_| on(table.store())).collect();
    join_all(homes.iter().map(|home| home.ingest().load())).await;
    let met = async |some: &[Home<DynamoStore>], from: i64| {
        let readings: Vec<_> =
            (from..).take(some.len()).map(|n| [reading_in("d", n, "room-a")]).collect();
        let sent = some.iter().zip(&readings).map(|(one, reading)| send(one, reading, minute()));
        assert!(join_all(sent).await.iter().all(|answer| answer.status == 201));
    };
    met(&homes[..25], 0).await;

    let person = on(table.store());
    for (path, name) in [("/devices/d", "Sensor"), ("/rooms/room-a", "Kitchen")] {
        assert_eq!(person.ask("PATCH", path, "", Some(&json!({"name": name}))).await.status, 200);
    }
    // They still know of no device: their registry is as old as their cold start.
    met(&homes[25..], 25).await;
    for (partition, id, name) in [("DEVICE", "d", "Sensor"), ("ROOM", "room-a", "Kitchen")] {
        let items = table.items(partition).await;
        assert_eq!(items.len(), 1, "{items:?}");
        assert_eq!((&items[0]["sk"]["S"], &items[0]["name"]["S"]), (&json!(id), &json!(name)));
    }
    assert_eq!(stored(&table, "d").await.len(), 50);
}
