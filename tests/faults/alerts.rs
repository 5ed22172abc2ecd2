//! The ports of alerts under faults: what is told is told once, whatever is refused, repeated or lost on the way.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ::alerts::News;
use dynamodb::DynamoStore;
use futures_util::future::join_all;
use serde_json::json;
use table::given::{alert_key, alert_rule, channel, channel_id, firing, message};
use table::{
    EditAlertRules as _, EditAlertStates as _, EditChannels as _, JudgementOutcome, MessageQuery,
    NewJudgement, PutJudgements as _, ReadAlertRules as _, ReadAlertStates as _, ReadChannels as _,
    ReadToldMessages as _, ReadWaitingMessages as _, SendWaitingMessages as _,
};

use super::proxy::{Effect, Fault, Proxy, Share};
use crate::engine::{Engine, Table};
use crate::given::{always, answer, at, invocation};
use crate::home::Home;

/// A proxy that spoils the first requests of an operation so.
async fn spoiling(table: &Table, operation: &'static str, fault: Fault, times: usize) -> Proxy {
    let left = Arc::new(AtomicUsize::new(times));
    let plan = move |call: &super::proxy::Call| {
        let is_spoiled = call.operation == operation
            && left
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |it| it.checked_sub(1))
                .is_ok();
        is_spoiled.then_some(fault)
    };
    Proxy::start(table.endpoint(), plan).await
}

/// The numbers of what was told, and of what waits.
async fn told(store: &DynamoStore) -> (Vec<u64>, Vec<u64>) {
    let query = MessageQuery { range: always(), rule: None, after: None, limit: 100 };
    let told = answer!(store.told_messages(&query)).listing.found;
    let waiting = store.waiting_messages(&channel_id("c"), None, 100, &invocation()).await;
    let waiting = waiting.expect("read").listing.found;
    let free = waiting.iter().filter(|message| message.is_due(at(0)) && !message.is_leased(at(0)));
    let waiting = free.map(|message| message.logged.message.number).collect();
    (told.iter().map(|it| it.message.number).collect(), waiting)
}

#[tokio::test]
async fn a_message_is_stored_once_whatever_becomes_of_the_answer() {
    let engine = Engine::embedded().await;
    let rule = alert_rule("r", at(0));
    let news = vec![message(1, News::Fired)];
    let by = [(channel_id("c"), at(0))];
    let judgement = NewJudgement::new(&rule, firing("r", "d"), news, &by, at(0));
    for fault in [
        Fault::Throttled,
        Fault::NoService,
        Fault::Failed(Effect::None),
        Fault::Failed(Effect::Done),
        Fault::Reset(Effect::None),
        Fault::Reset(Effect::Done),
        Fault::CutShort,
    ] {
        for times in [1, 2, 6] {
            let table = engine.table(true).await;
            assert!(answer!(table.store().put_alert_rule(&rule)));
            let proxy = spoiling(&table, "TransactWriteItems", fault, times).await;
            let store = table.store_by_way_of(proxy.url());
            // Whoever judges tries again until the state is the judgement's, or another's.
            let mut outcome = store.put_judgement(&judgement, &invocation()).await;
            for _ in 0..times {
                if outcome.is_err() {
                    outcome = store.put_judgement(&judgement, &invocation()).await;
                }
            }
            let outcome = outcome.unwrap_or_else(|why| panic!("{fault:?} {times}: {why:?}"));
            assert_ne!(outcome, JudgementOutcome::RuleChanged, "{fault:?} {times}");
            assert_eq!(told(&table.store()).await, (vec![1], vec![1]), "{fault:?} {times}");
            assert_eq!(answer!(store.put_judgement(&judgement)), JudgementOutcome::StateMoved);
        }
    }
}

#[tokio::test]
async fn states_that_the_table_left_unprocessed_are_asked_for_again() {
    let engine = Engine::embedded().await;
    let table = engine.table(true).await;
    let keys: Vec<_> = (0..130).map(|n| alert_key("r", &format!("d{n}"))).collect();
    for n in 0..130 {
        let state = firing("r", &format!("d{n}"));
        assert!(answer!(table.store().put_alert_state(&state)));
    }
    for share in [Share::One, Share::Half, Share::All] {
        let proxy = spoiling(&table, "BatchGetItem", Fault::Unprocessed(share), 2).await;
        let store = table.store_by_way_of(proxy.url());
        let found = answer!(store.alert_states(&keys)).found;
        let found: BTreeSet<_> = found.iter().map(|it| &it.key).collect();
        assert_eq!(found, keys.iter().collect(), "{share:?}");
    }
}

/// A lease whose answer is lost holds the message until it is over, and then somebody else sends it.
#[tokio::test]
async fn a_lease_that_nobody_heard_of_ends() {
    let engine = Engine::embedded().await;
    let table = engine.table(true).await;
    let rule = alert_rule("r", at(0));
    let store = table.store();
    assert!(answer!(store.put_alert_rule(&rule)));
    let by = [(channel_id("c"), at(0))];
    let news = vec![message(1, News::Fired)];
    let judgement = NewJudgement::new(&rule, firing("r", "d"), news, &by, at(0));
    answer!(store.put_judgement(&judgement));
    let proxy = spoiling(&table, "UpdateItem", Fault::Reset(Effect::Done), 1).await;
    let unlucky = table.store_by_way_of(proxy.url());
    assert_eq!(answer!(unlucky.lease_waiting(&judgement.waiting()[0], at(60_000))), None);
    assert!(told(&store).await.1.is_empty(), "leased");
    let free = store.waiting_messages(&channel_id("c"), None, 9, &invocation()).await;
    let free = free.expect("read").listing.found;
    assert!(!free[0].is_leased(at(60_000)));
    assert_eq!(answer!(store.lease_waiting(&free[0], at(120_000))).expect("free").attempts, 2);
}

/// Several who save at the same moment may all see that there is room for one.
#[tokio::test]
async fn of_rules_and_channels_that_are_saved_at_once_no_more_stay_than_there_may_be() {
    let engine = Engine::embedded().await;
    let table = engine.table(true).await;
    let store = table.store();
    for n in 0..98 {
        let rule = alert_rule(&format!("r{n}"), at(0));
        assert!(answer!(store.put_alert_rule(&rule)));
    }
    for n in 0..8 {
        let channel = channel(&format!("c{n}"));
        assert!(answer!(store.put_channel(&channel, None)));
    }
    let home = Home::at(table.store(), at(0));
    let rule = json!({"name": "Warm", "device": "d", "metric": "t", "above": 8});
    let channel = json!({"kind": "ntfy", "name": "Phone", "topic": "long-and-random"});
    for (url, body, most) in [("/alerts/new", &rule, 2), ("/channels/new", &channel, 2)] {
        let saved = join_all(
            (0..8)
                .map(async |n| home.ask("PUT", &format!("{url}{n}"), "", Some(body)).await.status),
        );
        let saved = saved.await.into_iter().filter(|status| *status == 200).count();
        assert!(saved <= most, "{url}: {saved}");
        let one = home.ask("PUT", &format!("{url}-later"), "", Some(body)).await.status;
        assert_eq!(one == 200, saved < most, "{url}: {saved}, then {one}");
    }
    let rules = answer!(store.alert_rules()).found.len();
    let channels = answer!(store.channels()).found.len();
    assert!(rules <= 100 && channels <= 10, "{rules} rules, {channels} channels");
}
