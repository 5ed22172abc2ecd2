//! Random writes and questions against a model that is a map: no reading is lost, doubled or out of order.

use std::collections::{BTreeMap, BTreeSet};

use domain::{DeviceId, Month, Order, RESERVED_IDS, Reading, RoomId};
use dynamodb::DynamoStore;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::Value;
use table::{
    Expected, NoteSeen as _, QueryReadings as _, QueryRoomReadings as _, RangeQuery, ReadingKey,
    RoomVisit,
};
use tokio::runtime::Runtime;

use crate::engine::Engine;
use crate::given::{
    START, answer, at, device, invocation, placed, range, reading, register_devices_of,
    register_room, request, room,
};
use crate::home::Home;
use crate::stored::{first_page, put};

const DEVICES: [&str; 4] = ["a", "a-b", "b", "c"];
const ROOMS: [&str; 2] = ["room-a", "room-b"];
/// So few that writes meet, so many that pages end within.
const INSTANTS: i64 = 40;

type Model = BTreeMap<ReadingKey, Reading>;

/// A reading of any device, mostly in the device's own room, sometimes elsewhere or nowhere.
fn any_reading() -> impl Strategy<Value = Reading> {
    (0..DEVICES.len(), 0..INSTANTS, 0..8_usize, -9_i32..9).prop_map(|(n, millis, place, value)| {
        let one = reading(DEVICES[n], millis, &[("co2", &value.to_string())]);
        match place {
            0 => one,
            1 => placed(one, ROOMS[(n + 1) % 2]),
            _ => placed(one, ROOMS[n % 2]),
        }
    })
}

/// Requests' worth of readings, each without two of one device and timestamp, as ingest makes them.
fn any_writes() -> impl Strategy<Value = Vec<Vec<Reading>>> {
    let request = vec(any_reading(), 1..60).prop_map(|readings| {
        let model: Model = readings.into_iter().map(|r| (ReadingKey::of(&r), r)).collect();
        model.into_values().collect()
    });
    vec(request, 1..5)
}

#[derive(Debug, Clone)]
struct Asked {
    whose: Result<&'static str, &'static str>,
    from: i64,
    to: i64,
    order: Order,
    limit: usize,
    after: Option<(i64, &'static str)>,
}

fn any_question() -> impl Strategy<Value = Asked> {
    let whose = prop_oneof![
        prop::sample::select(&DEVICES[..]).prop_map(Ok),
        prop::sample::select(&ROOMS[..]).prop_map(Err),
    ];
    let order = prop_oneof![Just(Order::Ascending), Just(Order::Descending)];
    let after = prop::option::of((0..INSTANTS, prop::sample::select(&DEVICES[..])));
    let edge = -2..INSTANTS + 2;
    (whose, edge.clone(), edge, order, 1..70_usize, after).prop_map(
        |(whose, a, b, order, limit, after)| {
            let (from, to) = (a.min(b), a.max(b) + 1);
            // A page begins behind a place in its range, never elsewhere.
            let after = after.filter(|(millis, _)| (from..to).contains(millis));
            Asked { whose, from, to, order, limit, after }
        },
    )
}

async fn write(store: &DynamoStore, model: &mut Model, writes: Vec<Vec<Reading>>) {
    for readings in writes {
        put(store, &readings).await;
        model.extend(readings.into_iter().map(|r| (ReadingKey::of(&r), r)));
    }
}

/// The readings of a device or room, oldest first, by device where they are of one timestamp.
fn expected(model: &Model, whose: Result<&str, &str>, from: i64, to: i64) -> Vec<Reading> {
    let range = range(from, to);
    let wanted = |reading: &&Reading| match whose {
        Ok(id) => reading.device.as_str() == id,
        Err(id) => reading.room.as_ref().is_some_and(|room| room.as_str() == id),
    };
    model.values().filter(|r| range.contains(r.at)).filter(wanted).cloned().collect()
}

fn check<S: Strategy>(cases: u32, strategy: S, test: impl Fn(&Runtime, &Engine, S::Value)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime starts");
    let engine = runtime.block_on(Engine::embedded());
    // No file of seeds is written: a failure prints the smallest case it has.
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let outcome = TestRunner::new(config).run(&strategy, |case| {
        test(&runtime, &engine, case);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[test]
fn the_store_answers_like_a_map() {
    let strategy = (any_writes(), vec(any_question(), 12), any::<bool>());
    check(128, strategy, |runtime, engine, (writes, questions, room_index)| {
        runtime.block_on(async {
            let store = engine.table(room_index).await.store();
            let mut model = Model::new();
            write(&store, &mut model, writes).await;
            for asked in questions {
                assert_answered(&store, &model, &asked, room_index).await;
            }
        });
    });
}

/// Compares a page with the model.
///
/// How readings of a room at one timestamp follow each other is up to the index: with it a room is asked
/// from its beginning on, and where the page ends within a timestamp any of its readings may be there.
/// Without it they follow by device, and a page is exactly the model's.
async fn assert_answered(store: &DynamoStore, model: &Model, asked: &Asked, room_index: bool) {
    let Asked { whose, from, to, order, limit, .. } = *asked;
    let mut left = expected(model, whose, from, to);
    if order == Order::Descending {
        left.reverse();
    }
    let is_exact = whose.is_ok() || !room_index;
    let after = asked.after.filter(|_| is_exact);
    let after = after
        .map(|(millis, id)| ReadingKey { at: at(millis), device: device(whose.unwrap_or(id)) });
    if let Some(after) = &after {
        left.retain(|r| match order {
            Order::Ascending => ReadingKey::of(r) > *after,
            Order::Descending => ReadingKey::of(r) < *after,
        });
    }
    let query = RangeQuery { after, ..first_page(range(from, to), order, limit) };
    let page = match whose {
        Ok(id) => store.device_readings(&device(id), &query, &invocation()).await,
        Err(id) => {
            let devices = DEVICES.map(device);
            store.room_readings(&room(id), &devices, &query, &invocation()).await
        }
    };
    let page = page.expect("read");
    assert_eq!(page.has_more, left.len() > limit, "{asked:?}");
    assert_eq!(page.items.len(), left.len().min(limit), "{asked:?}");
    if is_exact {
        assert_eq!(page.items, left[..page.items.len()], "{asked:?}");
    }
    let timestamps = |readings: &[Reading]| -> Vec<_> { readings.iter().map(|r| r.at).collect() };
    assert_eq!(timestamps(&page.items), timestamps(&left[..page.items.len()]), "{asked:?}");
    let found: BTreeSet<_> = page.items.iter().map(ReadingKey::of).collect();
    assert_eq!(found.len(), page.items.len(), "none twice: {asked:?}");
    for reading in &page.items {
        assert!(left.contains(reading), "{reading:?}: {asked:?}");
    }
}

#[test]
fn any_walk_of_cursors_meets_every_reading_once_and_in_order() {
    let strategy = (any_writes(), vec(any_question(), 6), any::<bool>());
    check(48, strategy, |runtime, engine, (writes, questions, room_index)| {
        runtime.block_on(async {
            let table = engine.table(room_index).await;
            let store = table.store();
            let mut model = Model::new();
            register(&store).await;
            write(&store, &mut model, writes).await;
            note_rooms(&store, &model).await;
            let home = Home::at(store, at(3_600_000));
            home.query().load().await;
            for asked in questions {
                Box::pin(assert_walked(&home, &model, &asked)).await;
            }
        });
    });
}

/// Notes which devices were in which rooms, as the rollup function does.
async fn note_rooms(store: &DynamoStore, model: &Model) {
    let readings = model.values();
    let stays =
        readings.filter_map(|reading| Some((reading.room.clone()?, reading.device.clone())));
    for (room, device) in stays.collect::<BTreeSet<_>>() {
        let month = Month::of(at(0));
        let seen = RoomVisit { room, device, first: month, last: month, version: 1 };
        assert!(answer!(store.put_seen(&seen, Expected::Absent)));
    }
}

/// Every device, in its own room.
async fn register(store: &DynamoStore) {
    for (n, id) in DEVICES.iter().enumerate() {
        let first = placed(reading(id, 0, &[("co2", "1")]), ROOMS[n % 2]);
        register_devices_of(store, &[first]).await;
    }
    for id in ROOMS {
        register_room(store, id, at(0)).await;
    }
}

async fn assert_walked(home: &Home<DynamoStore>, model: &Model, asked: &Asked) {
    let Asked { whose, from, to, order, .. } = *asked;
    // A short walk has few pages; a long one would be the same again.
    let limit = asked.limit % 9 + 1;
    let path = match whose {
        Ok(id) => format!("/devices/{id}/readings"),
        Err(id) => format!("/rooms/{id}/readings"),
    };
    let direction = if order == Order::Ascending { "asc" } else { "desc" };
    let (from_text, to_text) = (at(from), at(to));
    let question = format!("from={from_text}&to={to_text}&order={direction}&limit={limit}");
    let mut walked: Vec<ReadingKey> = Vec::new();
    let mut cursor = String::new();
    while walked.len() <= model.len() {
        let query_string = format!("{question}{cursor}");
        let body = home.found(&path, &query_string).await.body;
        let rows = body["data"].as_array().expect("a list");
        assert!(rows.len() <= limit);
        walked.extend(rows.iter().map(|row| position(row, whose)));
        match body["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    let in_order = |pair: &[ReadingKey]| match order {
        Order::Ascending => pair[0].at <= pair[1].at,
        Order::Descending => pair[0].at >= pair[1].at,
    };
    assert!(walked.windows(2).all(in_order), "{asked:?}: {walked:?}");
    walked.sort();
    let expected = expected(model, whose, from, to);
    assert_eq!(walked, expected.iter().map(ReadingKey::of).collect::<Vec<_>>(), "{asked:?}");
}

fn position(row: &Value, whose: Result<&str, &str>) -> ReadingKey {
    let text = |member: &str| row[member].as_str().unwrap_or_default().to_owned();
    let id = whose.map_or_else(|_| text("device_id"), str::to_owned);
    let timestamp = domain::Timestamp::parse(&text("timestamp"), at(0)).expect("a timestamp");
    ReadingKey { at: timestamp, device: device(&id) }
}

#[test]
fn no_id_reaches_another_partition() {
    let reserved = prop::sample::select(&RESERVED_IDS[..]).prop_flat_map(|id| {
        vec(any::<bool>(), id.len()).prop_map(move |upper| in_case(id, &upper))
    });
    let id = prop_oneof![3 => reserved, 1 => "[A-Za-z0-9#_.:/ -]{0,12}", 1 => any::<String>()];
    check(96, (id, any::<bool>()), |runtime, engine, (id, as_room)| {
        runtime.block_on(async {
            let table = engine.table(true).await;
            let home = Home::at(table.store(), at(3_600_000));
            let (device_id, room_id) =
                if as_room { ("d", id.as_str()) } else { (id.as_str(), "r") };
            let body = serde_json::json!({
                "device_id": device_id, "room": room_id, "timestamp": START, "co2": 400,
            });
            let event =
                ingest::Event::Http(Box::new(request("POST", "/readings", "", Some(&body))));
            let answer = home.send(event).await;
            let allowed =
                device_id.parse::<DeviceId>().is_ok() && room_id.parse::<RoomId>().is_ok();
            assert_eq!(answer.status, if allowed { 201 } else { 400 }, "{id:?}: {answer:?}");
            for (partition, own) in [("DEVICE", device_id), ("ROOM", room_id), ("TOKEN", "")] {
                let sks: Vec<_> = table
                    .items(partition)
                    .await
                    .iter()
                    .map(|item| item["sk"]["S"].clone())
                    .collect();
                let may_be =
                    if allowed && !own.is_empty() { vec![Value::from(own)] } else { Vec::new() };
                assert_eq!(sks, may_be, "{id:?} in {partition}");
            }
        });
    });
}

fn in_case(id: &str, upper: &[bool]) -> String {
    let letters = id.chars().zip(upper);
    letters
        .map(|(c, upper)| if *upper { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
        .collect()
}
