//! Storms: many devices of one rule within ten minutes are told by their count, and none is lost.

use std::collections::{BTreeMap, BTreeSet};

use alerts::News;
use chrono::TimeDelta;
use domain::Timestamp;
use serde_json::Value;
use table::given::{self, invocation};
use table::{
    NewJudgement, PutJudgements as _, SendWaitingMessages as _, Session, StoredRule, WaitingMessage,
};

use super::{Reply, World};
use crate::sent::ChannelResult;
use crate::storm::{MAX_SINGLE, WINDOW, read_recent};

const NOW: Timestamp = Timestamp::MIN;

async fn tell(world: &World, rule: &StoredRule, device: usize, news: News) {
    world.tell(rule, &format!("d{device:04}"), news, &[("a", NOW)]).await;
}

fn text(body: &Value) -> &str {
    body["text"].as_str().expect("a text")
}

/// The devices of a request.
fn devices(body: &Value) -> BTreeSet<&str> {
    let messages = body["messages"].as_array().expect("messages");
    messages.iter().map(|it| it["subject"]["id"].as_str().expect("an id")).collect()
}

#[tokio::test]
async fn twenty_devices_are_told_one_by_one_and_more_by_their_count() {
    let (world, rule) = World::with_rule_on_each().await;
    for device in 0..MAX_SINGLE {
        tell(&world, &rule, device, News::Fired).await;
        world.minute().await.expect("done");
        world.pass(TimeDelta::seconds(1));
    }
    let bodies = world.receiver.bodies();
    assert_eq!(bodies.len(), 20);
    assert!(text(&bodies[19]).starts_with("Warm: d0019: temperature above 8"), "{}", bodies[19]);

    tell(&world, &rule, 20, News::Fired).await;
    world.minute().await.expect("done");
    let [body] = &world.receiver.bodies()[..] else { panic!("the count") };
    assert_eq!(body["title"], "Warm: 21 devices");
    assert_eq!(text(body), "Warm: 1 device: temperature above 8: d0020; 21 devices in all");

    // Further ones wait, and those of other rules do not.
    for device in 30..70 {
        tell(&world, &rule, device, News::Fired).await;
    }
    tell(&world, &rule, 30, News::Recovered).await;
    let other = world.rule("other", false).await;
    world.tell(&other, "freezer", News::Fired, &[("a", NOW)]).await;
    world.minutes(9).await;
    let [body] = &world.receiver.bodies()[..] else { panic!("the other rule") };
    assert_eq!(devices(body), BTreeSet::from(["freezer"]));
    world.minutes(1).await;
    let [body] = &world.receiver.bodies()[..] else { panic!("the next count") };
    let lines: Vec<&str> = text(body).lines().collect();
    assert_eq!(
        lines,
        [
            "Warm: 1 device: over: temperature above 8: d0030; 41 devices in all",
            "Warm: 39 devices: temperature above 8: d0031, d0032, d0033, d0034, d0035 and 34 more; 41 devices in \
             all",
        ]
    );
    assert_eq!(world.store.all_waiting(), []);
}

#[tokio::test]
async fn what_fires_at_once_on_a_thousand_devices_is_one_request_with_a_short_link() {
    let (world, rule) = World::with_rule_on_each().await;
    for device in 0..1_000 {
        tell(&world, &rule, device, News::Fired).await;
    }
    world.receiver.will([Reply::Status(503)]);
    world.minute().await.expect("done");
    world.minute_after(TimeDelta::seconds(10)).await;
    for body in &world.receiver.bodies() {
        assert_eq!(body["title"], "Warm: 1000 devices");
        assert_eq!((text(body).lines().count(), devices(body).len()), (1, 1_000));
        assert_eq!(body["link"], "https://page.example.org/#alerts");
    }
    assert_eq!(world.store.all_waiting(), []);
    // An hour later the same devices recover.
    world.pass(TimeDelta::hours(1));
    for device in 0..1_000 {
        tell(&world, &rule, device, News::Recovered).await;
    }
    world.minute().await.expect("done");
    let [body] = &world.receiver.bodies()[..] else { panic!("one message") };
    assert!(text(body).starts_with("Warm: 1000 devices: over: temperature above 8: d0000, "));
}

#[tokio::test]
async fn what_a_storm_holds_keeps_no_message_of_another_rule_waiting() {
    let world = World::new();
    world.channel("a", None).await;
    let (storm, other) = (world.rule_on_each("r").await, world.rule("zz", true).await);
    let later = world.now().saturating_add(TimeDelta::minutes(12));
    for device in 0..1_000 {
        world.tell(&storm, &format!("d{device:04}"), News::Fired, &[("a", later)]).await;
    }

    world.pass(TimeDelta::minutes(11));
    for device in 2_000..=2_000 + MAX_SINGLE {
        tell(&world, &storm, device, News::Fired).await;
    }
    world.minute().await.expect("done");
    let [body] = &world.receiver.bodies()[..] else { panic!("the count") };
    assert_eq!(devices(body).len(), 21);

    world.pass(TimeDelta::minutes(1));
    world.tell(&other, "freezer", News::Fired, &[("a", NOW)]).await;
    world.minute().await.expect("done");
    let [body] = &world.receiver.bodies()[..] else { panic!("the other rule") };
    assert_eq!(devices(body), BTreeSet::from(["freezer"]));
    world.minutes(10).await;
    let [body] = &world.receiver.bodies()[..] else { panic!("the next count") };
    assert_eq!(devices(body).len(), 1_000);
    assert_eq!(world.store.all_waiting(), []);
}

/// The lease of a sender that died hides its messages for a minute, in which the count of the others is told.
#[tokio::test]
async fn what_a_sender_that_died_had_is_not_held_by_the_count_that_has_its_device() {
    for died_with in [3, MAX_SINGLE + 5] {
        let (world, rule) = World::with_rule_on_each().await;
        for device in 0..died_with {
            tell(&world, &rule, device, News::Fired).await;
        }
        let lease = world.now().saturating_add(TimeDelta::minutes(1));
        let storm = (died_with > MAX_SINGLE).then_some(died_with);
        for message in world.store.all_waiting() {
            let message = WaitingMessage { storm, ..message };
            let leased = world.store.lease_waiting(&message, lease, &invocation()).await;
            assert!(leased.expect("asked").is_some());
        }
        for device in 100..=100 + MAX_SINGLE {
            tell(&world, &rule, device, News::Fired).await;
        }
        world.minute().await.expect("done");
        world.receiver.take();

        world.minutes(1).await;
        let mut heard = BTreeSet::new();
        for body in &world.receiver.bodies() {
            assert_eq!(body["is_repeated"], true);
            assert!(text(body).lines().count() <= MAX_SINGLE, "{body}");
            heard.extend(devices(body).into_iter().map(str::to_owned));
        }
        for device in 0..died_with {
            assert!(heard.contains(&format!("d{device:04}")), "{died_with}: {device}");
        }
        // The others wait behind a count, and else they were told before.
        world.minutes(WINDOW.num_minutes() + 1).await;
        assert_eq!(world.store.all_waiting().len(), 0, "{died_with}");
    }
}

#[tokio::test]
async fn what_was_told_by_a_clock_that_was_ahead_is_sent_at_once_and_holds_nothing_for_hours() {
    let (world, rule) = World::with_rule_on_each().await;
    world.pass(TimeDelta::hours(5));
    for device in 0..25 {
        world.tell(&rule, &format!("d{device:04}"), News::Fired, &[("a", world.now())]).await;
    }
    world.clock.set(world.now().saturating_add(TimeDelta::hours(-5)));
    world.minute().await.expect("done");
    let [body] = &world.receiver.bodies()[..] else { panic!("the count") };
    assert_eq!(devices(body).len(), 25);

    tell(&world, &rule, 30, News::Fired).await;
    world.minute().await.expect("done");
    let [body] = &world.receiver.bodies()[..] else { panic!("a device") };
    assert_eq!(devices(body), BTreeSet::from(["d0030"]));
}

#[tokio::test]
async fn a_rule_on_one_device_reads_nothing_of_what_was_told() {
    let world = World::new();
    let channels = ["a", "b", "c"];
    for channel in channels {
        world.channel(channel, None).await;
    }
    let to_all = channels.map(|channel| (channel, NOW));
    let rules = [world.rule("r", false).await, world.rule_on_each("q").await];
    let mut reads = Vec::new();
    for rule in &rules {
        world.tell(rule, "d0000", News::Fired, &to_all).await;
        let before = world.store.calls().reads;
        world.minute().await.expect("done");
        reads.push(world.store.calls().reads - before);
    }
    world.receiver.take();
    world.tell(&rules[0], "d0000", News::Recovered, &to_all).await;
    let before = world.store.calls().reads;
    world.minute().await.expect("done");
    let plain = world.store.calls().reads - before;
    assert_eq!(reads[1], plain + 1, "{reads:?}: one query for all channels");
}

/// Whatever fires and ends, each device's last news arrives, and no ten minutes have many requests.
#[tokio::test]
async fn in_a_random_storm_each_devices_last_news_arrives_and_requests_are_few() {
    for seed in 0..20 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (world, rule) = World::with_rule_on_each().await;
        let (mut firing, mut requests) = (BTreeMap::new(), Vec::new());
        let mut heard: BTreeMap<String, bool> = BTreeMap::new();
        let rate = rng.usize(1..15);
        for step in 0..240 {
            for _ in 0..rng.usize(..rate) * usize::from(step < 120) {
                let device = rng.usize(..200);
                let fires = firing.entry(format!("d{device:04}")).or_insert(false);
                *fires = !*fires;
                let news = if *fires { News::Fired } else { News::Recovered };
                tell(&world, &rule, device, news).await;
                world.pass(TimeDelta::milliseconds(1));
            }
            world.minute_after(TimeDelta::seconds(15)).await;
            for body in world.receiver.bodies() {
                requests.push(world.now());
                for message in body["messages"].as_array().expect("messages") {
                    let device = message["subject"]["id"].as_str().expect("an id");
                    let fires = message["is_firing"].as_bool().expect("whether");
                    heard.insert(device.to_owned(), fires);
                }
            }
        }
        assert_eq!(heard, firing, "{seed}");
        assert_eq!(world.store.all_waiting(), [], "{seed}");
        let most = requests.iter().map(|from| {
            requests.iter().filter(|at| *at >= from && at.since(*from) < WINDOW).count()
        });
        let most = most.max().unwrap_or_default();
        assert!(most <= MAX_SINGLE + 2, "{seed}: {most} requests in ten minutes at {rate}");
    }
}

/// As many as are told where thousands of devices fall silent at once: with some of them, too few would count as sent.
#[tokio::test]
async fn all_messages_of_the_last_ten_minutes_are_read() {
    let world = World::new();
    let rule = world.rule_on_each("r").await;
    let count = 1_100;
    for device in 0..count {
        let (state, news) =
            (given::firing("r", &format!("d{device}")), vec![given::message(1, News::Fired)]);
        let judgement = NewJudgement::new(&rule, state, news, &[], world.now());
        world.store.put_judgement(&judgement, &invocation()).await.expect("asked");
    }
    let recent = read_recent(
        Session::new(&world.store, &invocation(), world.now()),
        &mut ChannelResult::default(),
    )
    .await;
    assert_eq!((recent.messages.len(), recent.is_whole), (count, true));
}

/// No later message says what a step says.
#[tokio::test]
async fn each_step_of_a_counter_is_told_also_where_many_meters_step() {
    let world = World::new();
    world.channel("a", None).await;
    let members = serde_json::json!({
        "name": "Reset", "kind": "k", "metric": "kwh", "counter": ["reset"],
    });
    let rule = world.put_rule("steps", members).await;
    for meter in 0..=MAX_SINGLE {
        for _ in 0..2 {
            world.pass(TimeDelta::milliseconds(1));
            world.tell_step(&rule, &format!("d{meter:04}"), &[("a", NOW)]).await;
        }
    }
    world.minute().await.expect("done");
    let [body] = &world.receiver.bodies()[..] else { panic!("the count") };
    assert_eq!(body["messages"].as_array().map(Vec::len), Some(42));
    assert!(text(body).starts_with("Reset: 21 devices: "), "{}", text(body));
    assert_eq!(world.store.all_waiting(), []);
}

/// Express takes 100 KB by default, and many proxies 256.
#[tokio::test]
async fn a_storm_that_is_too_long_for_the_receiver_holds_up_nothing_and_is_told_in_parts() {
    let (world, rule) = World::with_rule_on_each().await;
    for device in 0..400 {
        tell(&world, &rule, device, News::Fired).await;
    }
    world.receiver.will(vec![Reply::Shorter(100_000); 10_000]);
    world.minutes(30).await;
    world.receiver.take();
    let other = world.rule("other", false).await;
    world.tell(&other, "smoke", News::Fired, &[("a", NOW)]).await;
    world.minutes(60).await;
    let bodies = world.receiver.bodies();
    let smoke = bodies.iter().find(|body| devices(body) == BTreeSet::from(["smoke"]));
    assert!(smoke.is_some(), "alone");

    world.minutes(4 * 60).await;
    let short = |body: &&Value| body.to_string().len() < 100_000;
    let bodies = [bodies, world.receiver.bodies()].concat();
    let heard: BTreeSet<&str> = bodies.iter().filter(short).flat_map(devices).collect();
    assert_eq!(heard.len(), 401);
    assert_eq!(world.store.all_waiting(), []);
}

/// The receiver was away, and a storm begins as it is back.
#[tokio::test]
async fn what_was_tried_for_long_does_not_wait_for_the_end_of_a_storm() {
    let (world, rule) = World::with_rule_on_each().await;
    let other = world.rule("other", false).await;
    world.tell(&other, "smoke", News::Fired, &[("a", NOW)]).await;
    world.receiver.will(vec![Reply::Status(503); 1_000]);
    world.minutes(45).await;
    world.receiver.take();

    world.receiver.recover();
    let mut heard = BTreeSet::new();
    for minute in 0..40 {
        for device in 0..5 {
            tell(&world, &rule, (minute * 5 + device) % 200, News::Fired).await;
        }
        world.minutes(1).await;
        heard.extend(world.receiver.bodies().iter().flat_map(devices).map(str::to_owned));
    }
    assert!(heard.contains("smoke"));
}
