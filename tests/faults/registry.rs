//! The registry function under faults: it reports the first record that has to come again, and in
//! whatever order and however often records come, it ends with the same registry.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::{Device, DevicePatch, Edit, Place, Reading, Room, Timestamp};
use dynamodb::DynamoStore;
use fastrand::Rng;
use futures_util::{StreamExt as _, future, stream};
use runtime::clock::Deadline;
use serde_json::{Value, json};
use table::memory_db::MemoryDb;
use table::{EditRegistry as _, PutReadings as _, ReadRegistry};

use super::proxy::{Effect, Fault, Proxy};
use super::seeded;
use crate::engine::{Engine, Table};
use crate::given::{answer, at, device, invocation, label, placed, reading, room};
use crate::home::{Consumer, Home};
use crate::records;

fn by_way_of(proxy: &Proxy, table: &Table) -> Home<DynamoStore> {
    Home::at(table.store_by_way_of(proxy.url()), at(3_600_000))
}

/// Readings of five devices that move between rooms and gain metrics.
fn readings(rng: &mut Rng) -> Vec<Reading> {
    let mut all = BTreeMap::new();
    for _ in 0..40 {
        let (device, millis) = (rng.usize(..5), rng.i64(0..30));
        let metrics = ["co2", "humidity", "count"];
        let one = reading(&format!("d{device}"), millis, &[(metrics[rng.usize(..3)], "1")]);
        let one = match rng.usize(..4) {
            0 => one,
            n => placed(one, &format!("room-{n}")),
        };
        all.insert((device, millis), one);
    }
    all.into_values().collect()
}

/// What has to be the same however the records came: everything but the timestamp that told the room,
/// which is not written again while the room stays, and which device was the first to name a room.
async fn registry_of(store: &impl ReadRegistry) -> (Vec<Device>, Vec<Room>) {
    let mut devices = answer!(store.devices()).found;
    for device in &mut devices {
        let changed = device.changed(|it| {
            if let Place::Learned(_, at) = &mut it.place {
                *at = Timestamp::MIN;
            }
            it.introduced_rooms.clear();
        });
        *device = changed.expect("a device");
    }
    (devices, answer!(store.rooms()).found)
}

/// Delivered once, in order, without faults, to a store in memory.
async fn expected(readings: &[Reading], records: &[Value]) -> (Vec<Device>, Vec<Room>) {
    let store = MemoryDb::default();
    store.put_readings(readings, None, &invocation()).await;
    Home::at(store.clone(), at(3_600_000)).hand_all(Consumer::Registry, records).await;
    registry_of(&store).await
}

#[tokio::test]
async fn the_registry_converges_under_faults_in_any_order_and_duplicated() {
    let engine = Engine::embedded().await;
    let runs = (0..30_u64).map(|seed| {
        let engine = engine.clone();
        async move {
            let mut rng = Rng::with_seed(seed);
            let readings = readings(&mut rng);
            let records = records::all_stored(0, &readings);
            let expected = expected(&readings, &records).await;

            let table = engine.table(true).await;
            table.store().put_readings(&readings, None, &invocation()).await;
            let proxy = Proxy::start(table.endpoint(), seeded(seed, 40)).await;
            let mut mixed = [records.clone(), records].concat();
            rng.shuffle(&mut mixed);
            // Two functions take turns and overlap; each has a cache that the other makes stale.
            let (one, other) = (by_way_of(&proxy, &table), by_way_of(&proxy, &table));
            for chunk in mixed.chunks(12) {
                let (first, second) = chunk.split_at(rng.usize(..=chunk.len()));
                let first = one.hand_all(Consumer::Registry, first);
                future::join(first, other.hand_all(Consumer::Registry, second)).await;
            }
            assert_eq!(registry_of(&table.store()).await, expected, "seed {seed}");
        }
    });
    stream::iter(runs).buffer_unordered(15).collect::<Vec<()>>().await;
}

#[tokio::test]
async fn the_first_record_that_could_not_be_learned_is_reported() {
    let table = Engine::embedded().await.table(true).await;
    let proxy = Proxy::start(table.endpoint(), |_| None).await;
    // The order of the batch is not the order of the ids.
    let readings = [
        reading("z", 0, &[("co2", "1")]),
        reading("m", 1, &[("co2", "1")]),
        reading("z", 2, &[("co2", "1")]),
        reading("a", 3, &[("co2", "1")]),
        reading("m", 4, &[("co2", "1")]),
    ];
    let mut records = records::all_stored(0, &readings);
    // Poison: it can never be read, so it is never reported.
    records[0]["dynamodb"]["NewImage"]["co2"] = json!({"S": "much"});
    let home = by_way_of(&proxy, &table);

    let spoil = |ids: &'static [&'static str]| {
        move |call: &super::Call| {
            let hit = ids.iter().any(|id| call.names(&format!("{{\"S\":\"{id}\"}}")));
            let is_write = matches!(call.operation.as_str(), "PutItem" | "UpdateItem");
            // Not throttled: that is repeated to the deadline, and leaves no time for the devices behind it.
            (hit && is_write).then_some(Fault::Failed(Effect::None))
        }
    };
    for (ids, expected) in [
        (&["z", "m", "a"][..], Some(1)),
        (&["z", "a"], Some(2)),
        (&["a"], Some(3)),
        (&[], None),
        // Known by now, so there is nothing to write that could fail.
        (&["z", "m", "a"], None),
    ] {
        proxy.replan(spoil(ids));
        assert_eq!(home.hand(Consumer::Registry, &records).await, expected, "{ids:?}");
    }
    assert_eq!(table.items("DEVICE").await.len(), 3);
}

#[tokio::test]
async fn a_batch_that_meets_no_table_is_delivered_again_from_its_first_reading() {
    let table = Engine::embedded().await.table(true).await;
    let proxy = Proxy::start(table.endpoint(), |_| Some(Fault::NoService)).await;
    let home = by_way_of(&proxy, &table);
    let mut records = vec![records::removed(0, &reading("d", 0, &[("co2", "1")]))];
    records.extend((1..3).map(|n| records::stored(n, &reading("d", 1, &[("co2", "1")]))));
    let soon = Deadline::after(Duration::from_secs(2));
    assert_eq!(home.hand_until(Consumer::Registry, &records, soon).await, Some(1));
    let removed = home.hand(Consumer::Registry, &records[..1]).await;
    assert_eq!(removed, None, "nothing to learn, no table asked");
}

/// The stays of a partition's items, by when they began, each without the id in the partition's key.
async fn stays_in(table: &Table, pk: &str) -> Vec<(String, Value, Value)> {
    let items = table.items(pk).await.into_iter();
    let stays = items.map(|item| {
        let sk = item["sk"]["S"].as_str().expect("a text");
        let (since, device) = sk.split_once('#').unwrap_or((sk, ""));
        let other = if device.is_empty() { item["stay_room"]["S"].clone() } else { device.into() };
        (since.to_owned(), other, item["until"]["S"].clone())
    });
    stays.collect()
}

#[tokio::test]
async fn both_sides_of_every_stay_agree_under_faults_and_edits() {
    const MINUTE: i64 = 60_000;
    let engine = Engine::embedded().await;
    let runs = (0..12_u64).map(|seed| {
        let engine = engine.clone();
        async move {
            let mut rng = Rng::with_seed(seed);
            let rooms = ["room-0", "room-1", "room-2"];
            let mut readings = Vec::new();
            let mut minute = 0;
            for n in 0..120 {
                minute += [1, 3, 8][rng.usize(..3)];
                let one = reading(["d", "e"][n % 2], minute * MINUTE, &[("co2", "1")]);
                let is_flapping = rng.u8(..8) == 0;
                readings.push(placed(one, rooms[(n / 24 + usize::from(is_flapping)) % 3]));
            }
            let records = records::all_stored(0, &readings);
            let table = engine.table(true).await;
            table.store().put_readings(&readings, None, &invocation()).await;
            let proxy = Proxy::start(table.endpoint(), seeded(seed, 25)).await;
            let (one, other) = (by_way_of(&proxy, &table), by_way_of(&proxy, &table));
            let person = table.store_by_way_of(proxy.url());
            for (n, chunk) in records.chunks(6).enumerate() {
                let into = match rng.usize(..6) {
                    0 => Edit::Set(room(rooms[rng.usize(..3)])),
                    1 | 2 => Edit::Clear,
                    _ => Edit::Keep,
                };
                let name = Edit::Set(label(&format!("name {n}")));
                let patch = DevicePatch { room: into, name, ..DevicePatch::default() };
                let now = readings[n * 6].at;
                let (id, invocation) = (device(["d", "e"][rng.usize(..2)]), invocation());
                let edit = person.edit_device(&id, &patch, now, &invocation);
                let delivered = future::join(
                    one.hand_all(Consumer::Registry, chunk),
                    other.hand_all(Consumer::Registry, chunk),
                );
                // An edit that fails may be done or not.
                let _ = future::join(edit, delivered).await;
            }
            let mut by_device = Vec::new();
            for device in answer!(table.store().devices()).found {
                let stays = stays_in(&table, &format!("STAYS_OF#{}", device.id())).await;
                let apart = |pair: &[(String, Value, Value)]| {
                    pair[0]
                        .2
                        .as_str()
                        .is_some_and(|end| pair[0].0.as_str() < end && end <= pair[1].0.as_str())
                };
                assert!(stays.windows(2).all(apart), "seed {seed}: {stays:?}");
                let Some(newest) = device.stay().cloned() else { continue };
                let until = newest.until.map_or(Value::Null, |until| until.to_string().into());
                let expected = (newest.since.to_string(), newest.room.as_str().into(), until);
                assert_eq!(stays.last(), Some(&expected), "seed {seed}");
                by_device.extend(stays.into_iter().map(|(since, room, until)| {
                    (room.to_string(), since, device.id().to_string(), until.to_string())
                }));
            }
            let mut by_room = Vec::new();
            for id in rooms {
                let stays = stays_in(&table, &format!("STAYS_IN#{id}")).await.into_iter();
                by_room.extend(stays.map(|(since, device, until)| {
                    let device = device.as_str().expect("an id").to_owned();
                    (Value::from(id).to_string(), since, device, until.to_string())
                }));
            }
            by_device.sort();
            assert_eq!(by_room, by_device, "seed {seed}");
            by_device.len()
        }
    });
    let stays: Vec<usize> = stream::iter(runs).buffer_unordered(6).collect().await;
    assert!(stays.iter().sum::<usize>() > 3 * stays.len(), "{stays:?}: they have hardly moved");
}
