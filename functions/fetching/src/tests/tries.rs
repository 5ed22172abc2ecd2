//! A person tries a source before it is saved.

use super::*;

fn pump() -> Value {
    json!({
        "kind": "json", "url": "https://api.example.org/v1/pump", "headers": {"x-api-key": "{key}"},
        "device": "pump", "metrics": {"temperature": "/data/temp"},
    })
}

fn playing() -> World {
    let world = World::new();
    let body = json!({"data": {"temp": 21.4, "text": "12.5", "name": SECRET, "a/b": [1]}, "secret": SECRET});
    world.play("api.example.org", move |asked| answer(asked.at, 200, &body));
    world
}

#[tokio::test(start_paused = true)]
async fn a_test_shows_devices_values_and_numbers_and_stores_nothing() {
    let world = playing();
    let reply = world.try_source("pump", pump(), Some(&[("key", SECRET)])).await;
    let reply = serde_json::to_value(&reply).expect("JSON");
    assert_eq!(reply["error"], Value::Null);
    assert_eq!(reply["devices"], json!(["pump"]));
    assert_eq!(reply["readings"][0]["temperature"], 21.4);
    assert_eq!(
        reply["numbers"],
        json!({"/data/temp": 21.4, "/data/text": "12.5", "/data/a~1b/0": 1})
    );
    assert_eq!(reply["requests"][0]["host"], "api.example.org");
    assert!(!reply.to_string().contains(SECRET));
    assert!(world.values().is_empty() && world.find("pump").await.is_none());
}

/// Whoever edits a source cannot send its secret to an address of their own.
#[tokio::test(start_paused = true)]
async fn a_stored_secret_goes_to_the_request_that_it_was_given_for_and_to_no_other() {
    let world = playing();
    world.save("pump", pump(), &[("key", SECRET)]).await;
    let reply = world.try_source("pump", pump(), None).await;
    assert_eq!(serde_json::to_value(&reply).expect("JSON")["error"], Value::Null);

    for (member, value) in [
        ("url", json!("https://evil.example.org/v1/pump")),
        ("url", json!("https://api.example.org/other?a={key}")),
        ("headers", json!({"x-other": "{key}"})),
        ("method", json!("POST")),
        ("basic", json!({"user": "{key}", "password": ""})),
    ] {
        let mut changed = pump();
        changed[member] = value;
        let asked = world.asked().len();
        let reply = world.try_source("pump", changed, None).await;
        let reply = serde_json::to_value(&reply).expect("JSON");
        let error = reply["error"].as_str().expect("an error");
        assert!(error.starts_with("secrets.key: is missing"), "{member}: {error}");
        assert_eq!(world.asked().len(), asked, "{member}");
    }

    // Where devices are, and how often they are asked, may change.
    let mut moved = pump();
    (moved["room"], moved["every"]) = (json!("cellar"), json!("1h"));
    let reply = world.try_source("pump", moved, None).await;
    assert_eq!(serde_json::to_value(&reply).expect("JSON")["error"], Value::Null);
}

/// A maker may repeat a secret in a form that nobody foresees: who does not know it says nothing of what is read.
#[tokio::test(start_paused = true)]
async fn a_stored_secret_is_read_as_it_was_when_it_was_given_and_in_no_other_way() {
    let world = World::new();
    let body = json!({"data": {"temp": 21.4, "pin": 4711}, "you": "Basic Z2VoZWlt", "at": "pin 4711 is wrong"});
    world.play("api.example.org", move |asked| answer(asked.at, 200, &body));
    let error = "secrets.key: is missing: give it with the source, and again if the request or what is read of its answer changes";
    world.save("pump", pump(), &[("key", "4711")]).await;

    for (member, value) in [
        ("device", json!("/you")),
        ("time", json!("/at")),
        ("only", json!("/you")),
        ("each", json!("/data")),
        ("metrics", json!({"temperature": "/data/pin"})),
        ("metrics", json!({})),
        ("format", json!("readings")),
    ] {
        let mut changed = pump();
        changed[member] = value;
        if member == "format" {
            changed["metrics"] = json!({});
        }
        let reply = world.try_source("pump", changed.clone(), None).await;
        let reply = serde_json::to_value(&reply).expect("JSON");
        assert_eq!(reply["error"], error, "{changed}");
        assert!(world.asked().is_empty(), "{changed}");
    }

    let reply = world.try_source("pump", pump(), None).await;
    let reply = serde_json::to_value(&reply).expect("JSON");
    assert_eq!(
        (&reply["numbers"], &reply["readings"][0]["temperature"]),
        (&json!({}), &json!(21.4))
    );
}

/// A measured value is no secret, though it is equal to one.
#[tokio::test(start_paused = true)]
async fn a_value_that_is_equal_to_a_secret_is_stored() {
    let world = playing();
    world.save("pump", pump(), &[("key", "21.4")]).await;
    world.minute().await;
    assert_eq!(world.values().into_values().collect::<Vec<_>>(), ["21.4"]);
}

/// Some makers repeat the address that they were asked at. Whoever reads sees the errors of a source.
#[tokio::test(start_paused = true)]
async fn an_error_about_an_answer_repeats_no_secret() {
    let world = playing();
    let mut timed = pump();
    timed["time"] = json!("/secret");
    world.save("pump", timed, &[("key", SECRET)]).await;
    world.minute().await;
    let error = world.stored("pump").await.status.error.expect("an error");
    assert!(error.starts_with("row 0: \"/secret\" \"***\" is not a timestamp"), "{error}");
}

/// What ingest says of a text is cut: a secret that is cut is not recognized any more.
#[tokio::test(start_paused = true)]
async fn an_error_about_a_long_text_has_no_part_of_a_secret() {
    let world = World::new();
    let long = format!("{}{SECRET}", "x".repeat(40));
    world.play("api.example.org", move |asked| {
        answer(asked.at, 200, &json!({"at": long, "data": {"temp": 21.4}}))
    });
    let mut timed = pump();
    timed["time"] = json!("/at");
    world.save("pump", timed, &[("key", SECRET)]).await;
    world.minute().await;
    let error = world.stored("pump").await.status.error.expect("an error");
    assert!(error.contains("is not a timestamp") && !error.contains(&SECRET[..5]), "{error}");
}

/// A server that shows what it was asked: as it is, escaped once or twice, in Base64, as a name, a unit or a number.
#[tokio::test(start_paused = true)]
async fn no_form_of_a_secret_in_an_answer_is_read() {
    let (key, pin) = (r#"ge"he\im/+0123"#, "90125551212");
    let settings = json!({
        "kind": "json", "url": "https://api.example.org/v1?pin={pin}", "method": "POST",
        "basic": {"user": "me", "password": "{key}"}, "body": {"q": "{key}"}, "format": "readings",
    });
    let world = World::new();
    let body = json!({ "q": key }).to_string();
    let basic = STANDARD.encode(format!("me:{key}"));
    let row = json!({
        "device_id": "a1", "temperature": 21.4, key: 1, "unit": {"temperature": key},
        "room": format!("of {key}"), "data": body, "twice": json!(body).to_string(),
        "authorization": format!("Basic {basic}"), "bare": basic.trim_end_matches('='),
        "url": "/v1?key=ge%22he%5C%5cim%2F%2B0123", "again": "ge%2522he%255C%255Cim%252F%252B0123",
        "escaped": r"ge\u0022he\u005c\u005Cim\/\u002b0123", "whole": STANDARD.encode(&body),
        "pin": 90_125_551_212_u64, "float": 90_125_551_212.0, "list": [{"pin": pin}],
    });
    let shown = row.clone();
    world.play("api.example.org", move |asked| answer(asked.at, 200, &shown));
    world.save("echo", settings.clone(), &[("key", key), ("pin", pin)]).await;
    world.minute().await;

    let event: Value = serde_json::from_str(&world.events()[0]).expect("JSON");
    let read = STANDARD.decode(event["data"].as_str().expect("data")).expect("Base64");
    let read: Value = serde_json::from_slice(&read).expect("JSON");
    let mut expected = json!({"device_id": "a1", "temperature": 21.4, "unit": {"temperature": "***"},
        "room": "of ***", "authorization": "***", "***": 1, "list": [{"pin": "***"}]});
    for hidden in ["data", "twice", "bare", "url", "again", "escaped", "whole", "pin", "float"] {
        expected[hidden] = "***".into();
    }
    assert_eq!(read, json!([expected]));

    let reply = world.try_source("echo", settings, Some(&[("key", key), ("pin", pin)])).await;
    let numbers = serde_json::to_value(&reply).expect("JSON")["numbers"].clone();
    assert_eq!(numbers, json!({"/temperature": 21.4, "/***": 1}));
}

/// Two saves at the moment of a read may show the settings of one and the secrets of the other.
#[tokio::test(start_paused = true)]
async fn the_secrets_of_another_save_are_not_sent() {
    let world = playing();
    let texts = SecretTexts::of([("key".to_owned(), SECRET.to_owned())].into());
    let secrets = SourceSecrets::given_for(&source(pump()), texts);
    let mut evil = pump();
    evil["url"] = json!("https://evil.example.org/v1/pump");
    let id = "pump".parse().expect("an id");
    let stored = StoredSource::new(id, None, &source(evil.clone()), world.clock.now());
    let saved = world.store.save_source(&stored, Some(&secrets), &invocation()).await;
    assert!(saved.expect("saved"));

    let reply = world.try_source("pump", evil, None).await;
    let error = serde_json::to_value(&reply).expect("JSON")["error"].to_string();
    assert!(error.contains("secrets.key: is missing"), "{error}");
    world.minute().await;
    assert!(world.asked().is_empty());
    let why = world.stored("pump").await.status.error.expect("an error");
    assert!(why.starts_with("secrets.key: is missing"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_test_counts_among_the_requests_of_its_source() {
    let world = World::new();
    world.play("api.nature.global", |asked| answer(asked.at, 200, &json!([])));
    world.save("remo", json!({"kind": "remo"}), &[("token", SECRET)]).await;
    for _ in 0..20 {
        world.try_source("remo", json!({"kind": "remo"}), None).await;
    }
    assert_eq!(world.asked().len(), 14, "7 tests of 2 requests fit into 15");
    let reply = world.try_source("remo", json!({"kind": "remo"}), None).await;
    let why = serde_json::to_value(&reply).expect("JSON")["error"].to_string();
    assert!(
        why.contains(
            "Nature Remo was asked as often as it may be; try again after 2026-03-10T12:05"
        ),
        "{why}"
    );
}

/// A kind has its own period and limit, so the count of one says nothing of another.
#[tokio::test(start_paused = true)]
async fn a_test_of_another_kind_does_not_change_the_count_of_a_source() {
    let world = World::new();
    world.play("api.nature.global", |asked| answer(asked.at, 200, &json!([])));
    world.save("remo", json!({"kind": "remo"}), &[("token", SECRET)]).await;
    for _ in 0..20 {
        world.try_source("remo", json!({"kind": "remo"}), None).await;
        let reply = world.try_source("remo", pump(), Some(&[("key", SECRET)])).await;
        let reply = serde_json::to_value(&reply).expect("JSON");
        assert!(reply["error"].to_string().contains("kind: of a saved source stays"), "{reply}");
    }
    assert_eq!(world.asked().len(), 14, "7 tests of 2 requests fit into 15");
}

#[tokio::test(start_paused = true)]
async fn tests_of_sources_that_are_not_saved_keep_the_limit_of_the_maker_together() {
    let world = World::new();
    world.play("api.nature.global", |asked| answer(asked.at, 200, &json!([])));
    for attempt in 0..20 {
        let id = format!("remo-{attempt}");
        world.try_source(&id, json!({"kind": "remo"}), Some(&[("token", SECRET)])).await;
    }
    assert_eq!(world.asked().len(), 14, "7 tests of 2 requests fit into 15");
}

/// 429 with Retry-After: whoever tests or edits the source meanwhile does not ask either.
#[tokio::test(start_paused = true)]
async fn a_pause_that_the_maker_asks_for_outlasts_tests_and_edits() {
    let world = World::new();
    world.play("api.example.org", |asked| {
        let mut limited = answer(asked.at, 429, &json!({}));
        limited.headers.push(("retry-after", "7200".to_owned()));
        limited
    });
    world.save("pump", pump(), &[("key", SECRET)]).await;
    world.minutes(2).await;
    assert_eq!(world.asked().len(), 1);

    let mut edited = pump();
    edited["every"] = json!("2m");
    world.save("pump", edited.clone(), &[("key", SECRET)]).await;
    let reply = world.try_source("pump", edited, None).await;
    let reply = serde_json::to_value(&reply).expect("JSON");
    assert!(reply["error"].to_string().contains("takes no more requests now"), "{reply}");
    world.minutes(100).await;
    assert_eq!(world.asked().len(), 1, "the pause is two hours");
    world.minutes(30).await;
    assert!(world.asked().len() > 1, "it is asked again");
}

#[tokio::test(start_paused = true)]
async fn a_test_that_fails_says_why_in_words() {
    let world = playing();
    let secrets: &[(&str, &str)] = &[("key", SECRET)];
    world.play("api.example.org", |asked| answer(asked.at, 403, &json!({"message": SECRET})));
    let reply = world.try_source("pump", pump(), Some(secrets)).await;
    let reply = serde_json::to_value(&reply).expect("JSON");
    assert_eq!(reply["error"], "The address answers 403: it wants a secret, or another one");
    let mut wrong = pump();
    wrong["metrics"] = json!({"t": "t"});
    let reply = world.try_source("pump", wrong, Some(secrets)).await;
    let reply = serde_json::to_value(&reply).expect("JSON");
    assert!(reply["error"].as_str().expect("why").starts_with("metrics.t: must be a pointer"));
}

/// The page shows the numbers of an answer, and a person chooses some.
#[tokio::test(start_paused = true)]
async fn a_request_is_tried_before_anybody_says_what_is_read() {
    let world = playing();
    let mut open = pump();
    open["metrics"] = json!({});
    let reply = world.try_source("pump", open, Some(&[("key", SECRET)])).await;
    let reply = serde_json::to_value(&reply).expect("JSON");
    assert_eq!((&reply["error"], &reply["readings"]), (&Value::Null, &json!([])));
    assert_eq!(reply["numbers"]["/data/temp"], 21.4);
}
