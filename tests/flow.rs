//! The way of readings through the whole system over HTTP, on the embedded engine. Injects no faults.

use serde_json::{Value, json};

use crate::client::{get, post, system};
use crate::engine::Table;
use crate::given::{placed, reading};
use crate::stored::put;

fn home() -> Vec<Value> {
    let mut readings = Vec::new();
    for minute in 0..60 {
        let at = format!("2026-01-11T16:{minute:02}:00Z");
        readings.push(json!({"device_id": "remo-e", "timestamp": at, "room": "hall", "current_w": 400 + minute, "cumulative_kwh_p": 8048.1}));
        readings.push(
            json!({"device_id": "remo-3", "timestamp": at, "room": "hall", "temperature": 21.5}),
        );
        readings.push(
            json!({"device_id": "remo-4", "timestamp": at, "room": "study", "temperature": 19}),
        );
    }
    readings
}

const RANGE: &str = "from=2026-01-11T16:00:00Z&to=2026-01-11T17:00:00Z";

#[tokio::test]
async fn what_is_posted_is_listed_and_found_again_and_sending_it_again_changes_nothing() {
    let system = system().await;
    let mut seen = Vec::new();
    for _ in 0..2 {
        let answer = post(&system, &json!(home())).await;
        assert_eq!((answer.status, answer.json()), (201, json!({"accepted": 180})));
        assert_eq!(answer.header("x-consumed-write-units").map(|units| units != "0"), Some(true));
        system.settle().await.expect("delivered");

        let devices = get(&system, "/devices").await.json();
        let ids: Vec<_> =
            devices["data"].as_array().expect("a list").iter().map(|d| &d["device_id"]).collect();
        assert_eq!(ids, ["remo-3", "remo-4", "remo-e"]);
        let rooms = get(&system, "/rooms").await.json();
        assert_eq!(rooms["data"].as_array().map(Vec::len), Some(2));

        let device = get(&system, &format!("/devices/remo-e/readings?{RANGE}")).await;
        assert_eq!(device.json()["data"].as_array().map(Vec::len), Some(60));
        assert_ne!(device.header("x-consumed-read-units"), Some("0"));
        let room = get(&system, &format!("/rooms/hall/readings?{RANGE}")).await.json();
        let timestamps: Vec<_> = room["data"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|r| r["timestamp"].to_string())
            .collect();
        assert_eq!(timestamps.len(), 120);
        assert!(timestamps.is_sorted(), "merged in time order");

        let latest = get(&system, "/rooms/study/devices?latest=1").await.json();
        assert_eq!(latest["data"][0]["latest"]["timestamp"], "2026-01-11T16:59:00.000Z");
        seen.push((devices, rooms, device.json(), room, latest));
    }
    assert_eq!(seen[0], seen[1]);
    assert!(system.dead_letters().is_empty());
    system.shutdown().await.expect("stops");
}

#[tokio::test]
async fn readings_that_ingest_never_saw_are_registered_all_the_same() {
    let system = system().await;
    let store = Table::of(&system).store();
    put(&store, &[placed(reading("imported", 0, &[("co2", "612")]), "attic")]).await;
    system.settle().await.expect("delivered");
    let device = get(&system, "/devices/imported").await.json();
    assert_eq!(device["room"], "attic");
    assert_eq!(device["metrics"]["co2"], json!({"kind": "gauge", "unit": "ppm"}));
    assert_eq!(get(&system, "/rooms/attic").await.json()["room_id"], "attic");
    system.shutdown().await.expect("stops");
}

#[tokio::test]
async fn a_range_longer_than_a_page_of_the_table_is_followed() {
    let system = system().await;
    // 60 metrics make an item of about 1.5 KB; 1,500 of them are more than the 1 MB of one page.
    let metrics: Vec<String> = (0..60).map(|n| format!("metric_with_a_long_name_{n:02}")).collect();
    for hundred in 0..15 {
        let readings: Vec<Value> = (0..100)
            .map(|n| {
                let mut reading =
                    json!({"device_id": "wide", "timestamp": 1_768_147_200 + hundred * 100 + n});
                metrics.iter().for_each(|metric| reading[metric] = json!(1));
                reading
            })
            .collect();
        assert_eq!(post(&system, &json!(readings)).await.status, 201);
    }
    let url = "/devices/wide/readings?from=1768147200&to=1768150800&limit=10000&format=ndjson";
    let all = get(&system, url).await;
    let lines = String::from_utf8(all.body).expect("UTF-8").lines().count();
    assert_eq!(lines, 1_500);
    system.shutdown().await.expect("stops");
}
