//! What the ports of alerts cost: a home with twenty rules, three channels and ten devices, then a thousand states.

use ::alerts::{EpisodeState, News};
use dynamodb::DynamoStore;
use futures_util::future::join_all;
use table::given::{alert_key, alert_rule, channel, channel_id, firing, message};
use table::{
    AlertKey, AlertState, ChannelSecret, EditAlertRules as _, EditAlertStates as _,
    EditChannels as _, Expected, FinishRechecks as _, JudgementOutcome, MessageQuery, NewJudgement,
    NoteRechecks as _, NoteRunning as _, PutJudgements as _, PutTestMessages as _,
    ReadAlertRules as _, ReadAlertStates as _, ReadChannels as _, ReadRechecks as _,
    ReadRunning as _, ReadToldMessages as _, ReadWaitingMessages as _, RunningNote,
    SendWaitingMessages as _, StoredAlertState, StoredRule, WaitingMessage,
};

use super::{Row, cost, costs, row};
use crate::engine::Engine;
use crate::given::{always, answer, at, device, invocation};

/// A state that is due that many milliseconds after the start.
fn due_at(key: AlertKey, millis: i64) -> StoredAlertState {
    let AlertState::Episodes(state) = firing("r", "d").state else { panic!("episodes") };
    let state = EpisodeState { due: Some(at(millis)), ..*state };
    StoredAlertState::next(None, key, AlertState::Episodes(Box::new(state)), at(0))
}

async fn put_states(store: &DynamoStore, rule: &str, count: usize, due: i64) {
    let states: Vec<_> =
        (0..count).map(|n| due_at(alert_key(rule, &format!("sensor-{n:03}")), due)).collect();
    let given = invocation();
    for chunk in states.chunks(50) {
        let put = join_all(chunk.iter().map(|it| store.put_alert_state(it, &given))).await;
        assert!(put.into_iter().all(|it| it.expect("stored")));
    }
}

pub(super) async fn rows() -> Vec<Row> {
    let engine = Engine::embedded().await;
    let store = engine.table(true).await.store();
    let mut rows = setting_rows(&store).await;
    rows.extend(state_rows(&store).await);
    rows.extend(message_rows(&store).await);
    rows.extend(recheck_rows(&store).await);
    rows
}

/// Rules and channels.
async fn setting_rows(store: &DynamoStore) -> Vec<Row> {
    let rules: Vec<_> = (0..19).map(|n| alert_rule(&format!("rule-{n:02}"), at(0))).collect();
    let given = invocation();
    for rule in &rules {
        assert!(store.put_alert_rule(rule, &given).await.expect("stored"));
    }
    let secret = serde_json::json!({"url": "https://example.org/hook", "key": "k".repeat(40)});
    let secret = ChannelSecret(secret.as_object().expect("an object").clone());
    for id in ["a", "b"] {
        let put = store.put_channel(&channel(id), Some(&secret), &given).await;
        assert!(put.expect("stored"));
    }
    let rule = alert_rule("rule-19", at(0));
    vec![
        costs("18a", "save a rule of alerts", async |invocation| {
            assert!(store.put_alert_rule(&rule, invocation).await.expect("stored"));
        })
        .await,
        costs("18b", "list 20 rules", async |invocation| {
            let rules = store.alert_rules(invocation).await.expect("read");
            assert_eq!(rules.found.len(), 20);
        })
        .await,
        costs("18c", "save a channel with its secret, both or neither", async |invocation| {
            let put = store.put_channel(&channel("c"), Some(&secret), invocation).await;
            assert!(put.expect("stored"));
        })
        .await,
        costs("18d", "list 3 channels", async |invocation| {
            let channels = store.channels(invocation).await.expect("read");
            assert_eq!(channels.found.len(), 3);
        })
        .await,
    ]
}

async fn judged(
    store: &DynamoStore,
    rule: &StoredRule,
    id: &str,
    numbers: &[u64],
    by: &[&str],
) -> (f64, f64) {
    let messages = numbers.iter().map(|number| message(*number, News::Fired)).collect();
    let by: Vec<_> = by.iter().map(|id| (channel_id(id), at(0))).collect();
    let state = due_at(alert_key(rule.id.as_str(), id), 60_000);
    let judgement = NewJudgement::new(rule, state, messages, &by, at(0));
    cost(async |invocation| {
        let outcome = store.put_judgement(&judgement, invocation).await;
        assert_eq!(outcome.expect("stored"), JudgementOutcome::Stored);
    })
    .await
}

async fn states_of(store: &DynamoStore, rule: &str) -> (f64, f64) {
    cost(async |invocation| {
        let keys: Vec<_> = (0..10).map(|n| alert_key(rule, &format!("sensor-{n:03}"))).collect();
        let found = store.alert_states(&keys, invocation).await.expect("read").found;
        assert_eq!(found.len(), if rule == "rule-00" { 10 } else { 0 });
    })
    .await
}

async fn due(store: &DynamoStore, count: usize) -> (f64, f64) {
    cost(async |invocation| {
        let (mut found, mut after) = (0, None);
        loop {
            let page = store.due_alert_states(at(0), after.as_deref(), 1_000, invocation).await;
            let page = page.expect("read");
            found += page.listing.found.len();
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found, count);
    })
    .await
}

/// States, read and judged.
async fn state_rows(store: &DynamoStore) -> Vec<Row> {
    let rule = alert_rule("rule-05", at(0));
    put_states(store, "rule-00", 10, 60_000).await;
    let mut rows = vec![
        row("19a", "the states of a rule on 10 devices", states_of(store, "rule-00").await),
        row("19b", "the same where there are no states", states_of(store, "rule-01").await),
        row("19c", "the states that are due, of 10", due(store, 0).await),
        row(
            "19e",
            "store a judgement that tells nothing",
            judged(store, &rule, "a", &[], &["a", "b", "c"]).await,
        ),
        row(
            "19f",
            "store a judgement with a message for one channel, all or nothing",
            judged(store, &rule, "b", &[1], &["a"]).await,
        ),
        row(
            "19g",
            "the same for three channels",
            judged(store, &rule, "c", &[1], &["a", "b", "c"]).await,
        ),
    ];
    put_states(store, "rule-02", 1_000, 60_000).await;
    put_states(store, "rule-03", 1, 0).await;
    rows.push(row("19d", "the same of 1,000", due(store, 1).await));
    rows
}

/// Messages, read and sent.
async fn message_rows(store: &DynamoStore) -> Vec<Row> {
    let rule = alert_rule("rule-06", at(0));
    for n in 0..48 {
        judged(store, &rule, &format!("sensor-{n:03}"), &[1], &[]).await;
    }
    let waiting = store.waiting_messages(&channel_id("b"), None, 10, &invocation()).await;
    let waiting = waiting.expect("read").listing.found;
    vec![
        costs("20a", "a page of 50 messages that were told", async |invocation| {
            let query = MessageQuery { range: always(), rule: None, after: None, limit: 50 };
            let page = store.told_messages(&query, invocation).await.expect("read");
            assert_eq!(page.listing.found.len(), 50);
        })
        .await,
        costs("20b", "the messages that wait for one channel", async |invocation| {
            let id = channel_id("a");
            let page = store.waiting_messages(&id, None, 10, invocation).await;
            assert_eq!(page.expect("read").listing.found.len(), 2);
        })
        .await,
        costs("20c", "lease a message, and delete it once it is sent", async |invocation| {
            let leased = store.lease_waiting(&waiting[0], at(60_000), invocation).await;
            let leased = leased.expect("asked").expect("free");
            assert!(store.delete_waiting(&leased, invocation).await.expect("asked"));
        })
        .await,
        costs("20d", "put the test message of a channel", async |invocation| {
            let name = "Phone".parse().expect("a name");
            let test = WaitingMessage::test(channel_id("a"), name, at(0));
            assert!(store.put_test_message(&test, invocation).await.expect("asked"));
        })
        .await,
    ]
}

/// Rechecks, and the mark of when the system last ran.
async fn recheck_rows(store: &DynamoStore) -> Vec<Row> {
    let touch = async |millis| {
        cost(async |invocation| {
            let touched = [(device("sensor-00").into(), at(millis))];
            assert!(store.note_rechecks(&touched, invocation).await.cause.is_none());
        })
        .await
    };
    let mut rows = vec![
        row("21a", "note that readings of a device are to be rechecked", touch(5).await),
        row("21b", "the same where an earlier instant is noted", touch(9).await),
    ];
    let rechecks = answer!(store.rechecks(None, 10)).listing.found;
    rows.extend([
        costs("21c", "the devices whose readings are to be rechecked", async |invocation| {
            let page = store.rechecks(None, 10, invocation).await.expect("read");
            assert_eq!(page.listing.found.len(), 1);
        })
        .await,
        costs("21f", "note up to which device a rule was rechecked", async |invocation| {
            let moved = store.move_recheck(&rechecks[0], &device("sensor-00"), invocation).await;
            assert!(moved.expect("asked"));
        })
        .await,
        costs("21d", "remove a recheck, if nothing was touched since", async |invocation| {
            assert!(store.remove_recheck(&rechecks[0], invocation).await.expect("asked"));
        })
        .await,
        costs("21e", "note that the system runs", async |invocation| {
            assert_eq!(store.running_note(invocation).await.expect("read"), None);
            let mark = RunningNote { version: 1, at: at(0), pauses: Vec::new() };
            let put = store.put_running_note(&mark, Expected::Absent, invocation).await;
            assert!(put.expect("asked"));
        })
        .await,
    ]);
    rows
}
