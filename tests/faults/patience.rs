//! A table that throttles for longer than a sender would wait: what nobody waits for is repeated until it is done.

use std::time::Duration;

use ::alerts::{News, Rule};
use alerting::Event;
use chrono::TimeDelta;
use dynamodb::DynamoStore;
use runtime::clock::{Deadline, Stopwatch};
use serde_json::{Value, json};
use table::given::{alert_rule, channel, channel_id, firing, message, seal, store_home};
use table::{
    ChannelSecret, EditAlertRules as _, EditChannels as _, NewJudgement, NoteRechecks as _,
    PutJudgements as _, ReadRollupState as _, ReadWaitingMessages as _, StoredChannel, StoredRule,
};

use super::proxy::{Call, Fault, Proxy};
use crate::engine::{Engine, Table};
use crate::given::{answer, at, invocation, reading};
use crate::home::{Home, Options};
use crate::stored::put;

/// For so long an operation is throttled: a sender's request would have been given up a second before.
const THROTTLED: Duration = Duration::from_secs(8);
const MINUTE: i64 = 60_000;

/// A proxy that throttles an operation from its first request on, for a time.
async fn throttling(table: &Table, operation: &'static str) -> Proxy {
    let mut first: Option<Stopwatch> = None;
    let plan = move |call: &Call| {
        if call.operation != operation {
            return None;
        }
        let since = first.get_or_insert_with(Stopwatch::start);
        (since.elapsed() < THROTTLED).then_some(Fault::Throttled)
    };
    Proxy::start(table.endpoint(), plan).await
}

pub(super) fn deadline() -> Deadline {
    Deadline::after(Duration::from_secs(50))
}

/// A device that is silent for an hour, a rule that tells so, and a channel.
async fn store_silence(store: &DynamoStore) {
    store_home(store, &[reading("d", 0, &[("t", "1")])]).await;
    seal(store, "UTC", at(0)).await;
    store_rule(store, "r", json!({"name": "Gone", "device": "d", "silent_for": "10m"})).await;
    store_channel(store).await;
}

async fn store_rule(store: &DynamoStore, id: &str, members: Value) {
    let rule = Rule::from_json(members, at(0)).expect("a rule");
    let rule = StoredRule { id: id.parse().expect("an id"), version: 1, definition: rule };
    assert!(answer!(store.put_alert_rule(&rule)));
}

/// Two devices that are warm from the fiftieth minute on, each with a rule that fires after a time and a recheck of it.
async fn store_warm_devices(store: &DynamoStore, fires_after: &str) {
    let warm = ["first-device", "last-device"].map(|id| reading(id, 50 * MINUTE, &[("t", "9")]));
    store_home(store, &warm).await;
    seal(store, "UTC", at(0)).await;
    store_channel(store).await;
    for reading in &warm {
        let id = reading.device.as_str();
        let members =
            json!({"name": "Warm", "device": id, "metric": "t", "above": 8, "for": fires_after});
        store_rule(store, id, members).await;
    }
    let touched = warm.map(|reading| (reading.device.into(), reading.at));
    assert!(store.note_rechecks(&touched, &invocation()).await.cause.is_none());
}

pub(super) async fn store_channel(store: &DynamoStore) {
    let secret = json!({
        "kind": "webhook", "address": "https://c.example.org/",
        "key": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    });
    let secret = ChannelSecret(secret.as_object().expect("an object").clone());
    let channel = StoredChannel { quiet_hours: None, ..channel("c") };
    assert!(answer!(store.put_channel(&channel, Some(&secret))));
}

/// A home on a table by way of a proxy, so many minutes after the start.
pub(super) fn by_way_of(proxy: &Proxy, table: &Table, minutes: i64) -> Home<DynamoStore> {
    let options = Options { deadline, ..Options::at(at(minutes * MINUTE)) };
    Home::with(table.store_by_way_of(proxy.url()), options)
}

/// Judges and sends while an operation is throttled, in the next minute if that is over by then, and once more after the
/// lease. The message is sent once.
async fn tell_once_while_throttled(operation: &'static str) {
    let engine = Engine::embedded().await;
    let table = engine.table(true).await;
    store_silence(&table.store()).await;
    let proxy = throttling(&table, operation).await;
    let home = by_way_of(&proxy, &table, 60);

    let watch = Stopwatch::start();
    home.alert(Event::Schedule, deadline()).await.expect("done in the end");
    if home.receiver.messages().is_empty() {
        // A judgement leaves time to the others: what it could not write is judged again.
        tokio::time::sleep(THROTTLED.saturating_sub(watch.elapsed())).await;
        home.clock.set(at(61 * MINUTE));
        home.alert(Event::Schedule, deadline()).await.expect("done in the end");
    }
    assert!(watch.elapsed() > Duration::from_secs(7), "it was not throttled");
    assert_eq!(home.receiver.messages().len(), 1, "{operation}: what was judged is sent");
    let later = at(60 * MINUTE).saturating_add(TimeDelta::minutes(10));
    let waiting = answer!(table.store().waiting_messages(&channel_id("c"), None, 9));
    assert!(waiting.listing.found.is_empty(), "{operation}: it is finished");

    home.clock.set(later);
    home.alert(Event::Hint, deadline()).await.expect("done");
    assert_eq!(home.receiver.messages().len(), 1, "{operation}: it is told again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_finished_though_the_table_throttles_longer_than_a_sender_waits() {
    tell_once_while_throttled("DeleteItem").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_judged_is_sent_a_minute_later_at_most_though_the_table_throttles_for_seconds() {
    tell_once_while_throttled("TransactWriteItems").await;
}

/// What waits cannot be read until a judgement is put.
#[tokio::test(flavor = "multi_thread")]
async fn a_minute_judges_though_what_waits_cannot_be_read() {
    let engine = Engine::embedded().await;
    let table = engine.table(true).await;
    store_silence(&table.store()).await;
    let mut is_judged = false;
    let plan = move |call: &Call| {
        is_judged |= call.operation == "TransactWriteItems";
        let is_reading = call.operation == "Query" && call.names("ALERT#WAITING");
        (is_reading && !is_judged).then_some(Fault::Throttled)
    };
    let proxy = Proxy::start(table.endpoint(), plan).await;
    let home = by_way_of(&proxy, &table, 60);

    home.alert(Event::Schedule, deadline()).await.expect("done in the end");
    assert_eq!(home.receiver.messages().len(), 1, "it is judged, and told in the same minute");
}

/// The note that the system runs is never made, or can neither be read nor can the state of the rollups.
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_sent_though_nothing_can_be_noted() {
    send_while_throttled("PutItem", &["ALERT#RUNNING"]).await;
    send_while_throttled("GetItem", &["ALERT#RUNNING", "STATE#"]).await;
}

/// Sends what waits while an operation on some partitions is throttled for ever.
async fn send_while_throttled(operation: &'static str, partitions: &'static [&'static str]) {
    let engine = Engine::embedded().await;
    let table = engine.table(true).await;
    let (store, rule) = (table.store(), alert_rule("r", at(0)));
    store_channel(&store).await;
    assert!(answer!(store.put_alert_rule(&rule)));
    let (news, by) = (vec![message(1, News::Fired)], [(channel_id("c"), at(0))]);
    let judgement = NewJudgement::new(&rule, firing("r", "d"), news, &by, at(0));
    answer!(store.put_judgement(&judgement));

    let plan = move |call: &Call| {
        let is_named = partitions.iter().any(|partition| call.names(partition));
        (call.operation == operation && is_named).then_some(Fault::Throttled)
    };
    let proxy = Proxy::start(table.endpoint(), plan).await;
    let home = by_way_of(&proxy, &table, 60);
    home.alert(Event::Schedule, deadline()).await.expect_err("nothing is noted");
    assert_eq!(home.receiver.messages().len(), 1, "it is sent all the same");
}

/// Judges minute by minute while the first device in the order of keys stays throttled, until the other one is told.
async fn tell_behind_a_throttled_device(home: &Home<DynamoStore>, proxy: &Proxy, time: Duration) {
    proxy.replan(|call| {
        let is_hot = call.operation == "Query" && call.names("first-device");
        is_hot.then_some(Fault::Throttled)
    });
    for _ in 0..20 {
        let minute = home.alert(Event::Schedule, Deadline::after(time)).await;
        minute.expect("a judgement that fails is no failure of the minute");
        if !home.receiver.messages().is_empty() {
            break;
        }
    }
    assert_eq!(home.receiver.messages().len(), 1, "the other device is told");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_stays_throttled_keeps_no_other_look_waiting() {
    let engine = Engine::embedded().await;
    let table = engine.table(true).await;
    store_warm_devices(&table.store(), "0s").await;
    let proxy = Proxy::start(table.endpoint(), |_| None).await;
    let home = by_way_of(&proxy, &table, 57);
    // Five seconds are left for rechecks.
    let time = Duration::from_secs(33);
    tell_behind_a_throttled_device(&home, &proxy, time).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_stays_throttled_keeps_no_other_due_state_waiting() {
    let engine = Engine::embedded().await;
    let table = engine.table(true).await;
    store_warm_devices(&table.store(), "5m").await;
    let proxy = Proxy::start(table.endpoint(), |_| None).await;
    let home = by_way_of(&proxy, &table, 51);
    home.alert(Event::Schedule, deadline()).await.expect("done");
    assert_eq!(home.receiver.messages().len(), 0, "both breaches are pending");

    home.clock.set(at(57 * MINUTE));
    // Five seconds are left for states that are due.
    let time = Duration::from_secs(37);
    tell_behind_a_throttled_device(&home, &proxy, time).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_goes_on_though_the_table_throttles_longer_than_a_sender_waits() {
    let engine = Engine::embedded().await;
    let table = engine.table(false).await;
    let store = table.store();
    seal(&store, "UTC", at(0)).await;
    store_home(&store, &[reading("d", MINUTE, &[("t", "1")])]).await;
    put(&store, &[reading("d", 16 * MINUTE, &[("t", "2")])]).await;

    let proxy = throttling(&table, "Query").await;
    let home = by_way_of(&proxy, &table, 60);
    let watch = Stopwatch::start();
    home.schedule().await.expect("done in the end");
    assert!(watch.elapsed() > Duration::from_secs(7), "it was not throttled");
    let state = answer!(store.rollup_state()).expect("a state");
    assert_eq!(state.sealed(), at(45 * MINUTE));
}
