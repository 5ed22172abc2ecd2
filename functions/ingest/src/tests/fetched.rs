//! What was fetched: where it is stored, what the reply says of it, and that nobody else can send it.

use api::endpoints::ENDPOINTS;
use domain::given::{cases, metric};
use domain::{Label, MetricInfo};
use table::memory_db::Calls;

use super::*;

/// An event of the source `remo` that was fetched 7 milliseconds after the start, with other members as JSON.
fn fetched(members: &str, body: &str) -> Value {
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

    /// Every stored reading with its room.
    fn placed(&self) -> Vec<String> {
        let room = |reading: Reading| reading.room.map_or_else(|| "-".to_owned(), String::from);
        let rooms = self.store.readings().into_iter().map(room);
        rooms.zip(self.stored()).map(|(room, reading)| format!("{room}: {reading}")).collect()
    }
}

/// Below an event with its body: the reply, and the stored readings with their rooms.
#[tokio::test]
async fn what_is_fetched_is_stored_as_its_source_says() {
    for case in cases(include_str!("fetched.txt")) {
        let bench = Bench::new();
        let (members, body) = case.given.split_once(" <- ").expect("members and a body");
        let (reply, stored) = case.expected.split_first().expect("a reply");
        let reply: Value = serde_json::from_str(reply).expect("JSON");

        assert_eq!(bench.fetch(members, body).await, reply, "{case}");
        assert_eq!(bench.placed(), stored, "{case}");
    }
}

const MEANT: &str = r#"{
    "room": "home",
    "rooms": {"a1": {"room": "living", "name": "リビング"}},
    "names": {"a1": "Desk"},
    "about": {"current_w": {"kind": "gauge", "unit": "kW", "hold": "30m"}, "t": {"unit": "K"}}
}"#;

#[tokio::test]
async fn the_registry_learns_what_a_source_says_and_the_body_does_not() {
    let bench = Bench::new();
    let body = r#"[{"device_id": "a1", "current_w": 374}, {"device_id": "b2", "t": 1}]"#;
    assert_eq!(bench.fetch(MEANT, body).await["accepted"], 2);

    let desk = bench.device("a1").await;
    assert_eq!(desk.shown_name().map(Label::as_str), Some("Desk"));
    let info: &MetricInfo = &desk.metrics()[&metric("current_w")];
    assert_eq!(info.unit.as_ref().map(ToString::to_string).as_deref(), Some("kW"));
    assert_eq!(info.hold, Some(chrono::TimeDelta::minutes(30)));

    let other = bench.device("b2").await;
    assert_eq!(other.shown_name(), None);
    assert_eq!(other.place().room().map(RoomId::as_str), Some("home"));

    let rooms = bench.store.rooms(&invocation()).await.expect("memory").found;
    let names = rooms.iter().map(|room| (room.id.as_str(), room.name.as_ref().map(Label::as_str)));
    assert_eq!(names.collect::<Vec<_>>(), [("home", None), ("living", Some("リビング"))]);
}

#[tokio::test]
async fn what_the_body_says_of_a_device_counts_before_what_its_source_says() {
    let bench = Bench::new();
    let body = r#"[{"id": "a1", "name": "Their name", "newest_events": {"te": {"val": 22.5, "created_at": "2026-01-11T15:59:00Z"}}}]"#;
    let members =
        r#"{"format": "remo", "names": {"a1": "Desk"}, "about": {"temperature": {"unit": "K"}}}"#;
    assert_eq!(bench.fetch(members, body).await["accepted"], 1);

    let device = bench.device("a1").await;
    assert_eq!(device.shown_name().map(Label::as_str), Some("Their name"));
    let unit = device.metrics()[&metric("temperature")].unit.as_ref().map(ToString::to_string);
    assert_eq!(unit.as_deref(), Some("°C"));
}

#[tokio::test]
async fn a_room_that_a_person_chose_wins_over_the_sources() {
    let bench = Bench::new();
    bench.fetch(MEANT, r#"{"device_id": "a1", "t": 1}"#).await;
    let patch =
        DevicePatch { room: Edit::Set("attic".parse().expect("an id")), ..DevicePatch::default() };
    bench.edit("a1", patch).await;
    bench.clock.advance(Duration::from_secs(61));

    bench.fetch(MEANT, r#"{"device_id": "a1", "timestamp": 1768147230, "t": 2}"#).await;
    let expected =
        ["living: a1 2026-01-11T16:00:00.007Z t=1", "attic: a1 2026-01-11T16:00:30.000Z t=2"];
    assert_eq!(bench.placed(), expected);
}

#[tokio::test]
async fn the_same_run_again_stores_nothing_twice_and_another_run_is_another_reading() {
    let bench = Bench::new();
    let body = r#"{"device_id": "a1", "t": 1}"#;
    for members in ["{}", "{}", r#"{"run": "17-1"}"#, r#"{"of": "other"}"#, "{}"] {
        assert_eq!(bench.fetch(members, body).await["accepted"], 1, "{members}");
        bench.clock.advance(Duration::from_secs(61));
    }
    let millis: Vec<i64> = values(&bench.store).into_iter().map(|(millis, _)| millis).collect();
    assert_eq!(millis, [7, 8, 9]);
}

#[tokio::test]
async fn what_the_table_refuses_fails_and_is_there_after_the_same_run() {
    let bench = Bench::new();
    bench.ingest.load().await;
    bench.store.fail_with([StoreError::Throttled("table".into())]);
    let event = fetched("{}", r#"{"device_id": "a1", "timestamp": 1768147200, "t": 1}"#);
    let failure = bench.send(event.clone()).await.expect_err("nothing is stored");
    assert_eq!(failure.to_string(), "1 readings are not stored");
    assert_eq!(bench.reply(event).await.1, json!({"accepted": 1, "devices": ["a1"]}));
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
    let (status, _) = bench.payload("/readings/remo", &of_size((128 << 10) + 1)).await;
    assert_eq!(status, 413);

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
