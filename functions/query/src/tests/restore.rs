//! `PATCH /devices/{id}?restore=1`: what `GET` has answered about a device is what a new table answers after it.

use super::*;

/// Two devices whose settings no kind or unit has a use for any more, beside one with all settings.
const EDITS: [(&str, &str); 6] = [
    (
        "/devices/meter",
        r#"{"name": "Meter", "kind": "power", "tags": ["a", "b"], "attributes": {"model": ["x-1", 4]}, "room": "cellar",
            "in_room_means": false, "metrics": {"energy": {"kind": "counter", "unit": "kWh", "modulus": 100000,
            "max_w": 12000, "tolerance": 0.5, "role": "import", "net": true, "cycle": "phase", "hourly_until": "2026-01-01T00:00:00Z",
            "exchanges": [{"timestamp": "2026-01-11T16:00:00Z", "old": 812.3, "new": 0}]}, "power": {"unit": "W", "hold": "90s"}}}"#,
    ),
    (
        "/devices/meter",
        r#"{"metrics": {"energy": {"kind": "gauge", "unit": null}, "power": {"unit": "°C"}}}"#,
    ),
    ("/devices/meter", r#"{"metrics": {"temperature": {"unit": null, "in_room_means": true}}}"#),
    (
        "/devices/plug",
        r#"{"behind": "meter", "metrics": {"cumulative_kwh_p": {"kind": "gauge", "unit": null}}}"#,
    ),
    (
        "/devices/plug?restore=1",
        r#"{"metrics": {"cumulative_kwh_n": {"verdicts": [{"timestamp": "2026-01-11T16:00:00Z", "verdict": "dip"}]}}}"#,
    ),
    ("/devices/plug", r#"{"attributes": {"hue": "red"}}"#),
];

fn meter(minute: i64) -> Reading {
    let metrics = [
        ("energy", "1"),
        ("phase", "1"),
        ("power", "1"),
        ("temperature", "21"),
        ("humidity", "40"),
    ];
    given::reading("meter", at_minute(minute), Some("hall"), &metrics)
}

fn plug(minute: i64) -> Reading {
    let metrics = [("cumulative_kwh_p", "1"), ("cumulative_kwh_n", "1"), ("hue", "1")];
    let metrics = if minute == 0 { &metrics[..2] } else { &metrics };
    given::reading("plug", at_minute(minute), Some("hall"), metrics)
}

#[tokio::test]
async fn a_device_that_is_restored_answers_as_it_did() {
    let old = Bench::empty();
    old.store(&[meter(0), plug(0)]).await;
    for (path, body) in EDITS {
        let edited = old.patch(path, body).await;
        assert_eq!(edited.status, 200, "{path}: {}", edited.text);
    }
    // A metric came with the name of an attribute.
    old.store(&[plug(1)]).await;

    let new = Bench::empty();
    // Most metrics are not registered yet.
    for device in ["meter", "plug"] {
        let known = given::reading(device, at_minute(0), Some("hall"), &[("other", "1")]);
        new.store(&[known]).await;
    }
    for device in ["meter", "plug", "meter"] {
        let path = format!("/devices/{device}");
        let rows = old.get("/devices?latest=1").await.rows();
        let answered =
            rows.iter().find(|row| row["device_id"] == device).expect("listed").to_string();
        assert!(answered.contains("\"latest\":{"), "{answered}");
        let restored = new.patch(&format!("{path}?restore=1"), &answered).await;
        assert_eq!(restored.status, 200, "{path}: {}", restored.text);

        let mut now = new.get(&path).await.json();
        now["metrics"].as_object_mut().expect("an object").remove("other").expect("kept");
        assert_eq!(now, old.get(&path).await.json(), "{path}");
    }
    let same = new.store.calls().registry_writes;
    let answered = old.get("/devices/meter").await.text;
    assert_eq!(new.patch("/devices/meter?restore=1", &answered).await.status, 200);
    assert_eq!(new.store.calls().registry_writes, same, "restored twice, nothing changes");
}

/// The last word of the table stays where the backup has none.
#[tokio::test]
async fn what_a_backup_does_not_say_stays() {
    let old = Bench::empty();
    old.store(&[meter(0)]).await;
    let answered = old.get("/devices/meter").await.text;

    let new = Bench::empty();
    new.store(&[meter(0), plug(0)]).await;
    let edits = r#"{"name": "Mine", "room": "cellar", "kind": "meter", "tags": ["a"], "attributes": {"model": "x"},
        "behind": "plug", "in_room_means": true, "metrics": {"energy": {"kind": "counter", "unit": "kWh", "max_w": 5}}}"#;
    assert_eq!(new.patch("/devices/meter", edits).await.status, 200);
    let before = new.get("/devices/meter").await.json();
    let restored = new.patch("/devices/meter?restore=1", &answered).await;
    assert_eq!((restored.status, restored.json()), (200, before));
}

#[tokio::test]
async fn what_cannot_be_restored_is_named() {
    let bench = Bench::empty();
    bench.store(&[meter(0)]).await;
    let metrics = |from: usize, number: usize| -> Value {
        (from..from + number).map(|n| (format!("m{n}"), json!({"unit": "V"}))).collect()
    };
    let sixteen = |from| json!({"metrics": metrics(from, 16)}).to_string();
    let path = "/devices/meter?restore=1";
    for n in 0..15 {
        assert_eq!(bench.patch(path, &sixteen(16 * n)).await.status, 200);
    }
    for (path, body, expected) in [
        ("/devices/nobody?restore=1", r#"{"name": "x"}"#, "404 "),
        (
            path,
            &sixteen(300),
            "400 metrics: the device would have 261 metrics; at most 256 are kept",
        ),
        (
            path,
            &json!({"metrics": metrics(0, 17)}).to_string(),
            "400 metrics: there are more than 16",
        ),
        (path, r#"{"behind": "nobody"}"#, "400 behind: "),
        (path, r#"{"behind": "meter"}"#, "400 behind: "),
        (path, r#"{"nmae": "x"}"#, "400 nmae: unknown member"),
        (path, r#"{"metrics": {"t": {"colour": "red"}}}"#, "400 metrics.t.colour: unknown member"),
        (path, r#"{"metrics": {"t": {"hold": "1d"}}}"#, "400 metrics.t.hold: is \"1d\""),
        (
            "/devices/meter",
            r#"{"first_seen": "2026-01-11T16:00:00Z"}"#,
            "400 first_seen: unknown member",
        ),
        (
            "/devices/meter",
            r#"{"metrics": {"absent": {"unit": "V"}}}"#,
            "400 metrics.absent: is not a metric",
        ),
    ] {
        let refused = bench.patch(path, body).await.problem();
        assert!(refused.starts_with(expected), "{path} {body}: {refused}");
    }
    assert_eq!(bench.patch(path, r#"{"device_id": "meter"}"#).await.status, 200, "nothing is said");

    let guarded = Bench::with(true).with_house("that is guarded").await;
    for token in ["read", "view"] {
        let headers = json!({"authorization": format!("Bearer {}", given::secret(token))});
        let refused =
            guarded.send("PATCH", "/devices/a?restore=1", headers, r#"{"name": "x"}"#).await;
        assert_eq!(refused.status, 403, "{token}: {}", refused.text);
    }
}
