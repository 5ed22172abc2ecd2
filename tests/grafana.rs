//! The dashboard and the panel under `docs/grafana`: each of their queries is answered with values. Runs no Grafana.

use std::fs;
use std::path::Path;

use local::System;
use serde_json::{Value, json};

use crate::client::{get, post, system};
use crate::given::percent_encoded;

const FROM: i64 = 1_452_556_800_000; // 2016-01-12T00:00:00Z
const DAY: i64 = 86_400_000;

fn document(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/grafana").join(name);
    serde_json::from_str(&fs::read_to_string(path).expect("a file")).expect("JSON")
}

/// Three days of the sample home, a reading an hour: two rooms and the meter.
async fn home() -> System {
    let system = system().await;
    for hour in 0..72 {
        let timestamp = FROM + hour * DAY / 24;
        let thermometer = |room: &str, warmer: i64| {
            json!({
                "device_id": format!("thermo-{room}"), "room": room, "timestamp": timestamp,
                "temperature": 18 + warmer + hour % 5, "humidity": 40 + hour % 9,
            })
        };
        let meter = json!({
            "device_id": "meter", "room": "house", "timestamp": timestamp,
            "current_w": 300 + hour * 7 % 200, "cumulative_kwh_p": 8_000 + hour,
        });
        let readings = json!([thermometer("kitchen", 0), thermometer("office", 3), meter]);
        assert_eq!(post(&system, &readings).await.status, 201);
    }
    system.settle().await.expect("delivered");
    system
}

/// What Grafana makes of a query: its variables have values.
fn filled(query: &str) -> String {
    let time = format!("time >= {FROM}ms and time <= {}ms", FROM + 3 * DAY);
    let query = query.replace("$timeFilter", &time).replace("$room", "(kitchen|office)");
    assert!(!query.replace("$/", "/").contains('$'), "a variable is left in {query}");
    query
}

async fn asked(system: &System, query: &str) -> Value {
    let query = percent_encoded(query);
    let answer = get(system, &format!("/query?db=home&epoch=ms&q={query}")).await;
    assert_eq!(answer.status, 200, "{query}");
    answer.json()["results"][0].clone()
}

#[tokio::test]
async fn every_query_of_the_dashboard_is_answered() {
    let system = home().await;
    let dashboard = document("dashboard.json");
    assert_eq!(dashboard["refresh"], "5m");
    let mut queries = 0;
    for panel in dashboard["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().expect("targets") {
            let query = target["query"].as_str().expect("a query");
            let windows = ["time(15m)", "time(1h)", "time(1d)", "last("];
            assert!(windows.iter().any(|it| query.contains(it)), "not from rollups: {query}");
            let result = asked(&system, &filled(query)).await;
            let series = result["series"].as_array().unwrap_or_else(|| panic!("{query}: {result}"));
            let by_room = query.contains(", \"room\"");
            assert!(!by_room || series.len() == 2, "{query}: {result}");
            for one in series {
                assert!(one["values"][0][1].is_number(), "{query}: {one}");
            }
            queries += 1;
        }
    }
    assert!(queries >= 8, "{queries}");
    for variable in dashboard["templating"]["list"].as_array().expect("variables") {
        let result = asked(&system, variable["query"].as_str().expect("a query")).await;
        let rooms = &result["series"][0]["values"];
        assert_eq!(rooms, &json!([["room", "kitchen"], ["room", "office"]]));
    }
    // What Grafana asks to test a data source, and in its builder.
    for query in [
        "SHOW measurements",
        "SHOW FIELD KEYS FROM \"temperature\"",
        "SHOW RETENTION POLICIES on \"home\"",
    ] {
        let result = asked(&system, query).await;
        assert!(result["series"].is_array(), "{query}: {result}");
    }
    system.shutdown().await.expect("stops");
}

#[tokio::test]
async fn the_panel_of_the_native_api_has_the_fields_that_it_names() {
    let system = home().await;
    let panel = document("infinity-panel.json");
    for target in panel["targets"].as_array().expect("targets") {
        let url = target["url"].as_str().expect("an address");
        let url = url.replace("${__from}", &FROM.to_string());
        let url = url.replace("${__to}", &(FROM + 3 * DAY).to_string());
        let answer = get(&system, &url).await;
        assert_eq!(answer.status, 200, "{url}");
        let root = target["root_selector"].as_str().expect("a member");
        let rows = answer.json()[root].clone();
        let rows = rows.as_array().expect("rows");
        assert!(rows.len() >= 3, "{rows:?}");
        for column in target["columns"].as_array().expect("columns") {
            let name = column["selector"].as_str().expect("a member");
            let is_time = column["type"] == "timestamp";
            let is_right =
                |value: &Value| if is_time { value.is_string() } else { value.is_number() };
            assert!(rows.iter().all(|row| is_right(&row[name])), "{name}: {rows:?}");
        }
    }
    system.shutdown().await.expect("stops");
}
