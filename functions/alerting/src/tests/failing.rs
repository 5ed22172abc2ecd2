//! A channel that fails is said to do so for as long as something waits for it, and no longer.

use alerts::News;
use chrono::TimeDelta;
use domain::Timestamp;
use table::Action::{BatchGetItem, DeleteItem, UpdateItem};
use table::Target::{AlertChannels, AlertWaiting, Devices};
use table::given::invocation;
use table::memory_db::on;
use table::{SendWaitingMessages as _, StoreError, StoredRule};

use super::{Reply, World};

/// A channel that fails, and the message that waits for it.
async fn fail() -> (World, StoredRule) {
    let (world, rule) = World::that_fires().await;
    world.receiver.will([Reply::Status(404)]);
    world.minute().await.expect("done");
    assert!(world.stored("a").await.failing.is_some());
    world.receiver.take();
    (world, rule)
}

async fn assert_rest(world: &World) {
    assert_eq!(world.store.all_waiting(), []);
    assert_eq!(world.stored("a").await.failing, None);
    assert_eq!(world.line()["alerting.undelivered_seconds"], 0);
}

#[tokio::test]
async fn a_channel_whose_messages_nobody_needs_any_more_fails_no_longer() {
    let (world, _) = fail().await;
    world.delete_rule("r").await;
    world.minutes(2).await;
    assert_eq!(world.receiver.take(), []);
    assert_rest(&world).await;

    let (world, rule) = fail().await;
    world.tell(&rule, "freezer", News::Recovered, &[]).await;
    world.minutes(2).await;
    assert_eq!(world.receiver.take(), []);
    assert_rest(&world).await;
}

/// Also one whose messages expired, or were sent by somebody whose note was lost.
#[tokio::test]
async fn a_channel_for_which_nothing_waits_fails_no_longer() {
    let (world, _) = fail().await;
    for message in &world.store.all_waiting() {
        assert!(world.store.delete_waiting(message, &invocation()).await.expect("asked"));
    }
    world.minute().await.expect("done");
    assert_rest(&world).await;
}

#[tokio::test]
async fn what_was_given_up_is_dropped_with_its_rule_and_the_channel_fails_no_longer() {
    let (world, _) = fail().await;
    world.receiver.will(vec![Reply::Status(404); 100]);
    world.minutes(27 * 60).await;
    world.receiver.take();
    world.minutes(2 * 60).await;
    assert_eq!(world.receiver.take(), [], "given up");
    assert!(world.stored("a").await.failing.is_some(), "it waits for a newer one");

    world.delete_rule("r").await;
    world.minutes(61).await;
    assert_eq!(world.receiver.take(), []);
    assert_rest(&world).await;
}

#[tokio::test]
async fn a_channel_fails_while_something_waits_for_it_that_is_not_due() {
    let (world, _) = fail().await;
    let since = world.stored("a").await.failing;
    world.minute().await.expect("done");
    assert_eq!(world.stored("a").await.failing, since, "its next attempt is in ten seconds");

    // A message of a rule that is gone is dropped, and the other one waits longer.
    let (world, _) = fail().await;
    let other = world.rule("other", false).await;
    let later = world.now().saturating_add(TimeDelta::hours(1));
    world.tell(&other, "fridge", News::Fired, &[("a", later)]).await;
    world.delete_rule("r").await;
    world.minutes(2).await;
    assert_eq!(world.store.all_waiting().len(), 1);
    assert!(world.stored("a").await.failing.is_some());
}

#[tokio::test]
async fn a_channel_that_delivers_fails_no_longer_whatever_the_table_throttles() {
    for (action, target) in [(DeleteItem, AlertWaiting), (UpdateItem, AlertChannels)] {
        let (world, _) = fail().await;
        world.pass(TimeDelta::minutes(1));
        world.store.fail(on(action, target), 0, StoreError::Throttled("for now".into()));
        world.minute().await.expect_err("the table throttles");
        assert_eq!(world.receiver.take().len(), 1);
        world.minute().await.expect("done");
        assert_eq!(world.stored("a").await.failing, None, "{action:?}");
        world.minutes(2).await;
        assert_rest(&world).await;
    }
}

#[tokio::test]
async fn a_channel_fails_and_says_why_though_a_message_is_not_given_back() {
    let (world, _) = World::that_fires().await;
    world.receiver.will([Reply::Status(404)]);
    let given_back = on(UpdateItem, AlertWaiting);
    world.store.fail(given_back, 1, StoreError::Throttled("for now".into()));
    world.minute().await.expect_err("the table throttles");
    assert!(world.stored("a").await.failing.is_some());
    let failures = world.line()["alerting.failures"].to_string();
    assert!(failures.contains("the webhook answers 404"), "{failures}");
}

#[tokio::test]
async fn a_test_that_fails_does_not_end_the_pause_that_the_receiver_asked_for() {
    let (world, _) = World::that_fires().await;
    world.receiver.will([Reply::After(429, 1_800), Reply::Status(503)]);
    world.minute().await.expect("done");
    let pause = world.stored("a").await.failing;

    world.minutes(1).await;
    world.test_channel("a").await;
    world.minute().await.expect("done");
    assert_eq!(world.receiver.take().len(), 2);
    assert_eq!(world.stored("a").await.failing, pause);
}

#[tokio::test]
async fn a_request_that_cannot_be_made_for_a_panic_fails_its_channel_and_no_other() {
    let (world, rule) = World::that_fires().await;
    world.channel("b", None).await;
    world.tell(&rule, "fridge", News::Fired, &[("b", Timestamp::MIN)]).await;
    world.store.panic(on(BatchGetItem, Devices), 0, "no such unit");
    world.minute().await.expect("done");
    assert_eq!(world.receiver.take().len(), 1);
    let failures = world.line()["alerting.failures"].to_string();
    assert!(failures.contains("a: the code panicked: no such unit"), "{failures}");

    world.minutes(1).await;
    let [body] = &world.receiver.bodies()[..] else { panic!("one message") };
    assert_eq!(body["is_repeated"], false);
    assert_rest(&world).await;
}
