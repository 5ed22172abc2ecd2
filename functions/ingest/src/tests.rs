//! The function on a table in memory that fails on demand.

mod about;
mod cases;
mod corpus;
mod fetched;
mod lines;
mod meters;
mod payloads;
#[path = "../../../tests/scenario.rs"]
mod scenario;

use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lambda_events::event::apigw::ApiGatewayV2httpRequest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::{
    Device, DeviceObservation, DevicePatch, Edit, Reading, RoomId, Scope, Timestamp, Token,
    TokenHash,
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
use scenario::Answer;

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
            let Some(first) = own.next() else { continue };
            let mut observation = DeviceObservation::of(first);
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
            let answer = Answer::in_reply(&reply);
            assert!(answer.event_bytes < 6_000_000, "{} bytes", answer.event_bytes);
            let answer = answer.json();
            let places = |member: &str| answer[member].as_array().expect("a list").clone();
            let told = places(member).into_iter().map(|refusal| refusal["index"].clone());
            let all: Vec<_> = told.chain(places(more)).collect();
            assert_eq!(all, (good..10_000).map(Value::from).collect::<Vec<_>>(), "{name}");
        }
    }
}

fn arrived(at_millis: i64, id: &str, body: &str) -> Value {
    let mut event = http("POST", "/readings", body);
    event["requestContext"]["timeEpoch"] = json!(1_768_147_200_000_i64 + at_millis);
    event["requestContext"]["requestId"] = json!(id);
    event
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
async fn a_message_may_be_gzip() {
    let bench = Bench::new();
    let answer = bench.reply(mqtt("d", &gzip(ONE.as_bytes()))).await;
    assert_eq!(answer, (0, json!({"accepted": 1})));
}

/// Its repetition would be another reading.
#[test]
fn a_message_without_the_time_of_the_broker_is_no_event() {
    let mut message = mqtt("d", ONE.as_bytes());
    assert!(serde_json::from_value::<Event>(message.clone()).is_ok());
    message.as_object_mut().expect("an object").remove("timestamp");
    assert!(serde_json::from_value::<Event>(message).is_err());
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

async fn fill_beyond_memory(bench: &Bench) {
    let at = bench.clock.now();
    for n in 0..=table::MAX_CACHED_ENTRIES {
        let first = given::reading(&format!("d{n}"), at, Some("r"), &[("co2", "1")]);
        given::register_devices_of(&bench.store, &[first]).await;
    }
    given::register_room(&bench.store, "r", at).await;
    bench.ingest.load().await;
}
