//! InfluxQL against what the real influxd answered: the files under `tests/influxql`, with and without rollups.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use domain::given::number;
use domain::{Decimal, Device, DeviceId, MetricName, RoomId, SourceField};

use super::*;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/influxql")
}

const LAST_HUMIDITY: &str = r#"{"results": [{"statement_id": 0, "series": [{
    "name": "humidity", "columns": ["time", "last"], "values": [[1768147500000, 46]]
}]}]}"#;

/// Where ours differs on purpose: the query, and what ours answers instead.
const DIFFERENT: [(&str, &str); 4] = [
    (
        "SELECT value FROM temperature WHERE device =~ /[/",
        r#"{"error": "error parsing query: error parsing regexp: found unclosed character class: `[` at line 1, char 46"}"#,
    ),
    // There is one retention policy, by whatever name.
    ("SELECT last(value) FROM nope.humidity", LAST_HUMIDITY),
    ("SELECT last(value) FROM humidity", LAST_HUMIDITY),
    // The recording server keeps all points in one shard.
    (
        "SHOW RETENTION POLICIES ON home",
        r#"{"results": [{"statement_id": 0, "series": [{
            "columns": ["name", "duration", "shardGroupDuration", "replicaN", "default"],
            "values": [["autogen", "0s", "168h0m0s", 1, true]]
        }]}]}"#,
    ),
];

/// The points of the file, as devices with their readings.
fn points() -> Vec<(Device, Vec<Reading>)> {
    type Point = (Option<RoomId>, BTreeMap<MetricName, Decimal>);
    let text = fs::read_to_string(folder().join("points.txt")).expect("a file");
    let mut readings: BTreeMap<(DeviceId, i64), Point> = BTreeMap::new();
    let mut taught: BTreeMap<DeviceId, domain::Source> = BTreeMap::new();
    for line in text.lines() {
        let [key, fields, time] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let mut key = key.split(',');
        let measurement = key.next().expect("a measurement");
        let tags: BTreeMap<String, String> = key
            .map(|tag| tag.split_once('=').expect("a tag"))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let is_native = tags.contains_key("device") && fields.starts_with("value=");
        let id = if is_native {
            tags["device"].clone()
        } else {
            tags.values().map(String::as_str).collect::<Vec<_>>().join(":")
        };
        let id = given::device(&id);
        let room = tags.get("room").map(|room| room.parse().expect("an id"));
        let at: i64 = time.parse().expect("a time");
        let reading = readings.entry((id.clone(), at)).or_insert((room, BTreeMap::new()));
        for field in fields.split(',') {
            let (name, value) = field.split_once('=').expect("a field");
            let metric = if is_native { measurement } else { name };
            let metric: MetricName = given::metric(metric);
            if !is_native {
                let source = taught.entry(id.clone()).or_default();
                source.tags.clone_from(&tags);
                let (measurement, field) = (measurement.to_owned(), name.to_owned());
                source.fields.insert(metric.clone(), SourceField { measurement, field });
            }
            reading.1.insert(metric, number(value));
        }
    }
    let mut devices: BTreeMap<DeviceId, Vec<Reading>> = BTreeMap::new();
    for ((id, at), (room, metrics)) in readings {
        let at = Timestamp::from_millis(at).expect("a time");
        let reading = Reading::new(id.clone(), at, room, metrics).expect("a reading");
        devices.entry(id).or_default().push(reading);
    }
    let with_device = |(id, readings): (DeviceId, Vec<Reading>)| {
        let source = taught.remove(&id).unwrap_or_default();
        let device = given::device_of(&readings).changed(|it| it.source = source);
        (device.expect("a device"), readings)
    };
    devices.into_iter().map(with_device).collect()
}

/// The home of the points, rolled up to a timestamp where one is given.
async fn home(rolled_up: Option<(&str, &str)>) -> Bench {
    let bench = Bench::empty();
    bench.clock.set(given::at("2026-01-20T00:00:00Z"));
    for (device, readings) in points() {
        bench.store.put_readings(&readings, None, &invocation()).await;
        bench.note_rooms(&readings).await;
        bench.store.register_device(&device, &invocation()).await.expect("memory");
        if let Some(room) = device.place().room() {
            given::register_room(&bench.store, room.as_str(), readings[0].at).await;
        }
    }
    if let Some((zone, to)) = rolled_up {
        bench.roll_up(given::zone(zone), given::at(to)).await;
    }
    bench
}

fn encoded(parameters: &Value) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    for (name, value) in parameters.as_object().expect("parameters") {
        form.append_pair(name, value.as_str().expect("a text"));
    }
    form.finish()
}

/// Whether two answers are the same but for the last digits of numbers.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().expect("a number"), b.as_f64().expect("a number"));
            (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_same(a, b)))
        }
        _ => a == b,
    }
}

/// An answer without the message that the home's rollups, which end days before the clock's time, are hours behind.
fn without_lag(mut answer: Value) -> Value {
    let results = answer.get_mut("results").and_then(Value::as_array_mut);
    for result in results.into_iter().flatten() {
        let text = result["messages"][0]["text"].as_str().unwrap_or_default();
        if text.starts_with("rollups are hours behind") {
            result.as_object_mut().expect("a result").remove("messages");
        }
    }
    answer
}

async fn compare(bench: &Bench, what: &str) {
    let mut files: Vec<PathBuf> = fs::read_dir(folder().join("answers"))
        .expect("a folder")
        .map(|file| file.expect("a file").path())
        .collect();
    files.sort();
    assert!(files.len() >= 12, "{files:?}");
    let mut wrong = Vec::new();
    for file in files {
        let cases: Value =
            serde_json::from_str(&fs::read_to_string(&file).expect("a file")).expect("JSON");
        for case in cases.as_array().expect("cases") {
            let answer = bench.get(&format!("/query?{}", encoded(&case["parameters"]))).await;
            let query = case["parameters"]["q"].as_str().expect("a query");
            let expected = DIFFERENT.iter().find(|(it, _)| *it == query).map_or_else(
                || case["answer"].clone(),
                |(_, answer)| serde_json::from_str(answer).expect("JSON"),
            );
            if json!(answer.status) != case["status"]
                || !is_same(&without_lag(answer.json()), &expected)
            {
                let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
                wrong.push(format!(
                    "{name}: {query}\n   ours  {} {}   real  {} {expected}\n",
                    answer.status, answer.text, case["status"]
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{what}: {} differ\n{}", wrong.len(), wrong.join(""));
}

#[tokio::test]
async fn answers_are_those_of_the_real_server() {
    compare(&home(None).await, "readings").await;
}

#[tokio::test]
async fn answers_from_rollups_are_those_of_the_real_server() {
    for (zone, to) in [
        ("UTC", "2026-01-15T00:00:00Z"),
        ("Asia/Tokyo", "2026-01-15T00:00:00Z"),
        ("Europe/Berlin", "2026-01-11T17:15:00Z"),
    ] {
        compare(&home(Some((zone, to))).await, &format!("{zone} to {to}")).await;
    }
}

async fn asked(bench: &Bench, parameters: &[(&str, &str)]) -> Answer {
    let parameters: serde_json::Map<String, Value> =
        parameters.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    bench.get(&format!("/query?{}", encoded(&Value::Object(parameters)))).await
}

/// Times at the edges of what is representable, in every place where a query may have them.
#[tokio::test]
async fn windows_far_away_are_answered_or_refused() {
    let bench = home(Some(("UTC", "2026-01-15T00:00:00Z"))).await;
    let times = [
        "9223372036854775806",
        "-9223372036854775808",
        "0",
        "7200000000s",
        "9200000000s",
        "'2262-04-11T00:00:00Z'",
        "'1678-01-01T00:00:00Z'",
        "'9999-12-31T23:59:59Z'",
        "now() + 36500d",
    ];
    for (from, to) in times.iter().flat_map(|from| times.iter().map(move |to| (from, to))) {
        for rest in [
            "GROUP BY time(36500d, -36499d)",
            "GROUP BY time(1w) fill(linear) tz('Europe/Berlin')",
            "GROUP BY time(5h, 3h) fill(previous) ORDER BY time DESC tz('Pacific/Apia')",
            "GROUP BY device ORDER BY time DESC",
        ] {
            let range = format!("time >= {from} AND time <= {to}");
            for columns in
                ["mean(value)", "elapsed(last(value)), integral(value, 1ns)", "top(value, 2)"]
            {
                let query = format!("SELECT {columns} FROM temperature WHERE {range} {rest}");
                let around = format!(
                    "SELECT sum(mean) FROM (SELECT mean(value) FROM temperature) WHERE {range} {rest}"
                );
                for query in [query, around] {
                    let answer = asked(&bench, &[("db", "home"), ("q", &query)]).await;
                    assert_eq!(answer.status, 200, "{query}: {}", answer.text);
                }
            }
        }
    }
}
