//! What is in the table behind the ports: other programs read it too. Not for a store without items.

use chrono::TimeDelta;
use domain::{Order, Room};
use runtime::telemetry::chain;
use serde_json::{Value, json};
use table::{
    FindRegistry as _, LookUpRegistry as _, MergeReadings as _, PutReadings as _,
    QueryReadings as _, ReadRegistry as _, RegisterDevices as _,
};

use super::ranges::pages;
use super::registry::registered;
use crate::engine::Table;
use crate::given::{always, answer, at, device, invocation, label, reading_in, room};
use crate::stored::{first_page, put};

pub(super) async fn a_reading_is_one_item(table: &Table) {
    put(&table.store(), &[reading_in("d", 0, "room-a")]).await;
    let expected = json!([{
        "pk": {"S": "d"},
        "sk": {"S": "TS#2026-01-11T16:00:00.000Z"},
        "room": {"S": "room-a"},
        "_named": {"N": "1"},
        "temperature": {"N": "21.5"},
    }]);
    assert_eq!(Value::from(table.items("d").await), expected);
}

pub(super) async fn an_expiry_is_days_after_the_readings_own_timestamp(table: &Table) {
    // Both are over a year ahead of the year in which this was written: no engine deletes them yet.
    let readings = [reading_in("d", 0, "room-a"), reading_in("d", 1_999, "room-a")];
    let days = |days| Some(TimeDelta::days(days));
    table.store().put_readings(&readings, days(36_500), &invocation()).await;
    let expiries = async || -> Vec<Value> {
        table.items("d").await.iter().map(|item| item["exp"].clone()).collect()
    };
    let seconds = at(0).as_millis() / 1_000 + (36_500 + 3) * 86_400;
    assert_eq!(expiries().await, [0, 1].map(|n| json!({"N": (seconds + n).to_string()})));
    // Sent again without a retention, the mark is gone with the rest of the old item.
    put(&table.store(), &readings).await;
    assert_eq!(expiries().await, [Value::Null, Value::Null]);
}

pub(super) async fn a_registration_is_one_item(table: &Table) {
    let store = table.store();
    registered(&store, "d").await;
    let expected = json!([{
        "pk": {"S": "DEVICE"},
        "sk": {"S": "d"},
        "room": {"S": "room-a"},
        "room_at": {"S": "2026-01-11T16:00:00.100Z"},
        "first_seen": {"S": "2026-01-11T16:00:00.100Z"},
        "metrics": {"M": {"temperature": {"M": {"kind": {"S": "gauge"}, "unit": {"S": "°C"}}}}},
    }]);
    assert_eq!(Value::from(table.items("DEVICE").await), expected);
    let room = Room { name: Some(label("Kitchen")), ..Room::new(room("room-a"), at(0)) };
    answer!(store.register_room(&room));
    let expected = json!([{
        "pk": {"S": "ROOM"},
        "sk": {"S": "room-a"},
        "name": {"S": "Kitchen"},
        "first_seen": {"S": "2026-01-11T16:00:00.000Z"},
    }]);
    assert_eq!(Value::from(table.items("ROOM").await), expected);
}

pub(super) async fn what_others_left_is_passed_over(table: &Table) {
    let store = table.store();
    let reading = reading_in("d", 0, "room-a");
    put(&store, std::slice::from_ref(&reading)).await;
    let known = registered(&store, "d").await;
    let sk = |millis| json!({"S": format!("TS#{}", at(millis))});
    // No metric; another writing of a timestamp; a rollup; a device without what makes one.
    for item in [
        json!({"pk": {"S": "d"}, "sk": sk(1), "room": {"S": "room-a"}}),
        json!({"pk": {"S": "d"}, "sk": {"S": "TS#2026-01-11T16:00:00.5Z"}, "room": {"S": "room-a"}}),
        json!({"pk": {"S": "d"}, "sk": {"S": "M15#2026-01-11T16:00:00.000Z"}, "room": {"S": "room-a"}}),
        json!({"pk": {"S": "DEVICE"}, "sk": {"S": "e"}, "room": {"S": "room-a"}}),
        json!({"pk": {"S": "DEVICE"}, "sk": {"S": "e#f"}}),
        json!({"pk": {"S": "ROOM"}, "sk": {"S": "room-z"}}),
    ] {
        table.put_item(item).await;
    }
    for order in [Order::Ascending, Order::Descending] {
        for limit in [1, 10] {
            let query = first_page(always(), order, limit);
            for page in pages(&store, &query).await {
                assert_eq!(page.items, std::slice::from_ref(&reading), "{order:?} {limit}");
            }
        }
    }
    let devices = answer!(store.devices());
    assert_eq!(devices.found, [known]);
    let named: Vec<_> = devices.unreadable.iter().map(|item| chain(item)).collect();
    let missing = "first_seen is missing or has another type";
    assert_eq!(named[0], format!("the item DEVICE e: {missing}"));
    assert!(named[1].starts_with("the item DEVICE e#f: "), "{named:?}");
    let rooms = answer!(store.rooms());
    assert_eq!(rooms.found, []);
    assert_eq!(chain(&rooms.unreadable[0]), format!("the item ROOM room-z: {missing}"));
    let asked = [device("d"), device("e"), device("f")];
    let found = answer!(store.find_devices(&asked));
    assert_eq!((found.found.len(), found.unreadable.len()), (1, 1));
    let error = store.device(&device("e"), &invocation()).await.expect_err("damaged");
    assert!(chain(&error).contains("the item DEVICE e: "), "{}", chain(&error));
}

pub(super) async fn a_merge_sets_an_expiry(table: &Table) {
    let retention = Some(TimeDelta::days(36_500));
    table.store().merge_readings(&[reading_in("d", 0, "room-a")], retention, &invocation()).await;
    let seconds = at(0).as_millis() / 1_000 + (36_500 + 3) * 86_400;
    assert_eq!(table.items("d").await[0]["exp"], json!({"N": seconds.to_string()}));
    // Readings are kept for ever again: what is merged must not go with an old mark.
    table.store().merge_readings(&[reading_in("d", 0, "room-a")], None, &invocation()).await;
    assert_eq!(table.items("d").await[0]["exp"], Value::Null);
}

pub(super) async fn only_what_is_asked_for_is_paid(table: &Table) {
    let store = table.store();
    let readings: Vec<_> = (0..200).map(|n| reading_in("d", n, "room-a")).collect();
    put(&store, &readings).await;
    let invocation = invocation();
    let query = first_page(always(), Order::Descending, 1);
    store.device_readings(&device("d"), &query, &invocation).await.expect("read");
    assert!((invocation.read_units() - 0.5).abs() < 0.1, "{}", invocation.read_units());
}
