//! Devices' own payloads and readings in addresses: whose they are, when they were measured, who may send them.

use domain::Label;

use super::*;

const PLUG: &str = r#"{"Time":"2026-01-11T17:00:00","ENERGY":{"Total":6.294,"Power":2635}}"#;

impl Bench {
    pub(super) async fn answer(
        &self,
        method: &str,
        address: &str,
        headers: Value,
        body: &str,
    ) -> Answer {
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        let mut event = http(method, path, body);
        event["rawQueryString"] = json!(query);
        event["headers"] = headers;
        let event: Event = serde_json::from_value(event).expect("an event");
        let reply = self.ingest.handle(event, Deadline::after(TIMEOUT)).await;
        Answer::in_reply(&json!(reply.expect("HTTP is always answered")))
    }

    pub(super) async fn payload(&self, address: &str, body: &str) -> (i64, String) {
        let answered = self.answer("POST", address, json!({}), body).await;
        (answered.status, answered.text)
    }
}

pub(super) fn topic_message(topic: &str, payload: &str) -> Value {
    json!({"topic": topic, "timestamp": 1_768_147_203_000_i64, "data": STANDARD.encode(payload)})
}

/// Any page that its user opens could hold a picture with such an address, and a laptop's server needs no
/// token for anything else.
#[tokio::test]
async fn a_reading_in_an_address_needs_a_write_token_and_somebody_who_asks() {
    for address in ["/readings/quick?temperature=21.5", "/readings/shelly?temp=21.5&id=d"] {
        let bench = Bench::guarded().await;
        let open = Bench::on(bench.store.clone());
        let bearer =
            |token: &str| json!({"authorization": format!("Bearer {}", given::secret(token))});
        for (bench, method, token, headers, status) in [
            (&bench, "GET", "one", json!({}), 201),
            (&open, "GET", "one", json!({"sec-fetch-site": "none"}), 201),
            (&open, "GET", "", bearer("one"), 201),
            (&open, "GET", "", json!({}), 401),
            (&open, "GET", "unknown", json!({}), 401),
            (&bench, "GET", "read", json!({}), 403),
            (&bench, "GET", "admin", json!({}), 403),
            (&bench, "GET", "", bearer("admin"), 403),
            (&open, "GET", "one", json!({"sec-fetch-site": "cross-site"}), 403),
            (&open, "GET", "one", json!({"sec-purpose": "prefetch"}), 403),
            (&open, "HEAD", "one", json!({}), 405),
        ] {
            bench.clock.advance(Duration::from_millis(1));
            let stored = bench.store.readings().len();
            let whole = format!("{address}&p={}", given::secret(token));
            let answered = bench.answer(method, &whole, headers.clone(), "").await;
            assert_eq!(answered.status, status, "{method} {whole} {headers} {}", answered.text);
            let expected = if status == 405 { "" } else { "no-store" };
            assert_eq!(answered.header("cache-control"), expected, "{method} {whole}");
            let more = usize::from(status == 201);
            assert_eq!(bench.store.readings().len() - stored, more, "{method} {whole}");
        }
        assert!(bench.stored().iter().all(|line| line.starts_with("d ")), "{:?}", bench.stored());
    }
}

#[tokio::test]
async fn a_payload_of_thousands_of_numbers_stores_as_many_as_a_reading_holds_and_names_others() {
    let bench = Bench::new();
    let members: Vec<_> = (0..3_000).map(|n| format!("\"x{n}\":{n}")).collect();
    let payload = format!(r#"{{"temperature":21.5,{}}}"#, members.join(","));
    let (status, text) = bench.payload("/readings/zigbee2mqtt?device=d", &payload).await;
    assert_eq!(status, 201, "{text}");
    assert_eq!(bench.store.readings()[0].metrics().len(), domain::MAX_METRICS);
    let answer: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(answer["ignored"].as_array().map(Vec::len), Some(101));
    assert_eq!(answer["ignored"][0], "... and more");
}

#[tokio::test]
async fn a_device_is_called_as_people_named_it() {
    let bench = Bench::new();
    let message = topic_message("roomtide/zigbee2mqtt/Küche/Lampe &1", r#"{"state":"ON"}"#);
    bench.send(message).await.expect("stored");
    let devices = bench.store.readings().iter().map(|it| it.device.clone()).collect::<Vec<_>>();
    let [device] = devices.as_slice() else { panic!("one: {devices:?}") };
    assert!(device.as_str().starts_with("K_che:Lampe__1-"), "{device:?}");
    let known = bench.devices().await;
    assert_eq!(known[0].source().name.as_ref().map(Label::as_str), Some("Küche/Lampe &1"));
}

#[tokio::test]
async fn a_payload_that_is_nested_deep_is_refused() {
    let deep = format!("{{\"ENERGY\":1e400,\"a\":{}{}}}", "[".repeat(50_000), "]".repeat(50_000));
    let (status, answer) = Bench::new().payload("/readings/tasmota?device=plug", &deep).await;
    assert_eq!(status, 400);
    assert!(answer.contains("The payload is not JSON"), "{answer}");
}

/// The devices of the registry, and how many an MQTT message of so many sensors adds to it.
async fn flood(bench: &Bench, topic: &str, sensors: std::ops::Range<usize>) -> (Value, usize) {
    let sensors = sensors.map(|n| (format!("S{n}"), json!({"Temperature": 1})));
    let body = Value::Object(sensors.collect()).to_string();
    let (_, receipt) = bench.reply(topic_message(topic, &body)).await;
    let devices = bench.devices().await;
    (receipt, devices.len())
}

/// What ingest cannot register, the registry function does, which knows no sender.
#[tokio::test]
async fn a_device_that_the_stream_registers_is_counted_as_its_senders() {
    let mut bench = Bench::guarded().await;
    bench.ingest.pipeline.settings.max_devices_per_token = 3;
    bench.ingest.load().await;
    for n in 0..5 {
        if n < 3 {
            bench.store.fail_registry_writes_with([StoreError::TimedOut]);
        }
        let body = json!({"device_id": format!("d:{n}"), "t": 1}).to_string();
        let (status, answer) = bench.post_with("one", &body).await;
        assert_eq!(status, if n < 3 { 201 } else { 400 }, "{n}: {answer}");
        given::register_devices_of(&bench.store, &bench.store.readings()).await;
        bench.clock.advance(Duration::from_secs(120));
    }
}

/// The attack: one certificate, one message after another, each with sensors that nobody has.
#[tokio::test]
async fn a_device_introduces_32_parts_by_mqtt_and_known_ones_go_on() {
    let bench = Bench::new();
    let topic = "roomtide/tasmota/plug/tele/SENSOR";
    let (receipt, devices) = flood(&bench, topic, 0..3_000).await;
    assert_eq!((&receipt["accepted"], devices), (&json!(32), 32));
    let refused = |n: usize| receipt["rejected"][n]["message"].as_str().expect("text").to_owned();
    assert_eq!(
        refused(0),
        "is new, and \"plug\" has introduced 32 parts by MQTT already; it may introduce no more"
    );
    assert_eq!(receipt["rejected"].as_array().map(Vec::len), Some(3_000 - 32));
    assert!(refused(2_967).contains("beyond the 500 readings"), "{}", refused(2_967));
    assert!(bench.log().contains(r#""devices.refused_of":"mqtt:plug""#), "{}", bench.log());
    bench.clock.advance(Duration::from_secs(120));
    assert_eq!(flood(&bench, topic, 3_000..3_010).await.1, 32);
    // What is known goes on, the device itself is no part, and another one has parts of its own.
    let known = bench.devices().await;
    let name = known[0].id().as_str().strip_prefix("plug:S").expect("a part").to_owned();
    let n: usize = name.parse().expect("a number");
    assert_eq!(flood(&bench, topic, n..n + 1).await.0["accepted"], 1);
    bench.reply(topic_message(topic, PLUG)).await;
    assert_eq!(flood(&bench, "roomtide/tasmota/other/tele/SENSOR", 0..2).await.1, 32 + 1 + 2);
    let by =
        |id: &str| known.iter().find(|it| it.id().as_str() == id).map(|it| it.source().clone());
    assert_eq!(
        by(&format!("plug:S{n}")).and_then(|it| it.introduced_by).as_deref(),
        Some("mqtt:plug")
    );
}

/// A registry that memory does not hold: the number is counted in the table, over requests and instances.
#[tokio::test]
async fn in_a_fleet_senders_introduce_no_more_either() {
    let bench = Bench::guarded().await;
    fill_beyond_memory(&bench).await;
    let fleet = bench.store.all_devices().len();
    let topic = "roomtide/tasmota/plug/tele/SENSOR";
    let (receipt, _) = flood(&bench, topic, 0..20).await;
    assert_eq!(receipt["accepted"], 20);
    let again = Bench::with(bench.store.clone(), true);
    let (receipt, _) = flood(&again, topic, 20..60).await;
    assert_eq!((&receipt["accepted"], &receipt["rejected"][0]["index"]), (&json!(12), &json!(12)));
    assert_eq!(flood(&again, topic, 0..20).await.0["accepted"], 20, "known ones go on");
    // A token with the right for its device and parts.
    let mut third = Bench::with(bench.store.clone(), true);
    third.ingest.pipeline.settings.max_devices_per_token = 3;
    for (n, status) in [(0, 201), (1, 201), (2, 201), (0, 201), (3, 400)] {
        let body = json!({"device_id": format!("d:{n}"), "t": 1}).to_string();
        third.clock.advance(Duration::from_millis(10));
        let (found, answer) = third.post_with("one", &body).await;
        assert_eq!(found, status, "{n}: {answer}");
    }
    let devices = bench.store.all_devices().len();
    assert_eq!(devices, fleet + 32 + 3);
    // A device that could not be registered is not counted with each of its readings.
    let new = json!({"device_id": "e:x", "t": 1}).to_string();
    third.post_with("two", r#"{"device_id": "e", "t": 1}"#).await;
    // The look-up and the reading succeed, and the count the first time; the registration does not.
    for calls in [3, 2, 2, 2] {
        third.clock.advance(Duration::from_millis(10));
        let before = third.log().matches("registry.error").count();
        bench.store.fail_after(calls, [StoreError::TimedOut]);
        assert_eq!(third.post_with("two", &new).await.0, 201);
        assert_eq!(third.log().matches("registry.error").count(), before + 1);
        bench.store.end_troubles();
    }
    third.clock.advance(Duration::from_millis(10));
    assert_eq!(third.post_with("two", &new.replace("e:x", "e:y")).await.0, 201, "the third");
}
