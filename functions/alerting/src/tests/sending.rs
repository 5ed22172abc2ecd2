//! Sending: what is sent when, once, and what becomes of channels that fail.

use std::time::Duration;

use ::sending::{SendRequest, Unanswered};
use alerts::News;
use chrono::TimeDelta;
use domain::Timestamp;
use outgoing::{Answer, Reach, Request, Url};
use runtime::clock::Stopwatch;
use serde_json::{Value, json};
use table::Action::{BatchGetItem, GetItem, Query};
use table::Target::{AlertRunning, Devices};
use table::db::{self, Db as _};
use table::item::{Attribute, ItemError};
use table::keys::{ALERT_RULES, ALERT_WAITING};
use table::memory_db::on;
use table::{
    AlertState, EditAlertRules as _, EditChannels, Expected, NoteRechecks as _, NoteRunning as _,
    PutReadings as _, ReadRunning as _, RunningNote, StoreError, UnreadableItem, given,
};

use super::{QUIET_END, Reply, World, at};

const NOW: Timestamp = Timestamp::MIN;

fn news(body: &Value) -> Vec<&str> {
    let messages = body["messages"].as_array().expect("messages");
    messages.iter().map(|it| it["news"].as_str().expect("news")).collect()
}

/// The news of each request so far.
fn news_of(world: &World) -> Vec<Vec<String>> {
    let bodies = world.receiver.bodies();
    bodies.iter().map(|body| news(body).into_iter().map(str::to_owned).collect()).collect()
}

#[tokio::test]
async fn what_waits_is_sent_once_by_each_channel_with_a_link_that_acknowledges() {
    let world = World::new();
    world.channel("a", None).await;
    world.channel("b", None).await;
    let rule = world.rule("r", false).await;
    world.tell(&rule, "freezer", News::Fired, &[("a", NOW), ("b", NOW)]).await;
    world.minute().await.expect("done");
    let mut sent = world.receiver.take();
    sent.sort_by(|one, other| one.0.cmp(&other.0));
    let [(first, body), (second, same)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((first.as_str(), second.as_str()), ("a.example.org", "b.example.org"));
    assert_eq!(body, same);
    assert_eq!(news(body), ["fired"]);
    assert_eq!(body["is_repeated"], false);
    let link = body["link"].as_str().expect("a link");
    let key = link.strip_prefix("https://page.example.org/#acknowledge=r,device:freezer,");
    assert_eq!(key.map(str::len), Some(22), "{link}");
    assert_eq!(world.line()["alerting.messages"], 2);
    assert_eq!(world.line()["alerting.undelivered_seconds"], 0);
    assert_eq!(world.store.all_waiting(), []);
    world.minutes(3).await;
    assert_eq!(world.receiver.take(), []);
}

#[tokio::test]
async fn the_messages_of_a_minute_are_one_message_in_the_order_of_time() {
    let world = World::new();
    world.channel("a", None).await;
    let rules = [world.rule("r", false).await, world.rule("q", false).await];
    world.tell(&rules[0], "z", News::Fired, &[("a", NOW)]).await;
    world.pass(TimeDelta::seconds(1));
    world.tell(&rules[1], "a", News::Fired, &[("a", NOW)]).await;
    world.pass(TimeDelta::seconds(1));
    world.tell(&rules[0], "z", News::Recovered, &[("a", NOW)]).await;
    world.minute().await.expect("done");
    let [body] = &world.receiver.bodies()[..] else { panic!("one message") };
    assert_eq!(news(body), ["fired", "fired", "recovered"]);
    let link = body["link"].as_str().expect("a link");
    assert_eq!(link.matches("acknowledge=").count(), 2, "{link}");
}

#[tokio::test]
async fn a_channel_that_fails_is_tried_again_and_holds_up_no_other() {
    let (world, rule) = World::that_fires().await;
    world.receiver.will([Reply::Status(500)]);
    world.minute().await.expect("done: a receiver's failure is not ours");
    assert_eq!(world.receiver.take().len(), 1);
    assert_eq!(world.line()["alerting.failures"], json!(["a: the webhook answers 500"]));
    assert_eq!(world.stored("a").await.failing, None, "nobody is told unless it lasts");
    // Ten seconds after the first attempt, twenty after the second.
    world.receiver.will([Reply::Status(503)]);
    world.minute_after(TimeDelta::seconds(9)).await;
    assert_eq!(world.receiver.take(), []);
    world.minute_after(TimeDelta::seconds(1)).await;
    assert_eq!(world.receiver.take().len(), 1);
    let failing = world.stored("a").await.failing.expect("it fails");
    assert_eq!(
        (failing.since, failing.next.since(failing.since)),
        (world.now(), TimeDelta::seconds(20))
    );

    world.channel("b", None).await;
    world.tell(&rule, "fridge", News::Fired, &[("a", NOW), ("b", NOW)]).await;
    world.minute().await.expect("done");
    let [(host, _)] = &world.receiver.take()[..] else { panic!("the other one") };
    assert_eq!(host, "b.example.org");
    world.minute_after(TimeDelta::seconds(20)).await;
    let [body] = &world.receiver.bodies()[..] else { panic!("one message") };
    assert_eq!((news(body), &body["is_repeated"]), (vec!["fired", "fired"], &json!(false)));
    assert_eq!(world.stored("a").await.failing, None);
    assert_eq!(world.store.all_waiting(), []);
}

#[tokio::test]
async fn a_channel_that_a_person_has_to_mend_fails_at_once_and_its_secret_is_in_no_log() {
    let (world, _) = World::that_fires().await;
    for status in [404, 301] {
        world.receiver.will([Reply::Status(status)]);
        world.minute().await.expect("done");
        let failure = world.line()["alerting.failures"][0].as_str().expect("why").to_owned();
        assert!(failure.contains(&status.to_string()), "{failure}");
        assert!(!world.line().to_string().contains("geheim"));
        assert!(world.stored("a").await.failing.is_some());
        world.pass(TimeDelta::minutes(1));
    }
    // An alarm tells of ten minutes.
    world.receiver.will(vec![Reply::Status(404); 10]);
    world.minutes(15).await;
    assert_eq!(world.line()["alerting.undelivered_seconds"], 17 * 60);
}

#[tokio::test]
async fn a_receiver_that_asks_for_a_pause_gets_it() {
    let (world, _) = World::that_fires().await;
    world.receiver.will([Reply::After(429, 300)]);
    world.minute().await.expect("done");
    world.receiver.take();
    world.minutes(4).await;
    assert_eq!(world.receiver.take(), []);
    world.minutes(1).await;
    assert_eq!(world.receiver.take().len(), 1);
    assert_eq!(world.store.all_waiting(), []);
}

#[tokio::test]
async fn a_pause_that_a_receiver_asks_for_holds_later_messages_and_no_test() {
    let (world, rule) = World::that_fires().await;
    world.receiver.will([Reply::After(429, 300), Reply::After(429, 300)]);
    world.minute().await.expect("done");
    assert_eq!(world.receiver.take().len(), 1);
    for device in 0..14 {
        world.pass(TimeDelta::seconds(20));
        world.tell(&rule, &format!("d{device}"), News::Fired, &[("a", NOW)]).await;
        world.minute().await.expect("done");
        assert_eq!(world.receiver.take(), [], "{device}: within the pause");
    }

    world.test_channel("a").await;
    world.minute().await.expect("done");
    assert_eq!(news_of(&world), [["test"]]);
    world.minutes(4).await;
    assert_eq!(world.receiver.take(), [], "the second pause");
    world.minutes(1).await;
    let [body] = &world.receiver.bodies()[..] else { panic!("one message") };
    assert_eq!(news(body).len(), 16);
    assert_eq!(world.store.all_waiting(), []);
    assert_eq!(world.stored("a").await.failing, None);
}

/// The refusal of a repetition says nothing of the request whose answer was lost.
#[tokio::test]
async fn what_may_have_arrived_is_marked_by_all_later_attempts() {
    let (world, _) = World::that_fires().await;
    world.receiver.will([504, 503, 429].map(Reply::Status));
    world.minute().await.expect("done");
    world.minutes(6).await;
    let bodies = world.receiver.bodies();
    let marks: Vec<&Value> = bodies.iter().map(|body| &body["is_repeated"]).collect();
    assert_eq!(marks, [false, true, true, true]);
    assert_eq!(world.store.all_waiting(), []);
}

#[tokio::test]
async fn what_was_tried_for_a_day_goes_with_the_first_message_that_gets_through() {
    let (world, rule) = World::that_fires().await;
    world.tell(&rule, "fridge", News::Fired, &[("a", NOW)]).await;
    world.receiver.will(vec![Reply::Status(500); 1_000]);
    world.minutes(60).await;
    world.tell(&rule, "fridge", News::Recovered, &[("a", NOW)]).await;
    world.minutes(25 * 60).await;
    let attempts = world.receiver.take().len();
    assert!((25..40).contains(&attempts), "{attempts}");
    world.minutes(10 * 60).await;
    assert_eq!(world.receiver.take().len(), 0, "given up");
    assert_eq!(world.store.all_waiting().len(), 2, "of a subject the newest waits");

    world.receiver.replies.lock().expect("no panic").clear();
    world.tell(&rule, "cellar", News::Fired, &[("a", NOW)]).await;
    world.minutes(60).await;
    assert_eq!(news_of(&world), [["fired", "recovered", "fired"]]);
    assert_eq!(world.store.all_waiting(), []);
    assert_eq!(world.stored("a").await.failing, None);
}

#[tokio::test]
async fn what_was_given_up_is_sent_within_an_hour_after_its_channel_was_edited() {
    let (world, _) = World::that_fires().await;
    world.receiver.will(vec![Reply::Status(404); 1_000]);
    world.minutes(26 * 60).await;
    world.receiver.take();
    world.receiver.replies.lock().expect("no panic").clear();
    let known = world.stored("a").await;
    let edited = table::StoredChannel { version: known.version + 1, failing: None, ..known };
    world.put_channel(&edited, None).await;
    world.minutes(61).await;
    assert_eq!(world.receiver.take().len(), 1);
    assert_eq!(world.store.all_waiting(), []);
}

#[tokio::test]
async fn quiet_hours_hold_what_is_still_true_at_their_end() {
    let world = World::new();
    world.channel("a", Some("11:00-13:00")).await;
    let (rule, exempt) = (world.rule("r", false).await, world.rule("smoke", true).await);
    for (device, all) in [
        ("fires", &[News::Fired][..]),
        ("fired", &[News::Fired, News::Recovered]),
        ("again", &[News::Fired, News::Recovered, News::Fired]),
    ] {
        for news in all {
            world.pass(TimeDelta::seconds(1));
            world.tell(&rule, device, *news, &[("a", at(QUIET_END))]).await;
        }
    }
    // Told before the quiet hours were set, and of a rule that is exempt.
    world.tell(&rule, "early", News::Fired, &[("a", NOW)]).await;
    world.tell(&exempt, "kitchen", News::Fired, &[("a", NOW)]).await;
    world.minutes(58).await;
    let [body] = &world.receiver.bodies()[..] else { panic!("the exempt one") };
    assert_eq!(body["messages"][0]["rule"]["id"], "smoke");
    world.minutes(3).await;
    assert_eq!(news_of(&world), [["fired", "recovered", "fired", "fired"]]);
    assert_eq!(world.store.all_waiting(), []);
}

#[tokio::test]
async fn what_is_no_longer_true_after_quiet_hours_is_not_said() {
    let (world, rule) = World::with_quiet_hours().await;
    world.tell(&rule, "freezer", News::Fired, &[("a", at(QUIET_END))]).await;
    // A recovery that the rule does not tell: the state moves on without a message.
    world.tell(&rule, "freezer", News::Recovered, &[]).await;
    world.minutes(62).await;
    assert_eq!(world.receiver.take(), []);
    assert_eq!(world.store.all_waiting(), []);
}

#[tokio::test]
async fn each_step_of_a_counter_is_told_after_quiet_hours() {
    let (world, rule) = World::with_quiet_hours().await;
    for _ in 0..2 {
        world.pass(TimeDelta::minutes(1));
        world.tell_step(&rule, "meter", &[("a", at(QUIET_END))]).await;
    }
    world.minutes(62).await;
    assert_eq!(news_of(&world), [["fired", "fired"]]);
    assert_eq!(world.store.all_waiting(), []);
}

/// One transaction has 100 actions, and a message takes one more for each channel.
#[tokio::test]
async fn messages_that_a_judgement_has_too_many_of_are_counted_in_the_log() {
    let world = World::new();
    for number in 0..10 {
        world.channel(&format!("c{number}"), None).await;
    }
    let members = json!({
        "name": "Reset", "device": "meter", "metric": "cumulative_kwh_p", "counter": ["reset"],
    });
    let rule = world.put_rule("r", members).await;
    let begun = world.now().saturating_add(-TimeDelta::hours(6));
    // Each third reading begins anew.
    let readings: Vec<_> = (0..60)
        .map(|number: i32| {
            let time = begun.saturating_add(TimeDelta::minutes(5) * number);
            let value = format!("0.{}", 3 + number % 3 * 2);
            given::reading("meter", time, None, &[("cumulative_kwh_p", value.as_str())])
        })
        .collect();
    given::store_home(&world.store, &readings).await;
    given::seal(&world.store, "UTC", begun).await;
    let touched = [(rule.id.clone().into(), world.now())];
    world.recheck(&touched).await;

    world.scheduled().await.expect("done");
    let told = world.store.all_told().len();
    let states = world.store.all_alert_states();
    let [AlertState::Figures(once)] = [&states[0].state] else { panic!("{states:?}") };
    assert!(told == 8 && once.told.len() > told, "{told}: {states:?}");
    let left_out = world.line()["alerting.left_out"].as_str().map(str::to_owned);
    let expected = format!("{} messages", once.told.len() - told);
    assert!(left_out.as_ref().is_some_and(|text| text.starts_with(&expected)), "{left_out:?}");
}

/// The address of a channel that was deleted is not that of a later one of the same id.
#[tokio::test]
async fn what_waits_for_a_channel_that_was_deleted_goes_to_no_later_one() {
    let (world, rule) = World::with_quiet_hours().await;
    world.tell(&rule, "freezer", News::Fired, &[("a", at(QUIET_END))]).await;
    let id = given::channel_id("a");
    EditChannels::delete_channel(&world.store, &id, &given::invocation()).await.expect("deleted");

    world.pass(TimeDelta::minutes(1));
    world.channel("a", None).await;
    let known = world.stored("a").await;
    let later = table::StoredChannel { version: 2, created: Some(world.now()), ..known };
    world.put_channel(&later, None).await;
    world.tell(&rule, "fridge", News::Fired, &[("a", NOW)]).await;
    world.minute().await.expect("done");
    let [body] = &world.receiver.bodies()[..] else { panic!("one message") };
    assert_eq!(body["messages"][0]["subject"]["id"], "fridge");

    world.receiver.take();
    world.minutes(62).await;
    assert_eq!(world.receiver.take().len(), 0, "its quiet hours are over");
    assert_eq!(world.store.all_waiting(), []);
}

#[tokio::test]
async fn the_messages_of_a_rule_that_was_deleted_or_switched_off_are_dropped() {
    for is_deleted in [true, false] {
        let (world, rule) = World::that_fires().await;
        if is_deleted {
            world.delete_rule("r").await;
        } else {
            world.edit_rule(&rule, |rule| rule.is_on = false).await;
        }
        world.minute().await.expect("done");
        assert_eq!(world.receiver.take(), [], "deleted: {is_deleted}");
        assert_eq!(world.line()["alerting.dropped"], 1);
        assert_eq!(world.store.all_waiting(), []);
    }
}

/// A process remembers rules for a minute.
#[tokio::test]
async fn the_message_of_a_rule_that_was_switched_on_a_moment_ago_is_sent() {
    let (world, rule) = World::with_rule().await;
    world.edit_rule(&rule, |rule| rule.is_on = false).await;
    world.minute().await.expect("done");

    world.pass(TimeDelta::seconds(20));
    let off = world.stored_rule("r").await;
    world.edit_rule(&off, |rule| rule.is_on = true).await;
    world.tell(&rule, "freezer", News::Fired, &[("a", NOW)]).await;
    world.minute().await.expect("done");
    assert_eq!(world.receiver.take().len(), 1);
}

#[tokio::test]
async fn a_pause_holds_what_waits_and_what_is_still_true_is_sent_at_its_end() {
    let (world, rule) = World::with_rule().await;
    world.receiver.will([Reply::Status(500)]);
    world.tell(&rule, "freezer", News::Fired, &[("a", NOW)]).await;
    world.tell(&rule, "fridge", News::Fired, &[("a", NOW)]).await;
    world.minute().await.expect("done");
    world.receiver.take();

    let end = world.now().saturating_add(TimeDelta::hours(2));
    world.edit_rule(&rule, |rule| rule.paused_until = Some(end)).await;
    // Its state goes on, and nobody is told.
    world.end_silently("fridge").await;
    world.minutes(119).await;
    assert_eq!(world.receiver.take(), []);

    world.minutes(1).await;
    assert_eq!(news_of(&world), [["fired"]]);
    assert_eq!(world.store.all_waiting(), []);
}

/// Later nobody knows which rules are deleted, off or paused.
#[tokio::test(start_paused = true)]
async fn while_the_rules_cannot_be_read_messages_are_sent_by_those_of_the_last_15_minutes() {
    let (world, rule) = World::with_rule().await;
    world.scheduled().await.expect("done");
    world.store.throttle(|action, partition| action == Query && partition == ALERT_RULES);
    for minute in 1..=15 {
        world.pass(TimeDelta::minutes(1));
        world.tell(&rule, &format!("d{minute}"), News::Fired, &[("a", NOW)]).await;
        world.scheduled_within(Duration::from_secs(54)).await.expect_err("nothing is judged");
        let sent = usize::from(minute < 15);
        assert_eq!(world.receiver.take().len(), sent, "{minute}");
    }
    assert!(
        world.line()["alerting.error"].to_string().contains("the capacity of the table is used up")
    );

    world.store.throttle(|_, partition| partition != ALERT_RULES);
    world.pass(TimeDelta::minutes(5));
    world.scheduled_within(Duration::from_secs(54)).await.expect_err("all is throttled");
    let others = world.line()["alerting.other_errors"].to_string();
    assert_eq!(others.matches("the capacity of the table is used up").count(), 1, "{others}");
}

#[tokio::test]
async fn a_test_is_sent_whatever_the_channel_and_the_hour() {
    let (world, rule) = World::with_quiet_hours().await;
    world.tell(&rule, "freezer", News::Fired, &[("a", NOW)]).await;
    world.test_channel("a").await;
    world.receiver.will([Reply::Status(404)]);
    world.minute().await.expect("done");
    assert_eq!(news_of(&world), [["test"]]);
    assert!(world.stored("a").await.failing.is_some(), "who tests is told");
    world.pass(TimeDelta::seconds(1));
    world.test_channel("a").await;
    world.minute().await.expect("done");
    assert_eq!(news_of(&world), [["test"]]);
    assert_eq!(world.stored("a").await.failing, None);
}

#[tokio::test]
async fn a_channel_without_a_secret_fails_in_words() {
    let world = World::new();
    let channel = table::StoredChannel { quiet_hours: None, ..given::channel("a") };
    world.put_channel(&channel, None).await;
    let rule = world.rule("r", false).await;
    world.tell(&rule, "freezer", News::Fired, &[("a", NOW)]).await;
    world.minute().await.expect("done");
    assert_eq!(world.line()["alerting.failures"], json!(["a: it has no secret"]));
    assert_eq!(world.store.all_waiting().len(), 1);
}

/// At least once after a crash or a failure of the table at any call; twice only with the mark.
#[tokio::test]
async fn after_a_crash_between_any_two_calls_each_message_arrives() {
    let mut was_repeated = false;
    for is_panic in [true, false] {
        for calls in 0.. {
            let (world, rule) = World::that_fires().await;
            world.tell(&rule, "fridge", News::Fired, &[("a", NOW)]).await;
            if is_panic {
                world.store.panic_after(calls, "killed");
            } else {
                world.store.fail_after(calls, [StoreError::Unavailable("lost".into())]);
            }
            let crashed = world.minute().await.is_err();
            let mut bodies = world.receiver.bodies();
            // One that is not leased is left to the next minute, which is no failure.
            let is_left = bodies.iter().map(|body| news(body).len()).sum::<usize>() < 2;
            // The zone and the mark are read after rules and channels, and sending needs neither.
            let is_spared = !is_panic && [2, 3].contains(&calls);
            if !crashed && !is_left && !is_spared {
                assert!(calls > 6, "{calls}: each call was one that failed");
                assert_eq!(bodies.len(), 1, "exactly once where nothing crashed");
                break;
            }
            world.store.end_troubles();
            world.minutes(2).await;
            bodies.extend(world.receiver.bodies());
            let mut seen: Vec<(&str, bool)> = Vec::new();
            for body in &bodies {
                for message in body["messages"].as_array().expect("messages") {
                    let id = message["subject"]["id"].as_str().expect("an id");
                    let is_again = seen.iter().any(|(it, _)| *it == id);
                    assert!(!is_again || body["is_repeated"] == true, "{calls}: {bodies:?}");
                    was_repeated |= is_again;
                    seen.push((id, is_again));
                }
            }
            let once = seen.iter().filter(|(_, is_again)| !is_again).count();
            assert_eq!(once, 2, "{calls}: {bodies:?}");
            assert_eq!(world.store.all_waiting(), [], "{calls}");
        }
    }
    assert!(was_repeated, "sent, but not noted so");
}

/// The next episode may begin before somebody finds what the one who died had.
#[tokio::test]
async fn what_a_sender_that_died_had_is_sent_though_newer_messages_follow() {
    for calls in 0.. {
        let (world, rule) = World::with_rule().await;
        world.tell(&rule, "freezer", News::Fired, &[("a", world.now())]).await;
        world.minute().await.expect("done");
        world.pass(TimeDelta::seconds(5));
        world.tell(&rule, "freezer", News::Recovered, &[("a", world.now())]).await;
        world.store.panic_after(calls, "killed");
        if world.minute().await.is_ok() {
            if world.store.all_waiting().is_empty() {
                assert!(calls > 5, "{calls}: each call was one that failed");
                break;
            }
            // What panicked was how the request is made. Nobody died.
            continue;
        }
        world.pass(TimeDelta::seconds(5));
        world.tell(&rule, "freezer", News::Fired, &[("a", world.now())]).await;
        world.minutes(2).await;
        let mut heard: Vec<(String, String)> = Vec::new();
        for body in world.receiver.bodies() {
            for message in body["messages"].as_array().expect("messages") {
                let [id, news] =
                    ["id", "news"].map(|it| message[it].as_str().expect(it).to_owned());
                if !heard.contains(&(id.clone(), news.clone())) {
                    heard.push((id, news));
                }
            }
        }
        let mut news: Vec<&str> = heard.iter().map(|it| it.1.as_str()).collect();
        news.sort_unstable();
        assert_eq!(news, ["fired", "fired", "recovered"], "{calls}");
    }
}

/// The lease of a sender that died hides its message for a minute, and newer ones do not wait for it.
#[tokio::test]
async fn what_a_sender_that_died_had_is_not_said_after_newer_news() {
    let mut was_overtaken = false;
    for calls in 0.. {
        let (world, rule) = World::with_rule().await;
        world.tell(&rule, "freezer", News::Fired, &[("a", world.now())]).await;
        world.store.panic_after(calls, "killed");
        if world.minute().await.is_ok() {
            if world.store.all_waiting().is_empty() {
                assert!(calls > 5, "{calls}: each call was one that failed");
                break;
            }
            // What panicked was how the request is made. Nobody died.
            continue;
        }
        world.store.end_troubles();
        let leased = world.store.all_waiting().iter().any(|message| message.lease.is_some());

        world.pass(TimeDelta::seconds(5));
        world.tell(&rule, "freezer", News::Recovered, &[("a", world.now())]).await;
        world.minute().await.expect("done");
        was_overtaken |= leased;
        world.minutes(2).await;
        let bodies = world.receiver.bodies();
        let last = bodies.last().map(news).expect("a message");
        assert_eq!(last.last(), Some(&"recovered"), "{calls}: {bodies:?}");
        assert_eq!(world.store.all_waiting(), [], "{calls}");
    }
    assert!(was_overtaken, "no sender died with a lease");
}

/// Whoever saves a rule leaves rechecks of its devices; this process may have read the rules a moment before.
#[tokio::test]
async fn a_minute_judges_by_the_rules_as_they_are() {
    let world = World::new();
    world.channel("a", None).await;
    world.rule("other", false).await;
    let hot = given::reading("freezer", world.now(), None, &[("temperature", "9")]);
    given::store_home(&world.store, std::slice::from_ref(&hot)).await;
    world.minute().await.expect("done");
    world.pass(TimeDelta::seconds(20));
    world.rule("r", false).await;
    let touched = [(hot.device.clone().into(), hot.at)];
    world.recheck(&touched).await;
    world.scheduled().await.expect("done");
    assert_eq!(news_of(&world), [["fired", "fired"]]);
}

/// More devices than are judged at once when it is saved.
#[tokio::test]
async fn a_rule_that_was_saved_is_judged_on_all_its_devices_once_every_process_knows_it() {
    let world = World::new();
    let rule = world
        .put_rule("r", json!({"name": "Warm", "room": "hall", "metric": "temperature", "above": 8}))
        .await;
    let hot: Vec<_> = (0..50)
        .map(|number| {
            given::reading(
                &format!("d{number}"),
                world.now(),
                Some("hall"),
                &[("temperature", "9")],
            )
        })
        .collect();
    given::store_home(&world.store, &hot).await;
    world.rule("other", false).await;
    // The second time the rule is gone.
    for _ in 0..2 {
        let touched = [(rule.id.clone().into(), world.now())];
        world.recheck(&touched).await;
        world.pass(TimeDelta::minutes(2));
        world.scheduled().await.expect("done");
        assert_eq!(world.store.all_told().len(), 50);
        assert_eq!(world.line()["alerting.looks"], 1);
        assert_eq!(world.rechecks().await, []);
        world.store.delete_alert_rule(&rule.id, &given::invocation()).await.expect("asked");
    }
}

/// Three devices that the table throttles have twelve rules each.
#[tokio::test(start_paused = true)]
async fn the_rechecks_of_throttled_devices_with_many_rules_leave_time_for_others() {
    fastrand::seed(7);
    let world = World::new();
    let hot = (0..3).map(|number| format!("hot{number}"));
    let ids: Vec<_> = hot.chain((0..30).map(|number| format!("cool{number}"))).collect();
    let at = world.now().saturating_add(TimeDelta::minutes(-10));
    let warm = |id: &String| given::reading(id, at, Some("hall"), &[("temperature", "9")]);
    given::store_home(&world.store, &ids.iter().map(warm).collect::<Vec<_>>()).await;
    for number in 0..12 {
        let members = json!({"name": "W", "room": "hall", "metric": "temperature", "above": 8});
        world.put_rule(&format!("r{number}"), members).await;
    }
    let touched: Vec<_> = ids.iter().map(|id| (given::device(id).into(), at)).collect();
    world.recheck(&touched).await;
    world.store.throttle(|action, partition| action == Query && partition.starts_with("hot"));

    let _ = world.scheduled_within(Duration::from_secs(54)).await;
    assert_eq!(world.store.all_told().len(), 12 * 30);
    assert_eq!(world.rechecks().await.len(), 3);
}

/// A device has more rules than a minute has time for, in a process that stays and where each minute has a new one.
#[tokio::test(start_paused = true)]
async fn a_recheck_of_a_device_with_many_rules_judges_each_of_them() {
    const RULES: usize = 60;
    for is_replaced in [false, true] {
        fastrand::seed(1);
        let mut world = World::new();
        let warm = given::reading("meter", world.now(), None, &[("temperature", "9")]);
        given::store_home(&world.store, std::slice::from_ref(&warm)).await;
        for number in 0..RULES {
            let members =
                json!({"name": "W", "device": "meter", "metric": "temperature", "above": 8});
            world.put_rule(&format!("r{number}"), members).await;
        }
        let touched = [(warm.device.into(), warm.at)];
        world.recheck(&touched).await;
        let reading = on(Query, table::Target::Readings);
        world.store.slow_down(reading, Duration::from_secs(1));

        let mut minutes = 0;
        while world.store.all_told().len() < RULES {
            minutes += 1;
            assert!(minutes < 30, "{} of {RULES}", world.store.all_told().len());
            world.pass(TimeDelta::minutes(1));
            if is_replaced {
                world = world.another();
            }
            world.scheduled_within(Duration::from_secs(54)).await.expect("done");
        }
        assert!(minutes > 1, "the time sufficed");
        assert!(is_replaced || world.rechecks().await.is_empty(), "all are judged");
    }
}

/// The devices are silent and are to be rechecked, and each judgement of one of them panics.
#[tokio::test(start_paused = true)]
async fn a_judgement_that_panics_ends_no_other_and_is_named() {
    let world = World::new();
    world.put_rule("gone", json!({"name": "G", "room": "hall", "silent_for": "5m"})).await;
    world
        .put_rule("warm", json!({"name": "W", "room": "hall", "metric": "temperature", "above": 8}))
        .await;
    let ids = ["a", "b", "bad", "c", "d"];
    let warm = ids.map(|id| given::reading(id, world.now(), Some("hall"), &[("temperature", "9")]));
    world.measured(&warm).await;
    world.store.throttle(|action, partition| {
        assert!(!(action == Query && partition.starts_with("bad")), "no such hour");
        false
    });

    world.pass(TimeDelta::minutes(6));
    world.scheduled().await.expect("done");

    assert_eq!(
        world.store.all_told().len(),
        2 * 4,
        "two rules, and four devices without a mistake"
    );
    assert_eq!(world.rechecks().await.len(), 1, "it is judged once the mistake is mended");
    let failures = world.line()["alerting.judgement_failures"].to_string();
    assert!(failures.contains("warm device:bad: the code panicked: no such hour"), "{failures}");
    assert!(failures.contains("gone device:bad: the code panicked: no such hour"), "{failures}");
}

/// Also where something else panics than the judgement of a rule: which groups the device is in.
#[tokio::test(start_paused = true)]
async fn a_recheck_that_panics_ends_no_other_and_no_part_of_the_minute() {
    for seed in 0..4 {
        fastrand::seed(seed);
        let world = World::new();
        world.put_rule("gone", json!({"name": "G", "device": "z", "silent_for": "5m"})).await;
        let warm = json!({"name": "W", "room": "hall", "metric": "temperature", "above": 8});
        world.put_rule("warm", warm).await;
        let of = |id| given::reading(id, world.now(), Some("hall"), &[("temperature", "9")]);
        given::store_home(&world.store, &[of("z")]).await;
        world.measured(&["a", "b", "c"].map(of)).await;

        world.pass(TimeDelta::minutes(6));
        world.store.panic(on(BatchGetItem, Devices), 0, "no such hour");
        world.scheduled().await.expect("done");
        assert_eq!(world.rechecks().await.len(), 1, "{seed}: it is judged later");
        assert_eq!(world.store.all_told().len(), 3, "{seed}: two devices, and silence");
        let failures = world.line()["alerting.judgement_failures"].to_string();
        assert!(failures.contains("the code panicked: no such hour"), "{failures}");
    }
}

#[tokio::test]
async fn an_error_of_one_look_ends_no_other() {
    let mut minutes_without_looks = 0;
    for calls in 0..60 {
        let world = World::new();
        world.rule("r", false).await;
        let readings = ["cellar", "freezer"]
            .map(|id| given::reading(id, world.now(), None, &[("temperature", "9")]));
        world.measured(&readings).await;

        world.store.fail_after(calls, [StoreError::Unavailable("lost".into())]);
        // Without the rules nothing is judged.
        let _ = world.scheduled().await;
        minutes_without_looks += usize::from(world.line()["alerting.looks"] == 0);
        world.store.end_troubles();
        world.scheduled().await.expect("done");
        assert_eq!(world.rechecks().await, [], "{calls}");
    }
    assert_eq!(minutes_without_looks, 1, "only where the looks cannot be read");
}

/// A device is hot, which is to be looked at, and another one is silent.
async fn store_work_for_a_minute(world: &World) {
    world.channel("a", None).await;
    world.rule("r", false).await;
    let members = json!({"name": "Gone", "device": "cellar", "silent_for": "10m"});
    world.put_rule("silent", members).await;
    let silent = given::reading("cellar", world.now(), None, &[("temperature", "4")]);
    given::seal(&world.store, "UTC", world.now()).await;
    world.pass(TimeDelta::hours(1));

    let hot = given::reading("freezer", world.now(), None, &[("temperature", "9")]);
    given::store_home(&world.store, &[silent, hot.clone()]).await;
    let noted =
        world.store.note_rechecks(&[(hot.device.into(), hot.at)], &given::invocation()).await;
    assert!(noted.cause.is_none());
}

/// The rules of what one request tells.
fn rules_of(body: &Value) -> Vec<&str> {
    let messages = body["messages"].as_array().expect("messages").iter();
    messages.map(|message| message["rule"]["id"].as_str().expect("an id")).collect()
}

#[tokio::test]
async fn a_failure_of_sending_keeps_no_minute_from_judging_and_what_it_tells_is_sent() {
    let world = World::new();
    store_work_for_a_minute(&world).await;
    // The mark is read and put, then rules, channels, zone and mark are read. Sending asks for the channels next.
    world.store.fail_after(6, [StoreError::Unavailable("lost".into())]);
    world.scheduled().await.expect("the second round serves all channels");
    let failures = world.line()["alerting.failures"].clone();
    assert!(
        failures[0].as_str().is_some_and(|why| why.starts_with("the channels: ")),
        "{failures}"
    );
    let [body] = &world.receiver.bodies()[..] else { panic!("one message") };
    assert_eq!(rules_of(body), ["r", "silent"]);
}

#[tokio::test]
async fn without_the_note_that_it_runs_a_minute_judges_all_but_silence() {
    let world = World::new();
    store_work_for_a_minute(&world).await;
    world.store.fail_with([StoreError::Unavailable("lost".into())]);
    world.scheduled().await.expect_err("the note is not made");
    assert_eq!(world.line()["alerting.is_cut"], true);
    let [body] = &world.receiver.bodies()[..] else { panic!("one message") };
    assert_eq!(rules_of(body), ["r"]);
    world.scheduled().await.expect("done");
    let [body] = &world.receiver.bodies()[..] else { panic!("one message") };
    assert_eq!(rules_of(body), ["silent"]);
}

#[tokio::test]
async fn a_damaged_mark_is_logged_and_replaced_and_the_minute_goes_on() {
    let world = World::new();
    store_work_for_a_minute(&world).await;
    let mark = RunningNote { version: 7, at: world.now(), pauses: Vec::new() };
    let put = world.store.put_running_note(&mark, Expected::Absent, &given::invocation()).await;
    assert!(put.expect("asked"));

    let damaged = UnreadableItem {
        pk: "ALERT#RUNNING".to_owned(),
        sk: "mark".to_owned(),
        why: ItemError::Missing("at"),
    };
    world.store.fail_with([StoreError::Unreadable(damaged)]);
    world.scheduled().await.expect("done");
    let why = world.line()["alerting.damaged_mark"].to_string();
    assert!(why.contains("ALERT#RUNNING mark: at is missing"), "{why}");
    let [body] = &world.receiver.bodies()[..] else { panic!("one message") };
    assert_eq!(rules_of(body), ["r", "silent"]);
    let replaced = RunningNote { version: 1, ..mark };
    let found = world.store.running_note(&given::invocation()).await;
    assert_eq!(found.expect("read"), Some(replaced));
}

/// The next calls of the table succeed, and two that follow fail.
fn fail_twice_after(world: &World, calls: usize) {
    world.store.fail_after(calls, [(); 2].map(|()| StoreError::Throttled("for now".into())));
}

#[tokio::test]
async fn without_the_zone_and_the_mark_messages_are_sent() {
    let (world, _) = World::that_fires().await;
    // Rules and channels are read before.
    fail_twice_after(&world, 2);
    world.minute().await.expect("done");
    assert!(world.line()["alerting.lacking"].is_string(), "{}", world.line());
    assert_eq!(world.receiver.take().len(), 1);
}

#[tokio::test]
async fn without_the_mark_a_minute_judges_by_the_pauses_that_it_knew() {
    let world = World::new();
    store_work_for_a_minute(&world).await;
    // Before it is read for the judgements, it is noted that the system runs.
    let throttled = || StoreError::Throttled("for now".into());
    (0..20).for_each(|_| world.store.fail(on(GetItem, AlertRunning), 1, throttled()));
    world.scheduled().await.expect("done");
    world.store.end_troubles();
    assert_ne!(world.line()["alerting.failed_judgements"], 0, "no pauses are known yet");
    assert_eq!(world.receiver.take(), []);
    world.scheduled().await.expect("done");
    let [body] = &world.receiver.bodies()[..] else { panic!("one message") };
    assert_eq!(rules_of(body), ["r", "silent"]);

    world.pass(TimeDelta::minutes(1));
    let cool = given::reading("freezer", world.now(), None, &[("temperature", "4")]);
    let invocation = given::invocation();
    let put = world.store.put_readings(std::slice::from_ref(&cool), None, &invocation).await;
    assert!(put.cause.is_none());
    let noted = world.store.note_rechecks(&[(cool.device.into(), cool.at)], &invocation).await;
    assert!(noted.cause.is_none());
    // That the system runs is noted every five minutes.
    fail_twice_after(&world, 2);
    world.scheduled().await.expect("done");
    assert!(world.line()["alerting.lacking"].is_string(), "{}", world.line());
    let [body] = &world.receiver.bodies()[..] else { panic!("one message") };
    assert_eq!((rules_of(body), news(body)), (vec!["r"], vec!["recovered"]));
}

/// For want of units, or because somebody else has it.
#[tokio::test]
async fn a_message_that_is_not_leased_holds_up_no_other() {
    let mut leases = 0;
    // Rules, channels, zone and mark are read before.
    for calls in 4.. {
        let (world, rule) = World::with_rule().await;
        for device in ["freezer", "fridge", "cellar"] {
            world.tell(&rule, device, News::Fired, &[("a", NOW)]).await;
        }
        world.store.fail_after(calls, [StoreError::Throttled("for now".into())]);
        let is_done = world.minute().await.is_ok();
        let line = world.line();
        world.store.end_troubles();
        let bodies = world.receiver.bodies();
        let sent: usize = bodies.iter().map(|body| news(body).len()).sum();
        if sent == 2 {
            leases += 1;
            assert!(is_done, "{calls}: the next minute goes on");
            assert_eq!(line["alerting.channels_left"], 1);
            world.minute().await.expect("done");
            let [body] = &world.receiver.bodies()[..] else { panic!("{calls}: the third") };
            assert_eq!((news(body).len(), &body["is_repeated"]), (1, &json!(false)));
            assert_eq!(world.store.all_waiting(), []);
        } else if is_done {
            assert_eq!(sent, 3);
            break;
        }
    }
    assert_eq!(leases, 3, "each of them was one that failed");
}

/// A deletion that the table throttles is repeated to the end of the invocation, which lasts 55 seconds at most.
#[tokio::test]
async fn what_is_delivered_and_not_deleted_is_leased_for_longer_than_an_invocation() {
    let mut is_found = false;
    for calls in 0..20 {
        let (world, _) = World::that_fires().await;
        world.store.fail_after(calls, [StoreError::Throttled("for now".into())]);
        let has_failed = world.minute().await.is_err();
        world.store.end_troubles();
        if !has_failed || world.receiver.take().is_empty() {
            continue;
        }
        is_found = true;
        // The process that has delivered it would not send it again.
        let world = world.another();
        world.minute_after(TimeDelta::seconds(55)).await;
        assert_eq!(world.receiver.take(), [], "whoever deletes it may be at work");
        world.minute_after(TimeDelta::seconds(5)).await;
        let [body] = &world.receiver.bodies()[..] else { panic!("once more") };
        assert_eq!(body["is_repeated"], true);
    }
    assert!(is_found, "no deletion failed");
}

/// A message that nobody needs any more and that cannot be deleted.
#[tokio::test]
async fn what_cannot_be_dropped_holds_up_no_message() {
    let mut is_found = false;
    for calls in 0..20 {
        let world = World::new();
        world.channel("a", None).await;
        let (rule, other) = (world.rule("r", false).await, world.rule("s", false).await);
        world.tell(&rule, "freezer", News::Fired, &[("a", NOW)]).await;
        world.tell(&other, "fridge", News::Fired, &[("a", NOW)]).await;
        world.delete_rule("r").await;
        world.store.fail_after(calls, [StoreError::Throttled("for now".into())]);
        let has_failed = world.minute().await.is_err();
        world.store.end_troubles();
        let left: Vec<_> = world.store.all_waiting();
        let is_dropped = !left.iter().any(|message| message.logged.alert.rule.as_str() == "r");
        let is_finished = !left.iter().any(|message| message.logged.alert.rule.as_str() == "s");
        if has_failed && !is_dropped && is_finished {
            is_found = true;
            assert_eq!(world.receiver.take().len(), 1);
        }
    }
    assert!(is_found, "no other message was sent");
}

#[tokio::test]
async fn a_heartbeat_is_asked_every_five_minutes_and_not_when_the_table_fails() {
    let url = Url::parse("https://beat.example.org/geheim", Reach::Public).expect("an address");
    let world = World::with_heartbeat(Some(url));
    let minutes = async |minutes| {
        for _ in 0..minutes {
            world.pass(TimeDelta::minutes(1));
            world.scheduled().await.expect("done");
        }
    };
    minutes(11).await;
    assert_eq!(world.receiver.take().len(), 3);
    world.minutes(11).await;
    assert_eq!(world.receiver.take().len(), 0, "a hint is no minute");
    world.store.fail_with((0..100).map(|_| StoreError::Unavailable("down".into())));
    for _ in 0..10 {
        world.pass(TimeDelta::minutes(1));
        world.scheduled().await.expect_err("the table fails");
    }
    assert_eq!(world.receiver.take().len(), 0);
    world.store.end_troubles();
    world.receiver.will([Reply::Status(500)]);
    minutes(2).await;
    assert_eq!(world.receiver.take().len(), 2, "one that failed is repeated");
}

/// A receiver that answers when the invocation is over.
#[derive(Debug)]
struct Slow(Duration);

impl SendRequest for Slow {
    fn send(&self, _: &Request) -> Result<Answer, Unanswered> {
        std::thread::sleep(self.0);
        Ok(Answer { status: 200, retry_after: None, text: String::new() })
    }
}

#[tokio::test]
async fn a_heartbeat_lasts_no_longer_than_its_invocation() {
    let url = Url::parse("https://beat.example.org/geheim", Reach::Public).expect("an address");
    let slow = Slow(Duration::from_secs(3));
    let world = World::with(slow, super::Receiver::default(), Some(url));
    let watch = Stopwatch::start();
    world.scheduled_within(Duration::from_millis(500)).await.expect("done");
    assert!(watch.elapsed() < Duration::from_secs(2), "{:?}", watch.elapsed());
    assert!(world.line()["alerting.heartbeat"].is_string(), "{}", world.line());
}

/// Twenty seconds are kept for sending, so a minute of less has no time to judge.
#[tokio::test]
async fn a_minute_without_time_for_silence_says_that_it_was_cut() {
    let world = World::new();
    let members = json!({"name": "Gone", "device": "freezer", "silent_for": "10m"});
    world.put_rule("r", members).await;
    world.scheduled_within(Duration::from_millis(20_500)).await.expect("done");
    assert_eq!(world.line()["alerting.is_cut"], true);
    world.scheduled().await.expect("done");
    assert_eq!(world.line()["alerting.is_cut"], false);
}

/// The devices of the requests so far.
fn devices(world: &World) -> Vec<String> {
    let bodies = world.receiver.bodies();
    let messages = bodies.iter().flat_map(|body| body["messages"].as_array().expect("messages"));
    messages.map(|message| message["subject"]["id"].as_str().expect("an id").to_owned()).collect()
}

#[tokio::test]
async fn a_message_whose_state_cannot_be_read_holds_up_no_other() {
    let mut was_left = false;
    for calls in 0..20 {
        let (world, rule) = World::with_rule().await;
        let later = world.now().saturating_add(TimeDelta::minutes(5));
        world.tell(&rule, "freezer", News::Fired, &[("a", later)]).await;
        world.pass(TimeDelta::minutes(20));
        let urgent = world.rule("urgent", false).await;
        world.tell(&urgent, "smoke", News::Fired, &[("a", NOW)]).await;

        world.store.fail_after(calls, [StoreError::Throttled("for now".into())]);
        let result = world.minute().await;
        world.store.end_troubles();
        let first = devices(&world);
        if first == ["smoke"] && result.is_err() {
            was_left = true;
            assert_eq!(world.line()["alerting.undelivered_seconds"], 15 * 60);
        }
        world.minute_after(TimeDelta::minutes(2)).await;
        let all = first.into_iter().chain(devices(&world)).collect::<Vec<_>>();
        assert!(
            all.contains(&"freezer".to_owned()) && all.contains(&"smoke".to_owned()),
            "{calls}: {all:?}"
        );
    }
    assert!(was_left);
}

#[tokio::test]
async fn what_waits_is_read_on_where_the_table_let_no_more_in() {
    let mut was_cut = false;
    for calls in 0..8 {
        let (world, rule) = World::with_rule().await;
        world.storm(&rule, 0..150, NOW).await;

        world.store.fail_after(calls, [StoreError::Throttled("for now".into())]);
        drop(world.minute().await);
        world.store.end_troubles();
        let first = devices(&world);
        // A page has a hundred. What may follow the last of them is read first.
        if first.len() == 99 {
            was_cut = true;
            // Further ones come before the place.
            world.tell(&rule, "a", News::Fired, &[("a", NOW)]).await;
            world.minute().await.expect("done");
            assert_eq!(devices(&world).len(), 51);
            world.minute().await.expect("done");
            assert_eq!(devices(&world), ["a"]);
        }
    }
    assert!(was_cut);
}

/// The receiver may have it, and knows it by the id of the request.
#[tokio::test]
async fn what_has_no_answer_is_told_again_as_it_was_before_what_follows_it() {
    let (world, rule) = World::that_fires().await;
    world.receiver.will([Reply::Lost]);
    world.minute().await.expect("done");
    let first = world.receiver.bodies();
    let ids = world.receiver.take_ids();

    world.pass(TimeDelta::seconds(11));
    world.tell(&rule, "freezer", News::Recovered, &[("a", NOW)]).await;
    world.minutes(1).await;
    let again = world.receiver.bodies();
    assert_eq!((again.len(), news(&again[0])), (1, news(&first[0])));
    assert_eq!((world.receiver.take_ids(), &again[0]["is_repeated"]), (ids, &true.into()));
    world.minute().await.expect("done");
    let after: Vec<_> = world.receiver.bodies();
    assert_eq!((after.len(), news(&after[0])), (1, vec!["recovered"]));
    assert_eq!(world.store.all_waiting(), []);
}

/// The channel has quiet hours since the first message, and the rule ignores them since the second.
#[tokio::test]
async fn what_follows_a_message_that_quiet_hours_hold_waits_for_it() {
    let (world, mut rule) = World::with_quiet_hours().await;
    world.tell(&rule, "freezer", News::Fired, &[("a", NOW)]).await;
    rule.definition.ignores_quiet_hours = true;
    world.tell(&rule, "freezer", News::Recovered, &[("a", NOW)]).await;
    world.minute().await.expect("done");
    assert_eq!(world.receiver.take(), []);
    world.minutes(61).await;
    assert_eq!(news_of(&world), [["recovered"]], "they waited, so the newest is enough");
}

/// The receiver is away for hours after the lost answer. What is heard then is how it is, and no more.
#[tokio::test]
async fn what_waited_for_hours_behind_a_lost_answer_is_told_by_its_newest() {
    for first in [Reply::Lost, Reply::Status(503)] {
        let (world, rule) = World::that_fires().await;
        world.receiver.will([first]);
        world.receiver.will(vec![Reply::Status(503); 1_000]);
        world.minute().await.expect("done");
        for n in 0..20 {
            world.minutes(10).await;
            let flip = if n % 2 == 0 { News::Recovered } else { News::Fired };
            world.tell(&rule, "freezer", flip, &[("a", NOW)]).await;
        }
        world.minutes(1).await;
        world.receiver.take();

        world.receiver.recover();
        world.minutes(61).await;
        let bodies = world.receiver.bodies();
        let heard: Vec<_> = bodies.iter().flat_map(news).collect();
        assert_eq!(heard, ["fired"]);
        assert_eq!(world.store.all_waiting(), []);
    }
}

/// The end of an episode makes no message where its rule says so.
#[tokio::test]
async fn what_may_have_arrived_and_is_over_is_not_told_hours_later() {
    let (world, _) = World::that_fires().await;
    world.receiver.will([Reply::Lost]);
    world.receiver.will(vec![Reply::Status(503); 1_000]);
    world.minute().await.expect("done");
    world.end_silently("freezer").await;
    world.minutes(300).await;
    world.receiver.take();

    world.receiver.recover();
    world.minutes(61).await;
    assert_eq!(world.receiver.take(), []);
    assert_eq!(world.store.all_waiting(), []);
}

/// One of them was tried four times before, so its pause would be longer.
#[tokio::test]
async fn what_may_have_arrived_stays_together() {
    let (world, rule) = World::that_fires().await;
    world.receiver.will(vec![Reply::Status(500); 4]);
    for _ in 0..4 {
        world.minute().await.expect("done");
        world.pass(TimeDelta::seconds(81));
    }
    world.receiver.take_ids();

    world.tell(&rule, "fridge", News::Fired, &[("a", NOW)]).await;
    world.receiver.will([Reply::Lost]);
    world.minute().await.expect("done");
    let [lost] = &world.receiver.take_ids()[..] else { panic!("both") };
    world.minutes(5).await;
    assert_eq!(&world.receiver.take_ids()[..], std::slice::from_ref(lost));
    assert_eq!(world.store.all_waiting(), []);
}

#[tokio::test]
async fn each_damaged_rule_is_named() {
    let world = World::new();
    world.rule("r", false).await;
    for id in ["first", "second"] {
        let text = |text: &str| Attribute::S(text.into());
        let damaged = db::put([("pk", text(ALERT_RULES)), ("sk", text(id))]);
        world.store.write(damaged, &given::invocation()).await.expect("memory");
    }
    world.minute().await.expect("done");
    let why = world.line()["alerting.unreadable"].to_string();
    assert!(why.contains("ALERT#RULES first: ") && why.contains("ALERT#RULES second: "), "{why}");
}

#[tokio::test]
async fn a_damaged_message_is_named_as_a_warning() {
    let (world, rule) = World::with_rule().await;
    world.tell(&rule, "fridge", News::Fired, &[("a", Timestamp::MIN)]).await;
    let text = |text: &str| Attribute::S(text.into());
    let damaged = db::put([("pk", text(ALERT_WAITING)), ("sk", text("a#r#device:d#1"))]);
    world.store.write(damaged, &given::invocation()).await.expect("memory");
    world.minute().await.expect("done");
    assert_eq!(world.receiver.bodies().len(), 1);
    let why = world.line()["alerting.unreadable"].to_string();
    assert!(why.contains("a: the item ALERT#WAITING a#r#device:d#1"), "{why}");
    assert_eq!(world.line()["level"], "WARN");
}
