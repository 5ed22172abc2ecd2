//! Devices by name, tag, attribute and newest value, as a client asks for them.

use super::*;
use domain::given::label;

impl Answer {
    fn ids(&self) -> Vec<String> {
        assert_eq!(self.status, 200, "{}", self.text);
        let rows = self.rows();
        rows.iter().map(|row| row["device_id"].as_str().expect("an id").to_owned()).collect()
    }
}

/// Three devices; two have a name, tags and attributes.
async fn named() -> Bench {
    let bench = Bench::new().await;
    for (id, body) in [
        (
            "a",
            r#"{"name": "Kitchen window", "kind": "sensor", "tags": ["window", "south"],
            "attributes": {"model": "SHT45", "firmware": "1.10", "rooms_served": 3}}"#,
        ),
        (
            "b",
            r#"{"name": "Küche", "kind": "Sensor", "tags": ["window"],
            "attributes": {"model": ["SHT45", "SHT31"], "firmware": "1.4", "rooms_served": 4}}"#,
        ),
    ] {
        assert_eq!(bench.patch(&format!("/devices/{id}"), body).await.status, 200);
    }
    bench
}

#[tokio::test]
async fn devices_are_found_by_all_that_is_said_of_them() {
    let bench = named().await;
    for (query, expected) in [
        ("name=kit*", &["a"][..]),
        ("name=k%C3%9CCHE", &["b"]),
        ("name=kuche", &[]),
        ("kind=sensor", &["a", "b"]),
        ("tag=window", &["a", "b"]),
        ("tag=window&tag=south", &["a"]),
        ("where=firmware=1.4", &["b"]),
        ("where=firmware<1.4", &["a"]),
        ("where=rooms_served>3", &["b"]),
        ("where=model=sht31", &["b"]),
        ("where=model=sht*&room=r", &["a", "b"]),
        ("where=model=sht*&room=s", &[]),
        ("where=temperature>=0&where=model=*", &["a", "b"]),
        ("where=no_such_thing=1", &[]),
        ("where=no_such_thing<1", &[]),
    ] {
        assert_eq!(bench.get(&format!("/devices?{query}")).await.ids(), expected, "{query}");
    }
}

#[tokio::test]
async fn the_name_that_a_sender_taught_is_found_until_a_person_sets_another() {
    let bench = Bench::empty();
    let name = label("Meter in the cellar");
    let device =
        given::device_of([&reading("d", 0, "r")]).changed(|it| it.source.name = Some(name));
    let device = device.expect("a device");
    bench.store.register_device(&device, &invocation()).await.expect("memory");
    let row = bench.get("/devices").await.json()["data"][0].clone();
    assert_eq!(row["name"], "Meter in the cellar");
    assert_eq!(bench.get("/devices?name=meter*").await.ids(), ["d"]);
    assert_eq!(bench.patch("/devices/d", r#"{"name": "Heating"}"#).await.status, 200);
    assert_eq!(bench.get("/devices?name=meter*").await.ids(), [""; 0]);
    assert_eq!(bench.get("/devices?name=heating").await.ids(), ["d"]);
}

#[tokio::test]
async fn newest_values_and_silence_are_filters_too() {
    let bench = named().await;
    // The newest reading is of minute 9, and now is minute 60.
    for (query, expected) in [
        ("where=temperature=9", &["a", "b", "c"][..]),
        ("where=temperature<9", &[]),
        ("where=temperature<=9&tag=south", &["a"]),
        ("silent=50m", &["a", "b", "c"]),
        ("silent=52m", &[]),
        ("silent=50m&room=s", &["c"]),
    ] {
        let answer = bench.get(&format!("/devices?{query}")).await;
        assert_eq!(answer.ids(), expected, "{query}");
        assert_eq!(answer.header("etag"), "", "{query}: it changes with the readings");
    }
    let pages = bench.get("/devices?silent=1s&limit=2").await.json();
    assert_eq!((&pages["data"][1]["device_id"], &pages["has_more"]), (&json!("b"), &json!(true)));
    let cursor = pages["next_cursor"].as_str().expect("a cursor");
    let last = bench.get(&format!("/devices?silent=1s&limit=2&cursor={cursor}")).await;
    assert_eq!(last.ids(), ["c"]);
}

#[tokio::test]
async fn a_plan_says_how_the_devices_were_found() {
    let bench = named().await;
    let plan = bench.get("/devices?tag=window&explain=1").await.json()["plan"].clone();
    assert_eq!(plan["source"], "registry");
    assert_eq!(plan["newest_values"], 0);
    let plan = bench.get("/devices?tag=window&silent=1h&explain=1").await.json()["plan"].clone();
    assert_eq!((&plan["newest_values"], &plan["estimated_read_units"]), (&json!(2), &json!(1.0)));
    assert_eq!(bench.get("/devices?tag=window").await.json().get("plan"), None);
}

#[tokio::test]
async fn what_cannot_be_searched_is_refused_before_the_table_is_read() {
    let bench = named().await;
    let before = bench.store.calls();
    for (query, why) in [
        ("where=firmware", "where: \"firmware\" is no condition"),
        ("where=firmware!=1", "where: \"firmware!\" is not an attribute's name"),
        ("where=room=r", "where: \"room\" is a reserved name"),
        ("where=battery<low", "which is not a number"),
        ("name=", "name: name has no value"),
        ("silent=2", "silent: is \"2\"; expected an age such as 90s, 15m, 2h, 7d or 1w"),
        ("silent=h", "silent: is \"h\""),
        ("silent=99999999999999999999h", "silent: is"),
        ("silent=1%C3%A9", "silent: is"),
        (&vec!["tag=a"; 17].join("&"), "where: the conditions are more than 16"),
    ] {
        let answer = bench.get(&format!("/devices?{query}")).await;
        assert_eq!(answer.status, 400, "{query}");
        assert!(answer.text.contains(&why.replace('"', "\\\"")), "{query}: {}", answer.text);
    }
    assert_eq!(bench.store.calls(), before);
}

#[tokio::test]
async fn attributes_are_shown_kept_and_removed_one_by_one() {
    let bench = named().await;
    let shown = bench.get("/devices/b").await.json()["attributes"].clone();
    let expected = json!({"model": ["SHT45", "SHT31"], "firmware": "1.4", "rooms_served": 4});
    assert_eq!(shown, expected);
    let edited = bench.patch("/devices/b", r#"{"attributes": {"model": null, "site": 7}}"#).await;
    let expected = json!({"firmware": "1.4", "rooms_served": 4, "site": 7});
    assert_eq!(edited.json()["attributes"], expected);
    let csv = bench.get("/devices?format=csv").await.text;
    assert!(csv.contains(r#""{""firmware"":""1.4"",""rooms_served"":4,""site"":7}""#), "{csv}");
    assert_eq!(bench.get("/devices/c").await.json().get("attributes"), None);
}

#[tokio::test]
async fn a_device_is_found_by_so_many_values_and_by_no_metric_s_name() {
    let bench = named().await;
    let tags: Vec<String> = (0..33).map(|n| format!("t{n}")).collect();
    let refused = bench.patch("/devices/c", &json!({"tags": tags}).to_string()).await;
    assert_eq!(refused.status, 400);
    assert!(refused.text.contains("found by 33 values"), "{}", refused.text);
    let numbers: Vec<i64> = (0..17).collect();
    let body = json!({"attributes": {"many": numbers}}).to_string();
    let refused = bench.patch("/devices/c", &body).await;
    assert!(refused.text.contains("found by 34 values"), "{}", refused.text);
    assert_eq!(
        bench.patch("/devices/c", &json!({"tags": tags[1..]}).to_string()).await.status,
        200
    );

    let metric = bench.get("/devices/a").await.json()["metrics"].clone();
    let metric = metric.as_object().expect("metrics").keys().next().expect("one").clone();
    let body = json!({"attributes": {metric.as_str(): 1}}).to_string();
    let refused = bench.patch("/devices/a", &body).await;
    assert_eq!(refused.status, 400);
    let expected = format!("attributes.{metric}: is a metric that the device has sent");
    assert!(refused.text.contains(&expected), "{}", refused.text);
}
