//! Devices' own payloads and readings in addresses: whose they are, when they were measured, who may send them.

use domain::Label;

use super::*;

const PLUG: &str = r#"{"Time":"2026-01-11T17:00:00","ENERGY":{"Total":6.294,"Power":2635}}"#;

pub(super) struct Answered {
    pub(super) status: i64,
    pub(super) text: String,
    cache_control: String,
}

impl Bench {
    pub(super) async fn answer(
        &self,
        method: &str,
        address: &str,
        headers: Value,
        body: &str,
    ) -> Answered {
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        let mut event = http(method, path, body);
        event["rawQueryString"] = json!(query);
        event["headers"] = headers;
        let event: Event = serde_json::from_value(event).expect("an event");
        let reply = self.ingest.handle(event, Deadline::after(TIMEOUT)).await;
        let reply = json!(reply.expect("HTTP is always answered"));
        Answered {
            status: reply["statusCode"].as_i64().expect("a status"),
            text: reply["body"].as_str().unwrap_or_default().to_owned(),
            cache_control: reply["headers"]["cache-control"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        }
    }

    pub(super) async fn payload(&self, address: &str, body: &str) -> (i64, String) {
        let answered = self.answer("POST", address, json!({}), body).await;
        (answered.status, answered.text)
    }

    async fn keep_zone(&self, zone: &str) {
        given::seal(&self.store, zone, Timestamp::MIN).await;
    }
}

fn topic_message(topic: &str, payload: &str) -> Value {
    json!({"topic": topic, "timestamp": 1_768_147_203_000_i64, "data": STANDARD.encode(payload)})
}

#[tokio::test]
async fn a_local_time_is_that_of_the_homes_zone_which_is_read_once() {
    let bench = Bench::new();
    assert_eq!(bench.payload("/readings/tasmota?device=utc", PLUG).await.0, 201);
    bench.keep_zone("Europe/Berlin").await;
    bench.payload("/readings/tasmota?device=plug", PLUG).await;
    let reads = bench.store.calls().reads;
    bench.payload("/readings/tasmota?device=plug", PLUG).await;
    let known = bench.store.calls().reads;
    bench.clock.advance(Duration::from_secs(3_600));
    bench.payload("/readings/tasmota?device=plug", PLUG).await;
    assert_eq!(
        bench.stored(),
        [
            "plug 2026-01-11T16:00:00.000Z cumulative_kwh_p=6.294 current_w=2635",
            "utc 2026-01-11T17:00:00.000Z cumulative_kwh_p=6.294 current_w=2635",
        ],
        "without a zone yet it is the setting's; the same payload again changes nothing"
    );
    assert_eq!(known, reads, "the zone is known, as is the device");
    assert!(bench.store.calls().reads > known, "after an hour it is read again");
}

#[tokio::test]
async fn without_the_zone_nothing_is_stored_and_the_sender_tries_again() {
    let bench = Bench::new();
    bench.store.fail_with([StoreError::TimedOut]);
    let (status, answer) = bench.payload("/readings/tasmota?device=plug", PLUG).await;
    assert_eq!(status, 503, "{answer}");
    bench.store.fail_with([StoreError::TimedOut]);
    let message = topic_message("roomtide/tasmota/plug/tele/SENSOR", PLUG);
    bench.send(message.clone()).await.expect_err("Lambda repeats the invocation");
    assert!(bench.stored().is_empty());
    bench.send(message).await.expect("stored");
    assert_eq!(bench.stored().len(), 1);
}

/// The rollup function says that it is.
#[tokio::test]
async fn where_the_state_of_the_rollups_is_damaged_the_zone_is_the_settings() {
    let bench = Bench::new();
    given::damage_rollup_state(&bench.store).await;
    let (status, answer) = bench.payload("/readings/tasmota?device=utc", PLUG).await;
    assert_eq!(status, 201, "{answer}");
    let stored = ["utc 2026-01-11T17:00:00.000Z cumulative_kwh_p=6.294 current_w=2635"];
    assert_eq!(bench.stored(), stored);
}

#[tokio::test]
async fn a_wrong_clock_takes_the_arrival_and_is_counted() {
    let bench = Bench::new();
    for time in ["1970-01-01T00:00:35", "2026-01-13T17:00:00"] {
        let body = PLUG.replace("2026-01-11T17:00:00", time);
        assert_eq!(bench.payload("/readings/tasmota?device=plug", &body).await.0, 201);
    }
    let at = bench.store.readings().iter().map(|it| it.at.to_string()).collect::<Vec<_>>();
    assert_eq!(at, ["2026-01-11T16:00:00.000Z", "2026-01-11T16:00:00.001Z"]);
    let log = bench.log.lock().expect("no panic").clone();
    assert_eq!(log.matches(r#""clocks.wrong":1"#).count(), 2, "{log}");
}

#[tokio::test]
async fn payloads_of_one_second_are_one_reading() {
    let bench = Bench::new();
    let state = r#"{"Time":"2026-01-11T17:00:00","POWER":"ON"}"#;
    for body in [PLUG, state] {
        let message = topic_message("roomtide/tasmota/plug/tele/SENSOR", body);
        bench.send(message).await.expect("stored");
    }
    assert_eq!(
        bench.stored(),
        ["plug 2026-01-11T17:00:00.000Z cumulative_kwh_p=6.294 current_w=2635 on=1"]
    );
}

#[tokio::test]
async fn a_payload_is_of_the_device_of_its_address_or_its_own_or_the_tokens() {
    let bench = Bench::guarded().await;
    let post = async |address: &str, token: &str, body: &str| {
        let headers = json!({"authorization": format!("Bearer {}", given::secret(token))});
        bench.answer("POST", address, headers, body).await.status
    };
    let sensor = r#"{"SI7021":{"Humidity":45}}"#;
    let shelly = r#"{"src":"e","method":"NotifyStatus","params":{"switch:1":{"apower":1}}}"#;
    for (address, token, body, status) in [
        ("/readings/tasmota", "one", sensor, 201),
        ("/readings/tasmota", "two", sensor, 400),
        ("/readings/tasmota?device=e", "two", PLUG, 201),
        ("/readings/tasmota?device=e", "one", PLUG, 403),
        ("/readings/shelly", "one", shelly, 403),
        ("/readings/shelly?device=d&room=r", "one", shelly, 201),
        ("/readings/shelly?device=a%20b", "one", shelly, 403),
        ("/readings/shelly?device=", "one", shelly, 400),
        ("/readings/switchbot?device=d", "one", "{}", 400),
    ] {
        bench.clock.advance(Duration::from_millis(1));
        assert_eq!(post(address, token, body).await, status, "{address} {token}");
    }
    let devices: Vec<_> =
        bench.store.readings().iter().map(|it| it.device.as_str().to_owned()).collect();
    assert_eq!(devices, ["d:SI7021", "d:switch:1", "e"]);
    let rooms: Vec<_> = bench.store.readings().iter().filter_map(|it| it.room.clone()).collect();
    assert_eq!(rooms.iter().map(RoomId::as_str).collect::<Vec<_>>(), ["r"]);

    let remo = |id: &str| format!(r#"{{"id":"{id}","newest_events":{{"te":{{"val":20}}}}}}"#);
    let two = format!("[{},{}]", remo("d"), remo("e"));
    assert_eq!(post("/readings/remo?device=d", "two", &two).await, 400, "both cannot be d");
    assert_eq!(post("/readings/remo", "two", &two).await, 201);
}

#[tokio::test]
async fn what_cannot_be_a_payload_is_refused_and_nothing_is_stored() {
    let bench = Bench::new();
    let large = format!("[{}]", vec!["0"; 70_000].join(","));
    for (address, body, status, expected) in [
        ("/readings/tasmota?device=d", "", 400, "The payload is not JSON: EOF"),
        ("/readings/tasmota?device=d", "[1]", 400, "The payload is not Tasmota's; looked for"),
        ("/readings/remo", large.as_str(), 413, "a device may send at most 131072"),
        ("/readings/tasmota", PLUG, 400, "the address must, as ?device=kitchen-plug"),
        ("/readings/zigbee2mqtt?device=d", r#"{"humidity":"wet"}"#, 400, r#"\"wet\" is not a"#),
        ("/readings/shelly?merge=1", PLUG, 400, "merge: unknown parameter"),
        ("/readings/zigbee2mqtt?device=d", r#"{"action":"single"}"#, 204, ""),
    ] {
        let (found, text) = bench.payload(address, body).await;
        assert_eq!(found, status, "{address} {text}");
        assert!(text.contains(expected), "{address} {text}");
    }
    assert!(bench.stored().is_empty());
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
            assert_eq!(answered.cache_control, expected, "{method} {whole}");
            let more = usize::from(status == 201);
            assert_eq!(bench.store.readings().len() - stored, more, "{method} {whole}");
        }
        assert!(bench.stored().iter().all(|line| line.starts_with("d ")), "{:?}", bench.stored());
    }
}

#[tokio::test]
async fn a_reading_in_an_address_has_its_parameters_checked() {
    let bench = Bench::guarded().await;
    for (query, status, expected) in [
        ("device=d&room=r&time=1768147200&temperature=21.5", 201, "accepted"),
        ("temperature=21.5&utm_source=x", 400, "utm_source: unknown parameter"),
        ("temperature=21.5&time=-1h", 400, "time: "),
        ("temperature=21.5&time=2026-01-11T16:00:00", 400, "has no offset"),
        ("temperature=21.5&time=2026-01-13T16:00:00Z", 400, "more than a day ahead"),
        ("temperature=21.5&temperature=22", 400, "temperature: is given twice"),
        ("temperature=warm", 400, "is not a number"),
        ("device=d", 400, "The address has no metric"),
        ("device=e&temperature=1", 403, "may not write"),
    ] {
        let address = format!("/readings/quick?{query}&u=me&p={}", given::secret("one"));
        let answered = bench.answer("GET", &address, json!({}), "").await;
        assert_eq!(answered.status, status, "{query}: {}", answered.text);
        assert!(answered.text.contains(expected), "{query}: {}", answered.text);
    }
    assert_eq!(bench.stored(), ["d 2026-01-11T16:00:00.000Z temperature=21.5"]);
}

#[tokio::test]
async fn an_admin_token_is_not_taken_in_an_address() {
    let bench = Bench::guarded().await;
    let report = r#"{"context":{"deviceMac":"d","temperature":22.5}}"#;
    for (token, status) in [("one", 201), ("two", 201), ("read", 403), ("admin", 403)] {
        bench.clock.advance(Duration::from_millis(1));
        let (found, text) =
            bench.payload(&format!("/readings/switchbot?p={}", given::secret(token)), report).await;
        assert_eq!(found, status, "{token}: {text}");
    }
    let header = json!({"authorization": format!("Bearer {}", given::secret("admin"))});
    assert_eq!(bench.answer("POST", "/readings/switchbot", header, report).await.status, 201);
}

#[tokio::test]
async fn what_has_no_readings_by_its_topic_is_not_counted() {
    let bench = Bench::new();
    let (_, receipt) = bench.reply(topic_message("roomtide/tasmota/plug/tele/LWT", "Online")).await;
    assert_eq!(receipt, json!({"accepted": 0}));
    let log = bench.log.lock().expect("no panic").clone();
    assert!(!log.contains("readings.rejected"), "{log}");
    let (_, receipt) =
        bench.reply(topic_message("roomtide/tasmota/plug/tele/SENSOR", "21.5")).await;
    let message = receipt["rejected"][0]["message"].as_str().expect("text");
    assert!(message.starts_with("The payload is not Tasmota's"), "{message}");
    let log = bench.log.lock().expect("no panic").clone();
    assert!(log.contains("readings.rejected"), "{log}");
    assert!(bench.stored().is_empty());
}

#[tokio::test]
async fn what_is_not_stored_of_a_message_is_in_the_log_and_what_is_the_device_s_own_affair_is_not()
{
    let bench = Bench::new();
    let sml = r#"{"Time":"2026-01-11T16:00:00","UptimeSec":9,"SML":{"Total_in":5.5,"Meter_number":"0901"}}"#;
    let message = topic_message("roomtide/tasmota/meter/tele/SENSOR", sml);
    let (_, receipt) = bench.send(message).await.expect("stored");
    assert_eq!(receipt, json!({"accepted": 1, "ignored": ["SML/Meter_number"]}));
    assert!(bench.log().contains(r#""values.ignored":["SML/Meter_number"]"#), "{}", bench.log());
    let bad = sml.replace("5.5", "\"many\"");
    let (status, text) = bench.payload("/readings/tasmota?device=meter", &bad).await;
    assert_eq!(status, 400, "{text}");
    assert!(text.contains(r#""ignored":["SML/Meter_number"]"#), "{text}");
    let mut not_stored = 0;
    for calls in 0..8 {
        bench.store.fail_after(calls, [StoreError::TimedOut]);
        let (_, text) = bench.payload("/readings/tasmota?device=meter", sml).await;
        bench.store.end_troubles();
        if text.contains(r#""not_stored":[0]"#) {
            not_stored += 1;
            assert!(text.contains(r#""ignored":["SML/Meter_number"]"#), "{text}");
        }
    }
    assert!(not_stored > 0);
    let some = sml.replace("\"SML\"", "\"ENERGY\":{\"Power\":\"many\"},\"SML\"");
    let (status, text) = bench.payload("/readings/tasmota?device=meter", &some).await;
    assert_eq!(status, 207, "{text}");
    assert!(text.contains(r#""ignored":["SML/Meter_number"]"#), "{text}");
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
async fn a_number_beyond_every_range_takes_no_other_value_down() {
    let bench = Bench::new();
    let plug = PLUG.replace("2635", "1e400,\"Voltage\":[230,-1E+999]");
    let (status, answer) = bench.payload("/readings/tasmota?device=plug", &plug).await;
    assert_eq!(status, 207, "{answer}");
    for named in [
        r#""field":"Power","message":"\"1e400\" is outside of 1E-130 to 9.99E+125""#,
        r#""field":"Voltage","message":"\"-1E+999\" is outside of 1E-130 to 9.99E+125""#,
    ] {
        assert!(answer.contains(named), "{answer}");
    }
    let body = r#"[{"device_id": "a", "t": 1}, {"device_id": "b", "t": 1e400}]"#;
    let (status, answer) = bench.post(body).await;
    assert_eq!((status, &answer["rejected"][0]["index"]), (207, &json!(1)), "{answer}");
    assert_eq!(answer["rejected"][0]["field"], "t");
    assert_eq!(
        bench.stored(),
        [
            "a 2026-01-11T16:00:00.000Z t=1",
            "plug 2026-01-11T17:00:00.000Z cumulative_kwh_p=6.294 voltage_a=230"
        ]
    );
    let deep = format!("{{\"ENERGY\":1e400,\"a\":{}{}}}", "[".repeat(50_000), "]".repeat(50_000));
    for body in [&*deep, "{\"ENERGY\":1e400", "{\"ENERGY\":1e400,\"a\":\"\\ud800\"}"] {
        let (status, answer) = bench.payload("/readings/tasmota?device=plug", body).await;
        assert_eq!(status, 400);
        assert!(answer.contains("The payload is not JSON"), "{answer}");
    }
}

#[tokio::test]
async fn parts_have_ids_of_their_own_whatever_they_are_called() {
    let bench = Bench::new();
    let sensor = r#"{"A B":{"Humidity":1},"A_B":{"Humidity":2},"a/b":{"Humidity":3},"Außen":{"Humidity":4},
        "Au_en":{"Humidity":5},"BLE:1":{"Humidity":6},"\u0000":{"Humidity":7}}"#;
    let (status, answer) = bench.payload("/readings/tasmota?device=plug", sensor).await;
    assert_eq!((status, answer.trim()), (201, r#"{"accepted":7}"#));
    let shelly =
        r#"{"mac":"S","tmp":{},"ext_temperature":{"0":{"tC":1},"0/1":{"tC":2},"0_1":{"tC":3}}}"#;
    assert_eq!(bench.payload("/readings/shelly", shelly).await.0, 201);
    let known = bench.devices().await;
    let shown: Vec<_> = known
        .iter()
        .map(|device| {
            let id = device.id().as_str();
            let id = id.split_once('-').map_or(id.to_owned(), |(shown, _)| format!("{shown}-*"));
            let name = device.source().name.as_ref().map(Label::as_str);
            format!("{id} {}", name.unwrap_or_default())
        })
        .collect();
    assert_eq!(
        shown,
        [
            "S:ext:0 ",
            "S:ext:0_1 ",
            "S:ext:0_1-* ext:0/1",
            "plug:A_B ",
            "plug:A_B-* A B",
            "plug:Au_en ",
            "plug:Au_en-* Außen",
            "plug:BLE:1 ",
            "plug:_-* ",
            "plug:a_b-* a/b",
        ]
    );
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
