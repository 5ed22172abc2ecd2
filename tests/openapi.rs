//! The OpenAPI document: valid by itself, complete against the endpoints, true of real answers.

use std::collections::BTreeSet;
use std::time::Duration;

use api::MAX_BODY;
use api::endpoints::{ENDPOINTS, Endpoint, Operation, Reply};
use domain::Scope;
use dynamodb::DynamoStore;
use local::System;
use runtime::clock::Deadline;
use serde_json::{Value, json};
use table::layout::Layout;
use table::{AddToken as _, Invocation, given};

use crate::client::{get, post, send, send_with, system};
use crate::openapi_members::{Members, strict};

/// The places of a document at which something stands for something else.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                found.insert(reference.clone());
            }
            members.values().for_each(|value| references(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

/// The endpoints but InfluxDB's, which its own documentation describes.
fn own_endpoints() -> impl Iterator<Item = &'static Endpoint> {
    ENDPOINTS.iter().filter(|endpoint| endpoint.dialect().is_none())
}

#[tokio::test]
async fn the_document_is_valid_and_lists_every_endpoint() {
    let system = system().await;
    let document = get(&system, "/openapi.json").await.json();
    oas3::from_json(document.to_string()).expect("OpenAPI 3.1");

    let mut found = BTreeSet::new();
    references(&document, &mut found);
    for reference in found {
        let pointer = reference.strip_prefix('#').expect("local");
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    for endpoint in own_endpoints() {
        let operation = &document["paths"][endpoint.path][endpoint.method.to_lowercase()];
        assert_eq!(operation["summary"], endpoint.summary, "{} {}", endpoint.method, endpoint.path);
        let named =
            operation["parameters"].as_array().expect("a list").iter().any(|p| p["in"] == "path");
        assert_eq!(named, endpoint.has_id(), "{}", endpoint.path);
    }
    let operations: usize = document["paths"]
        .as_object()
        .expect("paths")
        .values()
        .map(|path| path.as_object().expect("methods").len())
        .sum();
    assert_eq!(operations, own_endpoints().count(), "nothing but the endpoints");
    system.shutdown().await.expect("stops");
}

/// A parameter that is documented is known to its endpoint, and one that is not is refused.
#[tokio::test]
async fn the_parameters_are_those_that_the_code_takes() {
    let system = system().await;
    let reading = json!({"device_id": "x", "room": "x", "t": 1});
    assert_eq!(post(&system, &reading).await.status, 201);
    assert_eq!(send(&system, "PATCH", "/rooms/x", br#"{"home": "x"}"#).await.status, 200);
    let rule = r#"{"name": "x", "device": "x", "metric": "t", "above": 5}"#;
    assert_eq!(send(&system, "PUT", "/alerts/x", rule.as_bytes()).await.status, 200);
    add_writer(&system).await;
    let document = get(&system, "/openapi.json").await.json();
    let names: BTreeSet<&str> =
        ENDPOINTS.iter().flat_map(|endpoint| endpoint.parameters).map(|it| it.name).collect();
    for endpoint in own_endpoints() {
        let operation = &document["paths"][endpoint.path][endpoint.method.to_lowercase()];
        let parameters = operation["parameters"].as_array().expect("a list");
        let documented: BTreeSet<&str> = parameters
            .iter()
            // An object's members are parameters of their own.
            .filter(|parameter| parameter["in"] == "query" && parameter["explode"] != true)
            .map(|parameter| parameter["name"].as_str().expect("a name"))
            .collect();
        // Where metrics are parameters, any further name is a metric's.
        let unknown = (!endpoint.takes_conditions()).then_some("unknown");
        for name in names.iter().copied().chain(unknown) {
            // A reading in an address needs a token on this open system, too.
            let token = format!("&p={}", given::secret("writer"));
            let token = if endpoint.takes_values() { &token } else { "" };
            let url = format!("{}?{name}=%20{token}", endpoint.path.replace("{id}", "x"));
            let body = if endpoint.method == "POST" { reading.to_string() } else { String::new() };
            let answer = send(&system, endpoint.method, &url, body.as_bytes()).await;
            let text = String::from_utf8(answer.body).expect("UTF-8");
            let refused =
                answer.status == 400 && text.contains(&format!("{name}: unknown parameter"));
            // The page's script reads its address itself.
            let takes_any = endpoint.operation == Operation::WebPage;
            let expected = !takes_any && !documented.contains(name);
            assert_eq!(refused, expected, "{} {url}: {text}", endpoint.method);
        }
        for parameter in parameters.iter().filter(|parameter| parameter["name"] == "limit") {
            let most = parameter["schema"]["maximum"].as_u64().expect("a number");
            for (limit, status) in [(most, 200), (most + 1, 400), (0, 400)] {
                let url = format!("{}?limit={limit}", endpoint.path.replace("{id}", "x"));
                assert_eq!(get(&system, &url).await.status, status, "{url}");
            }
        }
    }
    system.shutdown().await.expect("stops");
}

/// A token for the readings of `x`.
async fn add_writer(system: &System) {
    let scope = Scope::Write(["x".parse().expect("an id")].into());
    let token = given::token("writer", scope);
    let store = DynamoStore::connect(system.store_config(), Layout::default());
    let invocation = Invocation::until(Deadline::after(Duration::from_secs(10)));
    store.add_token(&token, &invocation).await.expect("kept");
}

#[tokio::test]
async fn failures_of_http_itself_are_in_the_document() {
    let system = system().await;
    let document = get(&system, "/openapi.json").await.json();
    let large = vec![b' '; MAX_BODY + 1];
    for (method, path, headers, body, status) in [
        ("DELETE", "/devices", "", &b""[..], 405),
        ("POST", "/readings", "", &large, 413),
        ("POST", "/readings", "Content-Encoding: br\r\n", b"{}", 415),
        ("PATCH", "/rooms/{id}", "Content-Encoding: br\r\n", b"{}", 415),
        ("PATCH", "/rooms/{id}", "", &large, 413),
        ("GET", "/rooms/{id}", "", b"", 404),
    ] {
        let url = path.replace("{id}", "x");
        let answer = send_with(&system, method, &url, headers, body).await;
        assert_eq!(answer.status, status, "{method} {url}");
        let operations = document["paths"][path].as_object().expect("methods");
        let mut concerned = operations
            .iter()
            .filter(|(known, _)| status == 405 || **known == method.to_lowercase());
        let told = concerned.all(|(_, it)| it["responses"][status.to_string()].is_object());
        assert!(told, "{method} {path}: {status} is not in the document");
    }
    let answer = send(&system, "HEAD", "/openapi.json", b"").await;
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    let length = answer.header("content-length").and_then(|length| length.parse().ok());
    assert_eq!(length, Some(get(&system, "/openapi.json").await.body.len()));
    system.shutdown().await.expect("stops");
}

/// A meter whose counter falls, a plug, a freezer that is warm now and a thermometer.
fn cellar() -> Value {
    let at = |minute: i64| format!("2026-01-11T16:{minute:02}:00Z");
    let of = |(minute, kwh): (i64, f64)| {
        let at = at(minute);
        [
            json!({"device_id": "m", "room": "cellar", "timestamp": at, "cumulative_kwh_p": kwh, "cumulative_kwh_n": minute + 1}),
            json!({"device_id": "p", "room": "cellar", "timestamp": at, "current_w": 100}),
            json!({"device_id": "f", "room": "cellar", "timestamp": at, "temperature": -18}),
            json!({"device_id": "t", "room": "cellar", "timestamp": at, "temperature": 20 + minute}),
        ]
    };
    let past = [(0, 100.0), (10, 100.5), (20, 0.1), (30, 0.4)].into_iter().flat_map(of);
    let now =
        [json!({"device_id": "f", "temperature": -5}), json!({"device_id": "p", "current_w": 5})];
    past.chain(now).collect()
}

/// The members of answers that these requests need not have: some take a day, a damage or an index, and what rollups
/// lack is gone after some seconds. The tests of `functions/query` and `functions/ingest` ask for them.
const SENT_ELSEWHERE: [&str; 64] = [
    "Acknowledged.acknowledged",
    "Acknowledged.since",
    "Alert.clear",
    "Alert.room",
    "AlertPreview.rollups_lack",
    "AlertPreview.subjects.by_extremes.from",
    "AlertPreview.subjects.by_extremes.to",
    "AlertPreview.subjects.episodes.value",
    "AlertState.clear",
    "AlertState.count",
    "AlertState.last",
    "AlertState.silent",
    "Alerts.damaged",
    "Channel.failing_since",
    "Channel.next",
    "Conditions.rollups_lack",
    "Conditions.rooms_lack",
    "ConditionsExplanation.plans.ranges",
    "ConditionsSchema.metrics",
    "ConditionsSchema.ready",
    "ConditionsSchema.version",
    "Deletion.left_at_least",
    "Device.metrics.cycle",
    "Device.metrics.hourly_until",
    "Device.metrics.net",
    "Energy.data.estimated",
    "Energy.rest",
    "Energy.rest.kwh",
    "Energy.rest.timestamp",
    "Energy.rest_kwh",
    "Energy.rollups_lack",
    "Energy.rooms_lack",
    "Energy.unsure",
    "EnergyDevice.role",
    "Event.amount_if_wrapped",
    "Event.until",
    "Event.verdict",
    "Events.rollups_lack",
    "Health.rollups.backlog",
    "Health.rollups.backlog.at",
    "Health.rollups.backlog.since",
    "Health.rollups.queue",
    "Health.rollups.queue.at",
    "Health.rollups.queue.messages",
    "LeftOut.behind",
    "LeftOut.during",
    "LeftOut.during.from",
    "LeftOut.during.to",
    "Plan.driver",
    "Receipt.accepted_before",
    "Receipt.more_rejected",
    "RollupsLack.changes_since",
    "RollupsLack.outdated",
    "RollupsLack.quarters",
    "SchemaMetric.bits",
    "SchemaMetric.domain",
    "SchemaMetric.encoding",
    "SchemaMetric.metric",
    "Series.rollups_lack",
    "Series.rooms_lack",
    "Series.without_room",
    "ToldMessage.ended",
    "Unsure.device_id",
    "Unsure.metrics",
];

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one list of requests")]
async fn real_answers_are_what_the_document_says() {
    let system = system().await;
    let document = get(&system, "/openapi.json").await.json();
    let readings = json!([
        {"device_id": "remo-e", "timestamp": "2026-01-11T16:00:00Z", "room": "hall", "current_w": 512},
        {"device_id": "remo-e", "timestamp": "2026-01-11T16:01:00Z", "current_w": 1e-7},
    ]);
    let patch = json!({"name": "Meter"}).to_string();
    let room_patch = json!({"name": "Hall", "home": "villa"}).to_string();
    let range = "from=2026-01-11T00:00:00Z&limit=1";
    let hour = "from=2026-01-11T16:00:00Z&to=2026-01-11T17:00:00Z";
    let series = |path: &str| format!("{path}?{hour}");
    let mut asked = BTreeSet::new();
    let mut sent = Members::of(&document);
    let components = strict(&document);
    let hour_of = |path: &str, more: &str| format!("{path}?{hour}&{more}");
    for (method, path, url, body) in [
        ("POST", "/readings", "/readings".to_owned(), cellar().to_string()),
        (
            "PATCH",
            "/devices/{id}",
            "/devices/m".to_owned(),
            r#"{"metrics": {"cumulative_kwh_p": {
                "modulus": 100000, "max_w": 50000, "tolerance": 0.5, "role": "production",
                "exchanges": [{"timestamp": "2026-01-11T16:25:00Z", "old": 0.2, "new": 0.3}],
                "verdicts": [{"timestamp": "2026-01-11T16:20:00Z", "verdict": "discard"}]
            }}}"#
            .to_owned(),
        ),
        (
            "PATCH",
            "/devices/{id}",
            "/devices/p".to_owned(),
            r#"{"behind": "m", "kind": "plug", "attributes": {"firmware": "1.4"}, "in_room_means": true,
                "metrics": {"current_w": {"hold": "10m", "in_room_means": true}}}"#
                .to_owned(),
        ),
        ("PATCH", "/devices/{id}", "/devices/f".to_owned(), r#"{"kind": "freezer"}"#.to_owned()),
        (
            "PATCH",
            "/rooms/{id}",
            "/rooms/cellar".to_owned(),
            r#"{"outside": true, "home": "villa"}"#.to_owned(),
        ),
        ("GET", "/devices", "/devices?explain=1&limit=1".to_owned(), String::new()),
        (
            "GET",
            "/devices/{id}/series",
            hour_of("/devices/t/series", "every=15m&fn=mean&explain=1"),
            String::new(),
        ),
        (
            "GET",
            "/homes/{id}/series",
            hour_of("/homes/villa/series", "metric=temperature&rooms=1"),
            String::new(),
        ),
        (
            "GET",
            "/rooms/{id}/series",
            hour_of("/rooms/cellar/series", "metric=temperature&every=15m"),
            String::new(),
        ),
        (
            "GET",
            "/series",
            "/series?from=-1h&metric=temperature&devices=1&every=1h".to_owned(),
            String::new(),
        ),
        (
            "GET",
            "/rooms/{id}/energy",
            hour_of("/rooms/cellar/energy", "every=15m&events=1&devices=1&explain=1"),
            String::new(),
        ),
        ("GET", "/rooms/{id}/energy", "/rooms/cellar/energy?from=-1h&every=1h".to_owned(), String::new()),
        (
            "GET",
            "/devices/{id}/energy",
            hour_of("/devices/m/energy", "every=15m"),
            String::new(),
        ),
        ("GET", "/devices/{id}/events", hour_of("/devices/m/events", "tz=UTC"), String::new()),
        (
            "GET",
            "/devices/{id}/conditions",
            hour_of("/devices/t/conditions", "temperature=10..&explain=1"),
            String::new(),
        ),
        (
            "GET",
            "/rooms/{id}/conditions",
            hour_of("/rooms/cellar/conditions", "temperature=..60"),
            String::new(),
        ),
        (
            "PUT",
            "/alerts/{id}",
            "/alerts/warm".to_owned(),
            r#"{"name": "Warm", "device": "f", "metric": "temperature", "above": -12, "clear": -15,
                "repeat": "1h"}"#
                .to_owned(),
        ),
        (
            "PUT",
            "/alerts/{id}",
            "/alerts/mean".to_owned(),
            r#"{"name": "Cold", "mean_of_room": "cellar", "metric": "temperature", "below": 5, "clear": 6}"#
                .to_owned(),
        ),
        (
            "PUT",
            "/alerts/{id}",
            "/alerts/silent".to_owned(),
            r#"{"name": "Silent", "room": "cellar", "silent_for": "10m"}"#.to_owned(),
        ),
        (
            "PUT",
            "/alerts/{id}",
            "/alerts/tag".to_owned(),
            r#"{"name": "Silent", "device": "f", "silent_for": "10m"}"#.to_owned(),
        ),
        (
            "PUT",
            "/alerts/{id}",
            "/alerts/tag".to_owned(),
            r#"{"name": "Silent", "tag": "x", "silent_for": "1h"}"#.to_owned(),
        ),
        (
            "PUT",
            "/alerts/{id}",
            "/alerts/demand".to_owned(),
            r#"{"name": "Demand", "device": "m", "demand_kw": 5, "period": "15m"}"#.to_owned(),
        ),
        (
            "PUT",
            "/alerts/{id}",
            "/alerts/steps".to_owned(),
            r#"{"name": "Steps", "device": "m", "metric": "cumulative_kwh_p", "counter": ["reset"]}"#
                .to_owned(),
        ),
        (
            "GET",
            "/alerts/{id}/history",
            "/alerts/warm/history?compare=1".to_owned(),
            String::new(),
        ),
        (
            "POST",
            "/alerts/preview",
            "/alerts/preview".to_owned(),
            r#"{"rule": {"device": "t", "metric": "temperature", "above": 25},
                "from": "2026-01-11T00:00:00Z", "to": "2026-01-12T00:00:00Z"}"#
                .to_owned(),
        ),
        (
            "POST",
            "/alerts/preview",
            "/alerts/preview".to_owned(),
            r#"{"rule": {"device": "t", "silent_for": "5m"},
                "from": "2026-01-11T00:00:00Z", "to": "2026-01-12T00:00:00Z"}"#
                .to_owned(),
        ),
        (
            "PUT",
            "/annotations/{id}",
            "/annotations/2026-01-11T16:00:00.000Z-y".to_owned(),
            r#"{"room": "cellar", "text": "Kettle"}"#.to_owned(),
        ),
        (
            "PUT",
            "/annotations/{id}",
            "/annotations/2026-01-11T16:00:00.000Z-z".to_owned(),
            r#"{"home": "villa", "text": "Kettle"}"#.to_owned(),
        ),
        (
            "POST",
            "/tokens",
            "/tokens".to_owned(),
            r#"{"scope": "write", "device": "d", "name": "x", "expires": "1h"}"#.to_owned(),
        ),
        ("DELETE", "/devices/{id}", "/devices/p".to_owned(), String::new()),
        ("DELETE", "/devices/{id}", "/devices/m".to_owned(), String::new()),
        ("POST", "/readings", "/readings".to_owned(), readings.to_string()),
        (
            "POST",
            "/readings",
            "/readings".to_owned(),
            r#"[{"device_id": "d", "t": 1}, {}]"#.to_owned(),
        ),
        ("POST", "/readings", "/readings".to_owned(), "{}".to_owned()),
        (
            "POST",
            "/readings/tasmota",
            "/readings/tasmota?device=plug".to_owned(),
            r#"{"ENERGY": {"Power": 1, "Voltage": "much"}}"#.to_owned(),
        ),
        ("POST", "/readings/shelly", "/readings/shelly".to_owned(), "{}".to_owned()),
        (
            "POST",
            "/readings/zigbee2mqtt",
            "/readings/zigbee2mqtt?device=probe".to_owned(),
            r#"{"temperature": 21.5}"#.to_owned(),
        ),
        ("POST", "/readings/switchbot", "/readings/switchbot".to_owned(), "[".to_owned()),
        (
            "POST",
            "/readings/remo",
            "/readings/remo".to_owned(),
            r#"{"id": "a", "newest_events": {"te": {"val": 20}}}"#.to_owned(),
        ),
        (
            "POST",
            "/readings/ttn",
            "/readings/ttn".to_owned(),
            r#"{"end_device_ids": {"device_id": "a"}, "uplink_message": {"decoded_payload": {"t": 1, "word": "x"}}}"#.to_owned(),
        ),
        (
            "POST",
            "/readings/chirpstack",
            "/readings/chirpstack?event=up".to_owned(),
            r#"{"deviceInfo": {"devEui": "a"}, "data": "AQ=="}"#.to_owned(),
        ),
        ("GET", "/readings/quick", "/readings/quick?temperature=1".to_owned(), String::new()),
        ("GET", "/readings/shelly", "/readings/shelly?temp=1&p=x".to_owned(), String::new()),
        ("GET", "/devices", "/devices?latest=true".to_owned(), String::new()),
        ("GET", "/devices/{id}", "/devices/remo-e".to_owned(), String::new()),
        ("GET", "/devices/{id}", "/devices/nobody".to_owned(), String::new()),
        ("PATCH", "/devices/{id}", "/devices/remo-e".to_owned(), patch.clone()),
        (
            "PATCH",
            "/devices/{id}",
            "/devices/remo-e".to_owned(),
            r#"{"room": "hall-2", "metrics": {"current_w": null}}"#.to_owned(),
        ),
        ("PATCH", "/devices/{id}", "/devices/remo-e".to_owned(), r#"{"room": "hall"}"#.to_owned()),
        ("PATCH", "/devices/{id}", "/devices/remo-e".to_owned(), "5".to_owned()),
        (
            "GET",
            "/devices/{id}/readings",
            format!("/devices/remo-e/readings?{range}"),
            String::new(),
        ),
        ("GET", "/devices/{id}/latest", "/devices/remo-e/latest".to_owned(), String::new()),
        (
            "PATCH",
            "/devices/{id}",
            "/devices/remo-e".to_owned(),
            r#"{"room": "hall-2", "room_since": "2026-01-11T16:00:00Z"}"#.to_owned(),
        ),
        ("GET", "/devices/{id}/stays", "/devices/remo-e/stays".to_owned(), String::new()),
        ("GET", "/rooms/{id}/stays", "/rooms/hall/stays".to_owned(), String::new()),
        ("GET", "/devices/{id}/series", series("/devices/remo-e/series"), String::new()),
        ("GET", "/devices/{id}/energy", series("/devices/remo-e/energy"), String::new()),
        ("GET", "/devices/{id}/events", series("/devices/remo-e/events"), String::new()),
        (
            "GET",
            "/devices/{id}/conditions",
            series("/devices/remo-e/conditions") + "&current_w=1..&explain=1",
            String::new(),
        ),
        (
            "GET",
            "/rooms/{id}/conditions",
            series("/rooms/hall/conditions") + "&current_w=..600&exact=1",
            String::new(),
        ),
        ("GET", "/rooms/{id}/series", series("/rooms/hall/series"), String::new()),
        ("GET", "/rooms/{id}/energy", series("/rooms/hall/energy"), String::new()),
        ("GET", "/series", series("/series"), String::new()),
        ("GET", "/energy", series("/energy") + "&devices=1", String::new()),
        ("GET", "/series", "/series?from=2020-01-01T00:00:00Z&every=5m".to_owned(), String::new()),
        ("DELETE", "/devices/{id}/readings", series("/devices/remo-e/readings"), String::new()),
        ("GET", "/health", "/health?details=1".to_owned(), String::new()),
        ("GET", "/rooms", "/rooms".to_owned(), String::new()),
        ("GET", "/rooms/{id}", "/rooms/hall".to_owned(), String::new()),
        ("PATCH", "/rooms/{id}", "/rooms/hall".to_owned(), room_patch),
        ("GET", "/rooms/{id}/devices", "/rooms/hall/devices".to_owned(), String::new()),
        ("GET", "/rooms/{id}/readings", format!("/rooms/hall/readings?{range}"), String::new()),
        ("GET", "/rooms/{id}/latest", "/rooms/hall/latest".to_owned(), String::new()),
        (
            "PUT",
            "/annotations/{id}",
            "/annotations/2026-01-11T16:00:00.000Z-x".to_owned(),
            r#"{"device": "remo-e", "text": "Kettle", "to": "2026-01-11T16:01:00Z"}"#.to_owned(),
        ),
        ("PUT", "/annotations/{id}", "/annotations/x".to_owned(), "{}".to_owned()),
        ("GET", "/annotations", "/annotations".to_owned(), String::new()),
        (
            "DELETE",
            "/annotations/{id}",
            "/annotations/2026-01-11T16:00:00.000Z-x".to_owned(),
            String::new(),
        ),
        (
            "POST",
            "/tokens",
            "/tokens".to_owned(),
            r#"{"scope": "write", "device": "d", "expires": "1h"}"#.to_owned(),
        ),
        (
            "POST",
            "/tokens",
            "/tokens".to_owned(),
            r#"{"scope": "view", "rooms": ["hall"], "expires": "1h"}"#.to_owned(),
        ),
        ("POST", "/tokens", "/tokens".to_owned(), r#"{"scope": "admin"}"#.to_owned()),
        ("GET", "/homes", "/homes".to_owned(), String::new()),
        ("GET", "/homes/{id}", "/homes/villa".to_owned(), String::new()),
        ("GET", "/homes/{id}/rooms", "/homes/villa/rooms".to_owned(), String::new()),
        ("GET", "/homes/{id}/devices", "/homes/villa/devices".to_owned(), String::new()),
        ("GET", "/homes/{id}/latest", "/homes/villa/latest".to_owned(), String::new()),
        ("GET", "/homes/{id}/series", series("/homes/villa/series"), String::new()),
        ("GET", "/homes/{id}/energy", series("/homes/villa/energy"), String::new()),
        (
            "GET",
            "/homes/{id}/conditions",
            format!("/homes/villa/conditions?{range}&current_w=0.."),
            String::new(),
        ),
        (
            "POST",
            "/mcp",
            "/mcp".to_owned(),
            r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "series", "arguments": {}}}"#
                .to_owned(),
        ),
        ("POST", "/mcp", "/mcp".to_owned(), "[]".to_owned()),
        (
            "PUT",
            "/alerts/{id}",
            "/alerts/power".to_owned(),
            r#"{"name": "Power", "device": "remo-e", "metric": "current_w", "above": 500}"#.to_owned(),
        ),
        ("PUT", "/alerts/{id}", "/alerts/power".to_owned(), "{}".to_owned()),
        (
            "PUT",
            "/alerts/{id}",
            "/alerts/day".to_owned(),
            r#"{"name": "Day", "kind": "meter", "budget_kwh": 5, "per": "day"}"#.to_owned(),
        ),
        (
            "PUT",
            "/channels/{id}",
            "/channels/phone".to_owned(),
            r#"{"kind": "ntfy", "name": "Phone", "topic": "t", "quiet_hours": "22:00-07:00"}"#
                .to_owned(),
        ),
        ("POST", "/channels/{id}/test", "/channels/phone/test".to_owned(), "{}".to_owned()),
        ("GET", "/channels", "/channels".to_owned(), String::new()),
        ("GET", "/channels/{id}", "/channels/phone".to_owned(), String::new()),
        ("GET", "/alerts", "/alerts".to_owned(), String::new()),
        ("GET", "/alerts/{id}", "/alerts/power".to_owned(), String::new()),
        ("GET", "/alerts/{id}/history", "/alerts/power/history".to_owned(), String::new()),
        (
            "POST",
            "/alerts/{id}/pause",
            "/alerts/power/pause".to_owned(),
            r#"{"until": "2h"}"#.to_owned(),
        ),
        (
            "POST",
            "/alerts/{id}/acknowledge",
            "/alerts/power/acknowledge".to_owned(),
            "{}".to_owned(),
        ),
        ("POST", "/acknowledge", "/acknowledge".to_owned(), "{}".to_owned()),
        (
            "POST",
            "/alerts/preview",
            "/alerts/preview".to_owned(),
            r#"{"rule": {"device": "remo-e", "metric": "current_w", "above": 500},
                "from": "2026-01-11T00:00:00Z", "to": "2026-01-12T00:00:00Z"}"#
                .to_owned(),
        ),
        ("DELETE", "/channels/{id}", "/channels/phone".to_owned(), String::new()),
        ("DELETE", "/alerts/{id}", "/alerts/power".to_owned(), String::new()),
        ("GET", "/conditions/schema", "/conditions/schema".to_owned(), String::new()),
        ("PUT", "/conditions/schema", "/conditions/schema".to_owned(), "{}".to_owned()),
        ("DELETE", "/homes/{id}", "/homes/villa".to_owned(), String::new()),
        ("DELETE", "/rooms/{id}", "/rooms/hall".to_owned(), String::new()),
        ("DELETE", "/devices/{id}", "/devices/remo-e".to_owned(), String::new()),
        ("GET", "/health", "/health".to_owned(), String::new()),
        ("GET", "/openapi.json", "/openapi.json".to_owned(), String::new()),
    ] {
        let answer = send(&system, method, &url, body.as_bytes()).await;
        system.settle().await.expect("delivered");
        let operation = &document["paths"][path][method.to_lowercase()];
        let mut response = &operation["responses"][answer.status.to_string()];
        if let Some(reference) = response["$ref"].as_str() {
            response = document.pointer(&reference[1..]).expect("it leads somewhere");
        }
        let content_type = answer.header("content-type").expect("a type");
        let schema = response["content"][content_type]["schema"].clone();
        assert!(
            schema.is_object(),
            "{method} {url}: {} {content_type} is not in the document",
            answer.status
        );
        sent.add_sent(&schema, "List", &answer.json());
        let mut root = json!({"components": components});
        root.as_object_mut()
            .expect("an object")
            .extend(schema.as_object().expect("an object").clone());
        let validator = jsonschema::validator_for(&root).expect("a schema");
        let errors: Vec<_> =
            validator.iter_errors(&answer.json()).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{method} {url}: {errors:?} in {}", answer.json());
        asked.insert((method, path));
    }
    let of_values = own_endpoints().filter(|it| !matches!(it.reply, Reply::File(_)));
    let not_asked = of_values.map(|it| (it.method, it.path)).filter(|it| !asked.contains(it));
    assert_eq!(not_asked.collect::<Vec<_>>(), [], "this test asks each endpoint once");
    let mut documented = Members::of(&document);
    for endpoint in own_endpoints() {
        let operation = &document["paths"][endpoint.path][endpoint.method.to_lowercase()];
        for response in operation["responses"].as_object().expect("statuses").values() {
            let schema = &response["content"]["application/json"]["schema"];
            documented.add_documented(schema, "List");
        }
    }
    let elsewhere: BTreeSet<String> = SENT_ELSEWHERE.map(str::to_owned).into();
    let sent: BTreeSet<String> = sent.found.union(&elsewhere).cloned().collect();
    let not_sent: Vec<&String> = documented.found.difference(&sent).collect();
    assert!(not_sent.is_empty(), "the document names what no answer of these has: {not_sent:?}");
    // The validation can fail: an answer of another kind does not pass as a device.
    let root = json!({"components": document["components"], "$ref": "#/components/schemas/Device"});
    let validator = jsonschema::validator_for(&root).expect("a schema");
    assert!(!validator.is_valid(&get(&system, "/rooms/hall").await.json()));
    post(&system, &readings).await;
    system.shutdown().await.expect("stops");
}
