//! Rules and channels in numbers, under troubles and with states that are put. All else is in `tests/cases/rules.txt`.

use ::alerts::{EpisodeState, LinkKey, News};
use chrono::TimeDelta;
use domain::TimeRange;
use domain::given::rule_id;
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
    assert_eq!(recheck.target.to_string(), "the rule warm");
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
async fn a_body_that_is_large_or_deep_is_refused() {
    let bench = Bench::new().await;
    let nested = format!("{{\"name\": {}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
    for body in [nested.as_str(), "\u{7f}"] {
        assert_eq!(bench.send("PUT", "/alerts/r", json!({}), body).await.status, 400);
    }
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

/// Two rules: `r` with a state that fires, although its values recover, and a normal one; `s` with a told figure.
async fn bench_with_states() -> Bench {
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
    for (rule, device, state) in
        [("r", "a", normal(&firing)), ("s", "a", AlertState::Figures(once))]
    {
        let key = given::alert_key(rule, device);
        bench.put_state(&StoredAlertState::next(None, key, state, at_minute(60))).await;
    }
    bench
}

#[tokio::test]
async fn firing_states_are_listed_first() {
    let bench = bench_with_states().await;
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
}

#[tokio::test]
async fn the_list_shows_20_states_of_a_rule_and_the_rule_shows_all() {
    let bench = bench_with_states().await;
    let firing = firing("r", "b");
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
}

#[tokio::test]
async fn states_end_with_their_rule_and_no_others() {
    let bench = bench_with_states().await;
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

/// Stores an episode of the rule `r` on the device `d` that was told twice. Returns the keys of its two links.
async fn told_episode(bench: &Bench) -> Vec<LinkKey> {
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
    judgement.waiting().iter().filter_map(|message| message.key.clone()).collect()
}

/// Later requests remove the readings. A judgement meanwhile would say that the alert was wrong.
#[tokio::test]
async fn the_alerts_of_a_device_end_with_the_begin_of_its_deletion() {
    let bench = Bench::new().await.with_house("of three devices").await;
    bench.put_state(&firing("r", "a")).await;
    bench.put_state(&firing("r", "b")).await;
    assert_eq!(bench.remove("/devices/a").await.status, 202);

    let states = bench.store.all_alert_states();
    let left: Vec<String> = states.iter().map(|stored| stored.key.subject.to_string()).collect();
    assert_eq!(left, ["device:b"]);
}

#[tokio::test]
async fn a_link_acknowledges_its_episode_without_a_token_and_does_nothing_else() {
    let bench = Bench::with(true).with_house("of three devices").await;
    let keys = told_episode(&bench).await;
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
    assert_eq!(
        (waiting.logged.message.news, waiting.logged.rule.name.as_str()),
        (News::Test, "Phone")
    );
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
async fn half_a_deletion_of_a_rule_is_ended_by_the_next_one() {
    let bench = Bench::new().await;
    bench.put("/alerts/r", &freezer()).await;
    bench.put_state(&firing("r", "a")).await;
    // As if the states had not been deleted.
    let id = "r".parse().expect("an id");
    bench.store.delete_alert_rule(&id, &invocation()).await.expect("deleted");
    assert_eq!(bench.remove("/alerts/r").await.status, 200);
    assert_eq!(bench.store.all_alert_states(), []);
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

impl Bench {
    /// The rechecks that are stored.
    async fn rechecked(&self) -> Vec<String> {
        let rechecks = self.store.rechecks(None, 100, &invocation()).await.expect("read");
        rechecks.listing.found.iter().map(|recheck| recheck.target.to_string()).collect()
    }
}

/// Whatever fails, no rule is saved that nobody would judge.
#[tokio::test]
async fn a_rule_that_is_saved_has_a_recheck_whatever_fails() {
    let mut saved = 0;
    for calls in 0..40 {
        let bench = Bench::new().await;
        bench.store.fail_after(calls, [StoreError::Throttled("for now".into())]);
        bench.put("/alerts/warm", &warm()).await;
        bench.store.end_troubles();
        let rule = bench.store.alert_rule(&rule_id("warm"), &invocation()).await.expect("read");
        if rule.is_some() {
            saved += 1;
            assert_eq!(bench.rechecked().await, ["the rule warm"], "{calls}");
        }
    }
    assert!(saved > 0);
}

/// A deletion may be cut off after its readings are gone. Then the request that is sent again finds no reading.
#[tokio::test]
async fn a_deletion_has_its_device_judged_again_though_nothing_is_left_to_delete() {
    let bench = Bench::new().await;
    let answer =
        bench.remove("/devices/a/readings?from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z").await;
    assert_eq!((answer.status, &answer.json()["deleted"]), (200, &json!(0)), "{}", answer.text);
    assert_eq!(bench.rechecked().await, ["a"]);
}
