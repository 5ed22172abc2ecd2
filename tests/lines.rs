//! Line protocol through the whole system over HTTP: what the gateway answers by itself, what is stored and what
//! it costs. Runs no real client; tests/clients does.

use std::io::Write as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::Scope;
use dynamodb::DynamoStore;
use flate2::Compression;
use flate2::write::GzEncoder;
use local::{Options, System};
use runtime::clock::Deadline;
use serde_json::{Value, json};
use table::layout::Layout;
use table::{AddToken as _, Invocation, given};

use crate::client::{Answer, get, post, send, send_with, system};
use crate::given::percent_encoded;

fn gzip(text: &str) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(text.as_bytes()).expect("memory");
    gzip.finish().expect("memory")
}

fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

/// Ten lines of one host a minute, as Telegraf sends them.
fn telegraf(minutes: i64) -> String {
    let line = |minute: i64, n: i64| {
        let at = 1_768_147_200 + 60 * minute;
        format!("cpu,cpu=cpu{n},host=pi usage_idle=9{n}.5,usage_user=1.25,usage_system=0.5 {at}\n")
    };
    (0..minutes).flat_map(|minute| (0..10).map(move |n| line(minute, n))).collect()
}

/// The series of a query of InfluxQL, as the real influxd writes them.
async fn series_of(system: &System, query: &str) -> Value {
    let query = percent_encoded(query);
    let answer = get(system, &format!("/query?db=home&epoch=ms&q={query}")).await.json();
    answer["results"][0].get("series").cloned().unwrap_or_else(|| json!([]))
}

/// A series with tags and one row.
fn one_row(tags: &Value, column: &str, at: i64, value: i64) -> Value {
    json!({"name": "air", "tags": tags, "columns": ["time", column], "values": [[at, value]]})
}

/// The answers are those of InfluxDB 1.6.7 to the same lines.
#[tokio::test]
async fn a_room_has_the_text_of_its_lines_whatever_its_id_is_and_before_and_after_a_move() {
    const START: i64 = 1_768_147_200;
    let system = system().await;
    let moves = [
        ("a", r"Living\ Room", r"Bed\ Room"),
        ("b", "up/attic", "up/hall"),
        ("c", "a:b", "hall"),
        ("d", r"Living\ Room", r"Living\ Room"),
        ("e", "hall", "Küche"),
        ("für", r"Living\ Room", r"Bed\ Room"),
    ];
    for (minute, is_moved) in [(0, false), (1, true)] {
        let line = |(n, (host, first, second)): (i64, (&str, &str, &str))| {
            let (room, at) = (if is_moved { second } else { first }, START + 60 * minute + n);
            format!("air,host={host},room={room} t={} {at}\n", minute + 1)
        };
        let lines: String = (0..).zip(moves).map(line).collect();
        let path = "/write?precision=s&device_tags=host";
        let written = send(&system, "POST", path, lines.as_bytes()).await;
        assert_eq!(written.status, 204, "{}", text(&written));
        system.settle().await.expect("delivered");
    }

    let of_room = |host: &str, room: &str, count| {
        one_row(&json!({"host": host, "room": room}), "count", 0, count)
    };
    let by_room = |room: &str, count| one_row(&json!({"room": room}), "count", 0, count);
    for (query, expected) in [
        (
            "SELECT count(t) FROM air GROUP BY host, room",
            json!([
                of_room("a", "Bed Room", 1),
                of_room("a", "Living Room", 1),
                of_room("b", "up/attic", 1),
                of_room("b", "up/hall", 1),
                of_room("c", "a:b", 1),
                of_room("c", "hall", 1),
                of_room("d", "Living Room", 2),
                of_room("e", "Küche", 1),
                of_room("e", "hall", 1),
                of_room("für", "Bed Room", 1),
                of_room("für", "Living Room", 1),
            ]),
        ),
        (
            "SELECT t, room FROM air WHERE host = 'b' OR host = 'e'",
            json!([{"name": "air", "columns": ["time", "t", "room"], "values": [
                [START * 1_000 + 1_000, 1, "up/attic"],
                [START * 1_000 + 4_000, 1, "hall"],
                [START * 1_000 + 61_000, 2, "up/hall"],
                [START * 1_000 + 64_000, 2, "Küche"],
            ]}]),
        ),
        (
            "SELECT count(t) FROM air WHERE room = 'Bed Room'",
            json!([{"name": "air", "columns": ["time", "count"], "values": [[0, 2]]}]),
        ),
        (
            "SELECT count(t) FROM air WHERE room =~ /Room$/ GROUP BY room",
            json!([by_room("Bed Room", 2), by_room("Living Room", 4)]),
        ),
        (
            "SELECT max(t) FROM air WHERE room = 'up/hall' OR room = 'Küche' GROUP BY room",
            json!([
                one_row(&json!({"room": "Küche"}), "max", START * 1_000 + 64_000, 2),
                one_row(&json!({"room": "up/hall"}), "max", START * 1_000 + 61_000, 2),
            ]),
        ),
        ("SELECT count(t) FROM air WHERE room = 'Living_Room'", json!([])),
    ] {
        assert_eq!(series_of(&system, query).await, expected, "{query}");
    }
    system.shutdown().await.expect("stops");
}

#[tokio::test]
async fn a_batch_of_telegraf_is_stored_registered_and_found_under_its_tags() {
    let system = system().await;
    let body = gzip(&telegraf(3));
    let headers = "Content-Encoding: gzip\r\n";
    let path = "/influx/api/v2/write?bucket=home&precision=s";
    for _ in 0..2 {
        let answer = send_with(&system, "POST", path, headers, &body).await;
        assert_eq!((answer.status, text(&answer)), (204, String::new()));
        system.settle().await.expect("delivered");
        let devices = get(&system, "/devices").await.json();
        assert_eq!(devices["data"].as_array().map(Vec::len), Some(10));
        assert_eq!(devices["data"][0]["device_id"], "pi:cpu0::cpu");
        let range = "from=2026-01-11T16:00:00Z&to=2026-01-11T17:00:00Z";
        let readings =
            get(&system, &format!("/devices/pi:cpu3::cpu/readings?{range}")).await.json();
        assert_eq!(readings["data"].as_array().map(Vec::len), Some(3));
        assert_eq!(readings["data"][0]["usage_idle"], json!(93.5));
    }
    assert!(system.dead_letters().is_empty());
    system.shutdown().await.expect("stops");
}

#[tokio::test]
async fn clients_find_what_they_ask_for_before_they_write() {
    let system = system().await;
    for prefix in ["", "/influx"] {
        for (method, path, status, part) in [
            ("GET", "/ping", 204, ""),
            ("HEAD", "/ping", 204, ""),
            ("GET", "/ping?verbose=true", 200, "{\"version\":\"1.8.10\"}"),
            ("GET", "/ping?verbose=0", 204, ""),
            ("GET", "/health", 200, "\"status\":\"pass\""),
            ("HEAD", "/health", 200, ""),
            ("GET", "/ready", 200, "\"status\":\"ready\""),
            ("GET", "/api/v2/buckets?name=sensors", 200, "\"name\":\"sensors\""),
            ("GET", "/api/v2/orgs", 200, "\"orgs\":[{"),
            ("POST", "/api/v2/query?org=x", 400, "Flux is not supported"),
            ("GET", "/write", 405, "\"error\":\"There is no GET"),
            ("GET", "/api/v2/write", 405, "\"code\":\"method not allowed\""),
            ("GET", "/api/v3/write_lp", 405, "{\"error\":"),
            ("POST", "/api/v3/query_sql", 404, "Flight SQL are not supported; ask /query"),
            ("GET", "/api/v3/query_influxql?q=x", 404, "ask /query in InfluxQL"),
            ("POST", "/api/v2/signin", 404, "\"code\":\"not found\""),
        ] {
            let answer = send(&system, method, &format!("{prefix}{path}"), b"").await;
            assert_eq!(answer.status, status, "{method} {prefix}{path}: {}", text(&answer));
            assert!(text(&answer).contains(part), "{path}: {}", text(&answer));
            assert_eq!(answer.header("x-influxdb-version"), Some("1.8.10"), "{path}");
            assert_eq!(answer.header("x-influxdb-build"), Some("OSS"), "{path}");
        }
    }
    system.shutdown().await.expect("stops");
}

#[tokio::test]
async fn what_the_gateway_refuses_by_itself_it_refuses_in_the_version_s_words() {
    let options = Options { auth: true, ..Options::default() };
    let system = System::start(options).await.expect("it starts");
    let store = DynamoStore::connect(system.store_config(), Layout::default());
    let invocation = Invocation::until(Deadline::after(Duration::from_secs(10)));
    store.add_token(&given::token("any", Scope::Admin), &invocation).await.expect("kept");
    let large = vec![b'x'; api::MAX_BODY + 1];
    for (path, unauthorized, too_large) in [
        ("/write", "{\"error\":\"authorization failed\"}\n", "{\"error\":\"The body is longer"),
        (
            "/api/v2/write",
            "{\"code\":\"unauthorized\",\"message\":\"unauthorized access\"}\n",
            "{\"code\":\"request too large\"",
        ),
        (
            "/api/v3/write_lp",
            "{\"error\":\"the request was not authenticated\"}\n",
            "{\"error\":\"The body is longer",
        ),
    ] {
        let answer = send(&system, "POST", path, b"m value=1").await;
        assert_eq!((answer.status, text(&answer).as_str()), (401, unauthorized));
        assert_eq!(answer.header("www-authenticate"), None);
        let answer = send_with(
            &system,
            "POST",
            path,
            &format!("Authorization: Token {}\r\n", given::secret("any")),
            &large,
        )
        .await;
        assert_eq!(answer.status, 413, "{}", text(&answer));
        assert!(text(&answer).starts_with(too_large), "{}", text(&answer));
        // The secret behind the last colon, as version 1 sends it.
        let basic = STANDARD.encode(format!("u:{}", given::secret("any")));
        let basic = format!("Authorization: Basic {basic}\r\n");
        assert_eq!(send_with(&system, "POST", path, &basic, b"m value=1").await.status, 204);
    }
    system.shutdown().await.expect("stops");
    let open = System::start(Options::default()).await.expect("it starts");
    let origin = "Origin: https://example.org\r\n";
    let answer = send_with(&open, "POST", "/api/v2/write", origin, b"m value=1").await;
    assert_eq!((answer.status, answer.header("x-platform-error-code")), (403, Some("forbidden")));
    open.shutdown().await.expect("stops");
}

/// A line costs what a reading costs: one write unit, once its device is known.
#[tokio::test]
async fn a_line_costs_as_much_as_a_reading() {
    let system = system().await;
    let lines = telegraf(20);
    let readings: Vec<_> = (0..200)
        .map(|n| {
            let at = 1_768_147_200 + 60 * (n / 10);
            json!({"device_id": format!("native{}", n % 10), "timestamp": at, "usage_idle": 90.5 + f64::from(n % 10), "usage_user": 1.25, "usage_system": 0.5})
        })
        .collect();
    let mut units = Vec::new();
    for _ in 0..2 {
        let written = send(&system, "POST", "/write?precision=s", lines.as_bytes()).await;
        assert_eq!(written.status, 204, "{}", text(&written));
        let posted = post(&system, &json!(readings)).await;
        assert_eq!(posted.status, 201);
        system.settle().await.expect("delivered");
        let of = |answer: &Answer| -> f64 {
            answer.header("x-consumed-write-units").and_then(|it| it.parse().ok()).expect("units")
        };
        units.push((of(&written), of(&posted)));
    }
    println!("write units of 200 lines and of 200 readings: {units:?}");
    let (lines, readings) = units[1];
    assert!(lines <= readings * 1.01 && lines <= 200.0 * 1.01, "{units:?}");
    system.shutdown().await.expect("stops");
}
