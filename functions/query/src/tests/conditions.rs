//! Conditions as a client sees them: shapes, forms and refusals.

use super::series::numbers;
use super::*;

/// Two thermometers for an hour: one is warm and damp in the second and third quarter.
async fn home() -> Bench {
    let bench = Bench::empty();
    let mut readings = Vec::new();
    for n in 0..60 {
        let is_warm = (15..45).contains(&n);
        let (temperature, humidity) = if is_warm { ("28.5", "72") } else { ("21", "45") };
        let temperature = if n == 20 { "31" } else { temperature };
        let metrics = [("temperature", temperature), ("humidity", humidity), ("limit", "5")];
        readings.push(numbers("warm", n, "loft", &metrics));
        readings.push(numbers("cool", n, "loft", &[("temperature", "18"), ("humidity", "80")]));
        readings.push(numbers("meter", n, "loft", &[("current_w", "100")]));
    }
    bench.store(&readings).await;
    bench
}

fn hour(path: &str, conditions: &str) -> String {
    format!("{path}/conditions?from={}&to={}&{conditions}", at_minute(0), at_minute(60))
}

const WARM_AND_DAMP: &str = "temperature=28..&humidity=70..";

#[tokio::test]
async fn an_episode_has_its_ends_its_minutes_and_the_extremes() {
    let bench = home().await;
    let answer = bench.get(&hour("/devices/warm", WARM_AND_DAMP)).await;
    let expected = json!({
        "data": [{
            "device_id": "warm", "from": at_minute(15), "to": at_minute(45), "minutes": 30, "basis": "mean15",
            "temperature": {"min": 28.5, "max": 31}, "humidity": {"min": 72, "max": 72},
        }],
        "from": at_minute(0), "to": at_minute(60), "basis": "mean15", "devices": ["warm"],
        "conditions": {"temperature": "28..", "humidity": "70.."},
    });
    assert_eq!(answer.json(), expected);
    assert_eq!(answer.header("cache-control"), "private, max-age=60");
    let url = hour("/devices/warm", "temperature=29..&exact=1&explain=1");
    assert_eq!(bench.get(&url).await.json()["data"], json!([]), "no mean is so high");
    let url = hour("/devices/warm", "temperature=28.6..&exact=1&explain=1");
    let exact = bench.get(&url).await.json();
    let spike = json!([{
        "device_id": "warm", "from": at_minute(20), "to": at_minute(21), "minutes": 1, "basis": "readings",
        "temperature": {"min": 31, "max": 31},
    }]);
    assert_eq!((&exact["data"], &exact["basis"]), (&spike, &json!("readings")));
    assert_eq!(exact["explain"]["plan"], "plain");
}

#[tokio::test]
async fn a_room_has_the_episodes_of_each_device_that_has_the_metrics() {
    let bench = home().await;
    let url = hour("/rooms/loft", "humidity=70..&format=csv");
    let expected = format!(
        "device_id,from,to,minutes,basis,humidity.min,humidity.max\n\
         cool,{},{},60,mean15,80,80\nwarm,{},{},30,mean15,72,72\n",
        at_minute(0),
        at_minute(60),
        at_minute(15),
        at_minute(45)
    );
    assert_eq!(bench.get(&url).await.text, expected);
    let lines = bench.get(&hour("/rooms/loft", "temperature=..18&format=ndjson")).await;
    assert_eq!(lines.text.lines().count(), 1);
    assert!(lines.text.starts_with(r#"{"device_id":"cool","from":"#), "{}", lines.text);
    let url = hour("/rooms/loft", "metric.limit=5&explain=1");
    let answer = bench.get(&url).await.json();
    assert_eq!(answer["devices"], json!(["warm"]));
    assert_eq!(answer["conditions"], json!({"limit": "5..5"}));
    assert!(answer["explain"]["plans"][0]["estimated_read_units"].as_f64() > Some(0.0));
}

#[tokio::test]
async fn what_cannot_be_asked_is_refused_with_the_reason() {
    let bench = home().await;
    bench.refuses(&json!({}), include_str!("refused/conditions.txt")).await;
}

#[tokio::test]
async fn readings_that_are_not_rolled_up_are_read_for_a_month_at_most() {
    let bench = home().await;
    bench.seal(-90 * 24 * 60, "UTC").await;
    let early = numbers("old", -80 * 24 * 60, "loft", &[("temperature", "20")]);
    given::register_devices_of(&bench.store, &[early]).await;
    let url = format!("/devices/old/conditions?temperature=1..&from={}", at_minute(-70 * 24 * 60));
    let problem = bench.problem(&url).await;
    assert!(problem.starts_with("422 The rollups of old reach only to"), "{problem}");
    assert!(problem.contains("Narrow from and to"), "{problem}");
}

impl Bench {
    async fn put_schema(&self, body: &str) -> Answer {
        self.send("PUT", "/conditions/schema", json!({}), body).await
    }
}

const SCHEMA: &str = r#"{"metrics": [
    {"metric": "temperature", "domain": [15, 18.5, 30]},
    {"metric": "since", "encoding": "time", "domain": ["2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"], "bits": 9},
    {"metric": "count", "encoding": "unsigned", "bits": 4}
]}"#;

#[tokio::test]
async fn a_schema_is_shown_as_it_was_sent_and_others_are_new_versions() {
    let bench = Bench::on(MemoryDb::with_conditions_index(), false);
    assert_eq!(
        bench.problem("/conditions/schema").await,
        "404 There is no schema yet; PUT /conditions/schema sets one."
    );
    let expected = json!({"version": 1, "ready": false, "metrics": [
        {"metric": "temperature", "encoding": "decimal", "domain": [15, 18.5, 30], "bits": 12},
        {
            "metric": "since", "encoding": "time", "bits": 9,
            "domain": ["2026-01-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z"],
        },
        {"metric": "count", "encoding": "unsigned", "bits": 4},
    ]});
    for _ in 0..2 {
        let answer = bench.put_schema(SCHEMA).await;
        assert_eq!((answer.status, answer.json()), (200, expected.clone()), "{}", answer.text);
        assert_eq!(bench.get("/conditions/schema").await.json(), expected);
    }
    let other = SCHEMA.replace("18.5", "18");
    assert_eq!(bench.put_schema(&other).await.json()["version"], 2);
}

#[tokio::test]
async fn a_schema_that_cannot_be_taken_is_refused_with_the_place() {
    let bench = Bench::empty();
    bench.refuses(&json!({}), include_str!("refused/schemas.txt")).await;
    let answer = bench.put_schema(SCHEMA).await;
    assert_eq!(answer.status, 422);
    assert!(answer.text.contains("deploy with ConditionsIndex=on"), "{}", answer.text);
    assert_eq!(bench.get("/conditions/schema").await.status, 422);
}
