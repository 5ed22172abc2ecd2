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
    format!("{path}/conditions?from={}&to={}&{conditions}", at(0), at(60))
}

const WARM_AND_DAMP: &str = "temperature=28..&humidity=70..";

#[tokio::test]
async fn an_episode_has_its_ends_its_minutes_and_the_extremes() {
    let bench = home().await;
    let answer = bench.get(&hour("/devices/warm", WARM_AND_DAMP)).await;
    let expected = json!({
        "data": [{
            "device_id": "warm", "from": at(15), "to": at(45), "minutes": 30, "basis": "mean15",
            "temperature": {"min": 28.5, "max": 31}, "humidity": {"min": 72, "max": 72},
        }],
        "from": at(0), "to": at(60), "basis": "mean15", "devices": ["warm"],
        "conditions": {"temperature": "28..", "humidity": "70.."},
    });
    assert_eq!(answer.json(), expected);
    assert_eq!(answer.header("cache-control"), "private, max-age=60");
    let url = hour("/devices/warm", "temperature=29..&exact=1&explain=1");
    assert_eq!(bench.get(&url).await.json()["data"], json!([]), "no mean is so high");
    let url = hour("/devices/warm", "temperature=28.6..&exact=1&explain=1");
    let exact = bench.get(&url).await.json();
    let spike = json!([{
        "device_id": "warm", "from": at(20), "to": at(21), "minutes": 1, "basis": "readings",
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
        at(0),
        at(60),
        at(15),
        at(45)
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
    for (query, expected) in [
        ("", "400 conditions: are needed: name at least one metric with its values, such as"),
        ("limit=5", "400 limit: unknown parameter; expected one of from, to, conditions, exact"),
        ("temperature=warm", "400 temperature: is \"warm\"; write 28..70, 28.., ..70 or 28"),
        ("temperature=3..1", "400 temperature: ends at 1, which is below its begin 3"),
        ("form=-1d", "400 form: is \"-1d\"; write 28..70"),
        ("Form=1", "400 Form: \"Form\" is not a metric name"),
        ("metric.co2=1&co2=2", "400 co2: is given twice"),
        ("co2=1", "400 metric: co2 has not been sent; the metrics sent are humidity"),
        (
            "temperature=1&from=2020-01-01T00:00:00Z",
            "400 from: is 211461 quarters of an hour before to; one request answers for at most 45000",
        ),
        ("temperature=1&from=1", "400 from: "),
    ] {
        let problem = bench.problem(&format!("/devices/warm/conditions?{query}")).await;
        assert!(problem.starts_with(expected), "{query}: {problem}");
    }
    let problem = bench.problem("/devices/nobody/conditions?t=1").await;
    assert_eq!(problem, "404 There is no device \"nobody\".");
}

#[tokio::test]
async fn readings_that_are_not_rolled_up_are_read_for_a_month_at_most() {
    let bench = home().await;
    bench.seal(-90 * 24 * 60, "UTC").await;
    let early = numbers("old", -80 * 24 * 60, "loft", &[("temperature", "20")]);
    given::register_devices_of(&bench.store, &[early]).await;
    let url = format!("/devices/old/conditions?temperature=1..&from={}", at(-70 * 24 * 60));
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
    let one = |metric: &str| {
        format!(r#"{{"metrics": [{{"metric": "b", "encoding": "float"}}, {metric}]}}"#)
    };
    for (body, expected) in [
        ("[]".to_owned(), "The body is no JSON object with metrics"),
        ("{}".to_owned(), "metrics: are needed: an array of metrics"),
        (r#"{"metric": []}"#.to_owned(), "metric: unknown member; expected metrics"),
        (r#"{"metrics": 5}"#.to_owned(), "metrics: must be an array of objects"),
        (r#"{"metrics": []}"#.to_owned(), "metrics: has 0 metrics; an index is for 2 to 8"),
        (one("5"), "metrics[1]: must be an object"),
        (one("{}"), "metrics[1]: has no metric"),
        (one(r#"{"metric": "T"}"#), "metrics[1]: metric: \"T\" is not a metric name"),
        (one(r#"{"metric": "a", "unit": "C"}"#), "metrics[1]: has the unknown member \"unit\""),
        (one(r#"{"metric": "a"}"#), "metrics[1]: has no domain"),
        (one(r#"{"metric": "a", "domain": [1]}"#), "metrics: the domain of a must be 2 to 65"),
        (one(r#"{"metric": "a", "domain": ["1", 2]}"#), "metrics[1]: must be a number"),
        (
            one(r#"{"metric": "a", "encoding": "time", "domain": [1]}"#),
            "metrics[1]: domain: time takes two",
        ),
        (one(r#"{"metric": "a", "encoding": "text"}"#), "metrics[1]: encoding: text is for texts"),
        (
            one(r#"{"metric": "a", "encoding": "log"}"#),
            "metrics[1]: encoding: is \"log\"; expected decimal",
        ),
        (
            one(r#"{"metric": "a", "encoding": "signed", "domain": [1, 2]}"#),
            "metrics[1]: domain: signed takes none",
        ),
        (
            one(r#"{"metric": "a", "encoding": "signed", "bits": 40}"#),
            "metrics: has 40 bits; an attribute has 1 to 32",
        ),
        (
            one(r#"{"metric": "a", "encoding": "signed", "bits": 1.5}"#),
            "metrics[1]: bits: is 1.5; expected",
        ),
        (one(r#"{"metric": "b", "encoding": "signed"}"#), "metrics: names b twice"),
    ] {
        let problem = bench.put_schema(&body).await;
        let detail = problem.json()["detail"].as_str().expect("a text").to_owned();
        assert!(problem.status == 400 && detail.starts_with(expected), "{body}: {detail}");
    }
    let answer = bench.put_schema(SCHEMA).await;
    assert_eq!(answer.status, 422);
    assert!(answer.text.contains("deploy with ConditionsIndex=on"), "{}", answer.text);
    assert_eq!(bench.get("/conditions/schema").await.status, 422);
}
