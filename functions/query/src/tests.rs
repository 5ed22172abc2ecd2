//! The function on a table in memory: a bench, and what its cases cannot say. Sample events are run by the workspace's
//! tests.

mod alerts;
mod by_room;
mod cases;
mod deletion;
mod homes;
mod influxql;
mod mcp;
mod meters;
mod newest;
mod restore;
mod room_means;
#[path = "../../../tests/scenario.rs"]
mod scenario;
mod series;
mod sources;
mod tokens;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lambda_events::event::apigw::ApiGatewayV2httpRequest;
use domain::given::{at_millis, at_minute};
use domain::{
    Bucket, DeviceId, DeviceObservation, FoldRules, Month, QuarterHour, Reading, Rollup, Scope,
    Timestamp, Zone,
};
use runtime::auth::Auth;
use runtime::clock::TestClock;
use serde_json::{Value, json};
use table::given::{self, invocation};
use table::memory_db::MemoryDb;
use table::{AddToken as _, PutReadings as _, RegisterDevices as _, StoreError};
use table::{
    Expected, LookUpRegistry as _, NoteSeen as _, RoomVisit, StoredRollup, UpdateRegistry as _,
};

use super::*;
use scenario::Answer;

struct Bench {
    store: MemoryDb,
    clock: TestClock,
    query: Query<MemoryDb, TestClock>,
    log: Arc<Mutex<String>>,
}

impl Answer {
    /// The rows of a list.
    fn rows(&self) -> Vec<Value> {
        let rows = self.json()["data"].as_array().cloned();
        rows.unwrap_or_else(|| panic!("no rows: {}", self.text))
    }
}

impl Bench {
    fn empty() -> Self {
        Self::with(false)
    }

    fn with(auth: bool) -> Self {
        Self::on(MemoryDb::default(), auth)
    }

    /// Another instance on the same table.
    fn again(&self) -> Self {
        Self::on(self.store.clone(), false)
    }

    /// A stack that may publish e-mail to a topic.
    fn with_alert_topic(alert_topic: Option<String>) -> Self {
        Self::with_settings(
            MemoryDb::default(),
            Settings { auth: Auth::Owner, alert_topic, ..Settings::default() },
        )
    }

    fn on(store: MemoryDb, auth: bool) -> Self {
        let auth = if auth { Auth::On } else { Auth::Owner };
        Self::with_settings(store, Settings { auth, ..Settings::default() })
    }

    fn with_settings(store: MemoryDb, settings: Settings) -> Self {
        let clock = TestClock::at(at_minute(60));
        let log = Arc::new(Mutex::new(String::new()));
        let sink = Arc::clone(&log);
        let telemetry = Telemetry::to(Arc::new(move |line| {
            sink.lock().expect("no panic while held").push_str(line);
        }));
        let permitted = store.for_role(<MemoryDb as Store>::PERMISSIONS);
        let query = Query::new(permitted, clock.clone(), telemetry, settings);
        Self { store, clock, query, log }
    }

    fn log(&self) -> String {
        self.log.lock().expect("no panic while held").clone()
    }

    async fn new() -> Self {
        Self::house("of three devices").await
    }

    async fn send(&self, method: &str, url: &str, headers: Value, body: &str) -> Answer {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let mut event = json!(ApiGatewayV2httpRequest::default());
        event["rawPath"] = json!(path);
        event["rawQueryString"] = json!(query);
        event["headers"] = headers;
        event["requestContext"]["http"]["method"] = json!(method);
        event["requestContext"]["requestId"] = json!("request-1");
        event["body"] = json!(body);
        let event = serde_json::from_value(event).expect("an event");
        let deadline = Deadline::after(Duration::from_secs(5));
        Answer::in_reply(&json!(self.query.handle(event, deadline).await))
    }

    /// Stores readings, and registers their devices and rooms or adds what the readings say to them.
    async fn store(&self, readings: &[Reading]) {
        given::store_home(&self.store, readings).await;
        self.note_rooms(readings).await;
        for (id, own) in by_device(readings) {
            let Some(device) = self.store.device(&id, &invocation()).await.expect("memory") else {
                continue;
            };
            let mut observation = DeviceObservation::of(&own[0]);
            own.iter().for_each(|reading| observation.see(reading));
            let learned = device.diff(&observation, |_| true);
            self.store.update_device(&device, &learned, &invocation()).await.expect("memory");
        }
    }

    /// Rolls up what is stored before a time, as the rollup function does.
    async fn roll_up(&self, zone: Zone, until: Timestamp) {
        for (id, readings) in by_device(&self.store.readings()) {
            let device = self.store.device(&id, &invocation()).await.expect("memory");
            let device = device.expect("registered");
            let mut buckets = BTreeMap::new();
            for at in readings.iter().map(|reading| reading.at).filter(|at| *at < until) {
                let (quarter, date) = (QuarterHour::of(at), zone.date(at));
                buckets.insert(Bucket::QuarterHour(quarter), quarter.range());
                let day = zone.day(date).expect("it exists");
                if day.to() <= until {
                    buckets.insert(Bucket::Day(date), day);
                }
            }
            for (bucket, range) in buckets {
                let inside = readings.iter().filter(|reading| range.contains(reading.at));
                let rollup = Rollup::fold(inside, &FoldRules::of(&device));
                let stored = given::stored_rollup(&id, bucket, range, rollup);
                let settings = device.fold_settings().number;
                let zone = matches!(bucket, Bucket::Day(_)).then(|| zone.name().to_owned());
                given::put_first(&self.store, &StoredRollup { settings, zone, ..stored }).await;
            }
        }
        given::seal(&self.store, zone.name(), until).await;
    }

    /// Registers more devices and rooms than memory holds: `d00000` and so on in the room `r`, and `e00300` and so on
    /// in rooms of their own.
    async fn fill_beyond_memory(&self) {
        for n in 0..=table::MAX_CACHED_ENTRIES {
            let here = if n < 300 { "r".to_owned() } else { format!("room-{n:05}") };
            let letter = if n < 300 { 'd' } else { 'e' };
            let first = reading(&format!("{letter}{n:05}"), 0, &here);
            given::register_devices_of(&self.store, &[first]).await;
            given::register_room(&self.store, &format!("room-{n:05}"), at_minute(0)).await;
        }
    }

    async fn note_rooms(&self, readings: &[Reading]) {
        for reading in readings {
            self.note_room(reading).await;
        }
    }

    /// Notes that the device was in the room, as the rollup function does.
    async fn note_room(&self, reading: &Reading) {
        let Some(room) = reading.room.clone() else { return };
        let (device, month) = (reading.device.clone(), Month::of(reading.at));
        let months = month..=month;
        let known = self.store.seen(&room, &device, &invocation()).await.expect("memory");
        let (seen, expected) = match known {
            None => (RoomVisit::begun(room, device, month), Expected::Absent),
            Some(known) if known.covers(&months) => return,
            Some(known) => (known.widened(&months), Expected::Version(known.version)),
        };
        assert!(self.store.put_seen(&seen, expected, &invocation()).await.expect("memory"));
    }

    async fn get(&self, url: &str) -> Answer {
        self.send("GET", url, json!({}), "").await
    }

    /// The pages of a walk along the links. Lambda can carry each.
    async fn pages(&self, url: &str) -> Vec<Answer> {
        let (mut pages, mut next) = (Vec::new(), Some(url.to_owned()));
        while let Some(url) = next {
            let page = self.get(&url).await;
            assert_eq!(page.status, 200, "{url}: {}", page.text);
            assert!(page.event_bytes < 6_000_000, "{url}: {} bytes", page.event_bytes);
            next = page.next().map(ToOwned::to_owned);
            pages.push(page);
        }
        pages
    }

    async fn patch(&self, url: &str, body: &str) -> Answer {
        self.send("PATCH", url, json!({}), body).await
    }

    async fn problem(&self, url: &str) -> String {
        self.get(url).await.problem()
    }
}

fn by_device(readings: &[Reading]) -> BTreeMap<DeviceId, Vec<Reading>> {
    let mut devices: BTreeMap<DeviceId, Vec<Reading>> = BTreeMap::new();
    for reading in readings {
        devices.entry(reading.device.clone()).or_default().push(reading.clone());
    }
    devices
}

/// Asserts that a JSON object has some members; null is one that it lacks.
#[track_caller]
fn assert_has(found: &Value, members: &Value) {
    for (name, expected) in members.as_object().expect("an object") {
        assert_eq!(found[name], *expected, "{name} of {found}");
    }
}

fn reading(device: &str, minute: i64, room: &str) -> Reading {
    let temperature = minute.to_string();
    let metrics = [("temperature", temperature.as_str()), ("battery", "90")];
    let count = if minute == 3 { 2 } else { 1 };
    given::reading(device, at_minute(minute), Some(room), &metrics[..count])
}

#[tokio::test]
async fn a_list_ends_before_lambda_would_refuse_the_answer() {
    let bench = Bench::empty();
    let number = "-1.2345678901234567890123456789012345678e-100";
    let names: Vec<String> = (0..64).map(|n| format!("m{n:02}{}", "x".repeat(60))).collect();
    let metrics: Vec<_> = names.iter().map(|name| (name.as_str(), number)).collect();
    let reading = |n| given::reading(&format!("d{n:03}"), at_minute(0), Some("r"), &metrics);
    bench.store(&(0..400).map(reading).collect::<Vec<_>>()).await;
    for path in ["/devices?latest=true&limit=1000", "/rooms/r/devices?latest=1&limit=1000"] {
        let pages = bench.pages(path).await;
        let rows = pages.iter().map(|page| page.json()["data"].as_array().map_or(0, Vec::len));
        assert_eq!(rows.sum::<usize>(), 400, "{path}");
    }
}

#[tokio::test]
async fn a_walk_along_cursors_finds_every_reading_once_in_order() {
    let bench = Bench::new().await;
    for (path, all, order) in [
        ("/rooms/r", 20, "asc"),
        ("/rooms/r", 20, "desc"),
        ("/devices/c", 10, "asc"),
        ("/devices/c", 10, "desc"),
    ] {
        for limit in [1, 3, 7, 10, 20] {
            let url = format!("{path}/readings?from=-2h&order={order}&limit={limit}");
            let mut found = Vec::new();
            let mut cursor = String::new();
            loop {
                let page = bench.get(&format!("{url}{cursor}")).await.json();
                let rows = page["data"].as_array().expect("a list").clone();
                assert!(rows.len() <= limit);
                found.extend(
                    rows.iter().map(|row| format!("{}{}", row["timestamp"], row["device_id"])),
                );
                // A relative range stays where it was on the first page.
                bench.clock.advance(Duration::from_secs(30));
                match page["next_cursor"].as_str() {
                    Some(next) => cursor = format!("&cursor={next}"),
                    None => break,
                }
            }
            let mut sorted = found.clone();
            sorted.sort();
            sorted.dedup();
            if order == "desc" {
                sorted.reverse();
            }
            assert_eq!((found.len(), &found), (all, &sorted), "{url}");
        }
    }
}

/// A bench whose registry is beyond memory.
async fn bench_beyond_memory() -> Bench {
    let bench = Bench::new().await;
    bench.fill_beyond_memory().await;
    bench
}

#[tokio::test]
async fn a_registry_beyond_memory_is_walked_page_by_page() {
    let bench = bench_beyond_memory().await;
    for (path, key, number) in [
        ("/devices", "device_id", table::MAX_CACHED_ENTRIES + 4),
        ("/rooms", "room_id", table::MAX_CACHED_ENTRIES + 3),
        ("/devices?room=r", "device_id", 302),
        ("/rooms/r/devices", "device_id", 302),
    ] {
        let join = if path.contains('?') { '&' } else { '?' };
        let mut found: Vec<String> = Vec::new();
        for page in bench.pages(&format!("{path}{join}limit=97")).await {
            let page = page.json();
            assert_eq!(page["has_more"], page["next_cursor"].is_string(), "{path}");
            let rows = page["data"].as_array().expect("rows");
            found.extend(rows.iter().map(|row| row[key].as_str().expect("an id").to_owned()));
        }
        assert_eq!(found.len(), number, "{path}");
        assert!(found.is_sorted_by(|a, b| a < b), "{path}");
    }
}

#[tokio::test]
async fn a_page_ends_before_lambda_would_refuse_it_in_every_form() {
    let bench = Bench::empty();
    // Each reading has one of a thousand metrics: in CSV the other columns are empty.
    let one_of_many = |n: i64| {
        let (id, metric) = (
            ["a", "b", "c", "d"][usize::try_from(n % 4).expect("small")],
            format!("metric_{:03}", n % 1_000),
        );
        given::reading(id, at_millis(n), Some("r"), &[(&metric, "-1.5e-100")])
    };
    bench.store(&(0..9_000).map(one_of_many).collect::<Vec<_>>()).await;
    for (format, expected) in [("csv", 2), ("json", 1), ("ndjson", 1)] {
        let url = format!("/rooms/r/readings?from=-2h&limit=10000&format={format}");
        let pages = bench.pages(&url).await;
        let rows: usize = pages.iter().map(|page| page.text.matches("2026-01-11T").count()).sum();
        assert_eq!((rows, pages.len()), (9_000, expected), "{format}");
    }
}

/// A reading of room `r` with 64 metrics of 64 characters, other ones for each `n`.
fn sprawling(device: &str, n: i64) -> Reading {
    let names: Vec<String> = (0..64).map(|m| format!("m{:0>63}", n * 64 + m)).collect();
    let metrics: Vec<_> = names.iter().map(|name| (name.as_str(), "1")).collect();
    given::reading(device, at_millis(n), Some("r"), &metrics)
}

#[tokio::test]
async fn no_device_takes_the_csv_of_a_room_from_everybody() {
    let bench = Bench::new().await;
    let readings: Vec<Reading> = (0..600).map(|n| sprawling("a", n)).collect();
    bench.store.put_readings(&readings, None, &invocation()).await;
    let (mut rows, mut values) = (0, 0);
    let pages = bench.pages("/rooms/r/readings?from=-2h&limit=10000&format=csv").await;
    assert!(pages.len() <= 4, "{}", pages.len());
    for page in pages {
        let mut csv = csv::Reader::from_reader(page.text.as_bytes());
        for row in csv.records() {
            rows += 1;
            let row = row.expect("as many cells as columns");
            // Behind the timestamp, the device and the room.
            values += row.iter().skip(3).filter(|cell| !cell.is_empty()).count();
        }
    }
    let stored = bench.store.readings();
    let in_room = || stored.iter().filter(|reading| reading.room == readings[0].room);
    let all = in_room().map(|reading| reading.metrics().len()).sum();
    assert_eq!((rows, values), (in_room().count(), all), "each once, with all its values");
}

#[tokio::test]
async fn a_list_has_the_columns_of_its_page_where_more_are_known_than_fit() {
    let bench = Bench::empty();
    for n in 0..150 {
        let reading = sprawling(&format!("d{n:03}"), n);
        bench.store.put_readings(std::slice::from_ref(&reading), None, &invocation()).await;
        let mut observation = DeviceObservation::of(&reading);
        let others = (0..192).map(|metric| format!("x{n}_{metric}_{}", "x".repeat(50)));
        observation.metrics.extend(others.map(|name| given::metric(&name)));
        let device = observation.new_device(reading.device, |_| true);
        bench.store.register_device(&device, &invocation()).await.expect("memory");
    }
    given::register_room(&bench.store, "r", at_minute(0)).await;
    for path in ["/devices?latest=true&", "/rooms/r/devices?latest=1&"] {
        let mut rows = 0;
        for page in bench.pages(&format!("{path}format=csv&limit=1000")).await {
            let values = page.text.lines().skip(1).map(|row| row.matches(",1").count());
            assert!(values.clone().all(|values| values >= 64), "{path}");
            rows += values.count();
        }
        assert_eq!(rows, 150, "{path}");
    }
}

#[tokio::test]
async fn the_further_look_at_newest_values_expects_large_readings_behind_small_ones() {
    let bench = Bench::empty();
    let large = |minute| {
        let mut reading = sprawling("l", 0);
        reading.at = at_minute(minute);
        reading
    };
    let mut readings: Vec<Reading> = (0..100).map(large).collect();
    given::register_devices_of(&bench.store, &readings[..1]).await;
    readings.extend((100..110).map(|minute| reading("l", minute, "r")));
    bench.store.put_readings(&readings, None, &invocation()).await;
    let latest = bench.get("/devices/l/latest").await.json();
    assert_eq!(latest["timestamp"], at_minute(109).to_string());
    // Were the ten newest all that counts, it would take a hundred of some 5 KB.
    assert!(
        latest["as_of"].as_str() > Some(at_minute(90).to_string().as_str()),
        "{}",
        latest["as_of"]
    );
}

#[tokio::test]
async fn what_can_be_got_can_be_asked_for_its_headers() {
    let bench = Bench::new().await;
    for url in [
        "/devices",
        "/devices/a",
        "/devices/a/readings?from=-2h&limit=2",
        "/devices/a/latest",
        "/rooms",
        "/rooms/r",
        "/rooms/r/devices",
        "/rooms/r/readings",
        "/rooms/r/devices?latest=1",
        "/health",
        "/openapi.json",
        "/devices/nobody",
    ] {
        let get = bench.get(url).await;
        let mut head = bench.send("HEAD", url, json!({}), "").await;
        assert_eq!((head.status, head.text.as_str()), (get.status, ""), "{url}");
        assert_eq!(head.header("content-length"), get.text.len().to_string(), "{url}");
        head.headers.as_object_mut().expect("headers").remove("content-length");
        let read = |answer: &Answer| {
            let mut headers = answer.headers.clone();
            // The table is asked for what the first of the two found already.
            headers.as_object_mut().expect("headers").remove("x-consumed-read-units");
            headers
        };
        assert_eq!(read(&head), read(&get), "{url}");
    }
    let answer = bench.send("HEAD", "/readings", json!({}), "").await;
    assert_eq!((answer.status, answer.header("allow")), (405, "POST"));
}

#[tokio::test]
async fn a_tag_is_compared_weakly() {
    let bench = Bench::new().await;
    let weak = bench.get("/devices/a").await.header("etag").to_owned();
    let strong = weak.strip_prefix("W/").expect("a weak tag").to_owned();
    for (known, status) in [
        (weak.clone(), 304),
        (strong.clone(), 304),
        (format!("\"x\", {strong}"), 304),
        ("*".to_owned(), 304),
        ("\"x\"".to_owned(), 200),
        (strong.trim_matches('"').to_owned(), 200),
        ("W/".to_owned(), 200),
        (String::new(), 200),
    ] {
        let answer = bench.send("GET", "/devices/a", json!({"if-none-match": known}), "").await;
        assert_eq!((answer.status, answer.header("etag")), (status, weak.as_str()), "{known}");
    }
}

#[tokio::test]
async fn a_parameter_that_cannot_be_taken_costs_no_read() {
    let bench = Bench::new().await;
    let before = bench.store.calls();
    for url in
        ["/devices", "/rooms", "/rooms/r/devices", "/rooms/r/readings", "/devices/a/readings"]
    {
        for parameter in ["format=xml", "limit=0", "cursor=forged", "unknown=1"] {
            assert_eq!(
                bench.get(&format!("{url}?{parameter}")).await.status,
                400,
                "{url} {parameter}"
            );
        }
    }
    for url in ["/devices/a?x=1", "/rooms/r?x=1", "/devices/a/latest?x=1", "/devices?latest=maybe"]
    {
        assert_eq!(bench.get(url).await.status, 400, "{url}");
    }
    assert_eq!(bench.patch("/devices/a?x=1", r#"{"name": "x"}"#).await.status, 400);
    assert_eq!(bench.store.calls(), before);
}

#[tokio::test]
async fn a_metric_that_is_no_longer_sent_is_looked_for_once_and_can_be_dropped() {
    let bench = Bench::new().await;
    let readings: Vec<Reading> = (0..60).map(|minute| reading("slow", minute, "r")).collect();
    bench.store.put_readings(&readings, None, &invocation()).await;
    // One reading has `battery`, 56 minutes before the newest; none has `gone`.
    let mut observation = DeviceObservation::of(&readings[3]);
    observation.metrics.insert(given::metric("gone"));
    let device = observation.new_device(given::device("slow"), |_| true);
    bench.store.register_device(&device, &invocation()).await.expect("memory");
    bench.query.load().await;
    let before = bench.store.calls().reads;
    let latest = bench.get("/devices/slow/latest").await.json();
    assert_eq!(bench.store.calls().reads - before, 2, "two queries, whatever is missing");
    assert_eq!(latest["metrics"]["battery"]["timestamp"], at_minute(3).to_string());
    assert_eq!(latest["metrics"]["gone"], json!(null));
    assert_eq!(latest["as_of"], at_minute(0).to_string(), "as far back as there are readings");

    let dropped =
        bench.patch("/devices/slow", r#"{"metrics": {"gone": null, "battery": null}}"#).await;
    assert_eq!((dropped.status, &dropped.json()["metrics"]["gone"]), (200, &json!(null)));
    let again = bench.patch("/devices/slow", r#"{"metrics": {"gone": null}}"#).await;
    assert_eq!((again.status, &again.text.contains("gone")), (200, &false));
    let before = bench.store.calls().reads;
    let latest = bench.get("/devices/slow/latest").await.json();
    assert_eq!(bench.store.calls().reads - before, 1, "nothing is missing");
    assert_eq!(latest["as_of"], at_minute(50).to_string());
}

/// Who did it: the token by its public digits, what it was done to, and the id by which the gateway's log names it.
#[tokio::test]
async fn the_log_tells_who_edited_or_deleted_what() {
    let bench = Bench::with(true).with_house("of three devices").await;
    let admin = given::token("admin", Scope::Admin);
    bench.store.add_token(&admin, &invocation()).await.expect("memory");
    let headers = json!({
        "authorization": format!("Bearer {}", given::secret("admin")), "x-request-id": "chosen",
    });
    for (method, path, field, subject) in [
        ("PATCH", "/devices/a", "device", "a"),
        ("PATCH", "/rooms/r", "room", "r"),
        ("DELETE", "/devices/a/readings?from=-2h&to=now", "device", "a"),
        ("DELETE", "/homes/villa", "home", "villa"),
        ("DELETE", "/devices/a", "device", "a"),
    ] {
        bench.log.lock().expect("no panic").clear();
        bench.send(method, path, headers.clone(), r#"{"name": "x"}"#).await;
        let line = bench.log.lock().expect("no panic").clone();
        let line: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        assert_eq!(line[field], subject, "{method} {path}: {line}");
        assert_eq!(line["token.id"], admin.hash.short());
        assert_eq!(line["token.scope"], "admin");
        assert_eq!(line["http.request_id"], "chosen");
        assert_eq!(line["http.gateway_request_id"], "request-1");
        assert!(!line.to_string().contains(&given::secret("admin")));
    }
    bench.log.lock().expect("no panic").clear();
    bench.send("GET", "/devices/a", headers, "").await;
    let line = bench.log.lock().expect("no panic").clone();
    assert!(line.contains("token.id") && !line.contains("\"device\":"), "{line}");
}

#[tokio::test]
async fn a_file_of_the_page_is_not_sent_in_full_to_whoever_takes_no_gzip() {
    let bench = Bench::empty();
    let gzip = json!({"accept-encoding": "gzip"});
    let page = bench.get("/").await;
    assert_eq!((page.status, page.header("content-encoding")), (200, ""));
    let script = page.text.split('"').find(|it| it.ends_with(".uPlot.iife.min.js"));
    let script = format!("/{}", script.expect("it is named"));
    let refused = bench.get(&script).await;
    assert_eq!(refused.status, 406, "{}", refused.text);
    assert!(refused.event_bytes < 2_000, "{} bytes", refused.event_bytes);
    assert_eq!(bench.send("GET", &script, gzip, "").await.status, 200);
}
