//! What was fetched: where it is stored, what the reply says of it, and that nobody else can send it.

use api::endpoints::ENDPOINTS;
use table::memory_db::Calls;

use super::*;

/// An event of the source `remo` that was fetched 7 milliseconds after the start, with other members as JSON.
pub(super) fn fetched(members: &str, body: &str) -> Value {
    let mut event = json!({
        "source": "roomtide.fetching",
        "of": "remo",
        "run": "17-0",
        "timestamp": 1_768_147_200_007_i64,
        "format": "readings",
        "data": STANDARD.encode(body),
    });
    let members: Value = serde_json::from_str(members).expect("JSON");
    let members = members.as_object().expect("an object").clone();
    event.as_object_mut().expect("an object").extend(members);
    event
}

impl Bench {
    async fn fetch(&self, members: &str, body: &str) -> Value {
        self.reply(fetched(members, body)).await.1
    }
}

#[tokio::test]
async fn a_dry_event_asks_no_table_and_nothing_of_it_is_remembered() {
    let bench = Bench::new();
    let rows: Vec<String> =
        (0..60).map(|n| format!(r#"{{"device_id": "d{n:02}", "t": {n}}}"#)).collect();
    let body = format!("[{}]", rows.join(","));
    let dry = bench.fetch(r#"{"dry": true}"#, &body).await;
    assert_eq!(dry["accepted"], 60);
    assert_eq!(dry["devices"].as_array().map(Vec::len), Some(60));
    assert_eq!(dry["readings"].as_array().map(Vec::len), Some(50));
    assert_eq!(bench.store.calls(), Calls::default());
    assert!(bench.log().contains(r#""readings.accepted":0"#), "{}", bench.log());

    assert_eq!(bench.fetch("{}", &body).await["accepted"], 60);
    assert_eq!(bench.store.readings().len(), 60);
}

#[tokio::test]
async fn one_event_is_of_64_devices() {
    let bench = Bench::new();
    let rows = (0..66).chain([0]).enumerate();
    let rows: Vec<String> =
        rows.map(|(n, device)| format!(r#"{{"device_id": "d{device:02}", "t{n}": 1}}"#)).collect();
    let reply = bench.fetch(r#"{"rooms": {"d01": null}}"#, &format!("[{}]", rows.join(","))).await;

    assert_eq!((&reply["accepted"], &reply["left_out"]), (&json!(65), &json!({"d01": 1})));
    let message = "is beyond the 64 devices that one event of a source may have";
    let refused = json!([{"index": 65, "field": "device_id", "message": message}]);
    assert_eq!(reply["rejected"], refused);
}

#[tokio::test]
async fn a_refused_state_of_a_source_takes_no_place_of_a_device() {
    let bench = Bench::new();
    let ids = (0..64).map(|n| format!("source:s{n:02}")).chain(["good".to_owned()]);
    let rows: Vec<Value> = ids.map(|id| json!({"device_id": id, "t": 1})).collect();
    let reply = bench.fetch("{}", &json!(rows).to_string()).await;
    assert_eq!(
        (&reply["accepted"], reply["rejected"].as_array().map(Vec::len)),
        (&json!(1), Some(64))
    );
}

/// An answer with rows of several days comes in several events.
#[tokio::test]
async fn a_source_introduces_64_devices_in_all_its_events() {
    let bench = Bench::new();
    let event = async |of: &str, first: usize| {
        let rows: Vec<_> = (first..first + 40)
            .map(|n| json!({"device_id": format!("d{n:02}"), "timestamp": 1_768_147_200 + n, "t": n}))
            .collect();
        bench
            .fetch(
                &json!({"of": of, "run": first.to_string()}).to_string(),
                &json!(rows).to_string(),
            )
            .await
    };
    assert_eq!(event("remo", 0).await["accepted"], 40);

    let reply = event("remo", 40).await;
    assert_eq!(reply["accepted"], 24);
    let message =
        "is new, and the source has introduced 64 devices already; it may introduce no more";
    assert_eq!(reply["rejected"][0]["message"], message);
    assert_eq!(event("remo", 0).await["accepted"], 40, "they are known");
    assert_eq!(event("other", 40).await["accepted"], 40, "each source counts its own");
    assert_eq!(
        bench.fetch(r#"{"own": true}"#, r#"{"device_id":"source:remo","failing":1}"#).await["accepted"],
        1
    );
}

#[tokio::test]
async fn what_is_fetched_may_be_larger_than_what_a_device_sends() {
    let of_size = |size: usize| {
        let body = r#"[{"id": "a1", "newest_events": {"te": {"val": 22.5}}}]"#;
        format!("{body}{}", " ".repeat(size - body.len()))
    };
    let bench = Bench::new();
    let (status, answer) = bench.payload("/readings/remo", &of_size((128 << 10) + 1)).await;
    assert_eq!(status, 413);
    assert!(answer.contains("a device may send at most 131072"), "{answer}");

    let members = r#"{"format": "remo"}"#;
    assert_eq!(bench.fetch(members, &of_size(512 << 10)).await["accepted"], 1);
    let refused = bench.fetch(members, &of_size((512 << 10) + 1)).await;
    let message = "The payload is 524289 bytes long; a device may send at most 524288.";
    let whole = json!({"accepted": 0, "rejected": [{"message": message}], "devices": []});
    assert_eq!(refused, whole);
}

#[tokio::test]
async fn every_format_of_a_body_can_be_named() {
    let names = ENDPOINTS.iter().filter(|endpoint| endpoint.operation.payload().is_some());
    let names: Vec<&str> = names
        .filter(|endpoint| endpoint.method == "POST")
        .filter_map(|endpoint| endpoint.path.strip_prefix("/readings/"))
        .collect();
    assert!(names.contains(&"switchbot") && names.contains(&"shelly"), "{names:?}");

    for name in names {
        let reply = Bench::new().fetch(&json!({"format": name}).to_string(), "[1]").await;
        let message = reply["rejected"][0]["message"].as_str().expect("a refusal");
        assert!(message.starts_with("The payload is not "), "{name}: {message}");
    }
}

/// Neither a payload nor a body that says so is taken as fetched, and no further member of what AWS sends for others.
#[tokio::test]
async fn only_who_may_invoke_the_function_sends_what_was_fetched() {
    let body = r#"{"device_id": "other", "room": "r", "t": 1}"#;
    let forged = fetched(r#"{"rooms": {"d": {"room": "r"}}}"#, body).to_string();

    let bench = Bench::new();
    let (status, answer) = bench.post(&forged).await;
    assert_eq!(status, 400, "{answer}");
    assert_eq!(bench.reply(mqtt("d", forged.as_bytes())).await.1["accepted"], 0);
    let on_topic = |payload: &str| {
        let topic = "roomtide/zigbee2mqtt/d";
        json!({"topic": topic, "timestamp": 1_768_147_200_007_i64, "data": STANDARD.encode(payload)})
    };
    bench.reply(on_topic(&forged)).await;
    assert!(bench.store.readings().iter().all(|reading| reading.device.as_str() == "d"));

    for event in [http("POST", "/readings", ONE), mqtt("d", ONE.as_bytes()), on_topic("{}")] {
        let mut event_of_fetching = fetched("{}", body);
        let members = event_of_fetching.as_object_mut().expect("an object");
        members.extend(event.as_object().expect("an object").clone());
        let read: Event = serde_json::from_str(&event_of_fetching.to_string()).expect("an event");
        assert!(!matches!(read, Event::Fetched(_)), "{event_of_fetching}");
    }
}
