//! The command's own import and export, between running servers: a backup gives equal answers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::server::{self, PROGRAM, Server};

/// Runs a command of the program about a file; its exit code, and what it said.
fn run(command: &[&str], path: &Path) -> (i32, String) {
    let (name, arguments) = command.split_first().unwrap();
    let (code, said) = server::run(Command::new(PROGRAM).arg(name).arg(path).args(arguments));
    (code.unwrap(), said)
}

const READINGS: &str = r#"
{"device_id":"meter","timestamp":"2026-01-11T16:00:00Z","room":"hall","current_w":512,"cumulative_kwh_p":12345678901234567890123456789.123456789}
{"device_id":"meter","timestamp":"2026-01-11T16:01:00Z","room":"hall","current_w":-1.5e-100}
{"device_id":"-plug","timestamp":"2026-01-11T16:01:00Z","current_w":7}
{"device_id":"moved","timestamp":"2026-01-11T15:00:00Z","room":"hall","temperature":20}
{"device_id":"moved","timestamp":"2026-01-11T17:00:00Z","room":"study","temperature":21,"humidity":4}
"#;
const RANGE: &str = "from=2026-01-11T00:00:00Z&to=2026-01-12T00:00:00Z";

/// A home that uses all that a backup has to keep.
fn furnish(server: &Server) {
    server.send("POST", "/readings", READINGS);
    server.wait_for("/devices/moved", |it| it["room"] == "study");
    let learned = server.wait_for("/devices", |it| {
        it["data"].as_array().unwrap().len() == 3 && it.to_string().contains("humidity")
    });
    let exchange = json!({"timestamp": "2026-01-11T16:00:30Z", "old": 812.25, "new": 0.1});
    let verdict = json!({"timestamp": "2026-01-11T16:00:00Z", "verdict": "discard"});
    let settings = json!({
        "unit": "MWh", "modulus": 100_000, "max_w": 12_000.5, "tolerance": 0.002,
        "exchanges": [exchange], "verdicts": [verdict],
        "role": "storage", "net": true, "cycle": "attr_last_reset",
    });
    for (path, patch) in [
        (
            "/devices/meter",
            json!({
                "name": "=Zähler", "room": "cellar", "kind": "power", "tags": ["a b", "-c"],
                "attributes": {"firmware": "1.10", "rooms_served": 3, "ports": ["a", "b"]},
            }),
        ),
        // As from a backup: no verdict changes what a net meter counts.
        (
            "/devices/meter?restore=1",
            json!({"metrics": {"cumulative_kwh_p": settings, "current_w": {"unit": null}}}),
        ),
        ("/devices/-plug", json!({"room": "hall", "behind": "meter"})),
        ("/devices/-plug", json!({"metrics": {"current_w": {"hold": "90s"}}})),
        ("/devices/moved", json!({"metrics": {"temperature": {"kind": "counter"}}})),
        ("/devices/moved", json!({"in_room_means": false})),
        ("/devices/moved", json!({"metrics": {"humidity": {"in_room_means": true}}})),
        (
            "/devices/moved",
            json!({"metrics": {"humidity": {"hourly_until": "2025-10-01T00:30:00.000Z"}}}),
        ),
        // Settings stay when the metric gets a kind or a unit that has no use for them.
        ("/devices/moved", json!({"metrics": {"humidity": {"kind": "counter", "modulus": 5}}})),
        ("/devices/moved", json!({"metrics": {"humidity": {"kind": "gauge"}}})),
        ("/rooms/hall", json!({"name": "Hall"})),
        ("/rooms/cellar", json!({"name": "Cellar", "home": "villa", "outside": false})),
    ] {
        server.send("PATCH", path, &patch.to_string());
    }
    for (suffix, note) in [
        (
            "a",
            json!({"device": "-plug", "text": "=Kettle \"hot\"", "to": "2026-01-11T16:10:00.000Z"}),
        ),
        ("b", json!({"room": "cellar", "text": "Window"})),
        ("c", json!({"home": "villa", "text": "Party"})),
    ] {
        let path = format!("/annotations/2026-01-11T16:00:00.000Z-{suffix}");
        server.send("PUT", &path, &note.to_string());
    }
    let settable = &server.get("/openapi.json")["components"]["schemas"]["DevicePatch"];
    // When a device came into its room is history, not a setting.
    let settings = settable["properties"].as_object().unwrap().keys();
    for name in settings.filter(|name| *name != "room_since") {
        server.wait_for("/devices", |it| set(it, name) != set(&learned, name));
    }
    let of_metric = &settable["properties"]["metrics"]["additionalProperties"]["properties"];
    for name in of_metric.as_object().unwrap().keys() {
        let is_set = |it: &Value| set_of_metrics(it, name) != set_of_metrics(&learned, name);
        assert!(is_set(&server.get("/devices")), "nothing sets {name} of a metric");
    }
}

/// The values of one setting of all devices.
fn set<'a>(devices: &'a Value, name: &str) -> Vec<&'a Value> {
    devices["data"].as_array().unwrap().iter().map(|device| &device[name]).collect()
}

/// The values of one setting of all metrics.
fn set_of_metrics<'a>(devices: &'a Value, name: &str) -> Vec<&'a Value> {
    let metrics = set(devices, "metrics").into_iter().flat_map(|it| it.as_object().unwrap());
    metrics.map(|(_, metric)| &metric[name]).collect()
}

/// Everything that the API answers; not when a person's room was registered, which no edit can set.
fn answers(server: &Server) -> Vec<Value> {
    let mut rooms = server.wait_for("/rooms", |it| it["data"][0]["name"] == "Cellar");
    rooms["data"][0]["first_seen"] = Value::Null;
    let mut answers = vec![rooms, server.get("/devices"), server.get("/annotations")];
    assert_eq!(answers[2]["data"].as_array().unwrap().len(), 3);
    for owner in ["devices/meter", "devices/-plug", "devices/moved", "rooms/hall", "rooms/study"] {
        // Values are compared as text: every digit counts.
        let text = server.send("GET", &format!("/{owner}/readings?{RANGE}&format=ndjson"), "");
        answers.push(json!([owner, text]));
    }
    answers
}

#[test]
fn an_export_into_an_empty_table_gives_equal_answers() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let server = Server::start(&at("old"));
    furnish(&server);
    let before = answers(&server);
    let data = at("old").display().to_string();
    let from_running = run(&["export", "--data-dir", &data], &at("running.ndjson.gz"));
    assert_eq!(from_running.0, 0, "{}", from_running.1);
    assert!(from_running.1.contains("5 readings of 3 devices"), "{}", from_running.1);
    let over_http = run(&["export", "--url", &server.url], &at("http.ndjson"));
    assert_eq!(over_http.0, 0, "{}", over_http.1);
    let csv = run(&["export", "--url", &server.url], &at("readings.csv"));
    assert_eq!(csv.0, 0, "{}", csv.1);
    drop(server);
    let from_stopped = run(&["export", "--data-dir", &data], &at("stopped.ndjson"));
    assert_eq!(from_stopped.0, 0, "{}", from_stopped.1);
    let text = fs::read_to_string(at("stopped.ndjson")).unwrap();
    assert_eq!(text, fs::read_to_string(at("http.ndjson")).unwrap());

    for file in ["running.ndjson.gz", "http.ndjson"] {
        let server = Server::start(&at(&format!("new-{file}")));
        let imported = run(&["import", "--url", &server.url], &at(file));
        assert_eq!(imported.0, 0, "{file}: {}", imported.1);
        assert!(
            imported.1.contains("rolled up: series and energy have all of it"),
            "{}",
            imported.1
        );
        // Lists come from a cache that is a second old at the most.
        server.wait_for("/devices", |it| it["data"].as_array().unwrap().len() == 3);
        server.wait_for("/rooms", |it| it["data"].as_array().unwrap().len() == 3);
        assert_eq!(answers(&server), before, "{file}");
    }
    let server = Server::start(&at("new-csv"));
    let imported = run(&["import", "--url", &server.url], &at("readings.csv"));
    assert_eq!(imported.0, 0, "{}", imported.1);
    let range = format!("/devices/-plug/readings?{RANGE}");
    assert_eq!(server.get(&range)["data"][0]["current_w"], 7, "an escaped id is the id");
}

#[test]
fn an_export_may_be_of_a_part_and_fails_without_leaving_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let server = Server::start(&at("data"));
    furnish(&server);
    let export = |arguments: &[&str]| {
        let arguments = [&["export", "--url", &server.url], arguments].concat();
        let (code, said) = run(&arguments, &at("part.ndjson"));
        let text = fs::read_to_string(at("part.ndjson")).unwrap_or_default();
        drop(fs::remove_file(at("part.ndjson")));
        (code, said, text)
    };
    let readings =
        |text: &str| text.lines().filter(|line| line.starts_with(r#"{"device_id""#)).count();
    let (code, said, text) = export(&["--device", "meter", "--device", "-plug"]);
    assert_eq!((code, readings(&text)), (0, 3), "{said}");
    assert_eq!(text.matches("{\"device\":").count(), 2, "{text}");
    assert_eq!(text.matches("{\"annotation\":").count(), 1, "{text}");
    let (_, _, text) = export(&["--room", "hall", "--to", "2026-01-11T16:00:00Z"]);
    assert_eq!(readings(&text), 1, "{text}");
    assert!(text.contains(r#"{"room":{"room_id":"hall""#), "{text}");
    let (_, _, text) = export(&["--from", "2026-01-11T17:00:00Z"]);
    assert_eq!(readings(&text), 1, "{text}");

    for (arguments, expected, why) in [
        (["--device", "nobody"], 1, "there is no device \"nobody\""),
        (["--room", "nowhere"], 1, "there is no room \"nowhere\""),
        (["--from", "soon"], 2, "'--from <TIMESTAMP>': \"soon\" is not a timestamp"),
    ] {
        let (code, said, text) = export(&arguments);
        assert_eq!((code, text.as_str()), (expected, ""), "{said}");
        assert!(said.contains(why), "{said}");
        let left = fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(left, 1, "nothing but the data");
    }
    let (code, said) = run(&["export", "--data-dir", "no/such"], &at("part.ndjson"));
    assert!(code == 1 && said.contains("there is no data in no/such"), "{said}");
    let (code, said) = run(&["export"], &at("part.json"));
    assert!(code == 1 && said.contains(".ndjson"), "{said}");
}

#[test]
fn a_narrow_file_keeps_every_value_whatever_the_batch() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("narrow.csv");
    // One metric a line, first all of one, then all of the next; an older value comes before it.
    let mut rows = vec!["when,id,a,b,c".to_owned()];
    for cells in ["1,,", "2,,", ",3,", ",4,", ",,5", ",,6"] {
        let time = |n| format!("2026-01-11T{:02}:{:02}:00Z", n / 60, n % 60);
        rows.extend((0..100).map(|n| format!("{},d,{cells}", time(n))));
    }
    let text = rows.join("\n");
    fs::write(&file, text).unwrap();
    let server = Server::start(&directory.path().join("data"));
    let options =
        ["import", "--url", &server.url, "--batch", "10", "--timestamp", "when", "--device", "id"];
    let (code, said) = run(&options, &file);
    assert!(code == 0 && said.contains("100 readings stored"), "{said}");
    let all = server.get(&format!("/devices/d/readings?{RANGE}"));
    let rows = all["data"].as_array().unwrap();
    assert_eq!(rows.len(), 100);
    assert!(rows.iter().all(|row| row["a"] == 2 && row["b"] == 4 && row["c"] == 6), "{all}");
}

/// Compares the counts and sums of each metric of a device by day, as the server answers at once, with those of
/// NDJSON lines.
fn check_sums(server: &Server, device: &str, lines: &str) {
    let mut expected: BTreeMap<(String, String), (u64, i64)> = BTreeMap::new();
    let mut latest: BTreeMap<(String, String), i64> = BTreeMap::new();
    for line in lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        for (name, value) in line.as_object().unwrap() {
            if let Some(value) = value.as_i64()
                && line["device_id"] == device
            {
                latest
                    .insert((line["timestamp"].as_str().unwrap().to_owned(), name.clone()), value);
            }
        }
    }
    for ((at, name), value) in latest {
        let (count, sum) = expected.entry((at[..10].to_owned(), name)).or_default();
        (*count, *sum) = (*count + 1, *sum + value);
    }
    let path = format!("/devices/{device}/series?{DAYS}&every=1d&tz=UTC&fn=count,sum");
    let answer = server.get(&path);
    let mut found = BTreeMap::new();
    for row in answer["data"].as_array().unwrap() {
        for (name, values) in row.as_object().unwrap() {
            if let Some(count) = values["count"].as_u64().filter(|count| *count > 0) {
                let day = row["timestamp"].as_str().unwrap()[..10].to_owned();
                found.insert((day, name.clone()), (count, values["sum"].as_i64().unwrap()));
            }
        }
    }
    assert_eq!(found, expected, "{answer}");
    let shown = answer["source"].as_str().unwrap();
    assert!(!shown.contains("readings"), "{shown}: it is about rollups");
}

const DAYS: &str = "from=2026-01-11T00:00:00Z&to=2026-01-14T00:00:00Z";

#[test]
fn an_import_waits_until_all_of_it_is_rolled_up_whatever_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let time =
        |n: usize| format!("2026-01-{:02}T{:02}:{:02}:00Z", 11 + n / 144, n / 6 % 24, n % 6 * 10);
    let line = |device: &str, n: usize, metrics: &[(&str, usize)]| {
        let mut line = json!({"device_id": device, "timestamp": time(n)});
        metrics.iter().for_each(|(name, value)| line[*name] = json!(value));
        format!("{line}\n")
    };
    // A metric a minute, one a day, one once; and one that is always zero, beside a counter that stands still.
    let sparse = |n: usize| match n {
        200 => line("sparse", n, &[("once", 7)]),
        _ if n % 144 == 100 => line("sparse", n, &[("often", n), ("daily", 5)]),
        _ => line("sparse", n, &[("often", n)]),
    };
    let zero = |n: usize| line("zero", n, &[("current_w", 0), ("cumulative_kwh_p", 5)]);
    let first: String = (0..432).map(|n| sparse(n) + &zero(n)).collect();
    // Other metrics of the same readings, few and zero; and single ones of another device.
    let merged: String = (0..432)
        .step_by(90)
        .map(|n| line("sparse", n, &[("late", 0)]) + &line("alone", n, &[("t", n)]))
        .collect();
    let server = Server::start(&at("first"));
    let import = |server: &Server, file: &str, more: &[&str]| {
        let (code, said) = run(&[&["import", "--url", &server.url], more].concat(), &at(file));
        assert!(
            code == 0 && said.contains("rolled up: series and energy have all of it"),
            "{said}"
        );
    };
    fs::write(at("first.ndjson"), &first).unwrap();
    import(&server, "first.ndjson", &[]);
    check_sums(&server, "sparse", &first);
    check_sums(&server, "zero", &first);
    let energy = server.get(&format!("/devices/zero/energy?{DAYS}&every=1d&tz=UTC"));
    let days = energy["data"].as_array().unwrap().iter().filter(|it| it["kwh"] == 0).count();
    assert_eq!((&energy["total_kwh"], days), (&json!(0), 3), "{energy}");
    fs::write(at("merged.ndjson"), &merged).unwrap();
    import(&server, "merged.ndjson", &["--merge"]);
    let all = first + &merged;
    ["sparse", "zero", "alone"].iter().for_each(|device| check_sums(&server, device, &all));

    let (code, said) = run(&["export", "--url", &server.url], &at("backup.ndjson.gz"));
    assert_eq!(code, 0, "{said}");
    drop(server);
    let server = Server::start(&at("second"));
    import(&server, "backup.ndjson.gz", &[]);
    ["sparse", "zero", "alone"].iter().for_each(|device| check_sums(&server, device, &all));
}
