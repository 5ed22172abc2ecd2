//! The member `about` of readings in JSON: what the registry learns of it is what it learns of a line that says the
//! same.

use std::time::Duration;

use api::AboutBody;
use domain::given::{cases, label, metric};
use domain::{About, Label, Unit};
use futures_util::future::join;

use super::*;

/// A reading as JSON, with all that it says about its device.
fn written(reading: &Reading) -> Value {
    let mut body = json!({
        "device_id": reading.device,
        "timestamp": reading.at,
        "room": reading.named_room,
        "about": reading.about.clone().map_or_else(|| json!({}), |about| json!(AboutBody::from(*about))),
    });
    let members = body.as_object_mut().expect("an object");
    members.extend(reading.metrics().iter().map(|(name, value)| (name.to_string(), json!(value))));
    body
}

impl Bench {
    /// All devices and rooms after the registry has learned from the stored readings.
    async fn registry(&self) -> (Vec<Device>, Vec<domain::Room>) {
        self.learn().await;
        (self.devices().await, self.store.rooms(&invocation()).await.expect("memory").found)
    }

    async fn named(&self, id: &str) -> Option<Label> {
        self.learn().await;
        self.device(id).await.shown_name().cloned()
    }
}

/// A device's name, and its metrics with their kinds and units.
fn shown(device: &Device) -> String {
    let name = device.shown_name().map_or("-", Label::as_str);
    let metrics = device.metrics().iter().filter(|(name, _)| name.as_str() != "known");
    let metrics = metrics.map(|(name, info)| {
        let unit = info.unit.as_ref().map_or("-", Unit::as_str);
        format!("{name} {} {unit}", info.kind.as_str())
    });
    format!("{} {name}: {}", device.id(), metrics.collect::<Vec<_>>().join(", "))
}

/// The devices after a line, which the registry learned from the line itself and from its readings in JSON. They are
/// new, or `are_known` by another value.
async fn devices_after(line: &str, are_known: bool) -> Vec<String> {
    let (of_line, of_json) = (Bench::new(), Bench::new());
    let read =
        read_points(line.as_bytes(), of_line.clock.now(), &LineRules::default()).expect("a line");
    assert_eq!(read.refused, [], "{line}");

    for bench in [&of_line, &of_json] {
        for reading in read.readings.iter().filter(|_| are_known) {
            let plain =
                json!({"device_id": reading.device, "timestamp": 1_768_140_000, "known": 1});
            assert_eq!(bench.post(&plain.to_string()).await.0, 201, "{line}");
        }
    }

    assert_eq!(of_line.lines("/write", line).await.0, 204, "{line}");
    let body: Vec<Value> = read.readings.iter().map(written).collect();
    let (status, answer) = of_json.post(&json!(body).to_string()).await;
    assert_eq!(status, 201, "{line}: {answer}");

    assert_eq!(of_json.store.readings(), of_line.store.readings(), "{line}");
    let registry = of_json.registry().await;
    assert_eq!(registry, of_line.registry().await, "{line}");
    registry.0.iter().map(shown).collect()
}

#[tokio::test]
async fn a_line_and_its_reading_with_about_teach_the_same_registry() {
    let mut wrong = Vec::new();
    for case in cases(include_str!("about.txt")) {
        for are_known in [false, true] {
            let devices = devices_after(case.given, are_known).await;
            wrong.extend((devices != case.expected).then(|| format!("{case}: {devices:?}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The example of the guide, as it stands there.
#[tokio::test]
async fn the_guide_s_board_is_known_with_its_first_reading() {
    let guide = include_str!("../../../../docs/guide/readings.md");
    let (_, section) = guide.split_once("## What a reading says about its device").expect("there");
    let (_, body) = section.split_once("-d '").expect("a request");
    let (body, _) = body.split_once('\'').expect("its end");
    let bench = Bench::new();
    assert_eq!(bench.post(body).await, (201, json!({"accepted": 1})));

    let (devices, rooms) = bench.registry().await;
    assert_eq!(devices[0].shown_name(), Some(&label("Water meter")));
    let water = &devices[0].metrics()[&metric("water_l")];
    assert_eq!((water.kind, &water.unit), (domain::MetricKind::Counter, &Some(given::unit("L"))));
    assert_eq!(rooms[0].name, Some(label("Cellar")));
}

#[tokio::test]
async fn a_reading_has_256_metrics_each_described_and_a_device_6_kib_of_texts() {
    let bench = Bench::new();
    let reading = |number: usize| {
        let names: Vec<String> = (0..number).map(|n| format!("m{n}")).collect();
        let described: Value =
            names.iter().take(256).map(|name| (name.clone(), json!({"unit": "V"}))).collect();
        let mut body = json!({"device_id": "d", "about": {"metrics": described}});
        body.as_object_mut()
            .expect("an object")
            .extend(names.into_iter().map(|name| (name, json!(1))));
        body.to_string()
    };
    let (status, answer) = bench.post(&reading(257)).await;
    assert_eq!(status, 400);
    assert!(answer.to_string().contains("257 metrics; at most 256 are allowed"), "{answer}");
    assert_eq!(bench.post(&reading(256)).await.0, 201);
    let device = bench.device("d").await;
    assert_eq!(device.metrics().len(), 256);
    assert!(device.metrics().values().all(|info| info.unit == Some(given::unit("V"))));

    let tags = |prefix: &str| -> Value {
        (0..70).map(|n| (format!("{prefix}{n:02}"), json!("x".repeat(100)))).collect()
    };
    for prefix in ["a", "b"] {
        let body = json!({"device_id": "e", "t": 1, "about": {"tags": tags(prefix)}});
        assert_eq!(bench.post(&body.to_string()).await.0, 201);
        bench.learn().await;
    }
    let source = bench.device("e").await.source().clone();
    let bytes: usize = source.tags.iter().map(|(name, value)| name.len() + value.len()).sum();
    assert!((5_900..=6 * 1_024).contains(&bytes), "{bytes}");
    assert!(source.tags.keys().all(|name| name.starts_with('a')), "the first stay");
}

#[tokio::test]
async fn who_may_write_for_a_device_may_say_what_it_is_and_nobody_else() {
    let bench = Bench::guarded().await;
    let body = |id: &str| {
        json!({"device_id": id, "room": "hall", "t": 1, "about": {"name": "Mine", "room_name": "Hall"}}).to_string()
    };
    assert_eq!(bench.post_with("one", &body("e")).await.0, 403);
    let wrong = r#"{"device_id": "e", "t": 1, "about": {"colour": "red"}}"#;
    assert_eq!(bench.post_with("one", wrong).await.0, 403, "whatever else is wrong");
    assert_eq!(bench.post_with("read", &body("d")).await.0, 403);
    assert!(bench.devices().await.is_empty());

    for (token, id) in [("one", "d"), ("admin", "any")] {
        assert_eq!(bench.post_with(token, &body(id)).await.0, 201);
        assert_eq!(bench.named(id).await, Some(label("Mine")), "{token}");
    }
    let introducers =
        bench.devices().await.into_iter().map(|it| it.source().introduced_by.is_some());
    assert_eq!(introducers.collect::<Vec<_>>(), [false, true], "the token counts its devices");
}

/// Each introduces the device, and the first that is stored is heard.
#[tokio::test]
async fn of_two_requests_at_once_nothing_is_lost_and_one_name_stays() {
    let bench = Bench::new();
    let body = |second: u32, name: &str, metric: &str| {
        json!({"device_id": "d", "timestamp": 1_768_147_200 + second, metric: 1, "about": {
            "name": name, "tags": {name: "1"}, "metrics": {metric: {"unit": "V"}},
        }})
        .to_string()
    };
    let (one, other) = (body(0, "One", "a"), body(1, "Other", "b"));
    let (first, second) = join(bench.post(&one), bench.post(&other)).await;
    assert_eq!((first.0, second.0), (201, 201));
    bench.clock.advance(Duration::from_secs(61));
    bench.learn().await;

    let device = bench.device("d").await;
    let expected = About {
        tags: ["One", "Other"].map(|name| (name.to_owned(), "1".to_owned())).into(),
        ..About::default()
    };
    assert_eq!(device.source().tags, expected.tags);
    assert!(device.metrics().values().all(|info| info.unit == Some(given::unit("V"))));
    assert_eq!(device.metrics().len(), 2);
    assert!([Some(label("One")), Some(label("Other"))].contains(&device.shown_name().cloned()));
}
