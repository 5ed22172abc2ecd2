//! Sources: what a test of one is answered with, who sees settings, and how many there may be.

use runtime::invoke::{Invoking, NotInvoked};

use super::*;

/// A function fetching that answers each test alike, and keeps what it was asked.
#[derive(Clone, Default)]
struct Played {
    answer: String,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl InvokeFunction for Played {
    fn invoke(&self, event: String, _: Deadline) -> Invoking<'_> {
        let event = serde_json::from_str(&event).expect("JSON");
        self.asked.lock().expect("no panic while held").push(event);
        let answer = self.answer.clone();
        let answer = if answer.is_empty() {
            Err(NotInvoked("Lambda answers 429".to_owned()))
        } else {
            Ok(answer)
        };
        Box::pin(async move { answer })
    }
}

fn bench(answer: &Value) -> (Bench, Played) {
    let answer = if answer.is_null() { String::new() } else { answer.to_string() };
    let played = Played { answer, ..Played::default() };
    let Bench { store, clock, query, log } = Bench::empty();
    let query = query.with_fetching(played.clone());
    (Bench { store, clock, query, log }, played)
}

const REMO: &str = r#"{"kind": "remo", "secrets": {"token": "geheim"}, "rooms": {"b2": null}}"#;

#[tokio::test]
async fn a_test_proposes_rooms_and_its_secret_goes_to_the_function_and_nowhere_else() {
    let reply = json!({
        "requests": [{"host": "api.nature.global", "status": 200, "ms": 5, "bytes": 80}],
        "devices": ["a1", "b2", "c3"], "names": {"a1": "リビング", "c3": "Kitchen"},
        "readings": [{"device": "a1", "metrics": {"temperature": {"value": 22.5, "unit": "°C"}}}],
        "rejected": [], "ignored": [], "numbers": {},
    });
    let (bench, played) = bench(&reply);
    let answer = bench.send("POST", "/sources/test", json!({}), REMO).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let expected = json!([
        {"id": "a1", "name": "リビング", "room": "room-a1"},
        {"id": "c3", "name": "Kitchen", "room": "Kitchen"},
    ]);
    assert_eq!(answer.json()["devices"], expected);

    let asked = played.asked.lock().expect("no panic while held").remove(0);
    assert_eq!(asked["secrets"]["token"], "geheim");
    assert_eq!(asked["settings"].get("secrets"), None);
    assert!(!answer.text.contains("geheim") && !bench.log().contains("geheim"));
}

#[tokio::test]
async fn a_test_that_fails_says_why() {
    for (reply, why) in [
        (
            json!({"requests": [], "devices": [], "names": {}, "readings": [], "rejected": [], "ignored": [],
            "numbers": {}, "error": "Nature Remo answers 401"}),
            "422 Nature Remo answers 401",
        ),
        (Value::Null, "422 The source is not tried: Lambda answers 429."),
    ] {
        let (bench, _) = bench(&reply);
        let answer = bench.send("POST", "/sources/test", json!({}), REMO).await;
        assert!(answer.problem().starts_with(why), "{}", answer.text);
    }
}

#[tokio::test]
async fn there_are_twenty_sources_at_most() {
    let (bench, _) = bench(&Value::Null);
    for n in 0..20 {
        let put = bench.send("PUT", &format!("/sources/s{n}"), json!({}), REMO).await;
        assert_eq!(put.status, 200, "{}", put.text);
    }
    let put = bench.send("PUT", "/sources/s20", json!({}), REMO).await;
    assert_eq!(put.problem(), "409 There are 20 sources, and there can be no more.");
    assert_eq!(bench.send("PUT", "/sources/s19", json!({}), REMO).await.status, 200);
    assert_eq!(bench.get("/sources").await.rows().len(), 20);
}

/// Settings are for whoever may edit; a secret is for nobody.
#[tokio::test]
async fn who_reads_sees_that_there_is_a_source_and_none_of_its_settings() {
    let bench = Bench::with(true);
    for (name, scope) in [("admin", Scope::Admin), ("reader", Scope::Read)] {
        bench.store.add_token(&given::token(name, scope), &invocation()).await.expect("kept");
    }
    let bearer = |name: &str| json!({"authorization": format!("Bearer {}", given::secret(name))});
    let put = bench.send("PUT", "/sources/remo", bearer("admin"), REMO).await;
    assert_eq!(put.status, 200, "{}", put.text);
    for (name, has_settings) in [("admin", true), ("reader", false)] {
        let shown = bench.send("GET", "/sources/remo", bearer(name), "").await;
        assert_eq!(shown.json()["host"], "api.nature.global", "{}", shown.text);
        assert_eq!(shown.json().get("rooms").is_some(), has_settings, "{name}");
        assert_eq!(shown.json().get("secrets").is_some(), has_settings, "{name}");
        assert!(!shown.text.contains("geheim"));
    }
    for (method, url) in
        [("PUT", "/sources/remo"), ("DELETE", "/sources/remo"), ("POST", "/sources/test")]
    {
        assert_eq!(bench.send(method, url, bearer("reader"), REMO).await.status, 403, "{method}");
    }

    let settings = Settings { auth: Auth::Off, ..Settings::default() };
    let open = Bench::with_settings(bench.store.clone(), settings);
    let nobody = open.get("/sources/remo").await.json();
    assert!(nobody.get("rooms").is_none() && nobody["kind"] == "remo", "{nobody}");
    let admin = open.send("GET", "/sources/remo", bearer("admin"), "").await.json();
    assert!(admin.get("rooms").is_some(), "{admin}");
}

/// An export has no secrets. Without its secret a source would fail in the next minute, and each hour from then on.
#[tokio::test]
async fn a_restored_source_says_that_its_secret_is_missing_and_is_not_on_without_it() {
    let (bench, _) = bench(&Value::Null);
    let put =
        async |body: Value| bench.send("PUT", "/sources/remo", json!({}), &body.to_string()).await;
    let error = async || bench.get("/sources/remo").await.json()["state"]["error"].clone();
    let missing = "its secret for api.nature.global is missing (token); it is off, and is not asked until it is given and on";

    for room in ["home", "flat"] {
        let restored = put(json!({"kind": "remo", "on": false, "room": room})).await;
        assert_eq!(restored.json()["state"]["error"], missing, "{}", restored.text);
        assert_eq!(restored.json()["lacks_secrets"], true);
        assert_eq!(error().await, missing);
        let on = put(json!({"kind": "remo", "secrets": ["token"]})).await;
        assert!(on.problem().ends_with("secrets: is missing; give token"), "{}", on.text);
    }

    let given = put(json!({"kind": "remo", "on": false, "secrets": {"token": "geheim"}})).await;
    assert_eq!((given.status, error().await), (200, Value::Null), "{}", given.text);
    assert_eq!(put(json!({"kind": "remo"})).await.status, 200);
}

/// An export leaves out a period that nobody chose: it follows from the number of devices there.
#[tokio::test]
async fn a_source_says_whether_a_person_chose_its_period() {
    let (bench, _) = bench(&Value::Null);
    for (every, effective) in [(Value::Null, "1m"), (json!("5m"), "5m")] {
        let source = json!({"kind": "remo", "on": false, "every": every});
        let put = bench.send("PUT", "/sources/a", json!({}), &source.to_string()).await;
        assert_eq!(put.json()["state"]["every"], effective, "{}", put.text);
        assert_eq!(put.json()["every"], every, "{}", put.text);
    }
}
