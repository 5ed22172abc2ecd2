//! The function on a table in memory that fails on demand.

mod about;
mod corpus;
mod fetched;
mod lines;
mod meters;
mod payloads;

use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lambda_events::event::apigw::ApiGatewayV2httpRequest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::{
    Decimal, Device, DeviceObservation, DevicePatch, Edit, Reading, RoomId, Scope, Timestamp,
    Token, TokenHash,
};
use proptest::prelude::*;
use runtime::auth::Auth;
use runtime::clock::TestClock;
use serde_json::{Value, json};
use table::given::{self, invocation};
use table::memory_db::MemoryDb;
use table::{
    AddToken as _, DeleteReadings as _, EditRegistry as _, ManageTokens as _, ReadRegistry as _,
    ReadingKey, StoreError, UpdateOutcome, UpdateRegistry as _,
};

use super::*;

const TIMEOUT: Duration = Duration::from_secs(5);

struct Bench {
    store: MemoryDb,
    clock: TestClock,
    ingest: Ingest<MemoryDb, TestClock>,
    log: Arc<Mutex<String>>,
}

impl Bench {
    /// Every stored reading: device, timestamp and metrics.
    fn stored(&self) -> Vec<String> {
        let metrics = |reading: &Reading| {
            let metrics = reading.metrics().iter().map(|(name, value)| format!("{name}={value}"));
            metrics.collect::<Vec<_>>().join(" ")
        };
        let readings = self.store.readings();
        readings.iter().map(|it| format!("{} {} {}", it.device, it.at, metrics(it))).collect()
    }

    fn on(store: MemoryDb) -> Self {
        Self::with(store, false)
    }

    /// A function that asks for tokens, on a table that has one of every scope, their secrets their names.
    async fn guarded() -> Self {
        let bench = Self::with(MemoryDb::default(), true);
        let one = ["d".parse().expect("an id")].into();
        let two = ["d", "e"].map(|id| id.parse().expect("an id")).into();
        for (secret, scope, revoked) in [
            ("one", Scope::Write(one), false),
            ("two", Scope::Write(two), false),
            ("read", Scope::Read, false),
            ("admin", Scope::Admin, false),
            ("revoked", Scope::Admin, true),
        ] {
            let created = bench.clock.now();
            let revoked = revoked.then_some(created);
            let token = Token { revoked, ..given::token(secret, scope) };
            bench.store.add_token(&token, &invocation()).await.expect("memory");
        }
        bench
    }

    async fn post_with(&self, token: &str, body: &str) -> (i64, Value) {
        let mut event = http("POST", "/readings", body);
        event["headers"] = json!({"authorization": format!("Bearer {}", given::secret(token))});
        self.reply(event).await
    }

    fn with(store: MemoryDb, auth: bool) -> Self {
        let now = given::at("2026-01-11T16:00:00Z");
        let clock = TestClock::at(now);
        let log = Arc::new(Mutex::new(String::new()));
        let sink = Arc::clone(&log);
        let telemetry = Telemetry::to(Arc::new(move |line| {
            sink.lock().expect("no panic while held").push_str(line);
        }));
        let auth = if auth { Auth::On } else { Auth::Owner };
        let settings = Settings { auth, ..Settings::default() };
        let permitted = store.for_role(<MemoryDb as Store>::PERMISSIONS);
        let ingest = Ingest::new(permitted, clock.clone(), telemetry, settings);
        Self { store, clock, ingest, log }
    }

    fn new() -> Self {
        Self::on(MemoryDb::default())
    }

    async fn send(&self, event: Value) -> Result<(i64, Value), NotAllStored> {
        let event: Event = serde_json::from_str(&event.to_string()).expect("an event");
        let deadline = Deadline::after(Duration::from_secs(5));
        Ok(match self.ingest.handle(event, deadline).await? {
            Reply::Http(answer) => {
                let body =
                    json!(answer)["body"].as_str().map(ToOwned::to_owned).unwrap_or_default();
                (answer.status_code, serde_json::from_str(&body).expect("JSON"))
            }
            Reply::Iot(receipt) => (0, json!(receipt)),
            Reply::Fetched(receipt) => (0, json!(receipt)),
        })
    }

    /// The answer to an event that is answered.
    async fn reply(&self, event: Value) -> (i64, Value) {
        self.send(event).await.expect("answered")
    }

    fn log(&self) -> String {
        self.log.lock().expect("no panic while held").clone()
    }

    async fn post(&self, body: &str) -> (i64, Value) {
        self.reply(http("POST", "/readings", body)).await
    }

    /// All devices of the table.
    async fn devices(&self) -> Vec<Device> {
        self.store.devices(&invocation()).await.expect("memory").found
    }

    async fn device(&self, id: &str) -> Device {
        let found = self.devices().await.into_iter().find(|device| device.id().as_str() == id);
        found.expect("registered")
    }

    /// Learns from all stored readings, as the function registry does.
    async fn learn(&self) {
        let readings = self.store.readings();
        for device in self.devices().await {
            let mut own = readings.iter().filter(|reading| reading.device == *device.id());
            let mut observation = DeviceObservation::of(own.next().expect("a reading"));
            own.for_each(|reading| observation.see(reading));
            let update = device.diff(&observation, |_| true);
            let updated = self.store.update_device(&device, &update, &invocation()).await;
            assert!(matches!(updated, Ok(UpdateOutcome::Updated(_))), "{updated:?}");
            for (room, name) in &observation.room_names {
                self.store.name_room(room, name, &invocation()).await.expect("memory");
            }
        }
    }

    /// A person edits a device.
    async fn edit(&self, id: &str, patch: DevicePatch) {
        let now = self.clock.now();
        let edited = self.store.edit_device(&given::device(id), &patch, now, &invocation()).await;
        edited.expect("memory");
    }
}

fn http(method: &str, path: &str, body: &str) -> Value {
    let mut event = json!(ApiGatewayV2httpRequest::default());
    // A gateway gives every request an id and a time; without them they are the bench's.
    event["rawPath"] = json!(path);
    event["requestContext"]["http"]["method"] = json!(method);
    event["body"] = json!(body);
    event
}

const ONE: &str = r#"{"device_id": "d", "room": "r", "temperature": 21.5}"#;

#[tokio::test]
async fn once_everything_is_known_a_request_is_one_put_and_nothing_else() {
    let bench = Bench::new();
    bench.ingest.load().await;
    assert_eq!(bench.post(ONE).await, (201, json!({"accepted": 1})));
    let before = bench.store.calls();
    assert_eq!((before.reads, before.puts, before.registry_writes), (4, 1, 2));
    bench.clock.advance(Duration::from_millis(1));
    bench.post(ONE).await;
    let after = bench.store.calls();
    assert_eq!((after.reads, after.puts, after.registry_writes), (4, 2, 2));
}

#[tokio::test]
async fn the_registry_is_read_again_when_it_has_grown_old() {
    let bench = Bench::new();
    bench.post(ONE).await;
    let reads = bench.store.calls().reads;
    bench.clock.advance(Duration::from_secs(61));
    bench.post(ONE).await;
    assert_eq!(bench.store.calls().reads, reads + 2);
}

#[tokio::test]
async fn a_reading_without_a_room_gets_the_devices() {
    let bench = Bench::new();
    bench.post(ONE).await;
    bench.clock.advance(Duration::from_secs(1));
    bench.post(r#"{"device_id": "d", "temperature": 22}"#).await;
    let rooms: Vec<_> =
        bench.store.readings().into_iter().map(|r| r.room.expect("a room")).collect();
    assert_eq!(rooms.iter().map(RoomId::as_str).collect::<Vec<_>>(), ["r", "r"]);
}

#[tokio::test]
async fn what_is_not_stored_is_named_and_the_client_is_told_to_come_back() {
    let bench = Bench::new();
    bench.store.leave_not_stored(&[1]);
    let body = r#"[{"device_id": "a", "t": 1, "timestamp": 1768147200}, {"t": 1},
        {"device_id": "b", "t": 1, "timestamp": 1768147200}, {"device_id": "b", "u": 1, "timestamp": 1768147200}]"#;
    let (status, answer) = bench.post(body).await;
    assert_eq!(status, 503);
    assert_eq!(answer["not_stored"], json!([2, 3]), "both that became one");
    assert_eq!(answer["errors"][0]["index"], 1);
    assert!(answer["detail"].as_str().expect("text").starts_with("Of 3 readings 1 are stored"));
    assert_eq!(bench.store.readings().len(), 1);
}

/// What a refused request has stored is passed over only where the same request comes again.
#[tokio::test]
async fn after_a_refused_request_any_other_is_stored_as_it_is() {
    let bench = Bench::new();
    let at = |n: u64, value: u64| {
        json!({"device_id": "a", "t": value, "timestamp": 1_768_147_200 + n}).to_string()
    };
    let batch = [at(0, 1), at(1, 1), at(2, 1)].join("\n");
    let value = |reading: &Reading| reading.metrics().values().next().map(ToString::to_string);
    let values = || bench.store.readings().iter().filter_map(value).collect::<Vec<_>>();
    let refused = async || {
        bench.store.leave_not_stored(&[2]);
        assert_eq!(bench.post(&batch).await.0, 503);
    };
    refused().await;
    assert_eq!(values(), ["1", "1"]);
    assert_eq!(bench.post(&at(1, 2)).await.0, 201);
    assert_eq!(bench.post(&at(1, 1)).await.0, 201, "the first value again, by itself");
    assert_eq!(values(), ["1", "1"]);
    assert_eq!(bench.post(&at(0, 3)).await.0, 201);
    assert_eq!(bench.post(&batch).await.0, 201, "as a whole it comes after what was written since");
    assert_eq!(values(), ["1", "1", "1"]);
}

#[tokio::test]
async fn without_the_registry_nothing_is_stored_and_all_is_named() {
    let bench = Bench::new();
    bench.store.fail_with([StoreError::TimedOut]);
    let (status, answer) = bench.post(ONE).await;
    assert_eq!((status, &answer["not_stored"]), (503, &json!([0])));
    assert!(bench.store.readings().is_empty());
    assert_eq!(bench.post(ONE).await.0, 201, "the next request tries again");
}

#[tokio::test]
async fn what_the_table_refuses_for_good_is_not_asked_for_again_at_once() {
    let bench = Bench::new();
    bench.store.fail_with([StoreError::Refused("no permission".into())]);
    let (status, answer) = bench.post(ONE).await;
    assert_eq!((status, &answer["not_stored"]), (500, &json!([0])));
    let advice = "send the readings in not_stored again once the server's error is mended.";
    assert!(answer["detail"].as_str().expect("text").contains(advice), "{answer}");
}

#[tokio::test]
async fn a_failed_registration_is_left_to_the_stream() {
    let bench = Bench::new();
    bench.ingest.load().await;
    bench.store.fail_registry_writes_with([StoreError::TimedOut]);
    assert_eq!(bench.post(ONE).await.0, 201);
    assert!(bench.log().contains("registry.error"));
    assert_eq!(bench.store.readings().len(), 1);
    bench.post(ONE).await;
    assert_eq!(bench.store.calls().registry_writes, 3, "the next request tries again");
}

/// Lambda's limit is on the whole event, in which the body is a JSON string.
#[tokio::test]
async fn ten_thousand_refusals_fit_into_one_answer_and_none_is_lost() {
    let bench = Bench::new();
    for name in ["\\u0001".repeat(60), "\\\"".repeat(60), "\u{10ffff}".repeat(60)] {
        for (good, member, more) in [(0, "errors", "more_errors"), (1, "rejected", "more_rejected")]
        {
            let bad = format!(r#"{{"device_id": "d", "{name}": 1}}"#);
            let lines: Vec<_> = (0..10_000).map(|n| if n < good { ONE } else { &bad }).collect();
            let mut event = http("POST", "/readings", "");
            event["body"] = json!(STANDARD.encode(gzip(lines.join("\n").as_bytes())));
            event["isBase64Encoded"] = json!(true);
            let event: Event = serde_json::from_value(event).expect("an event");
            let deadline = Deadline::after(Duration::from_secs(60));
            let reply = json!(bench.ingest.handle(event, deadline).await.expect("answered"));
            assert!(reply.to_string().len() < 6_000_000, "{} bytes", reply.to_string().len());
            let answer: Value =
                serde_json::from_str(reply["body"].as_str().expect("text")).expect("JSON");
            let places = |member: &str| answer[member].as_array().expect("a list").clone();
            let told = places(member).into_iter().map(|refusal| refusal["index"].clone());
            let all: Vec<_> = told.chain(places(more)).collect();
            assert_eq!(all, (good..10_000).map(Value::from).collect::<Vec<_>>(), "{name}");
        }
    }
}

fn values(store: &MemoryDb) -> Vec<(i64, String)> {
    let start = given::at("2026-01-11T16:00:00Z");
    let value = |reading: &Reading| {
        let values: Vec<_> = reading.metrics().values().map(Decimal::as_str).collect();
        (reading.at.as_millis() - start.as_millis(), values.join(" "))
    };
    store.readings().iter().map(value).collect()
}

fn arrived(at_millis: i64, id: &str, body: &str) -> Value {
    let mut event = http("POST", "/readings", body);
    event["requestContext"]["timeEpoch"] = json!(1_768_147_200_000_i64 + at_millis);
    event["requestContext"]["requestId"] = json!(id);
    event
}

#[tokio::test]
async fn arrivals_of_one_device_never_share_an_timestamp() {
    let bench = Bench::new();
    let other = Bench::on(bench.store.clone());
    // Two instances, one timestamp, no clock: it is the gateway's time that counts.
    bench.clock.advance(Duration::from_secs(3_600));
    for (n, instance) in [&bench, &other, &bench, &other].into_iter().enumerate() {
        let event = arrived(5, &n.to_string(), &format!(r#"{{"device_id": "d", "t": {n}}}"#));
        assert_eq!(instance.reply(event).await.0, 201);
    }
    let event = arrived(5, "x", r#"{"device_id": "e", "t": 9}"#);
    bench.reply(event).await;
    let expected =
        [(5, "0"), (5, "9"), (6, "1"), (7, "2"), (8, "3")].map(|(at, v)| (at, v.to_owned()));
    assert_eq!(values(&bench.store), expected, "no device shifts another's time");
}

#[tokio::test]
async fn the_same_arrival_again_changes_nothing() {
    let bench = Bench::new();
    for _ in 0..2 {
        for (id, value) in [("a", 1), ("b", 2)] {
            let event = arrived(5, id, &format!(r#"{{"device_id": "d", "t": {value}}}"#));
            assert_eq!(bench.reply(event).await.0, 201);
        }
    }
    assert_eq!(values(&bench.store), [(5, "1".to_owned()), (6, "2".to_owned())]);
}

#[tokio::test]
async fn a_client_s_own_request_id_tells_no_arrival_from_another() {
    let bench = Bench::new();
    for (id, value) in [("a", 1), ("b", 2)] {
        let mut event = arrived(5, id, &format!(r#"{{"device_id": "d", "t": {value}}}"#));
        event["headers"] = json!({"x-request-id": "mine"});
        assert_eq!(bench.reply(event).await.0, 201);
    }
    assert_eq!(values(&bench.store).len(), 2);
}

#[tokio::test]
async fn an_arrival_that_would_be_stamped_far_off_is_not_stored() {
    let bench = Bench::new();
    for n in 0..10 {
        let event = arrived(5, &n.to_string(), r#"{"device_id": "d", "t": 1}"#);
        assert_eq!(bench.reply(event).await.0, 201);
    }
    let body = r#"[{"device_id": "e", "t": 1}, {"device_id": "d", "t": 1}]"#;
    let (status, answer) = bench.reply(arrived(5, "late", body)).await;
    assert_eq!((status, &answer["not_stored"]), (503, &json!([1])), "{answer}");
    assert_eq!(answer.get("errors"), None, "it may be sent again, so it is not refused");
    assert_eq!(bench.store.readings().len(), 11);
}

/// Where the answer to a request leaves each of its readings: how many are stored, which are refused and which
/// are to be sent again.
fn accounts(status: i64, answer: &Value) -> (usize, Vec<u64>, Vec<u64>) {
    let numbers = |list: &Value| -> Vec<u64> {
        list.as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
    };
    let indexes = |list: &Value| -> Vec<u64> {
        list.as_array().into_iter().flatten().filter_map(|it| it["index"].as_u64()).collect()
    };
    let accepted = match status {
        503 => {
            let detail = answer["detail"].as_str().expect("a text");
            let (_, behind) = detail.split_once("readings ").expect("Of N readings M are stored");
            behind.split_once(' ').expect("a number").0.parse().expect("a number")
        }
        400 => 0,
        _ => usize::try_from(answer["accepted"].as_u64().unwrap_or_default()).expect("few"),
    };
    let refused = [indexes(&answer["rejected"]), indexes(&answer["errors"])].concat();
    (accepted, refused, numbers(&answer["not_stored"]))
}

/// Ten readings of one device.
fn ten_readings() -> String {
    let readings =
        (0..10).map(|n| json!({"device_id": "d", "t": n, "timestamp": 1_700_000_000 + n}));
    Value::from(readings.collect::<Vec<_>>()).to_string()
}

#[tokio::test]
async fn what_a_repetition_passes_over_is_not_called_accepted() {
    let bench = Bench::new();
    bench.store.leave_not_stored(&[7, 8, 9]);
    let (status, answer) = bench.post(&ten_readings()).await;
    assert_eq!((status, &answer["not_stored"]), (503, &json!([7, 8, 9])));
    // Somebody deletes them all, and sends the same again.
    let keys: Vec<_> = bench.store.readings().iter().map(ReadingKey::of).collect();
    bench.store.delete_readings(&keys, &invocation()).await;

    bench.store.leave_not_stored(&[2]);
    let (status, answer) = bench.post(&ten_readings()).await;
    assert_eq!((status, &answer["not_stored"]), (503, &json!([9])));
    let detail = answer["detail"].as_str().expect("a text");
    let expected = "Of 10 readings 2 are stored, and 7 were stored by an earlier attempt; send the";
    assert!(detail.starts_with(expected), "{detail}");

    let again = bench.post(&ten_readings()).await;
    assert_eq!(again, (201, json!({"accepted": 1, "accepted_before": 9})));
    assert_eq!(bench.store.readings().len(), 3, "these were written after the deletion");

    // A repetition is one within two minutes.
    bench.clock.advance(Duration::from_secs(120));
    assert_eq!(bench.post(&ten_readings()).await, (201, json!({"accepted": 10})));
    assert_eq!(bench.store.readings().len(), 10);
}

#[tokio::test]
async fn the_same_readings_with_their_rooms_given_are_another_request() {
    let bench = Bench::new();
    let send = async |query: &str| {
        let mut event = http("POST", "/readings", &ten_readings());
        event["rawQueryString"] = json!(query);
        bench.reply(event).await
    };
    // The registry fills in a room.
    bench.post(r#"{"device_id": "d", "room": "kitchen", "t": 1, "timestamp": 1600000000}"#).await;
    bench.store.leave_not_stored(&[9]);
    assert_eq!(send("").await.0, 503);

    assert_eq!(send("rooms=given").await, (201, json!({"accepted": 10})));
    let in_a_room = bench.store.readings().iter().filter(|reading| reading.room.is_some()).count();
    assert_eq!(in_a_room, 1, "as they were sent, none of the ten is in a room");
}

proptest! {
    /// Readings of three devices: by timestamp, of a few instants, or at their arrival, so many that
    /// no millisecond is left; some with a bad value, one device too many, some not stored.
    #[test]
    fn each_reading_is_stored_refused_or_to_be_sent_again_and_never_two_of_these(
        readings in prop::collection::vec((0_u8..4, 0_u8..5, 0_u8..3, prop::bool::weighted(0.2)), 1..12),
        is_merge: bool,
        failing in prop::collection::vec(0_usize..12, 0..4),
        taken in 0_usize..12,
        limit in 1_u32..5,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(async {
            let mut bench = Bench::guarded().await;
            bench.ingest.pipeline.settings.max_devices_per_token = limit;
            let sent = |body: &Value, id: usize| {
                let mut event = arrived(0, &format!("request-{id}"), &body.to_string());
                event["headers"] = json!({"authorization": format!("Bearer {}", given::secret("one"))});
                if is_merge && id == 99 {
                    event["rawQueryString"] = json!("merge=true");
                }
                event
            };
            for n in 0..taken {
                let one = json!({"device_id": "d:0", "t": n});
                bench.reply(sent(&one, n)).await;
            }
            let body: Value = readings.iter().map(|(device, instant, metric, is_bad)| {
                let mut reading = json!({"device_id": format!("d:{device}")});
                reading[format!("m{metric}")] = if *is_bad { json!("x") } else { json!(1) };
                if *instant > 0 {
                    reading["timestamp"] = json!(format!("2026-01-01T00:00:0{instant}Z"));
                }
                reading
            }).collect();
            bench.store.leave_not_stored(&failing);
            let (status, answer) = bench.reply(sent(&body, 99)).await;
            let (accepted, refused, again) = accounts(status, &answer);
            assert_eq!(accepted + refused.len() + again.len(), readings.len(), "{status} {answer}");
            let named: std::collections::BTreeSet<_> = refused.iter().chain(&again).collect();
            assert_eq!(named.len(), refused.len() + again.len(), "{status} {answer}");
            assert!(!answer.to_string().contains("max-values-per-tag"), "InfluxDB's words: {answer}");
            // Without a fault, what is to be sent again is only what found no free millisecond.
            assert!(!failing.is_empty() || taken >= 10 || again.is_empty(), "{answer}");
        });
    }
}

#[tokio::test]
async fn one_request_has_one_arrival_of_a_device_and_metric() {
    let bench = Bench::new();
    let body = r#"[{"device_id": "d", "t": 1}, {"device_id": "d", "t": 2}, {"device_id": "d", "u": 3, "timestamp": null}, {"device_id": "e", "t": 4}, {"device_id": "d", "t": 5, "timestamp": "2026-01-11T16:00:00Z"}]"#;
    let (status, answer) = bench.reply(arrived(0, "a", body)).await;
    assert_eq!((status, &answer["accepted"]), (207, &json!(4)));
    let refused = &answer["rejected"][0];
    assert_eq!((&refused["index"], &refused["field"]), (&json!(1), &json!("timestamp")));
    assert!(
        refused["message"]
            .as_str()
            .expect("text")
            .contains("has t; a request may have one such value")
    );
    let expected = [(0, "5"), (0, "4"), (1, "1 3")].map(|(at, value)| (at, value.to_owned()));
    assert_eq!(values(&bench.store), expected, "different metrics are one reading");
}

#[tokio::test]
async fn with_a_timestamp_the_same_reading_again_changes_nothing() {
    let bench = Bench::new();
    let same = r#"{"device_id": "d", "t": 6, "timestamp": "2026-01-01T00:00:00Z"}"#;
    bench.post(same).await;
    bench.post(same).await;
    assert_eq!(bench.store.readings().len(), 1);
}

#[tokio::test]
async fn a_merging_write_keeps_the_metrics_that_it_does_not_name() {
    let bench = Bench::new();
    let post = async |query: &str, body: &str| {
        let mut event = http("POST", "/readings", body);
        event["rawQueryString"] = json!(query);
        bench.reply(event).await.0
    };
    let at = r#""device_id": "d", "timestamp": "2026-01-11T15:00:00Z""#;
    for _ in 0..2 {
        assert_eq!(post("", &format!(r#"{{{at}, "room": "r", "a": 1, "b": 1}}"#)).await, 201);
        assert_eq!(post("merge=true", &format!(r#"{{{at}, "b": 2, "value": 3}}"#)).await, 201);
        let [reading] = &bench.store.readings()[..] else { panic!("one reading") };
        let values: Vec<_> = reading.metrics().iter().map(|(n, v)| format!("{n}={v}")).collect();
        assert_eq!(values, ["a=1", "b=2", "value=3"]);
        assert_eq!(reading.named_room.as_ref().map(RoomId::as_str), Some("r"));
    }
    assert_eq!(post("merge=false", &format!(r#"{{{at}, "c": 1}}"#)).await, 201);
    assert_eq!(bench.store.readings()[0].metrics().len(), 1);
    for query in ["merge=yes", "merge", "marge=true", "merge=true&merge=true"] {
        assert_eq!(post(query, &format!(r#"{{{at}, "c": 1}}"#)).await, 400, "{query}");
    }
}

#[tokio::test]
async fn merging_makes_no_reading_endless() {
    let bench = Bench::new();
    let reading = |first: usize| {
        let metrics: Vec<_> = (first..first + 64).map(|n| format!(r#""m{n}": 1"#)).collect();
        format!(r#"{{"device_id": "d", "timestamp": 1768147200, {}}}"#, metrics.join(", "))
    };
    let merge = async |first: usize| {
        let mut event = http("POST", "/readings", &reading(first));
        event["rawQueryString"] = json!("merge=true");
        bench.reply(event).await
    };
    for first in [0, 64, 128, 192] {
        assert_eq!(merge(first).await.0, 201);
    }
    let (status, answer) = merge(256).await;
    assert_eq!((status, &answer["errors"][0]["field"]), (400, &json!("m256")), "{answer}");
    assert_eq!(merge(100).await.0, 201, "what it has already can be set");
    assert_eq!(bench.post(&reading(256)).await.0, 201, "a put replaces, it does not add up");
}

#[tokio::test]
async fn a_room_that_is_filled_in_is_marked_and_one_that_a_person_chose_wins() {
    let bench = Bench::new();
    let post = async |body: &str| assert_eq!(bench.post(body).await.0, 201);
    let rooms = || {
        let room = |it: Reading| {
            (it.room.clone().map(String::from).unwrap_or_default(), it.named_room.is_some())
        };
        bench.store.readings().into_iter().map(room).collect::<Vec<_>>()
    };
    post(r#"{"device_id": "d", "timestamp": 1768147200, "room": "a", "t": 1}"#).await;
    post(r#"{"device_id": "d", "timestamp": 1768147201, "t": 1}"#).await;
    assert_eq!(rooms(), [("a".to_owned(), true), ("a".to_owned(), false)]);

    let patch = DevicePatch { room: Edit::Set(given::room("p")), ..DevicePatch::default() };
    let id = "d".parse().expect("an id");
    bench.store.edit_device(&id, &patch, Timestamp::MIN, &invocation()).await.expect("memory");
    bench.clock.advance(Duration::from_secs(60));
    post(r#"{"device_id": "d", "timestamp": 1768147202, "room": "a", "t": 1}"#).await;
    assert_eq!(rooms()[2], ("p".to_owned(), true), "and what it named is kept");
    let history = r#"[{"device_id": "d", "timestamp": 1768147203, "room": "a", "t": 1},
        {"device_id": "d", "timestamp": 1768147204, "t": 1}]"#;
    let mut event = http("POST", "/readings", history);
    event["rawQueryString"] = json!("rooms=given");
    assert_eq!(bench.reply(event.clone()).await.0, 201);
    assert_eq!(rooms()[3..], [("a".to_owned(), true), (String::new(), false)], "as they are sent");
    event["rawQueryString"] = json!("rooms=taken");
    let (status, answer) = bench.reply(event).await;
    assert_eq!((status, &answer["errors"][0]["field"]), (400, &json!("rooms")));
}

/// The rooms of a device's readings, in order of time, after requests of seconds and the rooms that they name.
async fn rooms_after(requests: &[&[(u32, Option<&str>)]]) -> Vec<String> {
    let bench = Bench::new();
    for request in requests {
        let reading = |(second, room): &(u32, Option<&str>)| {
            let mut reading =
                json!({"device_id": "d", "timestamp": 1_768_147_200 + second, "t": 1});
            if let Some(room) = room {
                reading["room"] = json!(room);
            }
            reading
        };
        let body: Value = request.iter().map(reading).collect();
        assert_eq!(bench.post(&body.to_string()).await.0, 201);
    }
    let rooms = bench.store.readings().into_iter().map(|it| it.room.expect("a room"));
    rooms.map(String::from).collect()
}

#[tokio::test]
async fn a_device_that_moves_takes_its_next_readings_along() {
    // A new device; then it moves, within a request and for the next one. The entries are in no order.
    let rooms = rooms_after(&[
        &[(1, None), (0, Some("a")), (3, None)],
        &[(6, None), (5, Some("b")), (4, None)],
        &[(7, None)],
    ]);
    assert_eq!(rooms.await, ["a", "a", "a", "a", "b", "b", "b"]);
}

#[tokio::test]
async fn a_late_reading_takes_those_along_that_were_before_the_device_came_to_where_it_is() {
    let rooms = rooms_after(&[
        &[(60, Some("b"))],
        &[(10, Some("c")), (20, None), (61, None), (60, Some("b"))],
        &[(30, Some("c")), (40, None), (62, None)],
        &[(63, None), (70, Some("e")), (71, None), (50, Some("c"))],
    ]);
    assert_eq!(rooms.await, ["c", "c", "c", "c", "c", "b", "b", "b", "b", "e", "e"]);
}

#[tokio::test]
async fn a_device_that_the_cache_lacks_is_looked_up_once() {
    let bench = Bench::new();
    bench.ingest.load().await;
    // Another instance meets the device, and a person puts it into a room.
    let other = Bench::on(bench.store.clone());
    other.post(r#"{"device_id": "d", "timestamp": 1768147200, "room": "a", "t": 1}"#).await;
    let reads = bench.store.calls().reads;
    for n in 1..4 {
        let body = format!(r#"{{"device_id": "d", "timestamp": {}, "t": 1}}"#, 1_768_147_200 + n);
        assert_eq!(bench.post(&body).await.0, 201);
    }
    assert_eq!(bench.store.calls().reads, reads + 1);
    let rooms = bench.store.readings().into_iter().filter_map(|reading| reading.room);
    assert_eq!(rooms.filter(|room| room.as_str() == "a").count(), 4);
}

#[tokio::test]
async fn a_device_introduces_a_bounded_number_of_rooms() {
    let bench = Bench::guarded().await;
    let rooms = async || bench.store.rooms(&invocation()).await.expect("memory").found.len();
    for request in 0..3 {
        let reading = |n: usize| {
            format!(
                r#"{{"device_id": "d", "timestamp": {}, "room": "r{request}-{n}", "t": 1}}"#,
                1_768_147_200 + n
            )
        };
        let body: Vec<_> = (0..40).map(reading).collect();
        assert_eq!(bench.post_with("one", &body.join("\n")).await, (201, json!({"accepted": 40})));
        assert_eq!(rooms().await, 32);
    }
    let stored = bench.store.readings();
    assert!(stored.iter().all(|reading| reading.named_room.is_some()), "they stay in the readings");
    let other = r#"{"device_id": "e", "room": "kitchen", "t": 1}"#;
    assert_eq!(bench.post_with("two", other).await.0, 201);
    assert_eq!(rooms().await, 33, "another device may introduce others");
}

#[tokio::test]
async fn an_iot_message_that_is_not_stored_fails_and_is_repeated() {
    let bench = Bench::new();
    bench.ingest.load().await;
    bench.store.leave_not_stored(&[0]);
    let message = mqtt("d", r#"{"timestamp": 1768147200, "temperature": 21.5}"#.as_bytes());
    assert!(bench.send(message.clone()).await.is_err());
    assert_eq!(bench.reply(message).await, (0, json!({"accepted": 1})));
}

#[tokio::test]
async fn an_iot_message_that_can_never_be_stored_is_answered_not_repeated() {
    let bench = Bench::new();
    for (device, payload, why) in [
        ("d", r#"{"readings": 5}"#, "must be an array"),
        ("d", "warm", "not a reading"),
        ("ROOM", ONE, "reserved"),
        ("a+b", ONE, "contains '+'"),
        ("d", r#"{"temperature": "warm"}"#, "must be a number"),
        ("e", ONE, "not the sender's"),
    ] {
        let message = mqtt(device, payload.as_bytes());
        let (_, answer) = bench.reply(message).await;
        assert_eq!(answer["accepted"], 0);
        assert!(answer["rejected"][0]["message"].as_str().expect("text").contains(why), "{answer}");
    }
}

#[tokio::test]
async fn an_mqtt_payload_is_read_like_a_body_and_belongs_to_the_topics_device() {
    let bench = Bench::new();
    let lines = "{\"timestamp\": 1768147201, \"t\": 1}\n{\"timestamp\": 1768147202, \"t\": 1, \"device_id\": \"d\"}";
    for payload in [lines.as_bytes().to_vec(), gzip(lines.as_bytes())] {
        let answer = bench.reply(mqtt("d", &payload)).await;
        assert_eq!(answer, (0, json!({"accepted": 2})));
    }
    let other = r#"[{"timestamp": 1768147203, "t": 1}, {"timestamp": 1768147203, "t": 1, "device_id": "e"}]"#;
    let (_, answer) = bench.reply(mqtt("d", other.as_bytes())).await;
    assert_eq!((&answer["accepted"], &answer["rejected"][0]["index"]), (&json!(1), &json!(1)));
    let devices: Vec<_> = bench.store.readings().into_iter().map(|r| r.device).collect();
    assert!(devices.iter().all(|device| device.as_str() == "d"), "{devices:?}");
    assert_eq!(devices.len(), 3);
}

#[tokio::test]
async fn a_repeated_mqtt_message_is_the_same_reading_at_the_broker_s_time() {
    let bench = Bench::new();
    for _ in 0..2 {
        let message = mqtt("d", br#"[{"t": 1}, {"u": 2}, {"t": 3}]"#);
        let (_, answer) = bench.reply(message).await;
        assert_eq!((&answer["accepted"], &answer["rejected"][0]["index"]), (&json!(2), &json!(2)));
        bench.clock.advance(Duration::from_secs(60));
    }
    assert_eq!(values(&bench.store), [(7, "1 2".to_owned())]);
    // Another message in the same millisecond is another reading, and one over HTTP a third.
    bench.reply(mqtt("d", br#"{"humidity": 4}"#)).await;
    bench.reply(arrived(7, "http", r#"{"device_id": "d", "t": 5}"#)).await;
    bench.reply(mqtt("d", br#"{"humidity": 4}"#)).await;
    let expected = [(7, "1 2"), (8, "4"), (9, "5")].map(|(at, value)| (at, value.to_owned()));
    assert_eq!(values(&bench.store), expected);
    let mut without = mqtt("d", ONE.as_bytes());
    without.as_object_mut().expect("an object").remove("timestamp");
    assert!(serde_json::from_value::<Event>(without).is_err(), "a repeat would be another reading");
}

/// A message that the broker took 7 milliseconds after the start.
fn mqtt(device: &str, payload: &[u8]) -> Value {
    let timestamp = 1_768_147_200_007_i64;
    json!({"device_id": device, "timestamp": timestamp, "data": STANDARD.encode(payload)})
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(bytes).expect("memory");
    gzip.finish().expect("memory")
}

#[tokio::test]
async fn bodies_beyond_the_limits_are_refused() {
    let bench = Bench::new();
    assert_eq!(bench.post(&" ".repeat((1 << 20) + 1)).await.0, 413);
    let post = async |bytes: &[u8]| {
        let mut event = http("POST", "/readings", "");
        event["body"] = json!(STANDARD.encode(bytes));
        event["isBase64Encoded"] = json!(true);
        bench.reply(event).await
    };
    assert_eq!(post(&gzip(ONE.as_bytes())).await.0, 201);
    assert_eq!(post(&gzip(&vec![b' '; 9 << 20])).await.0, 413, "a bomb");
    let whole = gzip(ONE.as_bytes());
    assert_eq!(post(&whole[..whole.len() - 9]).await.0, 400, "cut short");
}

#[tokio::test]
async fn other_paths_and_methods_are_not_answered_here() {
    let bench = Bench::new();
    for (method, path, status) in
        [("GET", "/readings", 405), ("POST", "/reading", 404), ("GET", "/devices", 404)]
    {
        let (answered, _) = bench.reply(http(method, path, ONE)).await;
        assert_eq!(answered, status, "{method} {path}");
    }
}

#[tokio::test]
async fn the_log_holds_no_body() {
    let bench = Bench::new();
    bench.post(r#"{"device_id": "canary-id", "temperature": "canary-value"}"#).await;
    bench.post(r#"{"device_id": "canary-id", "canary_metric": 1}"#).await;
    bench.post("canary").await;
    let log = bench.log();
    assert!(log.contains("readings.accepted"));
    assert!(!log.contains("canary"), "{log}");
}

#[tokio::test]
async fn without_a_valid_token_nothing_is_stored() {
    let bench = Bench::guarded().await;
    for token in ["", "unknown", "revoked"] {
        let (status, answer) = bench.post_with(token, ONE).await;
        assert_eq!(status, 401, "{token}: {answer}");
    }
    let (_, unknown) = bench.post_with("unknown", ONE).await;
    assert_eq!(unknown, bench.post_with("revoked", ONE).await.1, "they look alike");
    assert_eq!(bench.post_with("read", ONE).await.0, 403);
    assert_eq!(bench.post_with("one", ONE).await.0, 201);
    assert_eq!(bench.post_with("admin", r#"{"device_id": "any", "t": 1}"#).await.0, 201);
    assert_eq!(bench.store.readings().len(), 2);
}

#[tokio::test]
async fn a_token_writes_for_its_own_devices_only() {
    let bench = Bench::guarded().await;
    let both = r#"[{"device_id": "d", "t": 1}, {"device_id": "e", "t": 1}]"#;
    let (status, answer) = bench.post_with("one", both).await;
    assert_eq!((status, &answer["errors"][0]["index"]), (403, &json!(1)));
    assert!(bench.store.readings().is_empty(), "nothing of it is stored");
    assert_eq!(bench.post_with("two", both).await.0, 201);
    assert_eq!(bench.post_with("one", r#"{"u": 1}"#).await.0, 201, "its device need not be named");
    assert_eq!(bench.post_with("two", r#"{"u": 1}"#).await.0, 400, "one of two must be");
    assert_eq!(bench.post_with("one", r#"{"device_id": "DEVICE", "u": 1}"#).await.0, 400);
}

#[tokio::test]
async fn a_revocation_is_heard_of_in_time_and_a_token_is_looked_up_once() {
    let bench = Bench::guarded().await;
    bench.ingest.load().await;
    let reads = bench.store.calls().reads;
    for _ in 0..3 {
        assert_eq!(bench.post_with("one", ONE).await.0, 201);
    }
    // And its device and room, which the cache did not know.
    assert_eq!(bench.store.calls().reads, reads + 3);
    let hash = TokenHash::of(&given::secret("one"));
    assert!(
        bench.store.revoke_token(&hash, bench.clock.now(), &invocation()).await.expect("memory")
    );
    bench.clock.advance(runtime::authentication::TOKEN_CACHE_AGE.to_std().expect("positive"));
    assert_eq!(bench.post_with("one", ONE).await.0, 401);
}

#[tokio::test]
async fn the_log_holds_no_token() {
    let bench = Bench::guarded().await;
    bench.post_with("canary-token", ONE).await;
    let mut event = http("POST", "/readings", ONE);
    event["rawQueryString"] = json!("p=canary-token&x=canary-query");
    bench.reply(event).await;
    let log = bench.log();
    assert!(log.contains("401") && !log.contains("canary"), "{log}");
}

#[tokio::test]
async fn what_is_not_understood_of_a_post_is_refused_and_nothing_is_stored() {
    let bench = Bench::new();
    for (query, header, value, status) in [
        ("device=d", "accept", "*/*", 400),
        ("", "content-encoding", "br", 415),
        ("", "content-encoding", "gzip", 400),
        ("", "content-type", "multipart/form-data; boundary=x", 415),
        ("", "content-type", "image/png", 415),
    ] {
        let mut event = http("POST", "/readings", ONE);
        event["rawQueryString"] = json!(query);
        event["headers"] = json!({header: value});
        let (found, answer) = bench.reply(event).await;
        assert_eq!(found, status, "{query}{header}: {value}: {answer}");
    }
    assert!(bench.store.readings().is_empty());
    for content_type in ["application/x-www-form-urlencoded", "application/jsonl", "text/plain"] {
        let mut event = http("POST", "/readings", ONE);
        event["headers"] = json!({"content-type": content_type});
        assert_eq!(bench.reply(event).await.0, 201, "{content_type}");
    }
}

#[tokio::test]
async fn a_token_that_cannot_be_looked_up_is_logged_with_its_cause() {
    let bench = Bench::guarded().await;
    bench.store.fail_with([StoreError::Unavailable("connection refused".into())]);
    assert_eq!(bench.post_with("one", ONE).await.0, 503);
    let log = bench.log();
    let cause = r#""table.error":"the table cannot be reached: connection refused""#;
    assert!(log.contains(cause) && log.contains(r#""level":"ERROR""#), "{log}");
}

/// A bench whose registry has more devices than memory holds: `d0` and so on, in the room `r`.
async fn bench_beyond_memory() -> Bench {
    let bench = Bench::new();
    fill_beyond_memory(&bench).await;
    bench
}

async fn fill_beyond_memory(bench: &Bench) {
    let at = bench.clock.now();
    for n in 0..=table::MAX_CACHED_ENTRIES {
        let first = given::reading(&format!("d{n}"), at, Some("r"), &[("co2", "1")]);
        given::register_devices_of(&bench.store, &[first]).await;
    }
    given::register_room(&bench.store, "r", at).await;
    bench.ingest.load().await;
}

#[tokio::test]
async fn beyond_memory_a_device_is_looked_up_once_and_not_per_reading() {
    let bench = bench_beyond_memory().await;
    let counts = || {
        let calls = bench.store.calls();
        (calls.reads, calls.registry_writes)
    };
    let before = counts();
    let body = r#"[{"device_id": "d7", "co2": 1}, {"device_id": "d10000", "room": "r", "co2": 2}]"#;
    let mut expected = (before.0 + 1, before.1);
    for _ in 0..3 {
        bench.clock.advance(Duration::from_millis(1));
        assert_eq!(bench.post(body).await.0, 201);
        assert_eq!(counts(), expected);
    }
    assert!(
        bench.store.readings().iter().all(|it| it.room.as_ref().is_some_and(|r| r.as_str() == "r"))
    );
    // A new device is registered once, with its room.
    let new = r#"{"device_id": "new", "room": "s", "co2": 1}"#;
    bench.clock.advance(Duration::from_millis(1));
    assert_eq!(bench.post(new).await.0, 201);
    expected = (expected.0 + 2, expected.1 + 2);
    assert_eq!(counts(), expected);
    bench.clock.advance(Duration::from_millis(1));
    bench.post(r#"{"device_id": "new", "co2": 1}"#).await;
    assert_eq!(counts(), expected);
    assert_eq!(
        bench.store.readings().last().expect("stored").room,
        Some("s".parse().expect("an id"))
    );
}

#[tokio::test]
async fn beyond_memory_a_move_is_followed_and_a_persons_choice_is_seen_in_time() {
    let bench = bench_beyond_memory().await;
    let last_room = |bench: &Bench| {
        let last = bench.store.readings().pop().expect("stored");
        last.room.expect("a room").to_string()
    };
    let send = async |body: &str| {
        bench.clock.advance(Duration::from_millis(1));
        assert_eq!(bench.post(body).await.0, 201);
        last_room(&bench)
    };
    let silent = r#"{"device_id": "d7", "co2": 1}"#;
    assert_eq!(send(silent).await, "r");
    send(r#"{"device_id": "d7", "room": "s", "co2": 1}"#).await;
    assert_eq!(send(silent).await, "s", "moved by a reading");
    let patch = DevicePatch { room: Edit::Set(given::room("t")), ..DevicePatch::default() };
    let id = "d7".parse().expect("an id");
    bench.store.edit_device(&id, &patch, Timestamp::MIN, &invocation()).await.expect("memory");
    assert_eq!(send(silent).await, "s", "not known here yet");
    bench.clock.advance(Duration::from_secs(3_600));
    assert_eq!(send(silent).await, "t");
    assert_eq!(
        send(r#"{"device_id": "d7", "room": "s", "co2": 1}"#).await,
        "t",
        "a person chose it"
    );
}
