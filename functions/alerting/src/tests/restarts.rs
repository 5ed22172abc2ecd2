//! The system stands still and comes back, often as a new process, which remembers nothing; or its clock is wrong.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use alerts::News;
use chrono::TimeDelta;
use runtime::clock::TestClock;
use sending::{SendRequest, Unanswered};
use serde_json::{Value, json};
use table::given;
use table::memory_db::MemoryDb;

use super::{NOON, Receiver, Reply, World, at};

/// What channel `a` is told of the freezer, whose last reading is two minutes old, in some minutes and, after a pause of ten
/// minutes, in a quarter of an hour by a new process. Then the freezer sends each minute, if there is something that it sends.
async fn told_around_a_restart(
    rule: Value,
    minutes_before: i64,
    sent: Option<(&str, &str)>,
) -> Vec<String> {
    let world = World::new();
    world.channel("a", None).await;
    world.put_rule("r", rule).await;
    let last = world.now().saturating_add(-TimeDelta::minutes(2));
    world.measured(&[given::reading("freezer", last, None, &[("temperature", "9")])]).await;
    for _ in 0..minutes_before {
        world.scheduled().await.expect("done");
        world.pass(TimeDelta::minutes(1));
    }

    world.pass(TimeDelta::minutes(10));
    let restarted = world.another();
    for _ in 0..15 {
        if let Some(value) = sent {
            restarted.measured(&[given::reading("freezer", restarted.now(), None, &[value])]).await;
        }
        restarted.scheduled().await.expect("done");
        restarted.pass(TimeDelta::minutes(1));
    }
    news(&world)
}

/// The news of all messages to the receiver.
fn news(world: &World) -> Vec<String> {
    let bodies = world.receiver.bodies();
    let messages = bodies.iter().flat_map(|body| body["messages"].as_array().expect("messages"));
    messages.map(|message| message["news"].as_str().expect("a text").to_owned()).collect()
}

/// The system is noted to run every five minutes, so a pause seems to begin up to five minutes before it does.
#[tokio::test]
async fn what_a_silence_brought_about_stays_however_soon_a_pause_follows() {
    let silence = || json!({"name": "Gone", "device": "freezer", "silent_for": "10m"});
    let warm = |no_data| {
        json!({
            "name": "Warm", "device": "freezer", "metric": "temperature", "above": 8,
            "no_data": no_data,
        })
    };
    for minutes_before in 9..20 {
        let told = told_around_a_restart(silence(), minutes_before, None).await;
        assert_eq!(told, ["fired"], "{minutes_before} minutes");
    }
    for minutes_before in 60..66 {
        let told = told_around_a_restart(warm("clear"), minutes_before, None).await;
        assert_eq!(told, ["fired", "recovered"], "{minutes_before} minutes");
    }
}

/// The pause is noted when the device sends again, and reaches back before the silence.
#[tokio::test]
async fn a_silence_that_was_told_is_neither_taken_back_nor_forgotten_when_the_device_returns() {
    let gone =
        || json!({"name": "Gone", "device": "freezer", "silent_for": "10m", "clear_for": "5m"});
    for minutes_before in [10, 12, 14, 30] {
        let told = told_around_a_restart(gone(), minutes_before, Some(("temperature", "3"))).await;
        assert_eq!(told, ["fired", "recovered"], "{minutes_before} minutes");
    }

    let warm = || {
        json!({
            "name": "Warm", "device": "freezer", "metric": "temperature", "above": 8, "clear": 5,
            "no_data": "clear",
        })
    };
    for minutes_before in [60, 62, 64, 66] {
        for sent in [("humidity", "40"), ("temperature", "7")] {
            let told = told_around_a_restart(warm(), minutes_before, Some(sent)).await;
            assert_eq!(told, ["fired", "recovered"], "{minutes_before} minutes, {sent:?}");
        }
    }
}

#[tokio::test]
async fn a_clock_that_was_ahead_for_a_minute_delays_no_silence() {
    for hours in [1, 3, 12] {
        let world = World::new();
        world.channel("a", None).await;
        world
            .put_rule("r", json!({"name": "Gone", "device": "freezer", "silent_for": "10m"}))
            .await;
        let noon = world.now();
        world.measured(&[given::reading("freezer", noon, None, &[("temperature", "3")])]).await;
        world.scheduled().await.expect("done");

        let restarted = world.another();
        restarted.pass(TimeDelta::hours(hours));
        restarted.scheduled().await.expect("done");
        restarted.clock.set(noon.saturating_add(TimeDelta::minutes(2)));
        let now = restarted.now();
        restarted.measured(&[given::reading("freezer", now, None, &[("temperature", "3")])]).await;
        for _ in 0..15 {
            restarted.scheduled().await.expect("done");
            restarted.pass(TimeDelta::minutes(1));
        }
        assert_eq!(news(&world), ["fired"], "{hours} hours ahead");
    }
}

/// When a laptop starts, its clock is ahead and there is no network; both are mended a minute later.
#[tokio::test]
async fn a_clock_that_was_ahead_for_a_minute_delays_no_message_that_was_not_delivered() {
    for hours in [1, 3, 12] {
        let (world, rule) = World::with_rule().await;
        let noon = world.now();
        world.pass(TimeDelta::hours(hours));
        world.tell(&rule, "freezer", News::Fired, &[("a", world.now())]).await;
        world.receiver.will([Reply::Status(500)]);
        drop(world.minute().await);
        world.receiver.take();

        world.clock.set(noon);
        world.minutes(2).await;
        assert_eq!(news(&world), ["fired"], "{hours} hours ahead");
    }
}

/// A receiver whose laptop falls asleep while a message is sent.
#[derive(Debug, Clone)]
struct Sleepy {
    receiver: Receiver,
    clock: TestClock,
    minutes: Arc<Mutex<Option<u64>>>,
}

impl SendRequest for Sleepy {
    fn send(&self, request: &outgoing::Request) -> Result<outgoing::Answer, Unanswered> {
        if let Some(minutes) = self.minutes.lock().expect("no panic").take() {
            self.clock.advance(std::time::Duration::from_secs(60 * minutes));
        }
        self.receiver.send(request)
    }
}

#[tokio::test]
async fn a_laptop_that_slept_while_it_sent_tells_no_silence_when_it_wakes() {
    let clock = TestClock::at(at(NOON));
    let receiver = Receiver::default();
    let minutes = Arc::default();
    let http =
        Sleepy { receiver: receiver.clone(), clock: clock.clone(), minutes: Arc::clone(&minutes) };
    let world = World::on(MemoryDb::default(), clock, http, receiver, None);
    world.channel("a", None).await;
    world.put_rule("s", json!({"name": "Gone", "device": "freezer", "silent_for": "10m"})).await;

    let sends = async || {
        let reading = given::reading("freezer", world.now(), None, &[("temperature", "3")]);
        world.measured(&[reading]).await;
    };
    let pass = async |minutes: i64| {
        for _ in 0..minutes {
            world.scheduled().await.expect("done");
            world.pass(TimeDelta::minutes(1));
        }
    };

    // Silent once and back, so that its state is judged in each minute.
    sends().await;
    pass(13).await;
    sends().await;
    pass(5).await;
    assert_eq!(news(&world), ["fired", "recovered"]);

    sends().await;
    world.test_channel("a").await;
    *minutes.lock().expect("no panic") = Some(20);
    pass(1).await;
    sends().await;
    pass(2).await;
    assert_eq!(news(&world), ["test"]);
}

/// A reading that comes during the sleep would be ahead of the clock of the minute that slept.
#[tokio::test]
async fn a_minute_that_slept_between_two_judgements_leaves_the_next_to_the_minute_after_it() {
    let (world, _) = World::with_rule().await;
    let noon = world.now();
    world.recheck(&[(given::device("freezer").into(), noon)]).await;
    world.pass(TimeDelta::minutes(2));

    let (clock, sleeps) = (world.clock.clone(), AtomicBool::new(true));
    world.store.throttle(move |_, partition| {
        if partition == table::keys::ALERT_RECHECKS && sleeps.swap(false, Ordering::Relaxed) {
            clock.advance(std::time::Duration::from_secs(3 * 60));
        }
        false
    });
    world.scheduled().await.expect("done");
    assert_eq!(world.rechecks().await.len(), 1);

    world.scheduled().await.expect("done");
    assert_eq!(world.rechecks().await, []);
}

/// It is evening in Tokyo, and in quiet hours by UTC.
#[tokio::test(start_paused = true)]
async fn a_message_of_a_minute_that_could_not_read_the_zone_waits_for_no_quiet_hours_of_utc() {
    let world = World::new();
    given::seal(&world.store, "Asia/Tokyo", world.now()).await;
    world.channel("a", Some("11:00-13:00")).await;
    let leak = json!({"name": "Leak", "device": "sink", "metric": "leak", "above": 0});
    world.put_rule("r", leak).await;
    world.measured(&[given::reading("sink", world.now(), None, &[("leak", "1")])]).await;

    world.store.throttle(|_, partition| partition == table::keys::STATE);
    world.scheduled().await.expect("done");
    assert_eq!(world.store.all_waiting().len(), 1, "it is judged");
    world.store.end_troubles();
    world.pass(TimeDelta::minutes(1));
    world.scheduled().await.expect("done");
    assert_eq!(news(&world), ["fired"]);
}
