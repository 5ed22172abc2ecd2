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

#[tokio::test]
async fn where_anybody_may_read_settings_are_for_an_admin() {
    let bench = Bench::house("that is guarded").await;
    let settings = Settings { auth: Auth::Off, ..Settings::default() };
    let open = Bench::with_settings(bench.store.clone(), settings);
    let admin = json!({"authorization": format!("Bearer {}", given::secret("admin"))});
    let put = open.send("PUT", "/sources/remo", admin.clone(), REMO).await;
    assert_eq!(put.status, 200, "{}", put.text);

    let nobody = open.get("/sources/remo").await.json();
    assert!(nobody.get("rooms").is_none() && nobody["kind"] == "remo", "{nobody}");
    let admin = open.send("GET", "/sources/remo", admin, "").await.json();
    assert!(admin.get("rooms").is_some(), "{admin}");
}
