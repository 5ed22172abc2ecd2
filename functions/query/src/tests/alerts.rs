//! Rules, channels, what was told and who has seen it, as a client meets them.

use ::alerts::{EpisodeState, LinkKey, News};
use chrono::TimeDelta;
use domain::TimeRange;
use domain::given::{cases, rule_id};
use futures_util::future::join_all;
use table::given::{alert_rule, channel_id, firing, message};
use table::{
    AlertState, DeviceGroups, EditAlertRules as _, EditAlertStates as _, Failing, LateMark,
    MarkLateChanges as _, NewJudgement, NoteChannels as _, PutJudgements as _, ReadAlertRules as _,
    ReadChannels as _, ReadRechecks as _, StoreError, StoredAlertState,
};

use super::*;

impl Bench {
    async fn put(&self, url: &str, body: &Value) -> Answer {
        self.send("PUT", url, json!({}), &body.to_string()).await
    }

    async fn ask(&self, url: &str, body: &Value) -> Answer {
        self.send("POST", url, json!({}), &body.to_string()).await
    }

    async fn remove(&self, url: &str) -> Answer {
        self.send("DELETE", url, json!({}), "").await
    }

    /// Stores a state of a rule, as if it had been judged.
    async fn put_state(&self, state: &StoredAlertState) {
        assert!(self.store.put_alert_state(state, &invocation()).await.expect("stored"));
    }
}

/// A rule that is off, so that nothing judges it.
fn freezer() -> Value {
    json!({
        "name": "Freezer", "device": "a", "metric": "temperature", "above": -12.5, "clear": -15, "for": "5m", "on": false,
    })
}

fn ntfy() -> Value {
    json!({"kind": "ntfy", "name": "Phone", "topic": "geheim-1", "token": "tk_geheim"})
}

/// A rule on each of some thermometers in a room.
fn warm() -> Value {
    json!({"name": "Warm", "room": "hall", "metric": "temperature", "above": 8})
}

/// The rest of the devices is left to the minute by one recheck of the rule.
#[tokio::test]
async fn a_rule_on_many_devices_is_saved_by_few_writes() {
    let bench = Bench::new().await;
    let hot: Vec<_> = (0..50)
        .map(|number| {
            given::reading(
                &format!("t{number}"),
                at_minute(60),
                Some("hall"),
                &[("temperature", "9")],
            )
        })
        .collect();
    given::store_home(&bench.store, &hot).await;
    let saved = bench.put("/alerts/warm", &warm()).await;
    assert_eq!(saved.status, 200, "{}", saved.text);
    assert_eq!(bench.store.all_told().len(), 20);
    let so_far = "the rule is judged on 20 devices so far; the others follow, some each minute";
    assert!(saved.text.contains(so_far), "{}", saved.text);
    let rechecks =
        bench.store.rechecks(None, 100, &invocation()).await.expect("read").listing.found;
    let [recheck] = &rechecks[..] else { panic!("one: {rechecks:?}") };
    assert_eq!(recheck.what.to_string(), "the rule warm");
}

#[tokio::test]
async fn a_rule_that_was_saved_says_so_though_something_fails_then() {
    let (mut untold, mut unshown) = (false, false);
    for calls in 0..40 {
        let bench = Bench::new().await;
        bench.store.fail_after(calls, [StoreError::Throttled("for now".into())]);
        let answer = bench.put("/alerts/warm", &warm()).await;
        bench.store.end_troubles();
        let is_stored = bench.store.alert_rule(&rule_id("warm"), &invocation()).await;
        let is_stored = is_stored.expect("read").is_some();
        let text = answer.text;
        unshown |= text.contains("The rule is saved, but not shown. ");
        untold |= text
            .contains("the rule is not judged yet: the table did not answer; it is tried again");
        assert_eq!(
            is_stored,
            answer.status == 200 || text.contains("The rule is saved"),
            "{calls}: {text}"
        );
    }
    assert!(unshown && untold);
}

#[tokio::test]
async fn a_rule_is_saved_shown_listed_and_deleted() {
    let bench = Bench::new().await;
    let saved = bench.put("/alerts/freezer", &freezer()).await;
    assert_eq!(saved.status, 200, "{}", saved.text);
    let saved = saved.json();
    assert_eq!(saved["above"], "-12.5");
    assert_eq!(saved["clear_above"], "-15");
    assert_eq!((&saved["on"], &saved["recovery"]), (&json!(false), &json!(true)));
    assert_eq!(saved["changed"], json!(at_minute(60)));
    assert_eq!(saved["states"], json!([]));
    assert_eq!(saved["warnings"], json!(["there is no channel, so nobody is told"]));

    let shown = bench.get("/alerts/freezer").await.json();
    let listed = bench.get("/alerts").await.json();
    assert_eq!(listed["data"], json!([shown]));
    assert_eq!(listed["channels"], json!([]));
    // As it was answered it can be sent back, and nothing has changed.
    bench.clock.advance(Duration::from_secs(60));
    let again = bench.put("/alerts/freezer", &saved).await.json();
    assert_eq!(again, saved);

    let mut edited = shown.clone();
    edited["above"] = json!("-10");
    let edited = bench.put("/alerts/freezer", &edited).await.json();
    assert_eq!(edited["changed"], json!(at_minute(61)));
    // Two edits in one millisecond are two.
    let mut edited_again = edited.clone();
    edited_again["above"] = json!("-9");
    let edited_again = bench.put("/alerts/freezer", &edited_again).await.json();
    assert_eq!(edited_again["changed"], json!(at_millis(61 * 60_000 + 1)));

    assert_eq!(
        bench.remove("/alerts/freezer").await.json(),
        json!({"deleted": 1, "has_more": false})
    );
    for url in ["/alerts/freezer", "/alerts/freezer/history"] {
        assert_eq!(bench.get(url).await.problem(), "404 There is no rule \"freezer\".");
    }
    assert_eq!(bench.remove("/alerts/freezer").await.status, 404);
}

#[tokio::test]
async fn a_rule_that_cannot_be_taken_is_refused_by_its_member_and_stored_nowhere() {
    let bench = Bench::new().await;
    bench.refuses(&json!({}), include_str!("refused/rules.txt")).await;
    for case in cases(include_str!("refused/rule_members.txt")) {
        let told = bench.send("PUT", "/alerts/r", json!({}), case.given).await.problem();
        assert!(told.starts_with(&format!("400 {}", case.answer())), "{case}: {told}");
    }
    for body in [r#"{"name": "a", "name": "b"}"#, "{", "\u{7f}"] {
        let answer = bench.send("PUT", "/alerts/r", json!({}), body).await;
        assert_eq!(answer.status, 400, "{body}");
    }
    let nested = format!("{{\"name\": {}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(bench.send("PUT", "/alerts/r", json!({}), &nested).await.status, 400);
    for (url, field) in [
        ("/alerts/a%23b", "rule_id: contains '#'"),
        ("/alerts/ts", "rule_id: \"ts\" is a reserved name"),
        ("/alerts/TS", "rule_id: "),
        ("/channels/a%23b", "channel_id: contains '#'"),
    ] {
        let body = if url.starts_with("/alerts") { freezer() } else { ntfy() };
        for answer in [bench.put(url, &body).await, bench.get(url).await, bench.remove(url).await] {
            let told = answer.problem();
            assert!(told.starts_with(&format!("400 {field}")), "{url}: {told}");
        }
    }
    assert_eq!(bench.get("/alerts").await.json()["data"], json!([]));
}

#[tokio::test]
async fn a_body_of_a_megabyte_is_refused() {
    let bench = Bench::new().await;
    let mut rule = freezer();
    rule["name"] = json!("n".repeat(1 << 20));
    for (url, method) in [
        ("/alerts/r", "PUT"),
        ("/channels/c", "PUT"),
        ("/alerts/r/pause", "POST"),
        ("/alerts/r/acknowledge", "POST"),
        ("/acknowledge", "POST"),
        ("/channels/c/test", "POST"),
    ] {
        let answer = bench.send(method, url, json!({}), &rule.to_string()).await;
        assert_eq!(answer.status, 413, "{url}");
        let half = "x".repeat(500_000);
        let answer = bench.send(method, url, json!({}), &half).await;
        assert_eq!(answer.status, 413, "{url}");
    }
}

#[tokio::test]
async fn there_are_a_hundred_rules_and_ten_channels() {
    let bench = Bench::new().await;
    for n in 0..100 {
        assert_eq!(bench.put(&format!("/alerts/r{n}"), &freezer()).await.status, 200);
    }
    let told = bench.put("/alerts/one-more", &freezer()).await.problem();
    assert!(told.starts_with("409 There are 100 rules"), "{told}");
    let mut edited = freezer();
    edited["name"] = json!("Other");
    assert_eq!(bench.put("/alerts/r7", &edited).await.status, 200, "one that is there");
    assert_eq!(bench.remove("/alerts/r8").await.status, 200);
    assert_eq!(bench.put("/alerts/one-more", &freezer()).await.status, 200);
    let listed = bench.get("/alerts").await;
    assert_eq!(listed.rows().len(), 100);

    for n in 0..10 {
        assert_eq!(bench.put(&format!("/channels/c{n}"), &ntfy()).await.status, 200);
    }
    let told = bench.put("/channels/one-more", &ntfy()).await.problem();
    assert!(told.starts_with("409 There are 10 channels"), "{told}");
    assert_eq!(bench.put("/channels/c3", &ntfy()).await.status, 200);
}

#[tokio::test]
async fn of_two_edits_at_once_one_is_stored_or_both_and_none_is_mixed() {
    let bench = Bench::new().await;
    let rule = |n: i64| {
        let mut rule = freezer();
        rule["above"] = json!(n);
        rule["clear"] = json!(n - 1);
        rule
    };
    let bodies: Vec<Value> = (0..8).map(rule).collect();
    let answers = join_all(bodies.iter().map(|body| bench.put("/alerts/r", body))).await;
    assert!(answers.iter().all(|it| matches!(it.status, 200 | 503)));
    assert!(answers.iter().any(|it| it.status == 200));
    let stored = bench.get("/alerts/r").await.json();
    let number = |name: &str| stored[name].as_str().and_then(|it| it.parse::<i64>().ok());
    assert_eq!(
        number("above").zip(number("clear_above")).map(|(above, clear)| above - clear),
        Some(1)
    );
}

#[tokio::test]
async fn a_rule_says_what_is_odd_about_it() {
    let bench = Bench::new().await;
    assert_eq!(bench.put("/channels/phone", &ntfy()).await.status, 200);
    let rule = |scope: &str, id: &str, metric: &str| json!({"name": "n", scope: id, "metric": metric, "above": 1});
    for (rule, warning) in [
        (rule("device", "a", "temperature"), None),
        (
            rule("device", "a", "temprature"),
            Some("metric: a has sent no temprature yet; it has temperature"),
        ),
        (
            rule("device", "freezr", "temperature"),
            Some("device: nothing of freezr has arrived yet"),
        ),
        (rule("room", "r", "temperature"), None),
        (rule("room", "attic", "temperature"), Some("room: there is no room attic yet")),
        (
            rule("mean_of_room", "attic", "temperature"),
            Some("mean_of_room: there is no room attic yet"),
        ),
        (rule("kind", "meter", "temperature"), Some("kind: no device is of it yet")),
        (rule("tag", "cold", "temperature"), Some("tag: no device has it yet")),
        (rule("room", "r", "co2"), Some("metric: no device of it has sent co2 yet")),
        (rule("mean_of_room", "r", "co2"), Some("metric: no device of it has sent co2 yet")),
        (
            json!({"name": "n", "device": "a", "budget_kwh": 1, "per": "day"}),
            Some("budget_kwh: a has sent no energy or power yet; it has temperature"),
        ),
        (
            json!({"name": "n", "room": "r", "demand_kw": 1, "period": "15m"}),
            Some("demand_kw: no device of it has sent energy or power yet"),
        ),
    ] {
        let answer = bench.put("/alerts/r", &rule).await.json();
        let found: Option<Vec<&str>> =
            answer["warnings"].as_array().map(|it| it.iter().filter_map(Value::as_str).collect());
        assert_eq!(found, warning.map(|it| vec![it]), "{rule}");
    }
}

#[tokio::test]
async fn states_are_shown_with_their_rules_and_those_that_fire_first() {
    let bench = Bench::new().await;
    bench
        .put(
            "/alerts/r",
            &json!({"name": "n", "room": "r", "metric": "temperature", "above": 1, "on": false}),
        )
        .await;
    bench
        .put(
            "/alerts/s",
            &json!({"name": "n", "device": "a", "budget_kwh": 1, "per": "day", "recovery": false, "on": false}),
        )
        .await;
    let firing = firing("r", "b");
    bench.put_state(&firing).await;
    let mut once = ::alerts::FigureState::default();
    once.told.insert(at_minute(0), 1);
    for (rule, device, state) in [("r", "a", normal(&firing)), ("s", "a", AlertState::Once(once))] {
        let key = given::alert_key(rule, device);
        bench.put_state(&StoredAlertState::next(None, key, state, at_minute(60))).await;
    }
    let listed = bench.get("/alerts").await.json();
    assert_eq!((&listed["firing"], &listed["pending"]), (&json!(1), &json!(0)));
    let states = &listed["data"][0]["states"];
    assert_eq!(
        states[0],
        json!({
            "subject": "device:b", "phase": "recovering", "since": "2026-01-11T16:00:00.000Z",
            "fired": "2026-01-11T16:10:00.000Z", "clear": "2026-01-11T17:00:00.000Z",
            "value": "-0.12345678901234567890123456789012345678", "seen": "2026-01-11T17:00:00.000Z",
            "silent": true, "acknowledged": true, "told": "2026-01-11T16:11:00.000Z",
            "judged": "2026-01-11T17:00:00.000Z",
        })
    );
    assert_has(&states[1], &json!({"subject": "device:a", "phase": "normal"}));
    assert_eq!(
        listed["data"][1]["states"],
        json!([{"subject": "device:a", "phase": "told", "count": 1, "last": at_minute(0)}])
    );
    assert_eq!(bench.get("/alerts/r").await.json(), listed["data"][0]);
    // Of a rule on many devices the list shows some.
    for n in 0..30 {
        let key = given::alert_key("r", &format!("d{n}"));
        bench.put_state(&StoredAlertState::next(None, key, normal(&firing), at_minute(60))).await;
    }
    let listed = bench.get("/alerts").await.json();
    let rule = &listed["data"][0];
    assert_eq!(rule["states"].as_array().map(Vec::len), Some(20));
    assert_eq!((&rule["has_more_states"], &rule["firing"]), (&json!(true), &json!(1)));
    let shown = bench.get("/alerts/r").await.json();
    assert_eq!(shown["states"].as_array().map(Vec::len), Some(32));
    // With the rule its states end, and no other's.
    assert_eq!(bench.remove("/alerts/r").await.status, 200);
    assert_eq!(bench.store.all_alert_states().len(), 1);
}

fn normal(of: &StoredAlertState) -> AlertState {
    let AlertState::Episodes(state) = &of.state else { panic!("episodes") };
    let mut state = EpisodeState::clone(state);
    state.fold.phase = ::alerts::Phase::Normal { from: at_minute(0) };
    state.acknowledged = None;
    AlertState::Episodes(Box::new(state))
}

#[tokio::test]
async fn a_pause_is_until_a_time_and_changes_nothing_else() {
    let bench = Bench::new().await;
    let saved = bench.put("/alerts/r", &freezer()).await.json();
    let pause = async |until: Value| bench.ask("/alerts/r/pause", &json!({"until": until})).await;
    for (until, expected) in [
        (json!("2h"), at_minute(180)),
        (json!(at_minute(90)), at_minute(90)),
        (json!("now+1d"), at_minute(60 + 1_440)),
        (json!("366d"), at_minute(60 + 366 * 1_440)),
    ] {
        let answer = pause(until.clone()).await;
        assert_eq!(answer.json()["paused_until"], json!(expected), "{until}: {}", answer.text);
        assert_eq!(answer.json()["changed"], saved["changed"], "it is judged as before");
    }
    for (body, expected) in [
        (json!({}), "until: must be a time"),
        (json!({"until": true}), "until: must be a string or a number"),
        (json!({"until": "-1h"}), "until: is \"-1h\", which is over"),
        (json!({"until": "0s"}), "until: is \"0s\", which is over"),
        (json!({"until": "soon"}), "until: "),
        (json!({"until": "367d"}), "until: must be at most a year ahead"),
        (json!({"until": "2h", "why": "party"}), "why: unknown member; expected until"),
    ] {
        let told = bench.ask("/alerts/r/pause", &body).await.problem();
        assert!(told.starts_with(&format!("400 {expected}")), "{body}: {told}");
    }
    let answer = pause(Value::Null).await.json();
    assert_eq!((&answer["paused_until"], &answer["changed"]), (&Value::Null, &saved["changed"]));
    assert_eq!(bench.ask("/alerts/none/pause", &json!({"until": "2h"})).await.status, 404);
}

#[tokio::test]
async fn what_fires_is_acknowledged_and_nothing_else() {
    let bench = Bench::new().await;
    bench.put("/alerts/r", &freezer()).await;
    let acknowledge = async |body: Value| bench.ask("/alerts/r/acknowledge", &body).await;
    assert_eq!(acknowledge(json!({})).await.problem(), "409 The rule r does not fire.");
    let template = firing("r", "a");
    let AlertState::Episodes(mut state) = template.state.clone() else { panic!("episodes") };
    state.acknowledged = None;
    for device in ["a", "b"] {
        let key = given::alert_key("r", device);
        let state = AlertState::Episodes(state.clone());
        bench.put_state(&StoredAlertState::next(None, key, state, at_minute(60))).await;
    }
    let key = given::alert_key("r", "c");
    bench.put_state(&StoredAlertState::next(None, key, normal(&template), at_minute(60))).await;
    assert_eq!(
        acknowledge(json!({"subject": "device:c"})).await.problem(),
        "409 The rule r does not fire for device:c."
    );
    for body in [json!({"subject": "c"}), json!({"subject": 5}), json!({"device": "c"})] {
        assert_eq!(acknowledge(body).await.status, 400);
    }
    let acknowledged = |answer: &Value| -> Vec<bool> {
        let all = answer["states"].as_array().expect("states").iter();
        all.filter_map(|it| it["acknowledged"].as_bool()).collect()
    };
    for _ in 0..2 {
        let answer = acknowledge(json!({"subject": "device:a"})).await.json();
        assert_eq!(acknowledged(&answer), [true, false, false]);
    }
    assert_eq!(acknowledged(&acknowledge(json!({})).await.json()), [true, true, false]);
}

/// A page of states has a thousand.
#[tokio::test]
async fn of_a_rule_on_more_than_a_thousand_devices_each_is_acknowledged() {
    let bench = Bench::new().await;
    bench.put("/alerts/r", &freezer()).await;
    let AlertState::Episodes(mut state) = firing("r", "a").state else { panic!("episodes") };
    state.acknowledged = None;
    for device in 0..=1_000 {
        let key = given::alert_key("r", &format!("d{device:04}"));
        let state = AlertState::Episodes(state.clone());
        bench.put_state(&StoredAlertState::next(None, key, state, at_minute(60))).await;
    }
    let acknowledged = || {
        let states = bench.store.all_alert_states().into_iter();
        let acknowledged = states.filter(|stored| {
            matches!(&stored.state, AlertState::Episodes(state) if state.acknowledged.is_some())
        });
        acknowledged.map(|stored| stored.key.subject.to_string()).collect::<Vec<_>>()
    };

    let acknowledge = async |body: Value| bench.ask("/alerts/r/acknowledge", &body).await.status;
    assert_eq!(acknowledge(json!({"subject": "device:d1000"})).await, 200);
    assert_eq!(acknowledged(), ["device:d1000"]);
    assert_eq!(acknowledge(json!({})).await, 200);
    assert_eq!(acknowledged().len(), 1_001);
}

#[tokio::test]
async fn a_link_acknowledges_its_episode_without_a_token_and_does_nothing_else() {
    let bench = Bench::new_with(true).await;
    let rule = alert_rule("r", at_minute(0));
    bench.store.put_alert_rule(&rule, &invocation()).await.expect("saved");
    let mut state = firing("r", "d");
    let AlertState::Episodes(episodes) = &mut state.state else { panic!("episodes") };
    episodes.acknowledged = None;
    episodes.links.clear();
    let by = [(channel_id("c"), at_minute(60))];
    let told = vec![message(1, News::Fired), message(2, News::Repeated)];
    let judgement = NewJudgement::new(&rule, state, told, &by, at_minute(60));
    bench.store.put_judgement(&judgement, &invocation()).await.expect("stored");
    let keys: Vec<LinkKey> = judgement.waiting().iter().filter_map(|it| it.key.clone()).collect();
    assert_eq!(keys.len(), 2);

    let body = |key: &str| json!({"rule": "r", "subject": "device:d", "key": key});
    let is_acknowledged = || {
        let AlertState::Episodes(state) = bench.store.all_alert_states()[0].state.clone() else {
            panic!("episodes")
        };
        state.acknowledged.is_some()
    };
    let wrong = LinkKey::new([0; 16]);
    let hash = keys[0].hash();
    for body in [
        body(wrong.as_str()),
        body(&hash),
        body(""),
        json!({"rule": "s", "subject": "device:d", "key": keys[0].as_str()}),
        json!({"rule": "r", "subject": "room:d", "key": keys[0].as_str()}),
    ] {
        let told = bench.ask("/acknowledge", &body).await.problem();
        assert!(told.starts_with("404 This link is of no episode that lasts."), "{told}");
    }
    for body in [
        json!({}),
        json!({"rule": "r", "subject": "device:d"}),
        json!({"rule": "r", "subject": "device:d", "key": 5}),
        json!({"rule": "a#b", "subject": "device:d", "key": "k"}),
        json!({"rule": "r", "subject": "d", "key": "k"}),
        json!({"rule": "r", "subject": "device:d", "key": "k", "until": "2h"}),
    ] {
        assert_eq!(bench.ask("/acknowledge", &body).await.status, 400, "{body}");
    }
    assert!(!is_acknowledged());
    // A program that fetches links changes nothing: the key is in the fragment, and a GET is not answered.
    assert_eq!(bench.get("/acknowledge").await.status, 405);
    for key in &keys {
        let answer = bench.ask("/acknowledge", &body(key.as_str())).await;
        let expected = json!({"acknowledged": true, "since": "2026-01-11T16:00:00.000Z"});
        assert_eq!((answer.status, answer.json()), (200, expected));
        assert!(is_acknowledged());
        // The key is no token.
        let headers = json!({"authorization": format!("Bearer {}", key.as_str())});
        assert_eq!(bench.send("GET", "/alerts", headers, "").await.status, 401);
    }
    for key in &keys {
        assert!(!bench.log().contains(key.as_str()));
    }
    // Once the episode is over, the link does nothing.
    let state = &bench.store.all_alert_states()[0];
    let over = StoredAlertState::next(Some(state), state.key.clone(), normal(state), at_minute(61));
    bench.put_state(&over).await;
    assert_eq!(bench.ask("/acknowledge", &body(keys[1].as_str())).await.status, 404);
    assert!(!is_acknowledged());
}

#[tokio::test]
async fn what_was_told_is_walked_newest_first_with_its_text() {
    let bench = Bench::new().await;
    bench
        .patch("/devices/a", r#"{"name": "Truhe", "metrics": {"temperature": {"unit": "°C"}}}"#)
        .await;
    bench.put("/alerts/r", &freezer()).await;
    bench.put("/alerts/q", &freezer()).await;
    for (n, id) in [(1, "r"), (2, "q"), (3, "r"), (4, "r")] {
        let rule = alert_rule(id, at_minute(60));
        let mut told = message(n, if n == 4 { News::Recovered } else { News::Fired });
        told.value = None;
        let state = StoredAlertState::next(
            None,
            given::alert_key(id, "a"),
            firing(id, "a").state,
            at_minute(60),
        );
        let mut state = state;
        state.version = if id == "q" { 1 } else { n.div_ceil(2) };
        if n == 4 {
            state.version = 3;
        }
        let now = at_minute(60 + i64::try_from(n).expect("small"));
        let judgement = NewJudgement::new(&rule, state, vec![told], &[], now);
        let outcome = bench.store.put_judgement(&judgement, &invocation()).await.expect("asked");
        assert_eq!(outcome, table::JudgementOutcome::Stored, "{n}");
    }
    bench.clock.advance(Duration::from_secs(600));
    let pages = bench.pages("/alerts/r/history?limit=2").await;
    let rows: Vec<Value> =
        pages.iter().flat_map(|it| it.json()["data"].as_array().cloned().expect("rows")).collect();
    let numbers: Vec<_> = rows.iter().map(|it| it["number"].as_u64()).collect();
    assert_eq!((pages.len(), numbers), (2, vec![Some(4), Some(3), Some(1)]));
    assert_eq!(rows[0]["news"], "recovered");
    assert_eq!(rows[1]["text"], "冷凍庫 ❄: Truhe: temperature above -12.5 °C for 10m since 16:00");
    assert_eq!((&rows[1]["at"], &rows[1]["subject"]), (&json!(at_minute(63)), &json!("device:a")));
    let some = bench
        .get(&format!("/alerts/r/history?from={}&to={}", at_minute(62), at_minute(64)))
        .await
        .json();
    assert_eq!(some["data"].as_array().map(Vec::len), Some(1));
    let csv = bench.get("/alerts/r/history?format=csv&limit=1").await.text;
    assert!(
        csv.starts_with("at,rule,name,subject,number,news,since,fired,ended,value,text,seen\n"),
        "{csv}"
    );
    for url in [
        "/alerts/r/history?cursor=x",
        "/alerts/r/history?from=now&to=-1h",
        "/alerts/r/history?limit=0",
        "/alerts/r/history?subject=device:a",
    ] {
        assert_eq!(bench.get(url).await.status, 400, "{url}");
    }
    // A cursor is of its rule.
    let cursor = bench.get("/alerts/r/history?limit=1").await.json()["next_cursor"].clone();
    let url = format!("/alerts/q/history?limit=1&cursor={}", cursor.as_str().expect("a cursor"));
    assert_eq!(bench.get(&url).await.status, 400);
    // What was told outlives its rule.
    assert_eq!(bench.remove("/alerts/r").await.status, 200);
    assert_eq!(bench.get("/alerts/r/history").await.rows().len(), 3);
}

#[tokio::test]
async fn a_channel_is_saved_and_its_secret_is_seen_by_nobody() {
    let bench = Bench::new().await;
    let mut answers = Vec::new();
    let saved = bench.put("/channels/phone", &ntfy()).await;
    assert_eq!(saved.json(), json!({"id": "phone", "kind": "ntfy", "name": "Phone", "waiting": 0}));
    answers.push(saved);
    let mut quiet = json!({"kind": "ntfy", "name": "Phone", "quiet_hours": "22:00-07:00"});
    let edited = bench.put("/channels/phone", &quiet).await;
    assert_eq!(edited.json()["quiet_hours"], "22:00-07:00");
    let shown = bench.get("/channels/phone").await;
    assert_eq!(bench.get("/channels").await.json(), json!({"data": [shown.json()]}));
    // As it was answered it can be sent back.
    assert_eq!(bench.put("/channels/phone", &shown.json()).await.json(), shown.json());
    assert_eq!(stored(&bench).await[0].version, 2);
    quiet["quiet_hours"] = Value::Null;
    assert_eq!(bench.put("/channels/phone", &quiet).await.json()["quiet_hours"], Value::Null);
    answers.extend([edited, shown, bench.get("/alerts").await]);
    for case in cases(include_str!("refused/channels.txt")) {
        let body: Value = serde_json::from_str(case.given).expect("JSON");
        let answer = bench.put("/channels/phone", &body).await;
        assert!(answer.problem().starts_with(case.answer()), "{case}: {}", answer.problem());
        if body.get("geheimnis").is_none() {
            answers.push(answer);
        }
    }
    let slack =
        json!({"kind": "slack", "name": "n", "address": "https://hooks.slack.com/services/geheim"});
    answers.push(bench.put("/channels/phone", &slack).await);
    assert_eq!(answers.last().map(|it| it.status), Some(200), "another kind with its secret");
    answers.push(bench.remove("/channels/phone").await);
    assert_eq!(answers.last().expect("one").json(), json!({"deleted": 1, "has_more": false}));
    assert_eq!(bench.remove("/channels/phone").await.status, 404);
    assert_eq!(bench.get("/channels/phone").await.status, 404);
    // Nothing is left of its secret that a channel of the same id would get.
    assert_eq!(bench.put("/channels/phone", &quiet).await.problem(), "400 topic: is missing");
    for answer in &answers {
        assert!(!answer.text.contains("geheim"), "{}", answer.text);
    }
    assert!(!bench.log().contains("geheim"), "{}", bench.log());
}

/// What waits for the channel that was deleted is older than the one that takes its id.
#[tokio::test]
async fn a_channel_that_is_saved_after_its_deletion_is_another_one() {
    let bench = Bench::new().await;
    bench.put("/channels/phone", &ntfy()).await;
    let first = stored(&bench).await.remove(0);
    assert!(first.created.is_some());
    bench.clock.advance(Duration::from_secs(60));
    let renamed = json!({"kind": "ntfy", "name": "Telefon"});
    assert_eq!(bench.put("/channels/phone", &renamed).await.status, 200);
    assert_eq!(stored(&bench).await[0].created, first.created);

    assert_eq!(bench.remove("/channels/phone").await.status, 200);
    bench.put("/channels/phone", &ntfy()).await;
    assert_eq!(stored(&bench).await[0].created, Some(bench.clock.now()));
}

/// The role of alerting names one topic, so a message to another would fail for ever.
#[tokio::test]
async fn e_mail_goes_to_the_topic_of_the_stack_and_to_no_other() {
    let topic = |name: &str| {
        let arn = format!("arn:aws:sns:eu-central-1:123456789012:{name}");
        json!({"kind": "email", "name": "Mail", "topic_arn": arn})
    };
    let own = topic("roomtide-AlertTopic")["topic_arn"].as_str().map(str::to_owned);

    let bench = Bench::with_alert_topic(own);
    assert_eq!(bench.put("/channels/mail", &topic("roomtide-AlertTopic")).await.status, 200);
    let renamed = json!({"kind": "email", "name": "Post"});
    assert_eq!(bench.put("/channels/mail", &renamed).await.status, 200, "the topic stays");
    let told = bench.put("/channels/mail", &topic("alerts")).await.problem();
    assert!(told.starts_with("400 topic_arn: is not the stack's output AlertTopic"), "{told}");
    assert_eq!(stored(&bench).await.len(), 1);

    let bench = Bench::with_alert_topic(None);
    let told = bench.put("/channels/mail", &topic("alerts")).await.problem();
    assert!(
        told.starts_with("400 ") && told.contains("deploy it with the parameter AlertEmail"),
        "{told}"
    );
    assert!(stored(&bench).await.is_empty());
}

async fn stored(bench: &Bench) -> Vec<table::StoredChannel> {
    bench.store.channels(&invocation()).await.expect("read").found
}

#[tokio::test]
async fn a_channel_says_since_when_it_fails_and_what_waits() {
    let bench = Bench::new().await;
    bench.put("/channels/phone", &ntfy()).await;
    let known = stored(&bench).await.remove(0);
    let failing = Some(Failing { since: at_minute(10), next: at_minute(90) });
    bench.store.note_channel(&known, failing, &invocation()).await.expect("noted");
    for n in 1..=2 {
        let answer = bench.ask("/channels/phone/test", &json!({})).await;
        assert_eq!((answer.status, answer.json()), (200, json!({"waiting": 1})));
        let shown = bench.get("/channels/phone").await.json();
        assert_has(&shown, &json!({"waiting": n, "waiting_since": at_minute(60)}));
        assert_has(&shown, &json!({"failing_since": at_minute(10), "next": at_minute(90)}));
        bench.clock.advance(Duration::from_millis(1));
    }
    let waiting = &bench.store.all_waiting()[0];
    assert_eq!((waiting.told.message.news, waiting.told.rule.name.as_str()), (News::Test, "Phone"));
    let listed = bench.get("/alerts").await.json();
    assert_eq!(listed["channels"][0]["failing_since"], json!(at_minute(10)));
    assert_eq!(listed["data"], json!([]), "a test is of no rule");
    // An edit lets it be tried at once.
    let edited =
        bench.put("/channels/phone", &json!({"kind": "ntfy", "name": "Other"})).await.json();
    assert_eq!((&edited["failing_since"], &edited["waiting"]), (&Value::Null, &json!(2)));
    for (url, body, status) in [
        ("/channels/none/test", json!({}), 404),
        ("/channels/phone/test", json!({"text": "hi"}), 400),
    ] {
        assert_eq!(bench.ask(url, &body).await.status, status, "{url}");
    }
}

#[tokio::test]
async fn reading_needs_read_and_whatever_changes_something_admin() {
    let bench = Bench::new_with(true).await;
    for (secret, scope) in [("reader", Scope::Read), ("boss", Scope::Admin)] {
        bench.store.add_token(&given::token(secret, scope), &invocation()).await.expect("kept");
    }
    for (method, url, body, reader, boss) in [
        ("PUT", "/channels/c", ntfy(), 403, 200),
        ("PUT", "/alerts/r", freezer(), 403, 200),
        ("GET", "/alerts", json!(null), 200, 200),
        ("GET", "/alerts/r", json!(null), 200, 200),
        ("GET", "/alerts/r/history", json!(null), 200, 200),
        ("GET", "/channels", json!(null), 200, 200),
        ("GET", "/channels/c", json!(null), 200, 200),
        ("POST", "/alerts/r/pause", json!({"until": "2h"}), 403, 200),
        ("POST", "/alerts/r/acknowledge", json!({}), 403, 409),
        ("POST", "/channels/c/test", json!({}), 403, 200),
        ("POST", "/alerts/preview", json!({"rule": freezer()}), 200, 200),
        ("DELETE", "/channels/c", json!(null), 403, 200),
        ("DELETE", "/alerts/r", json!(null), 403, 200),
    ] {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        for (token, expected) in [(None, 401), (Some("reader"), reader), (Some("boss"), boss)] {
            let headers = token.map_or(
                json!({}),
                |token| json!({"authorization": format!("Bearer {}", given::secret(token))}),
            );
            let answer = bench.send(method, url, headers, &body).await;
            assert_eq!(answer.status, expected, "{method} {url} {token:?}: {}", answer.text);
        }
    }
}

#[tokio::test]
async fn a_table_that_fails_is_told_as_such_and_half_a_deletion_is_ended_by_the_next() {
    let bench = Bench::new().await;
    bench.put("/alerts/r", &freezer()).await;
    bench.put_state(&firing("r", "a")).await;
    // As if the states had not been deleted.
    let id = "r".parse().expect("an id");
    bench.store.delete_alert_rule(&id, &invocation()).await.expect("deleted");
    assert_eq!(bench.remove("/alerts/r").await.status, 200);
    assert_eq!(bench.store.all_alert_states(), []);
    for url in ["/alerts", "/alerts/r", "/alerts/r/history", "/channels", "/channels/c"] {
        bench.store.fail_with([StoreError::TimedOut]);
        assert_eq!(bench.get(url).await.status, 503, "{url}");
    }
}

#[tokio::test]
async fn a_rule_is_judged_as_soon_as_it_is_saved_and_tells_nothing_twice() {
    let bench = Bench::new().await;
    bench.put("/channels/phone", &ntfy()).await;
    let rule = |above: i64| json!({"name": "Warm", "device": "a", "metric": "temperature", "above": above, "for": "2m"});
    let news =
        || -> Vec<News> { bench.store.all_told().iter().map(|it| it.message.news).collect() };
    let saved = bench.put("/alerts/r", &rule(5)).await.json();
    let state = &saved["states"][0];
    assert_has(state, &json!({"phase": "firing", "since": at_minute(6)}));
    assert_eq!((&state["value"], &state["acknowledged"]), (&json!("9"), &json!(false)));
    assert_eq!((&saved["firing"], &saved["warnings"]), (&json!(1), &Value::Null));
    let told = |news: &[News]| (news.to_vec(), bench.store.all_waiting().len());
    assert_eq!((news(), bench.store.all_waiting().len()), told(&[News::Fired]));
    // The same rule, and a limit that is passed as well, tell nothing.
    for above in [5, 4] {
        bench.put("/alerts/r", &rule(above)).await;
        assert_eq!(news(), [News::Fired], "{above}");
    }
    // By a limit that was never passed, there was no episode.
    let saved = bench.put("/alerts/r", &rule(20)).await.json();
    assert_eq!((&saved["firing"], news().len()), (&json!(0), 2), "{saved}");
    assert_eq!(news()[1], News::Edited);
    // What fires while a rule pauses is told when the pause ends.
    bench.ask("/alerts/r/pause", &json!({"until": "2h"})).await;
    let mut paused = bench.get("/alerts/r").await.json();
    paused["above"] = json!(5);
    paused["clear_above"] = json!(5);
    let saved = bench.put("/alerts/r", &paused).await.json();
    assert_eq!((&saved["firing"], news().len()), (&json!(1), 2), "{saved}");
    bench.ask("/alerts/r/pause", &json!({"until": null})).await;
    assert_eq!((news().len(), news()[2]), (3, News::Fired));
    // A rule that is off is judged no longer.
    let off =
        json!({"name": "Off", "device": "a", "metric": "temperature", "above": 1, "on": false});
    assert_eq!(bench.put("/alerts/off", &off).await.json()["states"], json!([]));
    // With its device a state ends.
    assert_eq!(bench.store.all_alert_states().len(), 1);
    for _ in 0..2 {
        assert_eq!(bench.remove("/devices/a").await.status, 202);
    }
    assert_eq!(bench.store.all_alert_states(), []);
}

#[tokio::test]
async fn a_rule_about_silence_says_its_limit_as_a_number() {
    let bench = Bench::new().await;
    let rule = |after: &str| json!({"name": "Gone", "device": "a", "silent_for": after});
    assert_eq!(bench.put("/alerts/r", &rule("2h")).await.json()["silent_after"], 7_200);
    let usual = bench.put("/alerts/r", &rule("usual")).await.json();
    // Nothing is rolled up yet, so nothing is known.
    assert_eq!(usual["silent_after"], 3_600);
    assert_eq!(bench.get("/alerts/r").await.json()["silent_after"], 3_600);
    let of_all = json!({"name": "Gone", "room": "r", "silent_for": "usual"});
    assert_eq!(bench.put("/alerts/r", &of_all).await.json()["silent_after"], Value::Null);
}

#[tokio::test]
async fn a_rule_is_tried_on_the_past_and_nothing_is_saved() {
    let bench = Bench::new().await;
    let (from, to) = (at_minute(-1_440), at_minute(60));
    let preview = async |members: Value| {
        let mut body = json!({"from": from, "to": to});
        for (name, value) in members.as_object().expect("members") {
            body[name] = value.clone();
        }
        bench.ask("/alerts/preview", &body).await
    };
    let warm = json!({"device": "a", "metric": "temperature", "above": 5, "for": "2m"});
    let answer = preview(json!({"rule": warm})).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let episode = json!({"since": at_minute(6), "fired": at_minute(8), "ended": null});
    let expected = json!({
        "from": from, "to": to, "episodes": 1, "has_more_subjects": false,
        "subjects": [{
            "subject": "device:a", "by": "readings", "by_extremes": [], "has_more": false, "episodes": [episode],
        }],
    });
    assert_eq!(answer.json(), expected);
    // What is saved with these limits says the same.
    let mut saved = warm.clone();
    saved["name"] = json!("Warm");
    let saved = bench.put("/alerts/r", &saved).await.json();
    assert_eq!(saved["states"][0]["fired"], json!(at_minute(8)));
    assert_eq!(preview(json!({"rule": saved})).await.json(), expected, "as it was answered");

    let room = json!({"room": "r", "metric": "temperature", "above": 5});
    let subjects = |answer: &Value| -> Vec<String> {
        let subjects = answer["subjects"].as_array().cloned().unwrap_or_default();
        subjects.iter().filter_map(|it| it["subject"].as_str().map(str::to_owned)).collect()
    };
    let answer = preview(json!({"rule": room})).await.json();
    assert_eq!(subjects(&answer), ["device:a", "device:b"]);
    let answer = preview(json!({"rule": room, "subject": "device:b"})).await.json();
    assert_eq!(subjects(&answer), ["device:b"]);
    let silence = json!({"device": "a", "silent_for": "30m"});
    let answer = preview(json!({"rule": silence})).await.json();
    assert_has(&answer, &json!({"episodes": 1, "silent_after": 1_800}));

    let reads = bench.store.calls().reads;
    for (body, expected) in [
        (json!({}), "rule: is missing"),
        (json!({"rule": 5}), "rule: must be an object"),
        (json!({"rule": {"device": "a"}}), "above: needs exactly one of"),
        (
            json!({"rule": warm, "from": at_minute(60 - 32 * 1_440)}),
            "from: is more than 31 days before to",
        ),
        (json!({"rule": warm, "from": "-32d", "to": null}), "from: is more than 31 days before to"),
        (json!({"rule": warm, "from": at_minute(61)}), "from: "),
        (json!({"rule": warm, "to": "soon"}), "to: "),
        (json!({"rule": warm, "to": []}), "to: must be a string or a number"),
        (json!({"rule": warm, "subject": "a"}), "subject: \"a\" is neither"),
        (
            json!({"rule": warm, "days": 31}),
            "days: unknown member; expected rule, from, to and subject",
        ),
    ] {
        let told = preview(body.clone()).await.problem();
        assert!(told.starts_with(&format!("400 {expected}")), "{body}: {told}");
    }
    assert_eq!(bench.store.calls().reads, reads, "what is refused costs no read");
    let other = preview(json!({"rule": warm, "subject": "device:b"})).await;
    assert_eq!(other.problem(), "400 subject: the rule is not about device:b");
    let month = preview(json!({"rule": warm, "from": "-31d", "to": "now"})).await;
    assert_eq!((month.status, &month.json()["episodes"]), (200, &json!(1)));
    assert_eq!(bench.store.all_told().len(), 1, "of the rule that was saved");
}

#[tokio::test]
async fn a_preview_says_that_late_readings_are_not_rolled_up() {
    let bench = Bench::new().await;
    let rule = |device: &str| json!({"device": device, "metric": "temperature", "above": 5});
    let now = bench.clock.now();
    let seconds = |number| now.saturating_add(TimeDelta::seconds(number));
    let day = TimeDelta::days(1);
    let (from, group) = (at_minute(-1_440), DeviceGroups::of(&given::device("a")));
    // An episode that reaches into the range may begin long before it.
    let marked =
        [(-31, -30, "a", true), (-33, -32, "a", false), (0, 1, "a", true), (0, 1, "b", false)];
    for (version, (first, last, device, is_told)) in marked.into_iter().enumerate() {
        let range =
            TimeRange::new(from.saturating_add(day * first), from.saturating_add(day * last));
        let mark = LateMark { range: range.expect("a range"), groups: group, until: seconds(10) };
        let version = u64::try_from(version).expect("small");
        bench.store.put_late_marks(&[mark], version, &invocation()).await.expect("memory");
        let asked = json!({"rule": rule(device), "from": from, "to": at_minute(60)});
        let answer = bench.ask("/alerts/preview", &asked).await.json();
        let lack = is_told.then(|| json!({"changes_since": seconds(-90)}));
        assert_eq!(answer.get("rollups_lack"), lack.as_ref(), "{first} {device}: {answer}");
    }
}

/// Which devices a group has is not known there, so nothing is judged in silence.
#[tokio::test]
async fn beyond_memory_a_rule_on_a_group_says_what_is_not_judged() {
    let bench = bench_beyond_memory().await;
    bench.put("/channels/phone", &ntfy()).await;
    let limit = json!({"metric": "t", "above": 8});
    let fires = json!({"metric": "t", "above": 8, "no_data": "fire"});
    let budget = json!({"budget_kwh": 2, "per": "day"});
    let (silence, steps) =
        (json!({"silent_for": "10m"}), json!({"metric": "cumulative_kwh_p", "counter": ["reset"]}));
    for (watch, scope, odd) in [
        (&silence, "room", Some("silent_for: there are more than 10000 devices, so ")),
        (&budget, "room", Some("budget_kwh: there are more than 10000 devices, so ")),
        (&fires, "room", Some("no_data: there are more than 10000 devices, so ")),
        (&limit, "mean_of_room", Some("mean_of_room: there are more than 10000 devices, so ")),
        (&limit, "room", None),
        (&steps, "room", None),
        (&silence, "device", None),
        (&budget, "device", Some("budget_kwh: d00001 has sent no energy or power yet")),
    ] {
        let mut rule = watch.clone();
        rule["name"] = "Warm".into();
        rule[scope] = if scope == "device" { "d00001" } else { "r" }.into();
        let saved = bench.put("/alerts/r", &rule).await;
        assert_eq!(saved.status, 200, "{}", saved.text);
        let warning = saved.json()["warnings"][0].as_str().map(ToOwned::to_owned);
        assert_eq!(warning.is_some(), odd.is_some(), "{rule}: {warning:?}");
        let (warning, odd) = (warning.unwrap_or_default(), odd.unwrap_or_default());
        assert!(warning.starts_with(odd), "{rule}: {warning}");

        let previewed = bench.ask("/alerts/preview", &json!({"rule": rule})).await;
        assert_eq!(previewed.status, if scope == "device" { 200 } else { 400 }, "{rule}");
    }
}
