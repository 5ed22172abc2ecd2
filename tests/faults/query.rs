//! How often a question asks the table, and for how much. A store that answers right may still ask once
//! a reading.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::{DeviceId, Order, Place, Room, Stay};
use serde_json::Value;
use table::keys::STAYS_IN_PREFIX;
use table::{
    EditRegistry as _, Edited, LookUpRegistry as _, QueryRoomReadings as _, RangeQuery, ReadingKey,
    UpdateOutcome,
};

use super::proxy::{Call, Effect, Fault, Proxy};
use crate::engine::Engine;
use crate::given::{
    always, answer, at, device, into_room, invocation, reading_in, register_devices_of, room,
};
use crate::stored::{first_page, put};

#[tokio::test]
async fn a_room_without_its_index_does_not_ask_once_a_reading() {
    let table = Engine::embedded().await.table(false).await;
    // The device was elsewhere for a long time.
    let mut readings: Vec<_> = (1..1_000).map(|n| reading_in("d", n, "room-b")).collect();
    readings.extend([0, 1_000].map(|n| reading_in("d", n, "room-a")));
    put(&table.store(), &readings).await;

    let proxy = Proxy::start(table.endpoint(), |_| None).await;
    let store = table.store_by_way_of(proxy.url());
    for limit in [1, 2, 100] {
        let query = first_page(always(), Order::Ascending, limit);
        let page = answer!(store.room_readings(&room("room-a"), &[device("d")], &query));
        assert_eq!(page.items.len(), limit.min(2));
        let asked = proxy.take_operations().len();
        assert!(asked <= 12, "{asked} requests for {limit} readings");
    }
}

/// Twenty devices with 400 readings each: a page that held them all in memory would cost as much as 20
/// pages.
#[tokio::test]
async fn a_room_without_its_index_reads_little_more_than_its_page() {
    let table = Engine::embedded().await.table(false).await;
    let ids: Vec<DeviceId> = (0..20).map(|n| device(&format!("d{n:02}"))).collect();
    let mut readings = Vec::new();
    for (n, id) in (0..).zip(&ids) {
        // Some measure ten times as often as others.
        let every = if n < 5 { 100 } else { 1_000 };
        readings.extend((0..400).map(|i| reading_in(id.as_str(), i * every + n, "room-a")));
    }
    put(&table.store(), &readings).await;
    readings.sort_by_key(ReadingKey::of);

    let proxy = Proxy::start(table.endpoint(), |_| None).await;
    let store = table.store_by_way_of(proxy.url());
    let after = ReadingKey { at: at(20_000), device: device("d07") };
    for (order, after) in [
        (Order::Ascending, None),
        (Order::Descending, None),
        (Order::Ascending, Some(after.clone())),
        (Order::Descending, Some(after)),
    ] {
        let mut left = readings.clone();
        if order == Order::Descending {
            left.reverse();
        }
        if let Some(after) = &after {
            left.retain(|reading| {
                (ReadingKey::of(reading) > *after) == (order == Order::Ascending)
            });
            left.retain(|reading| ReadingKey::of(reading) != *after);
        }
        let query = RangeQuery { after, ..first_page(always(), order, 200) };
        let invocation = invocation();
        let page =
            store.room_readings(&room("room-a"), &ids, &query, &invocation).await.expect("read");
        assert_eq!((&page.items[..], page.has_more), (&left[..200], true), "{order:?}");
        let asked = proxy.take_operations().len();
        // One page of 200 readings would be 2 units; each device costs half a unit at the least.
        assert!(invocation.read_units() <= 15.0, "{order:?}: {} units", invocation.read_units());
        assert!(asked <= 30, "{order:?}: {asked} requests");
    }
}

/// No request for readings is answered, so those that are counted are under way together.
#[tokio::test]
async fn a_room_without_its_index_asks_several_devices_at_once_and_not_all() {
    let table = Engine::embedded().await.table(false).await;
    let ids: Vec<DeviceId> = (0..50).map(|n| device(&format!("d{n:02}"))).collect();
    let of_stays = |call: &Call| call.names(STAYS_IN_PREFIX);
    let silent = move |call: &Call| (!of_stays(call)).then_some(Fault::Silent(Effect::None));
    let proxy = Proxy::start(table.endpoint(), silent).await;
    let store = table.store_by_way_of(proxy.url());
    let query = first_page(always(), Order::Ascending, 10);
    let (room, invocation) = (room("room-a"), invocation());
    let page = store.room_readings(&room, &ids, &query, &invocation);
    // Before the SDK gives an attempt up and makes another.
    assert!(tokio::time::timeout(Duration::from_secs(1), page).await.is_err());
    let asked = proxy.take_operations().len() - 1;
    assert!((2..=8).contains(&asked), "{asked} requests at once");
}

/// A failure that is reported though the transaction was done is retried, and one that was not done
/// leaves neither the device moved nor the room registered.
#[tokio::test]
async fn a_device_and_its_new_room_stay_together_through_failures() {
    let table = Engine::embedded().await.table(true).await;
    let direct = table.store();
    register_devices_of(&direct, &[reading_in("d", 0, "room-a")]).await;
    let patch = |id: &str| into_room(id);
    let new = |id: &str| Room::new(room(id), at(0));

    let mut failures = vec![Fault::Failed(Effect::Done)];
    let tokens: Arc<Mutex<Vec<Value>>> = Arc::default();
    let seen = Arc::clone(&tokens);
    let proxy = Proxy::start(table.endpoint(), move |call| {
        if call.operation != "TransactWriteItems" {
            return None;
        }
        seen.lock().expect("no test panics with it").push(call.body["ClientRequestToken"].clone());
        failures.pop()
    })
    .await;
    let store = table.store_by_way_of(proxy.url());
    let moved = answer!(store.edit_device(&device("d"), &patch("attic"), at(0)));
    let UpdateOutcome::Updated(Edited { device: now, .. }) = moved else {
        panic!("it is registered")
    };
    assert_eq!(*now.place(), Place::Chosen(room("attic")));
    let sent = tokens.lock().expect("no test panics with it").clone();
    let [first, again, ..] = sent.as_slice() else { panic!("it is sent again: {sent:?}") };
    assert!(first.is_string() && first == again, "DynamoDB knows the second for the first");
    assert_eq!(now.stay().cloned(), Some(Stay::begun(room("attic"), at(0))));
    assert_eq!(answer!(direct.room(&room("attic"))), Some(new("attic")));

    proxy.replan(|call| {
        (call.operation == "TransactWriteItems").then_some(Fault::Failed(Effect::None))
    });
    let moved = store.edit_device(&device("d"), &patch("cellar"), at(1), &invocation()).await;
    assert!(moved.is_err_and(|error| error.is_retryable()));
    assert_eq!(answer!(direct.room(&room("cellar"))), None);
    let device = answer!(direct.device(&device("d"))).expect("registered");
    assert_eq!(device, now);
}
