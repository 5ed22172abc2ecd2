//! The table throttles: what follows a message that was left waits for it, and storms are told as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use alerts::News;
use chrono::TimeDelta;
use domain::Timestamp;
use outgoing::{Reach, Url};
use runtime::clock::{Deadline, Stopwatch};
use serde_json::{Value, json};
use table::Action::{BatchGetItem, DeleteItem, GetItem, Query, UpdateItem};
use table::Target::{AlertSecrets, AlertStates, AlertTold, AlertWaiting};
use table::given::{self, invocation};
use table::memory_db::on;
use table::{
    Action, AlertState, EditAlertStates as _, Rechecked, SendWaitingMessages as _, StoreError,
    Target,
};

use super::{Reply, World};

const NOW: Timestamp = Timestamp::MIN;

/// The messages of requests in their order, with what `member` has of each.
fn heard(bodies: &[Value], member: &str) -> Vec<(String, Value)> {
    let messages = bodies.iter().flat_map(|body| body["messages"].as_array().expect("messages"));
    let named = messages.map(|message| {
        let device = message["subject"]["id"].as_str().expect("an id").to_owned();
        (device, message[member].clone())
    });
    named.collect()
}

/// What requests say of a device.
fn said_of(bodies: &[Value], device: &str, member: &str) -> Vec<String> {
    let heard = heard(bodies, member).into_iter().filter(|(subject, _)| subject == device);
    heard.map(|(_, said)| said.as_str().expect("a text").to_owned()).collect()
}

fn throttle(world: &World, action: Action, target: Target, after: usize) {
    world.store.fail(on(action, target), after, StoreError::Throttled("for now".into()));
}

/// The time passes before each, so that they are told apart.
async fn tell_steps(world: &World, device: &str, count: usize, next: Timestamp) {
    let known = world.store.all_alert_states();
    let is_new = !known.iter().any(|state| state.key.rule.as_str() == "steps");
    let members = serde_json::json!({
        "name": "Reset", "device": device, "metric": "kwh", "counter": ["reset"],
    });
    let rule = if is_new {
        world.put_rule("steps", members).await
    } else {
        world.stored_rule("steps").await
    };
    for _ in 0..count {
        world.pass(TimeDelta::seconds(1));
        world.tell_step(&rule, device, &[("a", next)]).await;
    }
}

#[tokio::test]
async fn what_follows_a_message_that_is_not_leased_waits_for_it_and_no_other_does() {
    for lease in 0..3 {
        let (world, rule) = World::with_rule().await;
        for (device, news) in
            [("freezer", News::Fired), ("freezer", News::Recovered), ("fridge", News::Fired)]
        {
            world.pass(TimeDelta::milliseconds(1));
            world.tell(&rule, device, news, &[("a", NOW)]).await;
        }

        throttle(&world, UpdateItem, AlertWaiting, lease);
        world.minute().await.expect("done");
        let mut bodies = world.receiver.bodies();
        let first: BTreeSet<String> = heard(&bodies, "id").into_iter().map(|it| it.0).collect();
        assert!(lease > 1 || first.contains("fridge"), "{lease}: {bodies:?}");
        world.minutes(2).await;
        bodies.extend(world.receiver.bodies());
        assert_eq!(said_of(&bodies, "freezer", "news"), ["fired", "recovered"], "{lease}");
        assert_eq!(said_of(&bodies, "fridge", "news"), ["fired"], "{lease}");
        assert!(bodies.iter().all(|body| body["is_repeated"] == false), "{lease}: {bodies:?}");
        assert_eq!(world.store.all_waiting(), []);
    }
}

/// What was leased would wait for the end of its lease, and be marked as a repetition.
#[tokio::test]
async fn what_is_not_sent_for_want_of_the_secret_is_sent_a_minute_later_for_the_first_time() {
    let (world, _) = World::that_fires().await;
    throttle(&world, GetItem, AlertSecrets, 0);
    world.minute().await.expect_err("the secret is not read");
    assert_eq!(world.receiver.bodies().len(), 0);
    world.minute_after(TimeDelta::seconds(10)).await;
    let [body] = &world.receiver.bodies()[..] else { panic!("one message") };
    assert_eq!(body["is_repeated"], false);
}

/// Of messages that waited the newest is sent, once the older ones are gone.
#[tokio::test]
async fn what_cannot_be_dropped_is_not_said_after_what_followed_it() {
    for deletion in 0..2 {
        let (world, rule) = World::with_rule().await;
        let later = world.now().saturating_add(TimeDelta::minutes(5));
        for news in [News::Recovered, News::Fired, News::Recovered] {
            world.pass(TimeDelta::seconds(1));
            world.tell(&rule, "freezer", news, &[("a", later)]).await;
        }
        let newest = world.now();

        world.pass(TimeDelta::minutes(6));
        throttle(&world, DeleteItem, AlertWaiting, deletion);
        world.minute().await.expect_err("it is not dropped");
        world.minutes(3).await;
        let said = said_of(&world.receiver.bodies(), "freezer", "since");
        assert_eq!(said, [newest.to_string()], "{deletion}");
        assert_eq!(world.store.all_waiting(), []);
    }
}

/// One keeps its lease, and the other one is due in ten seconds.
#[tokio::test]
async fn what_follows_a_message_that_is_not_given_back_waits_for_it() {
    let world = World::new();
    world.channel("a", None).await;
    tell_steps(&world, "meter", 2, NOW).await;
    let [first, second] = &world.store.all_waiting()[..] else { panic!("two") };
    let [first, second] = [first, second].map(|message| message.logged.message.since.to_string());

    world.receiver.will([Reply::Status(500)]);
    throttle(&world, UpdateItem, AlertWaiting, 2);
    world.minute().await.expect_err("one is not given back");
    assert_eq!(world.receiver.bodies().len(), 1);
    world.minute_after(TimeDelta::seconds(11)).await;
    world.minutes(2).await;
    let said = said_of(&world.receiver.bodies(), "meter", "since");
    assert_eq!(said, [first, second]);
    assert_eq!(world.store.all_waiting(), []);
}

#[tokio::test]
async fn what_follows_a_message_that_is_sent_and_not_deleted_is_the_last_that_is_heard() {
    let world = World::new();
    world.channel("a", None).await;
    tell_steps(&world, "meter", 1, NOW).await;
    throttle(&world, DeleteItem, AlertWaiting, 0);
    world.minute().await.expect_err("it is not deleted");
    assert_eq!(said_of(&world.receiver.bodies(), "meter", "news").len(), 1);

    // The process that has sent it would not send it again.
    let world = world.another();
    tell_steps(&world, "meter", 1, NOW).await;
    let newest = world.now().to_string();
    let rule = world.rule("r", false).await;
    world.tell(&rule, "fridge", News::Fired, &[("a", NOW)]).await;
    world.minute().await.expect("done");
    let bodies = world.receiver.bodies();
    assert_eq!(said_of(&bodies, "fridge", "news"), ["fired"], "no other device waits");
    assert_eq!(said_of(&bodies, "meter", "news").len(), 0);
    world.minutes(2).await;
    let said = said_of(&world.receiver.bodies(), "meter", "since");
    assert_eq!((said.len(), said.last()), (2, Some(&newest)));
    assert_eq!(world.store.all_waiting(), []);
}

/// A page has a hundred messages.
#[tokio::test]
async fn what_follows_a_message_at_the_end_of_what_was_read_waits_for_it() {
    let (world, rule) = World::with_rule().await;
    world.storm(&rule, 0..100, NOW).await;
    world.pass(TimeDelta::seconds(1));
    world.tell(&rule, "d099", News::Recovered, &[("a", NOW)]).await;

    throttle(&world, Query, AlertWaiting, 1);
    throttle(&world, UpdateItem, AlertWaiting, 99);
    drop(world.minute().await);
    world.store.end_troubles();
    let mut bodies = world.receiver.bodies();
    assert!(heard(&bodies, "id").len() >= 99, "no other device waits");
    world.minutes(3).await;
    bodies.extend(world.receiver.bodies());
    assert_eq!(said_of(&bodies, "d099", "news"), ["fired", "recovered"]);
    assert_eq!(heard(&bodies, "id").len(), 101);
    assert_eq!(world.store.all_waiting(), []);
}

/// A rule on each device has messages about so many, which waited over quiet hours: no longer among those of late.
async fn store_storm(devices: usize) -> World {
    let (world, rule) = World::with_rule_on_each().await;
    let later = world.now().saturating_add(TimeDelta::hours(2));
    world.storm(&rule, 0..devices, later).await;
    world.pass(TimeDelta::hours(3));
    world
}

#[tokio::test]
async fn a_storm_that_is_read_in_parts_is_told_as_a_whole() {
    for devices in [110, 150] {
        let world = store_storm(devices).await;
        let earlier = world.rule("earlier", false).await;
        world.tell(&earlier, "fridge", News::Fired, &[("a", NOW)]).await;
        throttle(&world, Query, AlertWaiting, 1);
        world.minute().await.expect_err("a part is not read");
        let first = world.receiver.bodies();
        assert_eq!(said_of(&first, "fridge", "news"), ["fired"], "no other rule waits");
        assert_eq!(heard(&first, "id").len(), 1, "{first:?}");

        world.minutes(2).await;
        let [body] = &world.receiver.bodies()[..] else { panic!("the count") };
        assert_eq!(body["title"], format!("Warm: {devices} devices"));
        assert_eq!(heard(std::slice::from_ref(body), "id").len(), devices);
        assert_eq!(world.store.all_waiting(), []);
    }
}

/// What waits unread was not sent: else the others would wait for ten minutes.
#[tokio::test]
async fn a_storm_of_late_that_is_read_in_parts_is_told_at_once() {
    let (world, rule) = World::with_rule_on_each().await;
    world.storm(&rule, 0..150, NOW).await;
    throttle(&world, Query, AlertWaiting, 1);
    world.minute().await.expect_err("a part is not read");
    world.minutes(1).await;
    let [body] = &world.receiver.bodies()[..] else { panic!("the count") };
    assert_eq!(body["title"], "Warm: 150 devices");
    assert_eq!(world.store.all_waiting(), []);
}

#[tokio::test]
async fn what_is_left_of_a_storm_is_told_by_its_count() {
    let devices = 35;
    let world = store_storm(devices).await;
    for _ in 0..10 {
        throttle(&world, UpdateItem, AlertWaiting, 25);
    }
    world.minute().await.expect("the next minute goes on");
    let [first] = &world.receiver.bodies()[..] else { panic!("the count") };
    assert_eq!(heard(std::slice::from_ref(first), "id").len(), 25);
    world.store.end_troubles();
    world.minutes(2).await;
    let [second] = &world.receiver.bodies()[..] else { panic!("the rest") };
    assert_eq!(heard(std::slice::from_ref(second), "id").len(), 10);
    for body in [first, second] {
        let text = body["text"].as_str().expect("a text");
        assert_eq!((&body["title"], text.lines().count()), (&"Warm: 35 devices".into(), 1));
        assert!(text.ends_with("35 devices in all"), "{text}");
    }
    assert_eq!(world.store.all_waiting(), []);
}

/// Each device has fired and recovered, so the older message is dropped, and then nothing can be sent.
#[tokio::test]
async fn what_is_dropped_of_a_storm_does_not_hold_the_rest_back() {
    let (world, rule) = World::with_rule_on_each().await;
    world.storm(&rule, 0..30, NOW).await;
    world.pass(TimeDelta::seconds(1));
    for device in 0..30 {
        world.tell(&rule, &format!("d{device:03}"), News::Recovered, &[("a", NOW)]).await;
    }

    throttle(&world, GetItem, AlertSecrets, 0);
    world.minute().await.expect_err("nothing is sent");
    assert_eq!(world.line()["alerting.dropped"], 30);
    assert_eq!(world.receiver.bodies().len(), 0);

    world.minutes(1).await;
    let [body] = &world.receiver.bodies()[..] else { panic!("the count") };
    assert_eq!(body["title"], "Warm: 30 devices");
    assert_eq!(heard(std::slice::from_ref(body), "id").len(), 30);
    assert_eq!(world.store.all_waiting(), []);
}

/// The newest page of what was told is read, with ten devices of the rule, and not the one with ten others.
#[tokio::test]
async fn a_count_of_a_part_of_what_was_told_is_not_said() {
    let (world, rule) = World::with_rule_on_each().await;
    let other = world.rule_on_each("other").await;
    let to_a = &[("a", NOW)][..];
    for (rule, name, count, channels) in [
        (&rule, "early", 10, &[][..]),
        (&other, "other", 180, &[]),
        (&rule, "late", 10, &[]),
        (&rule, "new", 21, to_a),
    ] {
        for device in 0..count {
            world.tell(rule, &format!("{name}{device:03}"), News::Fired, channels).await;
        }
        world.pass(TimeDelta::seconds(1));
    }
    throttle(&world, Query, AlertTold, 1);
    world.minute().await.expect_err("a part is not read");
    let [body] = &world.receiver.bodies()[..] else { panic!("the count") };
    let text = body["text"].as_str().expect("a text");
    assert!(text.starts_with("Warm: 21 devices: "), "{text}");
    assert!(!text.contains(" in all"), "{text}");
}

/// What was told before and what fires meanwhile is no part of it.
#[tokio::test]
async fn a_storm_that_is_told_again_after_a_crash_has_its_number_and_its_id() {
    for deleted in [0, 10] {
        let world = store_storm(25).await;
        world.store.panic(on(DeleteItem, AlertWaiting), deleted, "killed");
        world.minute().await.expect_err("killed");
        let [first] = &world.receiver.bodies()[..] else { panic!("the count") };
        assert_eq!(first["title"], "Warm: 25 devices");
        let [first_id] = &world.receiver.take_ids()[..] else { panic!("the count") };

        let rule = world.stored_rule("r").await;
        for device in 100..105 {
            world.pass(TimeDelta::seconds(1));
            world.tell(&rule, &format!("d{device}"), News::Fired, &[("a", NOW)]).await;
        }
        world.minutes(1).await;
        let [again] = &world.receiver.bodies()[..] else { panic!("{deleted}: it alone") };
        let text = again["text"].as_str().expect("a text").lines().collect::<Vec<_>>();
        assert_eq!((&again["title"], &again["is_repeated"]), (&first["title"], &true.into()));
        assert_eq!((heard(std::slice::from_ref(again), "id").len(), text.len()), (25 - deleted, 2));
        let ids = world.receiver.take_ids();
        assert_eq!(ids == [first_id.clone()], deleted == 0, "the id is of the same messages");

        world.minutes(1).await;
        let [others] = &world.receiver.bodies()[..] else { panic!("{deleted}: the others") };
        let text = others["text"].as_str().expect("a text");
        assert_eq!((text.lines().count(), &others["is_repeated"]), (5, &false.into()), "{text}");
        assert_eq!(world.store.all_waiting(), []);
    }
}

/// Both senders die, and each had a storm of the same rule.
#[tokio::test]
async fn of_two_storms_that_are_told_again_each_has_its_own_number() {
    let world = store_storm(25).await;
    world.store.panic(on(DeleteItem, AlertWaiting), 0, "killed");
    world.minute().await.expect_err("killed");
    world.pass(TimeDelta::seconds(10));
    let rule = world.stored_rule("r").await;
    for device in 100..130 {
        world.tell(&rule, &format!("d{device}"), News::Fired, &[("a", NOW)]).await;
    }
    world.store.panic(on(DeleteItem, AlertWaiting), 0, "killed");
    world.minute().await.expect_err("killed");
    let titles = |bodies: Vec<Value>| -> Vec<Value> {
        bodies.into_iter().map(|body| body["title"].clone()).collect()
    };
    let told = titles(world.receiver.bodies());
    assert_eq!(told, ["Warm: 25 devices", "Warm: 30 devices"]);
    let ids = world.receiver.take_ids();

    world.minutes(3).await;
    assert_eq!(titles(world.receiver.bodies()), told);
    assert_eq!(world.receiver.take_ids(), ids);
    assert_eq!(world.store.all_waiting(), []);
}

/// Whatever is throttled, lost or killed, what is new of a device is heard in its order, and what is heard last is how it is.
#[tokio::test]
async fn in_random_trouble_the_news_of_each_device_are_heard_in_their_order() {
    let kinds = [
        (Query, AlertWaiting),
        (UpdateItem, AlertWaiting),
        (DeleteItem, AlertWaiting),
        (BatchGetItem, AlertStates),
        (Query, AlertTold),
    ];
    for seed in 0..24 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let world = World::new();
        world.channel("a", None).await;
        let rules = [world.rule("r", false).await, world.rule_on_each("q").await];
        let devices = rng.usize(2..60);
        let mut firing = BTreeMap::new();
        let mut bodies = Vec::new();
        for _ in 0..60 {
            for _ in 0..rng.usize(..6) {
                world.pass(TimeDelta::milliseconds(1));
                let (rule, device) = (rng.choice(&rules).expect("one"), rng.usize(..devices));
                let device = format!("{}-{device:02}", rule.id.as_str());
                let fires = firing.entry(device.clone()).or_insert(false);
                *fires = !*fires;
                let news = if *fires { News::Fired } else { News::Recovered };
                let later = world.now().saturating_add(TimeDelta::minutes(1));
                let next = if seed % 2 == 0 { NOW } else { later };
                world.tell(rule, &device, news, &[("a", next)]).await;
            }
            for _ in 0..rng.usize(..4) {
                let (action, target) = *rng.choice(&kinds).expect("one");
                throttle(&world, action, target, rng.usize(..5));
            }
            if seed % 3 > 0 && rng.usize(..8) == 0 {
                world.receiver.will([Reply::Lost]);
            }
            if seed % 3 > 1 && rng.usize(..10) == 0 {
                let action = *rng.choice(&[UpdateItem, DeleteItem]).expect("one");
                world.store.panic(on(action, AlertWaiting), rng.usize(..8), "killed");
            }
            world.pass(TimeDelta::seconds(20));
            drop(world.minute().await);
            bodies.extend(world.receiver.bodies());
        }
        world.store.end_troubles();
        world.receiver.recover();
        world.minutes(90).await;
        bodies.extend(world.receiver.bodies());

        assert_eq!(world.store.all_waiting().len(), 0, "{seed}");
        for (device, fires) in &firing {
            let news = said_of(&bodies, device, "news");
            let last = if *fires { "fired" } else { "recovered" };
            assert!(news.last().is_none_or(|news| news == last), "{seed} {device}: {news:?}");
            assert!(!fires || !news.is_empty(), "{seed} {device}: nobody heard it");

            let (mut known, mut newest) = (BTreeSet::new(), String::new());
            for (id, since) in
                said_of(&bodies, device, "id").into_iter().zip(said_of(&bodies, device, "since"))
            {
                assert!(!known.insert(id) || since >= newest, "{seed} {device}: {since} {newest}");
                newest = newest.max(since);
            }
        }
    }
}

/// A part that this process had kept would be counted with what is told hours later.
#[tokio::test]
async fn a_part_that_another_process_has_sent_is_forgotten() {
    let (world, rule) = World::with_rule_on_each().await;
    world.storm(&rule, 0..150, NOW).await;
    world.store.fail(on(Query, AlertWaiting), 1, StoreError::Throttled("for now".into()));
    world.minute().await.expect_err("a part is not read");
    assert_eq!(world.receiver.take(), []);
    for message in &world.store.all_waiting() {
        assert!(world.store.delete_waiting(message, &invocation()).await.expect("asked"));
    }

    world.pass(TimeDelta::hours(5));
    world.tell(&rule, "d149", News::Recovered, &[("a", NOW)]).await;
    world.minutes(2).await;
    assert_eq!(world.receiver.bodies()[0]["title"], "Warm: d149");
}

/// A device of the storm recovers before the storm is told again.
#[tokio::test]
async fn news_that_follow_what_is_told_again_change_neither_its_number_nor_its_id() {
    let world = store_storm(25).await;
    world.store.panic(on(DeleteItem, AlertWaiting), 0, "killed");
    world.minute().await.expect_err("killed");
    let first = world.receiver.bodies();
    let ids = world.receiver.take_ids();
    let rule = world.stored_rule("r").await;
    world.tell(&rule, "d007", News::Recovered, &[("a", NOW)]).await;

    world.minutes(1).await;
    let again = world.receiver.bodies();
    assert_eq!(world.receiver.take_ids(), ids);
    assert_eq!(heard(&again, "id"), heard(&first, "id"));
    assert_eq!((again.len(), &again[0]["title"]), (1, &"Warm: 25 devices".into()));

    world.minutes(1).await;
    assert_eq!(said_of(&world.receiver.bodies(), "d007", "news"), ["recovered"]);
    assert_eq!(world.store.all_waiting(), []);
}

/// The states are read by fifty.
#[tokio::test]
async fn what_may_have_arrived_waits_as_a_whole_for_what_cannot_be_read() {
    let (world, rule) = World::with_rule_on_each().await;
    world.storm(&rule, 0..120, NOW).await;
    world.receiver.will([Reply::Lost]);
    world.minute().await.expect("done");
    let ids = world.receiver.take_ids();
    world.pass(TimeDelta::minutes(1));
    let other = world.rule("other", false).await;
    world.tell(&other, "fridge", News::Fired, &[("a", NOW)]).await;
    world.receiver.take();
    throttle(&world, BatchGetItem, AlertStates, 1);
    world.minute().await.expect_err("some states are not read");
    assert_eq!(said_of(&world.receiver.bodies(), "fridge", "news"), ["fired"]);
    assert_eq!(world.receiver.take_ids().len(), 1, "nothing else");
    world.minute().await.expect("done");
    assert_eq!(world.receiver.take_ids(), ids);
    assert_eq!(world.store.all_waiting(), []);
}

/// Of sixty devices 25 are told, and five of them are not deleted.
#[tokio::test]
async fn a_part_of_a_storm_that_is_told_again_does_not_end_the_storm() {
    let world = store_storm(60).await;
    for _ in 0..50 {
        throttle(&world, UpdateItem, AlertWaiting, 25);
    }
    for _ in 0..5 {
        throttle(&world, DeleteItem, AlertWaiting, 20);
    }
    world.minute().await.expect_err("some are not deleted");
    world.store.end_troubles();
    world.minutes(3).await;
    for body in &world.receiver.bodies() {
        assert_eq!(body["title"], "Warm: 60 devices");
    }
    assert_eq!(world.store.all_waiting(), []);
}

/// The alarm takes a missing number for undelivered messages.
#[tokio::test]
async fn nobody_says_that_all_is_delivered_who_could_not_read_what_waits() {
    let (world, _) = World::that_fires().await;
    throttle(&world, Query, AlertWaiting, 0);
    world.minute().await.expect_err("what waits is not read");
    assert_eq!(world.line()["alerting.undelivered_seconds"], Value::Null);
    world.minute().await.expect("done");
    assert_eq!(world.line()["alerting.undelivered_seconds"], 0);
}

/// Each device that sends leaves a recheck, also the one that the table throttles for as long as somebody asks.
#[tokio::test(start_paused = true)]
async fn looks_behind_a_throttled_device_are_done_in_the_same_minute() {
    for seed in 0..8 {
        fastrand::seed(seed);
        let world = World::new();
        let rule = json!({"name": "Warm", "room": "hall", "metric": "temperature", "above": 8});
        world.put_rule("warm", rule).await;
        given::seal(&world.store, "UTC", world.now()).await;
        let of_device = |number| {
            given::reading(
                &format!("d{number}"),
                world.now(),
                Some("hall"),
                &[("temperature", "9")],
            )
        };
        let readings: Vec<_> = (10..40).map(of_device).collect();
        given::store_home(&world.store, &readings).await;
        let touched: Vec<_> =
            readings.iter().map(|reading| (reading.device.clone().into(), reading.at)).collect();
        world.recheck(&touched).await;

        world.store.throttle(|action, partition| action == Query && partition == "d10");
        drop(world.scheduled().await);
        assert_eq!(world.store.all_told().len(), 29, "{seed}");
        assert_eq!(world.line()["alerting.looks"], 29, "{seed}");
    }
}

/// Judging needs no removal.
#[tokio::test(start_paused = true)]
async fn looks_behind_a_look_whose_removal_is_throttled_are_done_in_the_same_minute() {
    let world = World::new();
    let rule = json!({"name": "Warm", "room": "hall", "metric": "temperature", "above": 8});
    world.put_rule("warm", rule).await;
    let now = world.now();
    let of_device =
        |number| given::reading(&format!("d{number}"), now, Some("hall"), &[("temperature", "9")]);
    let readings: Vec<_> = (10..25).map(of_device).collect();
    world.measured(&readings).await;

    world.store.throttle(|action, partition| {
        action == DeleteItem && partition == table::keys::ALERT_RECHECKS
    });
    drop(world.scheduled().await);
    assert_eq!(world.store.all_told().len(), 15);

    world.store.end_troubles();
    world.pass(TimeDelta::minutes(1));
    world.scheduled().await.expect("done");
    assert_eq!(world.rechecks().await.len(), 0);
}

/// Whatever a minute delivers, it judges too, and sends what is new.
#[tokio::test(start_paused = true)]
async fn a_deletion_that_is_throttled_keeps_no_minute_from_judging_and_no_message_from_being_sent()
{
    let (world, rule) = World::with_rule().await;
    given::seal(&world.store, "UTC", world.now()).await;
    let warm = given::reading("freezer", world.now(), None, &[("temperature", "9")]);
    world.measured(std::slice::from_ref(&warm)).await;
    world.tell(&rule, "fridge", News::Fired, &[("a", NOW)]).await;

    world.store.throttle(|action, partition| {
        action == DeleteItem && partition == table::keys::ALERT_WAITING
    });
    world.scheduled().await.expect_err("what is delivered is not deleted");
    assert_eq!(world.line()["alerting.looks"], 1);
    let bodies = world.receiver.bodies();
    assert_eq!(said_of(&bodies, "fridge", "news"), ["fired"]);
    assert_eq!(said_of(&bodies, "freezer", "news"), ["fired"]);
}

/// The table throttles deletions for a while. A round asks for a quarter of its time.
#[tokio::test(start_paused = true)]
async fn what_was_delivered_is_deleted_in_the_same_minute_at_the_latest() {
    let (world, rule) = World::with_rule().await;
    world.tell(&rule, "fridge", News::Fired, &[("a", NOW)]).await;
    let judging = Deadline::after(Duration::from_secs(15));
    world.store.throttle(move |action, partition| {
        let is_early = !judging.remaining().is_zero();
        action == DeleteItem && partition == table::keys::ALERT_WAITING && is_early
    });
    world.scheduled().await.expect("done");
    assert_eq!(world.store.all_waiting(), []);
    assert_eq!(world.receiver.take().len(), 1);
}

/// The process that has delivered it remembers so; for others it waits.
#[tokio::test(start_paused = true)]
async fn what_was_delivered_is_told_once_however_long_its_deletion_is_throttled() {
    let (world, rule) = World::with_rule().await;
    world.store.throttle(|action, partition| {
        action == DeleteItem && partition == table::keys::ALERT_WAITING
    });

    let mut bodies = Vec::new();
    for news in [News::Fired, News::Recovered] {
        world.tell(&rule, "fridge", news, &[("a", NOW)]).await;
        for _ in 0..3 {
            world.scheduled().await.expect_err("what is delivered is not deleted");
            world.pass(TimeDelta::minutes(1));
        }
        bodies.extend(world.receiver.bodies());
    }
    assert_eq!(said_of(&bodies, "fridge", "news"), ["fired", "recovered"]);
    assert_eq!(world.store.all_waiting().len(), 2);

    world.store.end_troubles();
    world.minute().await.expect("done");
    assert_eq!(world.store.all_waiting(), []);
    assert_eq!(world.line()["alerting.messages"], 0);
}

/// The last request may take ten seconds, and its preparation five.
#[tokio::test]
async fn no_request_is_begun_that_leaves_no_time_for_noting_that_it_arrived() {
    for (seconds, sent) in [(17, 0), (19, 1)] {
        let (world, rule) = World::with_rule().await;
        world.tell(&rule, "fridge", News::Fired, &[("a", NOW)]).await;
        world.hinted_within(Duration::from_secs(seconds)).await.expect("done");
        assert_eq!(world.receiver.take().len(), sent, "{seconds} s");
    }
}

/// Twenty seconds are kept for sending what is judged.
#[tokio::test]
async fn each_part_of_a_minute_has_its_share_of_little_time() {
    for seconds in [25, 30, 50] {
        let world = World::new();
        let rule = world.rule("r", false).await;
        given::seal(&world.store, "UTC", world.now()).await;
        let warm = given::reading("freezer", world.now(), None, &[("temperature", "9")]);
        given::store_home(&world.store, std::slice::from_ref(&warm)).await;
        let mut state = given::firing("r", "freezer");
        let AlertState::Episodes(episodes) = &mut state.state else { panic!("episodes") };
        (episodes.due, episodes.changed) = (Some(world.now()), rule.definition.changed);
        assert!(world.store.put_alert_state(&state, &invocation()).await.expect("asked"));
        let touched = [(warm.device.into(), warm.at)];
        world.recheck(&touched).await;

        world.scheduled_within(Duration::from_secs(seconds)).await.expect("done");
        let line = world.line();
        assert_eq!(line["alerting.judged"], 2, "{seconds}: the state and the look");
        assert_eq!((&line["alerting.looks"], &line["alerting.is_cut"]), (&1.into(), &false.into()));
    }
}

/// The schedule and a hint at the same time, and the table throttles now and then.
#[tokio::test(start_paused = true)]
async fn two_senders_of_a_storm_hold_what_follows_it() {
    for seed in 0..16 {
        fastrand::seed(seed);
        let (world, rule) = World::with_rule_on_each().await;
        let other = world.another();
        for device in 0..40 {
            world.tell(&rule, &format!("d{device}"), News::Fired, &[("a", NOW)]).await;
        }
        world.store.throttle(|action, partition| {
            let is_lease = action == UpdateItem && partition == table::keys::ALERT_WAITING;
            is_lease && fastrand::u8(..4) == 0
        });
        // Both have read what waits before one of them leases it.
        world.store.slow_down(on(Query, AlertWaiting), Duration::from_millis(1));
        let (one, two) = tokio::join!(world.minute(), other.minute());
        assert!(one.is_ok() && two.is_ok(), "{seed}");
        for body in world.receiver.bodies() {
            assert_eq!(body["title"], "Warm: 40 devices", "{seed}");
        }

        world.store.end_troubles();
        world.tell(&rule, "d40", News::Fired, &[("a", NOW)]).await;
        for process in [&world, &other] {
            world.pass(TimeDelta::minutes(1));
            process.minute().await.expect("done");
            assert_eq!(world.receiver.bodies(), Vec::<Value>::new(), "{seed}");
        }
    }
}

/// The mark is asked for three times: to note that the system runs, before messages are sent, and by the judgement.
#[tokio::test(start_paused = true)]
async fn a_mark_that_is_throttled_for_seconds_keeps_no_minute_from_judging() {
    let (world, _) = World::with_rule().await;
    given::seal(&world.store, "UTC", world.now()).await;
    let warm = given::reading("freezer", world.now(), None, &[("temperature", "9")]);
    world.measured(std::slice::from_ref(&warm)).await;

    let until = Deadline::after(Duration::from_secs(7));
    world.store.throttle(move |action, partition| {
        let is_mark = action == GetItem && partition == table::keys::ALERT_RUNNING;
        is_mark && !until.remaining().is_zero()
    });
    world.scheduled().await.expect_err("it is not noted that the system runs");
    assert_eq!(said_of(&world.receiver.bodies(), "freezer", "news"), ["fired"]);
}

/// Of a channel whose messages are delivered and stay, and of one with new messages.
#[tokio::test(start_paused = true)]
async fn a_deletion_that_is_throttled_takes_a_quarter_of_a_round() {
    let (world, rule) = World::with_rule().await;
    world.tell(&rule, "fridge", News::Fired, &[("a", NOW)]).await;
    world.store.throttle(|action, partition| {
        action == DeleteItem && partition == table::keys::ALERT_WAITING
    });
    for _ in 0..2 {
        let begun = Stopwatch::start();
        world.minute().await.expect_err("what is delivered is not deleted");
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        world.pass(TimeDelta::minutes(1));
    }
    assert_eq!(world.receiver.take().len(), 1);
}

/// A message that is not given back waits for the end of its lease.
#[tokio::test(start_paused = true)]
async fn a_channel_says_that_it_fails_though_giving_back_is_throttled_for_a_round() {
    let (world, _) = World::that_fires().await;
    world.receiver.will([Reply::Status(404)]);
    let leases = AtomicUsize::new(0);
    world.store.throttle(move |action, partition| {
        let is_of_message = action == UpdateItem && partition == table::keys::ALERT_WAITING;
        is_of_message && leases.fetch_add(1, Ordering::Relaxed) > 0
    });
    world.minute().await.expect_err("the message is not given back");
    assert!(world.stored("a").await.failing.is_some());
}

/// A minute with work of each kind: a silent device that a rule names, and one that a rule on a room finds.
async fn with_silence() -> World {
    let url = Url::parse("https://beat.example.org/geheim", Reach::Public).expect("an address");
    let world = World::with_heartbeat(Some(url));
    world.channel("a", None).await;
    for (id, members) in [
        ("named", json!({"name": "Gone", "device": "cellar", "silent_for": "10m"})),
        ("hall", json!({"name": "Gone", "room": "hall", "silent_for": "10m"})),
        ("day", json!({"name": "Day", "room": "hall", "budget_kwh": 2.5, "per": "day"})),
    ] {
        world.put_rule(id, members).await;
    }
    given::seal(&world.store, "UTC", world.now()).await;
    let silent = ["cellar", "lamp"]
        .map(|id| given::reading(id, world.now(), Some("hall"), &[("temperature", "4")]));
    given::store_home(&world.store, &silent).await;
    world.pass(TimeDelta::hours(1));
    world
}

/// The hosts that were asked, without those of channels.
fn heartbeats(world: &World) -> usize {
    world.receiver.take().iter().filter(|(host, _)| host.starts_with("beat")).count()
}

/// The service at the address alerts people when its requests stop.
#[tokio::test(start_paused = true)]
async fn a_minute_of_which_a_part_fails_as_a_whole_sends_no_heartbeat() {
    use table::keys::{ALERT_RECHECKS, ALERT_STATES, DEVICES, STATE};
    for (action, partition) in [
        (Query, ALERT_STATES),
        (Query, ALERT_RECHECKS),
        (Query, DEVICES),
        (GetItem, STATE),
        (Action::PutItem, ALERT_STATES),
    ] {
        let world = with_silence().await;
        world.store.throttle(move |asked, of| asked == action && of.starts_with(partition));
        world.scheduled().await.expect("other parts are done");
        assert_eq!(heartbeats(&world), 0, "{partition}");
        assert_ne!(world.line()["alerting.failed_judgements"], 0, "{partition}");
        assert_eq!(world.line()["level"], "WARN", "{partition}");

        world.store.end_troubles();
        world.pass(TimeDelta::minutes(2));
        world.scheduled().await.expect("done");
        assert_eq!(heartbeats(&world), 1, "{partition}: {}", world.line());
    }
}

/// The others need no new state for hours.
#[tokio::test(start_paused = true)]
async fn one_device_that_stays_throttled_keeps_no_heartbeat_back_and_a_state_that_stays_unstored_does()
 {
    let lives = async |throttled: (Action, &'static str)| {
        let world = with_silence().await;
        let home = async || {
            let alive = ["cellar", "lamp", "attic"]
                .map(|id| given::reading(id, world.now(), Some("hall"), &[("temperature", "4")]));
            given::store_home(&world.store, &alive).await;
            world.scheduled().await.expect("the others are judged");
        };
        home().await;
        world.receiver.take();
        world.store.throttle(move |asked, of| (asked, of) == throttled);
        let mut sent = 0;
        for _ in 0..20 {
            world.pass(TimeDelta::minutes(1));
            home().await;
            sent += heartbeats(&world);
        }
        sent
    };
    assert_eq!(lives((Query, "attic")).await, 4);
    assert_eq!(lives((Action::PutItem, table::keys::ALERT_STATES)).await, 4, "there is none");

    let world = with_silence().await;
    let alive = ["lamp", "attic"]
        .map(|id| given::reading(id, world.now(), Some("hall"), &[("temperature", "4")]));
    given::store_home(&world.store, &alive).await;
    world.store.throttle(|asked, of| (asked, of) == (Action::PutItem, table::keys::ALERT_STATES));
    world.scheduled().await.expect("silence of one device is not stored");
    assert_eq!(heartbeats(&world), 0);
}

/// The list of the devices is throttled and was never read.
#[tokio::test(start_paused = true)]
async fn without_the_list_of_devices_a_minute_judges_the_silence_of_a_device_that_a_rule_names() {
    let world = with_silence().await;
    world.store.throttle(|action, partition| action == Query && partition.starts_with("DEVICE"));
    world.scheduled().await.expect("a part is judged");
    let told: Vec<_> =
        world.store.all_told().iter().map(|told| told.alert.rule.to_string()).collect();
    assert_eq!(told, ["named"]);
    let failures = world.line()["alerting.judgement_failures"].to_string();
    assert!(failures.contains("the list of devices: "), "{failures}");
    assert_eq!(world.line()["alerting.unjudged_rules"], Value::Null, "they may be few");
}

/// Of the rechecks of rules, what the rule is, or the rechecks that take the place of one with a throttled device.
#[tokio::test(start_paused = true)]
async fn looks_behind_looks_of_rules_that_are_throttled_are_done_in_the_same_minute() {
    use table::keys::{ALERT_RECHECKS, ALERT_RULES};
    for (action, partition) in [(GetItem, ALERT_RULES), (UpdateItem, ALERT_RECHECKS)] {
        for seed in 0..8 {
            fastrand::seed(seed);
            let world = World::new();
            let cold = json!({"name": "Cold", "room": "loft", "metric": "temperature", "below": 8});
            let mut touched: Vec<(Rechecked, Timestamp)> = Vec::new();
            for id in ["c1", "c2", "c3", "c4"] {
                let rule = world.put_rule(id, cold.clone()).await;
                touched.push((Rechecked::Rule(rule.id), world.now()));
            }
            let warm = json!({"name": "Warm", "room": "hall", "metric": "temperature", "above": 8});
            world.put_rule("warm", warm).await;
            let of = |id: &str, room| {
                given::reading(id, world.now(), Some(room), &[("temperature", "9")])
            };
            given::store_home(&world.store, &[of("hot", "loft")]).await;
            world.recheck(&touched).await;
            let readings: Vec<_> =
                (10..20).map(|number| of(&format!("d{number}"), "hall")).collect();
            world.measured(&readings).await;

            world.store.throttle(move |asked, of| {
                (asked, of) == (action, partition) || asked == Query && of == "hot"
            });
            let begun = Stopwatch::start();
            drop(world.scheduled().await);
            assert!(begun.elapsed() < Duration::from_secs(40), "{partition} {seed}");
            assert_eq!(world.store.all_told().len(), 10, "{partition} {seed}");
        }
    }
}

/// States whose rules are gone.
#[tokio::test(start_paused = true)]
async fn states_that_cannot_be_deleted_take_a_share_of_their_minute() {
    let (world, rule) = World::with_rule().await;
    for number in 0..20 {
        let mut state = given::firing("gone", &format!("d{number}"));
        let AlertState::Episodes(episodes) = &mut state.state else { panic!("episodes") };
        (episodes.due, episodes.changed) = (Some(world.now()), rule.definition.changed);
        assert!(world.store.put_alert_state(&state, &invocation()).await.expect("asked"));
    }
    world.store.throttle(|action, partition| {
        action == DeleteItem && partition == table::keys::ALERT_STATES
    });
    let begun = Stopwatch::start();
    world.scheduled().await.expect("the next minute deletes them");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(world.line()["alerting.failed_judgements"], 20);
}

/// A minute with work of each kind that judges or sends.
async fn with_work_of_each_kind() -> World {
    let world = with_silence().await;
    let (now, given) = (world.now(), invocation());
    let members = json!({"name": "Warm", "device": "hot", "metric": "temperature", "above": 8});
    let warm = world.put_rule("warm", members).await;
    let members = json!({"name": "Loft", "room": "loft", "metric": "temperature", "above": 8});
    let loft = world.put_rule("loft", members).await;
    let members = json!({"name": "Own", "device": "meter", "budget_kwh": 2.5, "per": "day"});
    world.put_rule("own", members).await;

    let of = |id: &str, room| given::reading(id, now, Some(room), &[("temperature", "9")]);
    let meter = |minutes: i64, kwh: &str| {
        let at = now.saturating_add(-TimeDelta::minutes(minutes));
        given::reading("meter", at, Some("shed"), &[("cumulative_kwh_p", kwh)])
    };
    let home = [of("attic", "loft"), meter(50, "10"), meter(40, "14")];
    given::store_home(&world.store, &home).await;
    world.recheck(&[(Rechecked::Rule(loft.id), now)]).await;
    world.measured(&[of("hot", "porch")]).await;

    for rule in ["gone", "warm"] {
        let mut state = given::firing(rule, "old");
        let AlertState::Episodes(episodes) = &mut state.state else { panic!("episodes") };
        (episodes.due, episodes.changed) = (Some(now), warm.definition.changed);
        assert!(world.store.put_alert_state(&state, &given).await.expect("asked"));
    }
    world.tell(&warm, "fridge", News::Fired, &[("a", NOW)]).await;
    given::seal(&world.store, "UTC", now).await;
    world
}

/// Each action and partition that a minute needs, with the alerts that need them, and whether messages do.
#[tokio::test(start_paused = true)]
async fn whatever_is_throttled_a_minute_does_all_that_does_not_need_it() {
    use table::Action::{ConditionCheckItem, PutItem};
    use table::keys::{
        ALERT_RECHECKS, ALERT_RULES, ALERT_RUNNING, ALERT_SECRETS, ALERT_STATES, ALERT_TOLD,
        ALERT_WAITING, DEVICES, STATE,
    };
    let all = [
        "hall cellar",
        "hall lamp",
        "loft attic",
        "named cellar",
        "own meter",
        "warm fridge",
        "warm hot",
        "warm old",
    ];
    let judged = &[
        "hall cellar",
        "hall lamp",
        "loft attic",
        "named cellar",
        "own meter",
        "warm hot",
        "warm old",
    ][..];
    for (action, partition, lost, is_sent) in [
        (BatchGetItem, ALERT_STATES, judged, true),
        (BatchGetItem, DEVICES, &[][..], true),
        (ConditionCheckItem, ALERT_RULES, judged, true),
        (DeleteItem, ALERT_RECHECKS, &[], true),
        (DeleteItem, ALERT_STATES, &[], true),
        (DeleteItem, ALERT_WAITING, &[], true),
        (GetItem, ALERT_RULES, &["loft attic"], true),
        (GetItem, ALERT_SECRETS, &[], false),
        (GetItem, STATE, &["own meter"], true),
        (PutItem, ALERT_RUNNING, &["hall cellar", "hall lamp", "named cellar"], true),
        (PutItem, ALERT_STATES, judged, true),
        (Query, ALERT_RECHECKS, &["loft attic", "warm hot"], true),
        (Query, ALERT_STATES, &["warm old"], true),
        (Query, ALERT_TOLD, &[], true),
        (Query, ALERT_WAITING, &[], false),
        (Query, DEVICES, &["hall cellar", "hall lamp", "loft attic"][..], true),
        (Query, "cellar", &["hall cellar", "named cellar"], true),
        (Query, "ROLLUP#meter", &["own meter"], true),
        (UpdateItem, ALERT_WAITING, &[], false),
    ] {
        let world = with_work_of_each_kind().await;
        world.store.throttle(move |asked, of| (asked, of) == (action, partition));
        let begun = Stopwatch::start();
        drop(world.scheduled().await);
        assert!(begun.elapsed() < Duration::from_secs(35), "{action:?} {partition}");

        let told = world.store.all_told();
        let told: BTreeSet<String> = told
            .iter()
            .map(|told| {
                format!("{} {}", told.alert.rule, told.alert.subject).replace("device:", "")
            })
            .collect();
        let expected: BTreeSet<String> =
            all.into_iter().filter(|alert| !lost.contains(alert)).map(str::to_owned).collect();
        assert_eq!(told, expected, "{action:?} {partition}");
        let sent: usize = world
            .receiver
            .bodies()
            .iter()
            .filter_map(|body| body["messages"].as_array())
            .map(Vec::len)
            .sum();
        assert_eq!(sent, if is_sent { expected.len() } else { 0 }, "{action:?} {partition}");
    }
}
