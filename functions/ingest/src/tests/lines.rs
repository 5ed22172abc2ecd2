//! Line protocol through the function: statuses, headers and bodies of each version, and what is stored.

use std::io::Write as _;
use std::time::Duration;

use domain::given::{label, metric};
use domain::{Edit, RoomPatch};
use flate2::Compression;
use flate2::write::GzEncoder;
use table::memory_db::on;
use table::{Action, EditRegistry as _, ReadRegistry as _, RegisterDevices as _, Target};

use super::*;

impl Bench {
    async fn write(&self, path: &str, headers: &Value, body: &[u8]) -> Answer {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut event = http("POST", path, "");
        event["rawQueryString"] = json!(query);
        event["headers"] = headers.clone();
        event["body"] = json!(STANDARD.encode(body));
        event["isBase64Encoded"] = json!(true);
        let event: Event = serde_json::from_str(&event.to_string()).expect("an event");
        let reply = self.ingest.handle(event, Deadline::after(TIMEOUT)).await;
        Answer::in_reply(&json!(reply.expect("HTTP is always answered")))
    }

    pub(super) async fn lines(&self, path: &str, body: &str) -> (i64, String) {
        let answer = self.write(path, &json!({}), body.as_bytes()).await;
        (answer.status, answer.text)
    }
}

const AT: &str = "1768147200000000000";

/// Fields with these numbers.
fn fields(from: usize, to: usize) -> String {
    (from..to).map(|n| format!("f{n}={n}")).collect::<Vec<_>>().join(",")
}

#[tokio::test]
async fn odd_requests_of_real_clients_work() {
    let bench = Bench::new();
    let line = format!("m,host=a value=1 {AT}");
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(line.as_bytes()).expect("memory");
    let packed = gzip.finish().expect("memory");
    for (headers, body) in [
        (json!({}), &b""[..]),
        (json!({"content-encoding": "identity", "content-type": "text/plain"}), b""),
        (json!({}), b"\n"),
        (json!({}), &[0x23, b'x']), // a comment
        (json!({"content-type": ""}), line.as_bytes()),
        (json!({"content-type": "application/x-www-form-urlencoded"}), line.as_bytes()),
        (json!({"content-type": "application/octet-stream"}), format!(" {line}\r\n").as_bytes()),
        (json!({"content-encoding": "gzip", "content-type": "text/plain"}), &packed),
        (json!({}), &packed),
    ] {
        let Answer { status, text, .. } = bench.write("/write?db=x", &headers, body).await;
        assert_eq!((status, text.as_str()), (204, ""), "{headers} {body:?}");
    }
    let damaged = String::from_utf8_lossy(&packed).into_owned();
    let headers = json!({"content-encoding": "gzip"});
    let Answer { status, text, .. } =
        bench.write("/api/v2/write", &headers, damaged.as_bytes()).await;
    assert_eq!(status, 400);
    assert!(text.contains("set content_encoding = \\\"identity\\\""), "{text}");
}

#[tokio::test]
async fn a_hundred_bad_lines_are_named_and_the_others_counted() {
    let (_, text) = Bench::new().lines("/write", &"bad\n".repeat(150)).await;
    assert_eq!(text.matches("missing fields").count(), 100);
    assert!(text.contains("and 50 more"), "{text}");
}

#[tokio::test]
async fn a_body_that_is_too_large_and_a_request_of_too_many_lines_are_refused() {
    let bench = Bench::guarded().await;
    let basic = STANDARD.encode(format!("anybody:{}", given::secret("one")));
    let basic = json!({"authorization": format!("Basic {basic}")});
    let large = "x".repeat(api::MAX_BODY + 1);
    let Answer { status, headers, .. } =
        bench.write("/api/v2/write", &basic, large.as_bytes()).await;
    assert_eq!((status, &headers["x-platform-error-code"]), (413, &json!("request too large")));
    let (status, text) = Bench::new().lines("/write", &"m value=1\n".repeat(10_001)).await;
    assert_eq!(status, 413, "{text}");
}

#[tokio::test]
async fn every_version_s_names_of_precisions_are_taken_on_every_path() {
    for path in ["/write", "/api/v2/write", "/api/v3/write_lp"] {
        for (names, at) in [
            (&["ns", "n", "nanosecond", "auto"][..], AT),
            (&["us", "u", "microsecond", "auto"], "1768147200000000"),
            (&["ms", "millisecond", "auto"], "1768147200000"),
            (&["s", "second", "auto"], "1768147200"),
            (&["m"], "29469120"),
            (&["h"], "491152"),
        ] {
            for name in names {
                let bench = Bench::new();
                let (status, text) = bench
                    .lines(&format!("{path}?precision={name}"), &format!("m,host=a value=1 {at}"))
                    .await;
                assert_eq!(status, 204, "{path} {name}: {text}");
                assert_eq!(bench.stored(), ["a 2026-01-11T16:00:00.000Z m=1"], "{path} {name}");
            }
        }
    }
}

#[tokio::test]
async fn what_lines_say_is_learned_once_and_never_over_a_person() {
    let bench = Bench::new();
    let line = |at: i64, more: &str| {
        format!(
            "kWh,domain=sensor,entity_id=meter,area=Living\\ Room friendly_name_str=\"Meter\",device_class_str=\"energy\",state_class_str=\"total_increasing\",value=1{more} {at}"
        )
    };
    assert_eq!(bench.lines("/write?precision=s", &line(1_768_147_200, "")).await.0, 204);
    let device = bench.device("sensor.meter:Living_Room").await;
    let info = device.metrics().values().next().expect("one");
    assert_eq!(info.kind, domain::MetricKind::Counter);
    assert_eq!(info.unit.as_ref().map(domain::Unit::as_str), Some("kWh"));
    assert_eq!(device.shown_name().map(domain::Label::as_str), Some("Meter"));
    assert_eq!(device.source().tags["area"], "Living Room");
    let rooms = bench.store.rooms(&invocation()).await.expect("memory").found;
    assert_eq!(rooms[0].name.as_ref().map(domain::Label::as_str), Some("Living Room"));

    let before = bench.store.calls().registry_writes;
    bench.lines("/write?precision=s", &line(1_768_147_201, "")).await;
    assert_eq!(bench.store.calls().registry_writes, before, "it is known");
    // A room that the registry function has registered, or whose name a person took away, has the sender's.
    let named = |name: Option<&str>| RoomPatch {
        name: name.map_or(Edit::Clear, |it| Edit::Set(label(it))),
        ..RoomPatch::default()
    };
    for (set, shown) in [(None, "Living Room"), (Some("Salon"), "Salon")] {
        let id = "Living_Room".parse().expect("an id");
        bench.store.edit_room(&id, &named(set), &invocation()).await.expect("memory");
        bench.clock.advance(Duration::from_secs(120));
        for second in [2, 3] {
            bench.lines("/write?precision=s", &line(1_768_147_200 + second, "")).await;
            bench.learn().await;
            let rooms = bench.store.rooms(&invocation()).await.expect("memory").found;
            assert_eq!(rooms[0].name.as_ref().map(domain::Label::as_str), Some(shown));
        }
    }
    let patch = DevicePatch {
        metrics: [(
            metric("energy"),
            Some(domain::MetricPatch {
                kind: Edit::Set(domain::MetricKind::Gauge),
                ..Default::default()
            }),
        )]
        .into(),
        ..DevicePatch::default()
    };
    bench.edit(device.id().as_str(), patch).await;
    for n in 2..4 {
        bench.lines("/write?precision=s", &line(1_768_147_200 + n, ",battery=5")).await;
    }
    bench.learn().await;
    let device = bench.device("sensor.meter:Living_Room").await;
    assert_eq!(device.metrics().len(), 2);
    let kinds: Vec<_> =
        device.metrics().iter().map(|(name, it)| format!("{name} {}", it.kind.as_str())).collect();
    assert_eq!(kinds, ["attr_battery gauge", "energy gauge"]);
}

/// Each line has a tag of its own and its own value of a tag that all have.
#[tokio::test]
async fn a_device_learns_from_those_of_its_lines_that_are_stored() {
    let mut random = fastrand::Rng::with_seed(4);
    let line = |n: usize, fields: &str| {
        let at = 1_768_147_200_000 + n;
        format!("m,host=a,of=line{n},tag{n}=x {fields} {at}\n")
    };
    // The first stored and the second refused, the reverse, and others.
    let mut requests = vec![
        (fields(0, 200), vec![fields(200, 256), fields(256, 300)]),
        (fields(0, 200), vec![fields(200, 300), fields(150, 256)]),
        (fields(0, 1), vec![fields(0, 256), fields(0, 256) + ",g=1", fields(255, 257)]),
    ];
    for _ in 0..40 {
        let some = |random: &mut fastrand::Rng| {
            let from = random.usize(0..300);
            fields(from, from + random.usize(1..150))
        };
        let lines = (0..random.usize(2..7)).map(|_| some(&mut random)).collect();
        requests.push((fields(0, random.usize(1..257)), lines));
    }
    let (mut stored, mut refused) = (0, 0);
    for (before, lines) in requests {
        let bench = Bench::new();
        let path = "/write?precision=ms&device_tags=host";
        let known = format!("m,host=a {before} {}", 1_768_147_199_999_i64);
        assert_eq!(bench.lines(path, &known).await.0, 204);
        let body: String = lines.iter().enumerate().map(|(n, it)| line(n, it)).collect();
        let (_, text) = bench.lines(path, &body).await;
        bench.learn().await;
        let start = bench.store.readings()[0].at;
        let readings = bench.store.readings();
        let learned_from: Vec<usize> = readings
            .iter()
            .skip(1)
            .map(|it| (it.at.since(start).num_milliseconds() - 1).try_into().expect("after"))
            .collect();
        stored += learned_from.len();
        refused += lines.len() - learned_from.len();
        let devices = bench.devices().await;
        let tags = &devices[0].source().tags;
        let of: Vec<usize> =
            (0..lines.len()).filter(|n| tags.contains_key(&format!("tag{n}"))).collect();
        assert_eq!(of, learned_from, "{text}");
        let first = learned_from.first().map(|n| format!("line{n}"));
        assert_eq!(tags.get("of"), first.as_ref(), "{text}");
    }
    assert!(stored > 50 && refused > 50, "{stored} {refused}");
}

/// The function registry learns them from the stream: no request is refused or repeated for them.
#[tokio::test]
async fn facts_travel_on_the_readings() {
    let bench = Bench::new();
    let line = |n: usize| format!("m,host=h{n} value={n} {AT}\n");
    let said = |device: &str| {
        let readings = bench.store.readings();
        let mut of_device =
            readings.into_iter().filter(|reading| reading.device.as_str() == device);
        of_device.next().expect("a reading").about.map(|about| *about)
    };

    // More devices than one request registers.
    let many: String = (0..520).map(line).collect();
    assert_eq!(bench.lines("/write", &many).await.0, 204);
    let devices = bench.devices().await;
    assert_eq!(devices.len(), 500);
    assert!(devices.iter().all(|device| device.source().tags.contains_key("host")));
    for n in 0..520 {
        let about = said(&format!("h{n}")).expect("facts");
        assert_eq!(about.tags["host"], format!("h{n}"));
    }

    // The registry does not answer.
    let throttled = || StoreError::Throttled("test".into());
    bench.store.fail_registry_writes_with([throttled()]);
    assert_eq!(bench.lines("/write", &line(600)).await.0, 204);
    assert_eq!(said("h600").expect("facts").tags["host"], "h600");
    bench.store.end_troubles();
}

#[tokio::test]
async fn a_fact_is_attached_once_and_not_again_when_the_registry_has_it() {
    let bench = Bench::new();
    let lines = |tag: &str| -> String {
        (0..3)
            .map(|n| format!("m,host=h,site={tag} watts={n},volts={n} 176814720000000000{n}\n"))
            .collect()
    };
    let said = || -> Vec<_> {
        bench
            .store
            .readings()
            .into_iter()
            .map(|reading| reading.about.map(|about| *about))
            .collect()
    };
    assert_eq!(bench.lines("/write?precision=ns&device_tags=host", &lines("roof")).await.0, 204);
    let about = said();
    assert_eq!(about.iter().flatten().count(), 1, "{about:?}");

    // The registry has it, and what is known stays.
    let later: String = lines("cellar").replace("17681472", "17681473");
    assert_eq!(bench.lines("/write?device_tags=host", &later).await.0, 204);
    let about = said();
    assert_eq!(about.iter().flatten().count(), 1, "{about:?}");

    // A known device says more: it travels, and this process attaches it once.
    for field in ["7", "8"] {
        let more = format!("m,host=h,rack=1 amps={field} 176814740000000000{field}\n");
        assert_eq!(bench.lines("/write?device_tags=host", &more).await.0, 204);
    }
    let about = said();
    let news: Vec<_> = about.iter().flatten().skip(1).collect();
    assert_eq!(news.len(), 1, "{news:?}");
    assert_eq!(news[0].tags.keys().collect::<Vec<_>>(), ["rack"]);
    assert_eq!(news[0].metrics.len(), 1, "{news:?}");
}

/// The registry does not answer, and the stream registers: who introduced a device is on its readings.
#[tokio::test]
async fn a_token_introduces_no_more_devices_than_it_may_though_the_stream_registers_them() {
    let mut bench = Bench::guarded().await;
    let own = json!({"authorization": format!("Token {}", given::secret("one"))});
    let lines = |from: usize| -> String {
        (from..from + 300).map(|n| format!("m,cpu=h{n} value=1 {AT}\n")).collect()
    };
    for (from, stored) in [(0, 10), (0, 10), (1_000, 10)] {
        // Each time an instance that has just started.
        bench = Bench::with(bench.store, true);
        bench.ingest.pipeline.settings.max_devices_per_token = 10;
        for _ in 0..10 {
            let throttled = StoreError::Throttled("now".into());
            bench.store.fail(on(Action::PutItem, Target::Devices), 0, throttled);
        }
        let status = bench.write("/write", &own, lines(from).as_bytes()).await.status;
        assert_eq!(status, 400, "most are refused");
        assert_eq!(bench.store.readings().len(), stored, "{from}");
        bench.store.end_troubles();

        for reading in bench.store.readings() {
            let new = DeviceObservation::of(&reading).new_device(reading.device.clone(), |_| true);
            bench.store.register_device(&new, &invocation()).await.expect("memory");
        }
    }
}

/// The first attempt has counted the devices, and stored none.
#[tokio::test]
async fn a_device_of_a_throttled_request_is_registered_with_its_introducer() {
    let mut bench = Bench::guarded().await;
    bench.ingest.pipeline.settings.max_devices_per_token = 2;
    let own = json!({"authorization": format!("Token {}", given::secret("one"))});
    let line = format!("m,cpu=x value=1 {AT}\n");
    let throttled = || StoreError::Throttled("now".into());
    bench.store.fail(on(Action::UpdateItem, Target::Readings), 0, throttled());
    bench.store.fail(on(Action::UpdateItem, Target::Readings), 0, throttled());
    let first = bench.write("/write", &own, line.as_bytes()).await.status;
    bench.store.end_troubles();
    let second = bench.write("/write", &own, line.as_bytes()).await.status;
    assert_eq!((first, second), (503, 204));
    let devices = bench.devices().await;
    assert!(devices.iter().all(|device| device.source().introduced_by.is_some()), "{devices:?}");
    assert_eq!(devices.len(), 1);
}
