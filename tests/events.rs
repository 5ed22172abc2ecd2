//! Every sample event, run through its handler: folder and tests name the same files. Starts no engine.

use std::collections::BTreeSet;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use alerting::{Alerting, Carrier, NoEmail};
use alerts::{Answer, Request};
use domain::{Device, Timestamp, TokenHash, Zone};
use ingest::{Ingest, Reply};
use query::Query;
use registry::Registry;
use rollup::Rollup;
use runtime::auth::Auth;
use runtime::clock::{Deadline, TestClock};
use runtime::dead_letters::MemoryQueue;
use runtime::telemetry::Telemetry;
use runtime::work_queue::MemoryWorkQueue;
use sending::{SendRequest, Unanswered};
use serde_json::{Value, json};
use table::memory_db::MemoryDb;
use table::{FindToken as _, Invocation, LookUpRegistry as _, ReadRegistry as _};

use crate::given::{label, unit};

/// A receiver that takes every message.
#[derive(Clone, Default)]
struct Receiver(Arc<Mutex<Vec<String>>>);

impl SendRequest for Receiver {
    fn send(&self, request: &Request) -> Result<Answer, Unanswered> {
        let text = request.body().to_owned();
        self.0.lock().expect("no test panics with it").push(text);
        Ok(Answer { status: 200, retry_after: None, text: String::new() })
    }
}

/// The five functions on one table in memory, at 16:05 of the day of the events.
struct Bench {
    store: MemoryDb,
    ingest: Ingest<MemoryDb, TestClock>,
    query: Query<MemoryDb, TestClock>,
    registry: Registry<MemoryDb, MemoryQueue, TestClock>,
    rollup: Rollup<MemoryDb, MemoryWorkQueue, MemoryQueue, TestClock>,
    alerting: Alerting<MemoryDb, TestClock>,
    receiver: Receiver,
    queue: MemoryQueue,
}

impl Bench {
    fn new() -> Self {
        let store = MemoryDb::with_conditions_index();
        let clock = TestClock::at(
            Timestamp::parse("2026-01-11T16:05:00Z", Timestamp::MIN).expect("a timestamp"),
        );
        // Nothing is cached: the functions of a bench share the table, not a cache.
        let age = Duration::ZERO;
        let silent = Telemetry::silent;
        let queue = MemoryQueue::default();
        let receiver = Receiver::default();
        Self {
            ingest: Ingest::new(
                store.clone(),
                clock.clone(),
                silent(),
                ingest::Settings {
                    registry_max_age: age,
                    auth: Auth::Owner,
                    ..ingest::Settings::default()
                },
            ),
            query: Query::new(
                store.clone(),
                clock.clone(),
                silent(),
                query::Settings {
                    registry_max_age: age,
                    auth: Auth::Owner,
                    ..query::Settings::default()
                },
            ),
            registry: Registry::new(store.clone(), queue.clone(), clock.clone(), silent()),
            alerting: Alerting::new(
                store.clone(),
                Carrier::new(receiver.clone(), NoEmail),
                clock.clone(),
                silent(),
                alerting::Settings {
                    page_url: "https://page.example.org/".to_owned(),
                    heartbeat: None,
                },
            ),
            receiver,
            rollup: Rollup::new(
                store.clone(),
                MemoryWorkQueue::default(),
                queue.clone(),
                clock,
                silent(),
                rollup::Settings {
                    zone: Zone::UTC,
                    retention: rollup::Retention::default(),
                    following: rollups::Following::default(),
                    max_read_units: 500,
                    max_write_units: 500,
                },
            ),
            store,
            queue,
        }
    }

    /// What the handler of the event's folder answers.
    async fn run(&self, file: &str) -> Value {
        let text = std::fs::read_to_string(folder().join(file)).expect(file);
        let deadline = Deadline::after(Duration::from_secs(10));
        match file.split('/').next() {
            Some("ingest") => {
                let event: ingest::Event = serde_json::from_str(&text).expect(file);
                match self.ingest.handle(event, deadline).await.expect("memory does not fail") {
                    Reply::Http(response) => http(&json!(response)),
                    iot @ Reply::Iot(_) => json!({"status": null, "body": iot}),
                }
            }
            Some("query") => {
                let event = serde_json::from_str(&text).expect(file);
                http(&json!(self.query.handle(event, deadline).await))
            }
            Some("registry") => {
                let event = serde_json::from_str(&text).expect(file);
                json!(self.registry.handle(event, deadline).await)
            }
            Some("rollup") => {
                let event = serde_json::from_str(&text).expect(file);
                json!(self.rollup.handle(event, deadline).await.expect("memory does not fail"))
            }
            Some("alerting") => {
                let event = serde_json::from_str(&text).expect(file);
                // It keeps a part of its minute for what comes after the sending.
                let minute = Deadline::after(Duration::from_secs(55));
                Box::pin(self.alerting.handle(event, minute)).await.expect("memory does not fail");
                Value::Null
            }
            _ => panic!("{file} is in no function's folder"),
        }
    }

    /// Every stored reading, as a line.
    fn stored(&self) -> Vec<String> {
        let line = |reading: &domain::Reading| {
            let values = reading.metrics().iter().map(|(name, value)| format!(" {name}={value}"));
            format!("{} {}{}", reading.device.as_str(), reading.at, values.collect::<String>())
        };
        self.store.readings().iter().map(line).collect()
    }

    /// The bodies of all messages that were sent.
    fn sent(&self) -> Vec<String> {
        self.receiver.0.lock().expect("no test panics with it").clone()
    }

    async fn device(&self, id: &str) -> Device {
        let invocation = Invocation::until(Deadline::after(Duration::from_secs(1)));
        let device = self.store.device(&id.parse().expect("an id"), &invocation).await;
        device.expect("memory does not fail").unwrap_or_else(|| panic!("{id} is registered"))
    }

    async fn registry(&self) -> (Vec<Device>, usize) {
        let invocation = Invocation::until(Deadline::after(Duration::from_secs(1)));
        let devices = self.store.devices(&invocation).await.expect("memory does not fail").found;
        (devices, self.store.rooms(&invocation).await.expect("memory does not fail").found.len())
    }
}

fn metric(name: &str) -> domain::MetricName {
    name.parse().expect("a name")
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../events")
}

fn http(response: &Value) -> Value {
    let text = response["body"].as_str().unwrap_or_default();
    let body = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    json!({"status": response["statusCode"], "headers": response["headers"], "body": body})
}

type Check = for<'a> fn(&'a Bench, Value) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// An event, the events before it, and what must come of it, said once and said again.
struct Case {
    file: &'static str,
    before: &'static [&'static str],
    check: Check,
}

const ARRAY: &str = "ingest/array.json";
const SET_HOME: &str = "query/set-home.json";
const PUT_ALERT: &str = "query/put-alert.json";
const PUT_CHANNEL: &str = "query/put-channel.json";
const TEST_CHANNEL: &str = "query/test-channel.json";
const MOVE_DEVICE: &str = "query/move-device.json";
const NEW_DEVICE: &str = "registry/new-device.json";

macro_rules! cases {
    ($($file:literal after [$($before:expr),*] |$bench:ident, $answer:ident| $check:block)*) => {
        const CASES: &[Case] = &[$(Case {
            file: $file,
            before: &[$($before),*],
            check: |$bench, $answer| Box::pin(async move { let _ = $bench; $check }),
        }),*];
    };
}

cases! {
    "alerting/hint.json" after [PUT_CHANNEL, TEST_CHANNEL] |bench, answer| {
        assert_eq!(answer, Value::Null);
        let [message] = &bench.sent()[..] else { panic!("sent once: {:?}", bench.sent()) };
        assert!(message.contains("test"), "{message}");
    }
    "alerting/schedule.json" after [ARRAY, PUT_CHANNEL, PUT_ALERT] |bench, answer| {
        assert_eq!(answer, Value::Null);
        let [message] = &bench.sent()[..] else { panic!("sent once: {:?}", bench.sent()) };
        assert!(message.contains("Too warm"), "{message}");
    }
    "ingest/one-reading.json" after [] |bench, answer| {
        assert_eq!(answer["status"], 201);
        assert_eq!(answer["body"], json!({"accepted": 1}));
        assert_eq!(bench.store.readings().len(), 1);
        assert_eq!(bench.device("remo-e").await.place().room().expect("a room").as_str(), "chiyoda1-a");
    }
    "ingest/array.json" after [] |bench, answer| {
        assert_eq!(answer["body"], json!({"accepted": 3}));
        assert_eq!(bench.store.readings().len(), 3);
        assert_eq!(bench.registry().await.1, 1);
    }
    "ingest/readings-member.json" after [] |bench, answer| {
        assert_eq!(answer["body"], json!({"accepted": 2}));
        assert_eq!(bench.store.readings().len(), 2);
    }
    "ingest/ndjson.json" after [] |bench, answer| {
        assert_eq!(answer["body"], json!({"accepted": 3}));
        assert_eq!(bench.store.readings().len(), 3);
    }
    "ingest/gzip.json" after [] |bench, answer| {
        assert_eq!(answer["body"], json!({"accepted": 3}));
        assert_eq!(bench.store.readings().len(), 3);
    }
    "ingest/same-timestamp-twice.json" after [ARRAY] |bench, answer| {
        assert_eq!(answer["body"], json!({"accepted": 2}));
        let readings = bench.store.readings();
        let one = readings.iter().find(|r| r.at.to_string() == "2026-01-11T16:00:00.000Z" && r.device.as_str() == "remo-3");
        let one = one.expect("it is there");
        assert_eq!(one.metrics().len(), 2, "both metrics are in one reading");
        assert_eq!(one.room.as_ref().expect("the registry's").as_str(), "chiyoda1-a");
    }
    "ingest/some-refused.json" after [] |bench, answer| {
        assert_eq!(answer["status"], 207);
        assert_eq!(answer["body"]["accepted"], 1);
        let rejected: Vec<_> = answer["body"]["rejected"].as_array().expect("a list").iter()
            .map(|r| (r["index"].as_u64().expect("a number"), r["field"].as_str().expect("a name").to_owned())).collect();
        let expected = [(1, "device_id"), (2, "temperature"), (3, "pk"), (4, "timestamp")];
        assert_eq!(rejected, expected.map(|(n, field)| (n, field.to_owned())));
        assert_eq!(bench.store.readings().len(), 1);
    }
    "ingest/none-valid.json" after [] |bench, answer| {
        assert_eq!(answer["status"], 400);
        assert_eq!(answer["headers"]["content-type"], "application/problem+json");
        assert!(answer["body"]["errors"][0]["message"].as_str().expect("text").contains("'#'"));
        assert!(bench.store.readings().is_empty());
    }
    "ingest/not-json.json" after [] |bench, answer| {
        assert_eq!(answer["status"], 400);
        assert!(answer["body"]["detail"].as_str().expect("text").contains("line 1 column"));
        assert!(bench.store.readings().is_empty());
    }
    "ingest/merge.json" after [ARRAY] |bench, answer| {
        assert_eq!(answer["body"], json!({"accepted": 1}));
        let readings = bench.store.readings();
        let one = readings.iter().find(|r| r.metrics().keys().any(|name| name.as_str() == "co2"));
        let names: Vec<_> = one.expect("it is there").metrics().keys().map(domain::MetricName::as_str).collect();
        assert!(names.len() > 1, "what the reading had before is there still: {names:?}");
    }
    "ingest/no-timestamp.json" after [] |bench, answer| {
        assert_eq!(answer["status"], 207);
        assert_eq!(answer["body"]["rejected"][0]["index"], 2);
        let readings = bench.store.readings();
        let [one] = readings.as_slice() else { panic!("one: {readings:?}") };
        assert_eq!(one.at.to_string(), "2026-01-11T16:00:05.000Z", "the gateway's time");
        assert_eq!(one.metrics().len(), 2);
    }
    "ingest/iot-rule-no-timestamp.json" after [] |bench, answer| {
        assert_eq!(answer["body"], json!({"accepted": 1}));
        assert_eq!(bench.store.readings()[0].at.to_string(), "2026-01-11T16:00:03.250Z", "the broker's time");
    }
    "ingest/iot-rule.json" after [] |bench, answer| {
        assert_eq!(answer["body"], json!({"accepted": 1}));
        assert_eq!(bench.store.readings()[0].device.as_str(), "remo-3");
    }
    "ingest/iot-rule-batch.json" after [] |bench, answer| {
        assert_eq!(answer["body"]["accepted"], 2);
        assert_eq!(answer["body"]["rejected"][0]["index"], 2);
        assert!(bench.store.readings().iter().all(|r| r.device.as_str() == "remo-3"));
    }
    "ingest/iot-rule-damaged-line.json" after [] |bench, answer| {
        assert_eq!(answer["body"]["accepted"], 1);
        assert_eq!(answer["body"]["rejected"][0]["index"], 0);
        assert_eq!(bench.store.readings()[0].at.to_string(), "2026-01-11T16:01:00.000Z");
    }
    "ingest/tasmota-plug.json" after [] |bench, answer| {
        assert_eq!(answer["status"], 201);
        let plug = bench.device("plug").await;
        assert_eq!(plug.place().room().map(domain::RoomId::as_str), Some("kitchen"));
        let (voltage, energy) = (&plug.metrics()[&metric("voltage")], &plug.metrics()[&metric("cumulative_kwh_p")]);
        assert_eq!((voltage.kind, voltage.unit.clone()), (domain::MetricKind::Gauge, Some(unit("V"))));
        assert_eq!((energy.kind, energy.unit.clone()), (domain::MetricKind::Counter, Some(unit("kWh"))));
        assert_eq!(bench.stored(), [
            "plug 2026-01-11T16:00:05.000Z apparent_power=2650 cumulative_kwh_p=6.294 current=11.661 current_w=2635 power_factor=0.99 reactive_power=282 voltage=227",
        ]);
    }
    "ingest/tasmota-phases.json" after [] |bench, answer| {
        assert_eq!(answer["status"], 207);
        assert_eq!(answer["body"]["rejected"][0]["field"], "Voltage");
        assert_eq!(bench.stored(), [
            "meter 2026-01-11T15:59:58.000Z cumulative_kwh_p=3.5 current_a=1.32 current_b=2.1 current_w_a=10 current_w_b=0 current_w_c=7",
        ]);
    }
    "ingest/tasmota-no-numbers.json" after [] |bench, answer| {
        assert_eq!(answer["status"], 204);
        assert_eq!(answer["body"], "");
        assert_eq!(bench.stored(), Vec::<String>::new());
    }
    "ingest/tasmota-only-words.json" after [] |bench, answer| {
        assert_eq!(answer["status"], 200);
        assert_eq!(answer["body"], json!({"accepted": 0, "ignored": ["Button1/Action"]}));
        assert_eq!(bench.stored(), Vec::<String>::new());
    }
    "ingest/topic-things-stack.json" after [] |bench, answer| {
        assert_eq!(answer["body"], json!({"accepted": 1}));
        assert_eq!(bench.stored(), [
            "attic 2026-01-11T16:00:01.000Z battery_voltage=3.05 humidity=48.2 signal_strength=-80 snr=9.5 temperature=21.5",
        ]);
    }
    "ingest/topic-chirpstack.json" after [] |bench, answer| {
        assert_eq!(answer["body"], json!({"accepted": 1}));
        let named = bench.device("24e124725c140542").await.source().name.clone();
        assert_eq!(named, Some(label("Attic air")));
        assert_eq!(bench.store.readings().len(), 1);
    }
    "ingest/tasmota-no-device.json" after [] |bench, answer| {
        assert_eq!(answer["status"], 400);
        assert_eq!(answer["body"]["errors"][0]["field"], "device");
        assert_eq!(bench.stored(), Vec::<String>::new());
    }
    "ingest/tasmota-not-understood.json" after [] |bench, answer| {
        assert_eq!(answer["status"], 400);
        let detail = answer["body"]["detail"].as_str().expect("text");
        assert!(detail.starts_with("The payload is not Tasmota's; looked for ENERGY,"), "{detail}");
        assert_eq!(bench.stored(), Vec::<String>::new());
    }
    "ingest/remo-meter.json" after [] |bench, answer| {
        assert_eq!(answer["status"], 201);
        let meter = bench.device("remo-e").await;
        let modulus = meter.metrics()[&metric("cumulative_kwh_p")].modulus.clone();
        assert_eq!(modulus, domain::Decimal::parse("100000").ok());
        assert_eq!(bench.stored(), [
            "remo-e 2024-09-20T01:46:14.000Z cumulative_kwh_n=0.9 cumulative_kwh_p=8048.1 current_w=599",
        ]);
    }
    "ingest/quick-no-token.json" after [] |bench, answer| {
        assert_eq!(answer["status"], 401);
        assert_eq!(answer["headers"]["cache-control"], "no-store");
        assert_eq!(bench.stored(), Vec::<String>::new());
    }
    "ingest/topic-tasmota.json" after [] |bench, answer| {
        assert_eq!(answer["body"], json!({"accepted": 2}));
        assert_eq!(bench.stored(), [
            "plug 2026-01-11T16:00:00.000Z cumulative_kwh_p=6.294 current_w=2635",
            "plug:DS18B20 2026-01-11T16:00:00.000Z temperature=20.6",
        ]);
    }
    "ingest/topic-shelly.json" after [] |bench, answer| {
        assert_eq!(answer["body"], json!({"accepted": 1}));
        assert_eq!(bench.stored(), [
            "attic 2026-01-11T16:00:00.500Z temperature=21.4",
        ]);
    }
    "ingest/topic-zigbee2mqtt.json" after [] |bench, answer| {
        assert_eq!(answer["body"], json!({"accepted": 1}));
        assert_eq!(bench.stored(), [
            "bath:Leak_sensor 2026-01-11T16:00:03.000Z battery=100 battery_low=0 link_quality=97 water_leak=1",
        ]);
    }
    "ingest/topic-no-readings.json" after [] |bench, answer| {
        assert_eq!(answer["body"], json!({"accepted": 0}));
        assert_eq!(bench.stored(), Vec::<String>::new());
    }
    "ingest/topic-unknown-format.json" after [] |bench, answer| {
        assert_eq!(answer["body"]["rejected"][0]["field"], "topic");
        assert_eq!(bench.stored(), Vec::<String>::new());
    }
    "query/list-devices.json" after [ARRAY] |bench, answer| {
        let ids: Vec<_> = answer["body"]["data"].as_array().expect("a list").iter().map(|d| &d["device_id"]).collect();
        assert_eq!(ids, ["remo-3", "remo-e"]);
        assert_eq!(answer["body"]["data"][1]["metrics"]["cumulative_kwh_p"], json!({"kind": "counter", "unit": "kWh"}));
        assert!(answer["headers"]["etag"].is_string());
    }
    "query/head-devices.json" after [ARRAY] |bench, answer| {
        assert_eq!((&answer["status"], &answer["body"]), (&json!(200), &json!("")));
        assert!(answer["headers"]["etag"].is_string());
        assert_ne!(answer["headers"]["content-length"], "0");
    }
    "query/list-devices-latest.json" after [ARRAY] |bench, answer| {
        let latest = &answer["body"]["data"][0]["latest"];
        assert_eq!(latest["metrics"]["temperature"], json!({"value": 21.6, "timestamp": "2026-01-11T16:01:00.000Z"}));
    }
    "query/influxql.json" after [ARRAY] |bench, answer| {
        let series = &answer["body"]["results"][0]["series"];
        assert_eq!(series[0]["tags"], json!({"device": "remo-3"}), "{answer}");
        assert_eq!(series[0]["columns"], json!(["time", "mean"]));
        let values = series[0]["values"].as_array().expect("rows");
        assert_eq!(values[..3], [json!([1_768_147_200_000_i64, 21.5]), json!([1_768_147_260_000_i64, 21.6]), json!([1_768_147_320_000_i64, null])]);
    }
    "query/influxql-form.json" after [ARRAY] |bench, answer| {
        let series = &answer["body"]["results"][0]["series"][0];
        assert_eq!(series["values"], json!([["room", "chiyoda1-a"]]), "{answer}");
    }
    "query/influxql-drop.json" after [ARRAY] |bench, answer| {
        assert_eq!(answer["status"], 200);
        assert_eq!(answer["body"]["results"][0]["error"], "DROP MEASUREMENT is not supported by Roomtide");
        assert!(!bench.store.readings().is_empty());
    }
    "query/unknown-device.json" after [ARRAY] |bench, answer| {
        assert_eq!(answer["status"], 404);
        assert!(answer["body"]["detail"].as_str().expect("text").contains("nobody"));
    }
    "query/delete-device.json" after [ARRAY] |bench, answer| {
        assert!([200, 202].contains(&answer["status"].as_i64().expect("a status")), "{answer}");
        let (devices, _) = bench.registry().await;
        assert!(devices.iter().all(|device| device.id().as_str() != "remo-3"));
    }
    "query/device-readings.json" after [ARRAY] |bench, answer| {
        assert_eq!(answer["body"], json!({"data": [
            {"device_id": "remo-3", "timestamp": "2026-01-11T16:01:00.000Z", "room": "chiyoda1-a", "humidity": 45.5, "temperature": 21.6},
            {"device_id": "remo-3", "timestamp": "2026-01-11T16:00:00.000Z", "room": "chiyoda1-a", "humidity": 45, "temperature": 21.5},
        ], "has_more": false, "next_cursor": null}));
    }
    "query/device-readings-csv.json" after [ARRAY] |bench, answer| {
        assert_eq!(answer["body"], "timestamp,device_id,room,temperature\n\
            2026-01-11T16:00:00.000Z,remo-3,chiyoda1-a,21.5\n\
            2026-01-11T16:01:00.000Z,remo-3,chiyoda1-a,21.6\n");
    }
    "query/bad-range.json" after [ARRAY] |bench, answer| {
        assert_eq!(answer["status"], 400);
        assert_eq!(answer["body"]["errors"][0]["field"], "from");
        assert!(answer["body"]["detail"].as_str().expect("text").contains("offset"));
    }
    "query/list-rooms.json" after [ARRAY] |bench, answer| {
        assert_eq!(answer["body"]["data"], json!([
            {"room_id": "chiyoda1-a", "name": null, "home": null, "outside": null, "first_seen": "2026-01-11T16:00:00.000Z"}]));
    }
    "query/room-devices.json" after [ARRAY] |bench, answer| {
        assert_eq!(answer["body"]["data"].as_array().map(Vec::len), Some(2));
    }
    "query/room-readings.json" after [ARRAY] |bench, answer| {
        let devices: Vec<_> = answer["body"]["data"].as_array().expect("a list").iter().map(|r| &r["device_id"]).collect();
        assert_eq!(devices, ["remo-3", "remo-e"]);
        assert_eq!(answer["body"]["has_more"], true);
        let link = answer["headers"]["link"].as_str().expect("a link");
        assert!(link.contains(answer["body"]["next_cursor"].as_str().expect("a cursor")), "{link}");
    }
    "ingest/telegraf-gzip.json" after [] |bench, answer| {
        assert_eq!((&answer["status"], &answer["body"]), (&json!(204), &json!("")));
        assert_eq!(bench.store.readings().len(), 2);
    }
    "ingest/home-assistant.json" after [] |bench, answer| {
        assert_eq!((&answer["status"], &answer["headers"]["x-roomtide-skipped"]), (&json!(204), &json!("strings=2")));
        assert_eq!(bench.store.readings().len(), 1);
    }
    "ingest/home-assistant-probe.json" after [] |bench, answer| {
        assert_eq!((&answer["status"], bench.store.readings().len()), (&json!(204), 0));
    }
    "ingest/tasmota-lines.json" after [] |bench, answer| {
        assert_eq!((&answer["status"], bench.store.readings().len()), (&json!(204), 1));
    }
    "ingest/line-protocol-some-refused.json" after [] |bench, answer| {
        let error = "partial write: unable to parse 'bad line here x': invalid field format dropped=1";
        assert_eq!((&answer["status"], &answer["body"]["error"]), (&json!(400), &json!(error)));
        assert_eq!(bench.store.readings().len(), 1);
    }
    "ingest/line-protocol-v3.json" after [] |bench, answer| {
        assert_eq!((&answer["status"], bench.store.readings().len()), (&json!(204), 1));
    }
    "query/influxdb-flux.json" after [] |bench, answer| {
        assert_eq!((&answer["status"], &answer["body"]["code"]), (&json!(400), &json!("invalid")));
        assert!(answer["body"]["message"].as_str().expect("a text").contains("Flux is not supported"));
    }
    "query/edit-device.json" after [ARRAY] |bench, answer| {
        assert_eq!(answer["body"]["name"], "Smart meter");
        assert_eq!(answer["body"]["metrics"]["cumulative_kwh_p"]["modulus"], 100_000);
        assert_eq!(bench.device("remo-e").await.kind().cloned(), Some(label("power")));
    }
    "query/move-device.json" after [ARRAY] |bench, answer| {
        assert_eq!(answer["body"]["room"], "attic");
        assert_eq!(bench.registry().await.1, 2, "the room that a person names exists");
        let metrics = bench.device("remo-e").await.metrics().clone();
        assert_eq!(metrics.keys().map(domain::MetricName::as_str).collect::<Vec<_>>(), ["cumulative_kwh_p"]);
    }
    "query/search-devices.json" after [ARRAY, "query/edit-device.json"] |bench, answer| {
        assert_eq!(answer["body"]["data"].as_array().map(Vec::len), Some(1));
        assert_eq!(answer["body"]["data"][0]["device_id"], "remo-e");
        assert_eq!(answer["body"]["plan"]["source"], "registry");
    }
    "query/device-stays.json" after [ARRAY, MOVE_DEVICE] |bench, answer| {
        assert_eq!(answer["body"]["data"], json!([
            {"device_id": "remo-e", "room": "attic", "since": "2026-01-11T16:05:00.000Z", "until": null}]));
    }
    "query/list-annotations.json" after [ARRAY, "query/put-annotation.json"] |bench, answer| {
        assert_eq!(answer["body"]["data"], json!([{
            "annotation_id": "2026-01-11T16:01:00.000Z-kettle", "from": "2026-01-11T16:01:00.000Z",
            "to": "2026-01-11T16:04:00.000Z", "device": "remo-e", "text": "Kettle"}]));
    }
    "query/issue-token.json" after [] |bench, answer| {
        assert_eq!(answer["status"], 201);
        let (token, shown) = (answer["body"]["token"].as_str().expect("a token"), &answer["body"]);
        let kept = bench.store.token(&TokenHash::of(token), &Invocation::until(Deadline::after(Duration::from_secs(10)))).await;
        let kept = kept.expect("memory does not fail").expect("it is kept");
        assert_eq!((&shown["id"], &shown["device"]), (&json!(kept.hash.short()), &json!("remo-e")));
        assert_eq!(shown["expires"], json!(kept.expires));
    }
    "query/delete-room.json" after [ARRAY] |bench, answer| {
        assert_eq!(answer["status"], 409);
        assert!(answer["body"]["detail"].as_str().expect("text").contains("remo-3, remo-e are in the room"));
        assert_eq!(bench.registry().await.1, 1);
    }
    "query/delete-room.json" after [ARRAY, MOVE_DEVICE, "query/delete-device.json"] |bench, answer| {
        assert!(answer["status"] == 200 || answer["status"] == 404, "{answer}");
        assert_eq!(bench.registry().await.1, 1, "the attic");
    }
    "query/delete-alert.json" after [ARRAY, PUT_ALERT] |bench, answer| {
        // Whoever deletes it again is told that it is gone.
        let is_deleted = answer["status"] == 200 && answer["body"]["deleted"] == 1;
        assert!(is_deleted || answer["status"] == 404, "{answer}");
        let rules = bench.run("query/list-alerts.json").await;
        assert_eq!(rules["body"]["data"], json!([]));
    }
    "query/list-homes.json" after [ARRAY, SET_HOME] |bench, answer| {
        assert_eq!(answer["body"]["data"], json!([
            {"home_id": "chiyoda1", "rooms": 1, "first_seen": "2026-01-11T16:00:00.000Z"}]));
    }
    "query/home-devices.json" after [ARRAY, SET_HOME] |bench, answer| {
        assert_eq!(answer["body"]["data"].as_array().map(Vec::len), Some(2));
    }
    "query/delete-home.json" after [ARRAY, SET_HOME] |bench, answer| {
        assert!(answer["status"] == 200 || answer["status"] == 404, "{answer}");
        let rooms = bench.run("query/list-rooms.json").await;
        assert_eq!(rooms["body"]["data"][0]["home"], Value::Null, "the room stays");
    }
    "query/device-conditions.json" after [ARRAY] |bench, answer| {
        assert_eq!(answer["body"]["data"], json!([{
            "device_id": "remo-3", "from": "2026-01-11T16:00:00.000Z", "to": "2026-01-11T16:15:00.000Z",
            "minutes": 15, "basis": "mean15",
            "temperature": {"min": 21.5, "max": 21.6}, "humidity": {"min": 45, "max": 45.5}}]));
        assert_eq!(answer["body"]["explain"]["plan"], "plain");
    }
    "query/put-conditions-schema.json" after [] |bench, answer| {
        let metric = |name, domain| json!({"metric": name, "encoding": "decimal", "domain": domain, "bits": 12});
        let metrics = [metric("temperature", [-10, 40]), metric("humidity", [0, 100])];
        assert_eq!(answer["body"], json!({"version": 1, "ready": false, "metrics": metrics}));
    }
    "registry/new-device.json" after [] |bench, answer| {
        assert_eq!(answer, json!({"batchItemFailures": []}));
        let (devices, rooms) = bench.registry().await;
        assert_eq!((devices.len(), rooms), (2, 1));
        let metrics = bench.device("remo-3").await.metrics().clone();
        assert_eq!(metrics.keys().map(domain::MetricName::as_str).collect::<Vec<_>>(), ["humidity", "temperature"]);
    }
    "registry/new-metric.json" after [NEW_DEVICE] |bench, _answer| {
        let metrics = bench.device("remo-3").await.metrics().clone();
        let co2 = metrics.iter().find(|(name, _)| name.as_str() == "co2").expect("learned");
        assert_eq!(co2.1.unit, Some(unit("ppm")));
    }
    "registry/moved.json" after [NEW_DEVICE] |bench, _answer| {
        assert_eq!(bench.device("remo-3").await.place().room().expect("a room").as_str(), "chiyoda1-b");
        assert_eq!(bench.registry().await.1, 2);
    }
    "registry/late-reading.json" after [NEW_DEVICE] |bench, _answer| {
        let device = bench.device("remo-3").await;
        assert_eq!(device.place().room().expect("a room").as_str(), "chiyoda1-a");
        assert_eq!(device.first_seen().to_string(), "2026-01-11T15:30:00.000Z");
    }
    "registry/reordered.json" after [NEW_DEVICE] |bench, _answer| {
        assert_eq!(bench.device("remo-3").await.place().room().expect("a room").as_str(), "chiyoda1-c");
    }
    "registry/expired.json" after [NEW_DEVICE] |bench, answer| {
        assert_eq!(answer, json!({"batchItemFailures": []}));
        assert_eq!(bench.device("remo-3").await.first_seen().to_string(), "2026-01-11T16:00:00.000Z");
    }
    "registry/own-writes.json" after [] |bench, answer| {
        assert_eq!(answer, json!({"batchItemFailures": []}));
        assert_eq!(bench.store.calls(), table::memory_db::Calls::default(), "it asks for nothing");
    }
    "registry/poison.json" after [] |bench, answer| {
        assert_eq!(answer, json!({"batchItemFailures": []}), "poison blocks nothing");
        let (devices, _) = bench.registry().await;
        assert_eq!(devices.iter().map(|d| d.id().as_str()).collect::<Vec<_>>(), ["remo-9"]);
        let letters = bench.queue.letters();
        let keys = letters.iter().map(|letter| (letter.pk.as_str(), letter.sk.as_str()));
        let poison = BTreeSet::from([
            ("ROOM", "TS#2026-01-11T16:00:00.000Z"),
            ("remo-3", "TS#2026-01-11T16:05:00.000Z"),
            ("remo-3", "TS#2026-01-11T16:06:00.000Z"),
            ("remo-3", "TS#yesterday"),
        ]);
        assert_eq!(keys.collect::<BTreeSet<_>>(), poison);
    }
    "rollup/queued-poison.json" after [NEW_DEVICE] |bench, answer| {
        let failed = json!([{"itemIdentifier": "2e1424d4-f796-459a-8184-9c92662be6da"}]);
        assert_eq!(answer, json!({"batchItemFailures": failed}));
    }
}

/// Events, and what is answered at places in the answer.
macro_rules! told {
    ($($file:literal after [$($before:expr),*]: $($place:literal = $value:tt),+;)*) => {
        const TOLD: &[Case] = &[$(Case {
            file: $file,
            before: &[$($before),*],
            check: |_, answer| Box::pin(async move {
                $(assert_eq!(answer.pointer($place), Some(&json!($value)), "{answer}");)+
            }),
        }),*];
    };
}

told! {
    "query/influxql-refused.json" after [ARRAY]:
        "/status" = 400,
        "/body/error" = "error parsing query: found FROM, expected ) at line 1, char 19";
    "query/show-device.json" after [ARRAY]:
        "/body/room" = "chiyoda1-a",
        "/body/first_seen" = "2026-01-11T16:00:00.000Z";
    "query/foreign-cursor.json" after [ARRAY]: "/status" = 400, "/body/errors/0/field" = "cursor";
    "query/device-latest.json" after [ARRAY]:
        "/body/device_id" = "remo-3",
        "/body/timestamp" = "2026-01-11T16:01:00.000Z",
        "/body/metrics/humidity/value" = 45.5,
        "/body/as_of" = "2026-01-11T16:00:00.000Z";
    "query/show-room.json" after [ARRAY]: "/body/room_id" = "chiyoda1-a";
    "query/room-latest.json" after [ARRAY]: "/body/data/1/metrics/current_w/value" = 512;
    "query/influxdb-ping.json" after []: "/status" = 204, "/headers/x-influxdb-version" = "1.8.10";
    "query/influxdb-ping-verbose.json" after []: "/status" = 200, "/body" = {"version": "1.8.10"};
    "query/influxdb-ready.json" after []: "/body/status" = "ready";
    "query/influxdb-buckets.json" after []: "/body/buckets/0/name" = "sensors";
    "query/influxdb-orgs.json" after []: "/body/orgs/0/name" = "home";
    "query/health.json" after []: "/body/status" = "pass";
    "query/mcp-initialize.json" after []: "/body/result/protocolVersion" = "2025-06-18";
    "query/mcp-batch.json" after []: "/status" = 400, "/body/error/message" = "Batches are not taken; send one message a request.";
    "query/mcp-call.json" after [ARRAY]:
        "/body/result/isError" = false,
        "/body/result/structuredContent/devices/0/values/temperature" = {"value": 21.6, "unit": "°C"};
    "query/openapi.json" after []: "/body/openapi" = "3.1.0";
    "query/web-page.json" after []:
        "/status" = 200,
        "/headers/content-encoding" = "gzip",
        "/headers/content-type" = "text/html; charset=utf-8";
    "query/edit-room.json" after [ARRAY]: "/body/name" = "Bedroom";
    "query/put-annotation.json" after [ARRAY]: "/body/text" = "Kettle";
    "query/delete-annotation.json" after []: "/body/deleted" = 0;
    "query/issue-view.json" after []:
        "/status" = 201,
        "/body/rooms" = ["chiyoda1-a"],
        "/body/expires" = "2026-02-08T16:05:00.000Z";
    "query/bad-token.json" after []: "/status" = 400, "/body/errors/0/field" = "scope";
    "query/bad-edit.json" after [ARRAY]: "/status" = 400, "/body/errors/0/field" = "first_seen";
    "query/bad-search.json" after [ARRAY]: "/status" = 400, "/body/errors/0/field" = "where";
    "query/room-stays.json" after [ARRAY, MOVE_DEVICE]:
        "/body/data/0/device_id" = "remo-e",
        "/body/has_more" = false;
    "query/set-home.json" after [ARRAY]: "/body/home" = "chiyoda1";
    "query/show-home.json" after [ARRAY, SET_HOME]: "/body/rooms" = 1;
    "query/home-rooms.json" after [ARRAY, SET_HOME]: "/body/data/0/room_id" = "chiyoda1-a";
    "query/home-latest.json" after [ARRAY, SET_HOME]:
        "/body/data/0/metrics/temperature/value" = 21.6;
    "query/room-conditions.json" after [ARRAY]: "/body/devices" = ["remo-3"];
    "query/home-conditions.json" after [ARRAY, SET_HOME]:
        "/body/conditions" = {"temperature": "21.."};
    "query/conditions-schema.json" after ["query/put-conditions-schema.json"]:
        "/body/metrics/1/metric" = "humidity";
    "query/bad-conditions-schema.json" after []:
        "/status" = 400,
        "/body/errors/0/field" = "metrics";
    "query/put-alert.json" after [ARRAY]:
        "/status" = 200,
        "/body/states/0/phase" = "firing",
        "/body/warnings/0" = "there is no channel, so nobody is told";
    "query/bad-alert.json" after []:
        "/status" = 400,
        "/body/errors/0/field" = "clear";
    "query/list-alerts.json" after [ARRAY, PUT_ALERT]: "/body/firing" = 1;
    "query/show-alert.json" after [ARRAY, PUT_ALERT]: "/body/clear_above" = "20.5";
    "query/pause-alert.json" after [ARRAY, PUT_ALERT]:
        "/body/paused_until" = "2026-01-11T18:05:00.000Z";
    "query/acknowledge-alert.json" after [ARRAY, PUT_ALERT]:
        "/body/states/0/acknowledged" = true;
    "query/alert-history.json" after [ARRAY, PUT_ALERT]: "/body/data/0/news" = "fired";
    "query/acknowledge-by-link.json" after [ARRAY, PUT_ALERT]: "/status" = 404;
    "query/preview-alert.json" after [ARRAY]: "/body/subjects/0/episodes/0/ended" = null;
    "query/put-channel.json" after []: "/body/kind" = "ntfy";
    "query/list-channels.json" after [PUT_CHANNEL]: "/body/data/0/waiting" = 0;
    "query/test-channel.json" after [PUT_CHANNEL]: "/body/waiting" = 1;
    "rollup/late-reading.json" after [NEW_DEVICE]: "" = {"batchItemFailures": []};
    "rollup/deleted-reading.json" after [NEW_DEVICE]: "" = {"batchItemFailures": []};
    "rollup/expired.json" after [NEW_DEVICE]: "" = {"batchItemFailures": []};
    "rollup/queued.json" after [NEW_DEVICE]: "" = {"batchItemFailures": []};
    "rollup/schedule.json" after [NEW_DEVICE]: "" = null;
}

/// Events, the status of the answer, and the readings that are stored.
macro_rules! stored {
    ($($file:literal answers $status:literal stores [$($line:literal),* $(,)?];)*) => {
        const STORED: &[Case] = &[$(Case {
            file: $file,
            before: &[],
            check: |bench, answer| Box::pin(async move {
                assert_eq!(answer["status"], $status);
                assert_eq!(bench.stored(), &[$($line),*] as &[&str]);
            }),
        }),*];
    };
}

stored! {
    "ingest/tasmota-two-sensors.json" answers 201 stores [
        "gateway:LYWSD02-a2fd09 2026-01-11T16:00:05.000Z battery=2 dew_point=12.5 humidity=57 temperature=21.4",
        "gateway:LYWSD03-52680f 2026-01-11T16:00:05.000Z battery=100 dew_point=12.5 humidity=58 temperature=21.1",
    ];
    "ingest/tasmota-one-sensor.json" answers 201 stores [
        "probe:DS18B20 2026-01-11T16:00:05.000Z temperature=20.6",
    ];
    "ingest/shelly-plug.json" answers 201 stores [
        "shelly1pmg4-7c2c67667790 2026-01-11T16:00:05.000Z cumulative_kwh_p=1.885832 current=0 current_w=0 voltage=230.1",
    ];
    "ingest/shelly-climate.json" answers 201 stores [
        "shellyplusht-08b61fcb7f3c 2026-01-11T16:00:05.000Z battery=62 battery_voltage=5.02 humidity=48.2 temperature=21.4",
    ];
    "ingest/shelly-three-phases.json" answers 201 stores [
        "shellypro3em-1 2026-01-11T16:00:05.000Z current_a=0.55 current_w=120.1 current_w_a=120.1 current_w_b=0 current_w_c=0 voltage_a=230.2",
    ];
    "ingest/shelly-gen1.json" answers 201 stores [
        "washer 2026-01-11T16:00:00.000Z cumulative_kwh_p=77.2385 current_w=29.66 on=1 signal_strength=-61",
        "washer:ext:0 2026-01-11T16:00:00.000Z temperature=20.5",
    ];
    "ingest/shelly-event.json" answers 204 stores [];
    "ingest/tasmota-meter.json" answers 201 stores [
        "cellar:SML 2026-01-11T16:00:00.000Z cumulative_kwh_n=17.25 cumulative_kwh_p=42000.5 current_w=-894 voltage_a=230.1",
    ];
    "ingest/things-stack.json" answers 201 stores [
        "attic 2026-01-11T16:00:01.000Z battery_voltage=3.05 humidity=48.2 signal_strength=-80 snr=9.5 temperature=21.5",
    ];
    "ingest/chirpstack.json" answers 201 stores [
        "24e124725c140542 2026-01-11T16:00:01.000Z battery=89 co2=886 humidity=29 signal_strength=-48 snr=9 temperature=22.3",
    ];
    "ingest/zigbee2mqtt-climate.json" answers 201 stores [
        "bedroom 2026-01-11T16:00:05.000Z battery=86 humidity=55.43 link_quality=97 pressure=1000.6 temperature=22.75 voltage=2.975",
    ];
    "ingest/zigbee2mqtt-plug.json" answers 201 stores [
        "plug 2026-01-11T16:00:05.000Z cumulative_kwh_p=12.34 current=0.05 current_w=10.4 link_quality=120 on=1 voltage=231",
    ];
    "ingest/switchbot-meter.json" answers 201 stores [
        "AABBCCDDEEFF 2026-01-11T16:00:05.000Z battery=100 humidity=31 temperature=22.5",
    ];
    "ingest/switchbot-co2.json" answers 201 stores [
        "AABBCCDDEE01 2026-01-11T16:00:00.123Z battery=100 co2=1203 humidity=31 temperature=22.5",
    ];
    "ingest/switchbot-curtain.json" answers 201 stores [
        "AABBCCDDEE03 2026-01-11T16:00:00.123Z battery=90 opening=75",
    ];
    "ingest/switchbot-plug.json" answers 201 stores ["AABBCCDDEE02 2026-01-11T16:00:05.000Z on=1"];
    "ingest/remo-devices.json" answers 201 stores [
        "8a1f 2018-06-24T14:20:00.000Z motion=1",
        "8a1f 2018-06-24T14:33:51.000Z humidity=40 illuminance=182.19 temperature=26.2",
    ];
}

fn cases() -> impl Iterator<Item = &'static Case> {
    CASES.iter().chain(TOLD).chain(STORED)
}

#[tokio::test]
async fn every_event_is_answered_as_it_should_be_and_again_when_it_is_repeated() {
    for case in cases() {
        let bench = Bench::new();
        for file in case.before {
            bench.run(file).await;
        }
        println!("{}", case.file);
        let answer = bench.run(case.file).await;
        (case.check)(&bench, answer).await;
        let state = (bench.store.readings(), bench.registry().await);
        if case.file == "registry/own-writes.json" {
            continue; // its check counts every call
        }
        let answer = bench.run(case.file).await;
        (case.check)(&bench, answer).await;
        assert_eq!((bench.store.readings(), bench.registry().await), state, "{} twice", case.file);
    }
}

#[test]
fn folder_and_tests_name_the_same_files() {
    let mut found = BTreeSet::new();
    for function in std::fs::read_dir(folder()).expect("the folder") {
        let function = function.expect("an entry").path();
        for file in std::fs::read_dir(&function).expect("one folder a function") {
            let file = file.expect("an entry").path();
            let name = file
                .strip_prefix(folder())
                .expect("below the folder")
                .to_str()
                .expect("UTF-8")
                .to_owned();
            found.insert(name);
        }
    }
    let tested: BTreeSet<String> = cases().map(|case| case.file.to_owned()).collect();
    assert_eq!(found, tested, "left: files, right: tested");
}
