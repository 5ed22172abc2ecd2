//! Items of alerts that somebody damaged: no message is lost by them, and they are shown.

use ::alerts::News;
use alerting::Event;
use chrono::TimeDelta;
use serde_json::json;
use table::given::{alert_rule, channel_id, firing, message};
use table::{
    EditAlertRules as _, NewJudgement, PutJudgements as _, ReadWaitingMessages as _, keys,
};

use super::patience::{by_way_of, deadline, store_channel};
use super::proxy::{Call, Proxy};
use crate::engine::Engine;
use crate::given::{answer, at};
use crate::home::Home;

/// It waited, so that its state is asked whether it is still true.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_state_is_damaged_is_sent() {
    let engine = Engine::embedded().await;
    let table = engine.table(true).await;
    let (store, rule) = (table.store(), alert_rule("r", at(0)));
    store_channel(&store).await;
    assert!(answer!(store.put_alert_rule(&rule)));
    let (told_at, sent_at) = (at(0), at(0).saturating_add(TimeDelta::minutes(1)));
    let (news, by) = (vec![message(1, News::Fired)], [(channel_id("c"), sent_at)]);
    let judgement = NewJudgement::new(&rule, firing("r", "d"), news, &by, told_at);
    answer!(store.put_judgement(&judgement));

    let mut state = table.items(keys::ALERT_STATES).await.remove(0);
    state["state"] = json!({"S": "damaged"});
    table.put_item(state).await;

    let proxy = Proxy::start(table.endpoint(), |_: &Call| None).await;
    let home = by_way_of(&proxy, &table, 2);
    home.alert(Event::Hint, deadline()).await.expect("done");

    assert_eq!(home.receiver.messages().len(), 1);
    let waiting = answer!(store.waiting_messages(&channel_id("c"), None, 9));
    assert!(waiting.listing.found.is_empty(), "it is finished");
}

/// They are judged by nobody, so whoever lists alerts has to see them.
#[tokio::test]
async fn a_rule_and_a_state_that_are_damaged_are_shown_among_alerts() {
    let engine = Engine::embedded().await;
    let table = engine.table(true).await;
    for (pk, sk) in [(keys::ALERT_RULES, "freezer"), (keys::ALERT_STATES, "r#device:a")] {
        table.put_item(json!({"pk": {"S": pk}, "sk": {"S": sk}})).await;
    }

    let answer = Home::at(table.store(), at(0)).get("/alerts", "").await.body;
    let damaged = [
        "the item ALERT#RULES freezer: ver is missing or has another type",
        "the item ALERT#STATES r#device:a: state is missing or has another type",
    ];
    assert_eq!((&answer["damaged"], &answer["data"]), (&json!(damaged), &json!([])));
}
