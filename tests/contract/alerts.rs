//! Alerts: what is written only over what was read, what is stored together, and who may send.

use std::collections::BTreeSet;

use alerts::{AlertSubject, FigureState, News};
use domain::{ChannelId, TimeRange, Timestamp};
use futures_util::future::join_all;
use runtime::telemetry::chain;
use serde_json::json;
use table::given::{alert_key, alert_rule, channel, channel_id, firing, message};
use table::{
    AlertKey, AlertState, ChannelSecret, Expected, Failing, JudgementOutcome, LoggedMessage,
    MessageQuery, NewJudgement, Recheck, Rechecked, RunningNote, StoreError, StoredAlertState,
    StoredChannel, StoredRule, WaitingMessage,
};
use table::{
    DeleteAlertStates as _, EditAlertRules as _, EditChannels as _, NoteRunning as _,
    ReadAlertRules as _, ReadAlertStates as _, ReadChannels as _, ReadRechecks as _,
    ReadRunning as _, ReadToldMessages as _, ReadWaitingMessages as _, RemoveBelongings as _,
};

use super::AlertPorts;
use crate::engine::Table;
use crate::given::{always, answer, at, device, invocation, label, range, room};

const MINUTE: i64 = 60_000;

// ---- Rules and channels ------------------------------------------------------------------------

async fn save(store: &impl AlertPorts, rule: &StoredRule) -> bool {
    answer!(store.put_alert_rule(rule))
}

async fn saved(store: &impl AlertPorts, id: &str) -> StoredRule {
    let rule = alert_rule(id, at(0));
    assert!(save(store, &rule).await);
    rule
}

pub(super) async fn a_rule_is_put_only_over_what_was_read(store: &impl AlertPorts) {
    let first = saved(store, "r").await;
    let other = saved(store, "r-a").await;
    let mut second = StoredRule { version: 2, ..alert_rule("r", at(5)) };
    second.definition.name = label("冷凍庫 ❄ 2");
    second.definition.paused_until = Some(at(9));
    for (rule, is_stored) in [(&first, false), (&second, true), (&second, false), (&first, false)] {
        assert_eq!(save(store, rule).await, is_stored, "{rule:?}");
    }
    assert_eq!(answer!(store.alert_rules()).found, [second.clone(), other.clone()]);
    assert_eq!(answer!(store.alert_rule(&second.id)), Some(second.clone()));
    for was_there in [true, false] {
        let deleted = store.delete_alert_rule(&second.id, &invocation()).await;
        assert_eq!(deleted.expect("asked"), was_there);
    }
    assert_eq!(answer!(store.alert_rule(&second.id)), None);
    let late = StoredRule { version: 3, ..second };
    assert!(!save(store, &late).await, "it is deleted");
    assert_eq!(answer!(store.alert_rules()).found, [other]);
}

pub(super) async fn of_rules_saved_at_once_one_is_stored(store: &impl AlertPorts) {
    saved(store, "r").await;
    let rules: Vec<_> =
        (1..9).map(|n| StoredRule { version: 2, ..alert_rule("r", at(n)) }).collect();
    let stored = join_all(rules.iter().map(|rule| save(store, rule))).await;
    let stored: Vec<_> = rules.iter().zip(stored).filter(|it| it.1).map(|it| it.0).collect();
    assert_eq!(answer!(store.alert_rules()).found.iter().collect::<Vec<_>>(), stored);
}

fn secret(text: &str) -> ChannelSecret {
    let members = json!({"url": format!("https://例え.jp/{text}"), "port": 65_535, "headers": {}});
    ChannelSecret(members.as_object().expect("an object").clone())
}

async fn secret_of(store: &impl AlertPorts, id: &str) -> Option<ChannelSecret> {
    answer!(store.channel_secret(&channel_id(id)))
}

async fn channels(store: &impl AlertPorts) -> Vec<StoredChannel> {
    answer!(store.channels()).found
}

pub(super) async fn a_channel_and_its_secret_are_stored_together_or_not_at_all(
    store: &impl AlertPorts,
) {
    let put = async |channel: &StoredChannel, secret: Option<&str>| {
        let secret = secret.map(self::secret);
        answer!(store.put_channel(channel, secret.as_ref()))
    };
    let (first, other) = (channel("c"), channel("a"));
    assert!(put(&first, Some("one")).await && put(&other, None).await);
    assert_eq!(channels(store).await, [other.clone(), first.clone()]);
    assert_eq!(secret_of(store, "c").await, Some(secret("one")));
    assert_eq!(secret_of(store, "a").await, None);
    assert!(!put(&first, Some("two")).await, "a second first version");
    assert_eq!(secret_of(store, "c").await, Some(secret("one")));
    let second = StoredChannel { version: 2, quiet_hours: None, ..first.clone() };
    assert!(put(&second, None).await, "the secret stays");
    assert_eq!(secret_of(store, "c").await, Some(secret("one")));
    assert!(!put(&second, Some("two")).await);
    let third = StoredChannel { version: 3, ..second };
    assert!(put(&third, Some("three")).await);
    assert_eq!(secret_of(store, "c").await, Some(secret("three")));
    assert_eq!(channels(store).await, [other.clone(), third]);
    for _ in 0..2 {
        answer!(store.delete_channel(&channel_id("c")));
        assert_eq!(secret_of(store, "c").await, None);
        assert_eq!(channels(store).await, std::slice::from_ref(&other));
    }
}

pub(super) async fn of_edits_of_a_channel_at_once_the_secret_is_that_of_the_one_that_is_stored(
    store: &impl AlertPorts,
) {
    let edits: Vec<_> = (0..8)
        .map(|n| {
            let failing = Some(Failing { since: at(n), next: at(n + 1) });
            (StoredChannel { failing, ..channel("c") }, secret(&n.to_string()))
        })
        .collect();
    let put = async |(channel, secret): &(StoredChannel, ChannelSecret)| {
        answer!(store.put_channel(channel, Some(secret)))
    };
    let stored = join_all(edits.iter().map(put)).await;
    let stored: Vec<_> = edits.iter().zip(stored).filter(|it| it.1).map(|it| it.0).collect();
    let [(channel, secret)] = stored[..] else { panic!("{stored:?}") };
    assert_eq!(channels(store).await, std::slice::from_ref(channel));
    assert_eq!(secret_of(store, "c").await.as_ref(), Some(secret));
}

pub(super) async fn a_channel_that_was_edited_takes_no_note_of_what_it_was(
    store: &impl AlertPorts,
) {
    let first = channel("c");
    answer!(store.put_channel(&first, Some(&secret("one"))));
    let note = async |known: &StoredChannel, failing| answer!(store.note_channel(known, failing));
    let failing = Some(Failing { since: at(1), next: at(2) });
    for failing in [failing, failing, None, failing] {
        assert!(note(&first, failing).await);
        let expected = StoredChannel { failing, ..first.clone() };
        assert_eq!(channels(store).await, [expected]);
    }
    let second = StoredChannel { version: 2, ..first.clone() };
    assert!(answer!(store.put_channel(&second, None)));
    assert!(!note(&first, failing).await, "it has another address");
    assert_eq!(channels(store).await, std::slice::from_ref(&second));
    assert_eq!(secret_of(store, "c").await, Some(secret("one")));
    answer!(store.delete_channel(&second.id));
    assert!(!note(&second, failing).await);
    assert_eq!(channels(store).await, []);
}

// ---- States and judgements ---------------------------------------------------------------------

/// A state that is to be judged that many milliseconds after the start.
fn due_at(key: AlertKey, millis: Option<i64>) -> StoredAlertState {
    let AlertState::Episodes(mut state) = firing("r", "d").state else { panic!("episodes") };
    state.due = millis.map(at);
    StoredAlertState::next(None, key, AlertState::Episodes(state), at(0))
}

fn following(known: &StoredAlertState) -> StoredAlertState {
    StoredAlertState::next(Some(known), known.key.clone(), known.state.clone(), at(0))
}

/// A judgement that tells messages of these numbers by channels.
fn judgement(
    rule: &StoredRule,
    state: &StoredAlertState,
    numbers: impl IntoIterator<Item = u64>,
    by: &[&str],
) -> NewJudgement {
    let messages = numbers.into_iter().map(|number| message(number, News::Fired)).collect();
    let channels: Vec<_> = by.iter().map(|id| (channel_id(id), at(0))).collect();
    NewJudgement::new(rule, state.clone(), messages, &channels, at(0))
}

async fn put(store: &impl AlertPorts, judgement: &NewJudgement) -> JudgementOutcome {
    answer!(store.put_judgement(judgement))
}

async fn state_of(store: &impl AlertPorts, key: &AlertKey) -> Option<StoredAlertState> {
    let found = store.alert_states(std::slice::from_ref(key), &invocation()).await;
    found.expect("read").found.pop()
}

async fn told(store: &impl AlertPorts) -> Vec<LoggedMessage> {
    let query = MessageQuery { range: always(), rule: None, after: None, limit: 1_000 };
    answer!(store.told_messages(&query)).listing.found
}

/// The messages that a channel is to send at a time, and that nobody is sending.
async fn waiting(store: &impl AlertPorts, id: &str, now: i64) -> Vec<WaitingMessage> {
    let page = answer!(store.waiting_messages(&channel_id(id), None, 1_000));
    let mut waiting = page.listing.found;
    waiting.retain(|message| message.is_due(at(now)) && !message.is_leased(at(now)));
    waiting
}

fn numbers_of(told: &[LoggedMessage]) -> Vec<u64> {
    told.iter().map(|it| it.message.number).collect()
}

pub(super) async fn a_state_and_what_it_tells_are_stored_once(store: &impl AlertPorts) {
    let rule = saved(store, "r").await;
    let first = firing("r", "d");
    let made = judgement(&rule, &first, [1], &["a", "b"]);
    for outcome in [JudgementOutcome::Stored, JudgementOutcome::StateMoved] {
        assert_eq!(put(store, &made).await, outcome);
        assert_eq!(state_of(store, &first.key).await.as_ref(), Some(made.state()));
        assert_eq!(told(store).await, made.logged());
        for id in ["a", "b"] {
            let expected: Vec<_> =
                made.waiting().iter().filter(|it| it.channel == channel_id(id)).cloned().collect();
            assert_eq!(waiting(store, id, 0).await, expected);
        }
    }
    let second = following(&first);
    let further = judgement(&rule, &second, [2, 3], &["a"]);
    assert_eq!(put(store, &further).await, JudgementOutcome::Stored);
    assert_eq!(numbers_of(&told(store).await), [3, 2, 1], "newest first");
    let waiting = waiting(store, "a", 0).await;
    assert_eq!(waiting.iter().map(|it| it.logged.message.number).collect::<Vec<_>>(), [1, 2, 3]);
    let stale = judgement(&rule, &second, [9], &["a"]);
    assert_eq!(put(store, &stale).await, JudgementOutcome::StateMoved);
    assert_eq!(state_of(store, &first.key).await.as_ref(), Some(further.state()));
    assert_eq!(numbers_of(&told(store).await), [3, 2, 1]);
}

pub(super) async fn a_rule_that_changed_or_is_gone_tells_nothing(store: &impl AlertPorts) {
    let rule = saved(store, "r").await;
    let state = firing("r", "d");
    let again = StoredRule { version: 2, ..alert_rule("r", at(1)) };
    assert!(save(store, &again).await);
    let made = judgement(&rule, &state, [1], &["a"]);
    assert_eq!(put(store, &made).await, JudgementOutcome::RuleChanged);
    answer!(store.delete_alert_rule(&rule.id));
    for judged_by in [&rule, &again] {
        let made = judgement(judged_by, &state, [1], &["a"]);
        assert_eq!(put(store, &made).await, JudgementOutcome::RuleChanged);
    }
    assert_eq!(state_of(store, &state.key).await, None);
    assert_eq!((told(store).await.len(), waiting(store, "a", 0).await.len()), (0, 0));
    // What tells nothing costs a quarter, and is found later.
    let silent = judgement(&rule, &state, [], &["a"]);
    assert_eq!(put(store, &silent).await, JudgementOutcome::Stored);
    assert_eq!(put(store, &silent).await, JudgementOutcome::StateMoved);
    assert_eq!(state_of(store, &state.key).await, Some(state.clone()));
    // Both fail: that the rule is gone says more.
    assert_eq!(put(store, &made).await, JudgementOutcome::RuleChanged);
    assert_eq!(told(store).await, []);
}

/// Also where each of them checks the same rule.
pub(super) async fn of_judgements_at_once_one_of_each_state_is_stored(store: &impl AlertPorts) {
    let rule = saved(store, "r").await;
    let made: Vec<_> = (0..12)
        .map(|n| {
            let state = firing("r", &format!("d{}", n % 3));
            judgement(&rule, &state, [n + 1], &["a", "b"])
        })
        .collect();
    let outcomes = join_all(made.iter().map(|it| put(store, it))).await;
    let stored: Vec<_> =
        made.iter().zip(&outcomes).filter(|it| *it.1 == JudgementOutcome::Stored).collect();
    let states: BTreeSet<_> = stored.iter().map(|(it, _)| &it.state().key).collect();
    assert_eq!((stored.len(), states.len()), (3, 3), "{outcomes:?}");
    let numbers: BTreeSet<_> = stored.iter().map(|(it, _)| it.logged()[0].message.number).collect();
    assert_eq!(numbers_of(&told(store).await).into_iter().collect::<BTreeSet<_>>(), numbers);
    for id in ["a", "b"] {
        let waiting = waiting(store, id, 0).await;
        let waiting: BTreeSet<_> = waiting.iter().map(|it| it.logged.message.number).collect();
        assert_eq!(waiting, numbers);
    }
}

pub(super) async fn a_test_waits_once(store: &impl AlertPorts) {
    let test = WaitingMessage::test(channel_id("a"), label("Phone"), at(0));
    for is_new in [true, false] {
        assert_eq!(answer!(store.put_test_message(&test)), is_new);
        assert_eq!(waiting(store, "a", 0).await, std::slice::from_ref(&test));
    }
    let later = WaitingMessage::test(channel_id("a"), label("Phone"), at(1));
    assert!(answer!(store.put_test_message(&later)));
    assert_eq!(waiting(store, "a", 1).await, [test, later]);
    assert_eq!((told(store).await, waiting(store, "b", 1).await), (Vec::new(), Vec::new()));
}

pub(super) async fn as_many_messages_are_told_as_a_transaction_holds(store: &impl AlertPorts) {
    let rule = saved(store, "r").await;
    let many = judgement(&rule, &firing("r", "d"), 1..=300, &["a"]);
    assert_eq!(many.left_out(), 251);
    assert_eq!(put(store, &many).await, JudgementOutcome::Stored);
    assert_eq!(numbers_of(&told(store).await), (252..=300).rev().collect::<Vec<_>>());
    assert_eq!(waiting(store, "a", 0).await.len(), 49);
    let without_channel = judgement(&rule, &firing("r", "e"), 1..=98, &[]);
    assert_eq!(put(store, &without_channel).await, JudgementOutcome::Stored);
    assert_eq!(told(store).await.len(), 49 + 98);
}

async fn put_state(store: &impl AlertPorts, state: &StoredAlertState) {
    assert!(answer!(store.put_alert_state(state)));
}

pub(super) async fn a_state_is_edited_only_as_it_was_read(store: &impl AlertPorts) {
    let rule = saved(store, "r").await;
    let first = firing("r", "d");
    assert_eq!(put(store, &judgement(&rule, &first, [], &[])).await, JudgementOutcome::Stored);
    let mut acknowledged = following(&first);
    let AlertState::Episodes(state) = &mut acknowledged.state else { panic!("episodes") };
    state.acknowledged = None;
    assert!(state.acknowledge());
    put_state(store, &acknowledged).await;
    assert!(!answer!(store.put_alert_state(&acknowledged)), "twice");
    // Who judged what was read before hears of it, and reads again.
    let late = judgement(&rule, &following(&first), [], &[]);
    assert_eq!(put(store, &late).await, JudgementOutcome::StateMoved);
    assert_eq!(state_of(store, &first.key).await, Some(acknowledged));
}

pub(super) async fn what_was_told_once_is_a_state_too(store: &impl AlertPorts) {
    let mut known = None;
    let key = alert_key("budget", "meter");
    let mut once = FigureState::default();
    for n in 0..3 {
        once.told.insert(at(n), u64::MAX);
        (once.number, once.changed) = (u64::MAX, Some(at(n)));
        let state = AlertState::Figures(once.clone());
        let state = StoredAlertState::next(known.as_ref(), key.clone(), state, at(0));
        put_state(store, &state).await;
        assert_eq!(state_of(store, &key).await, Some(state.clone()));
        known = Some(state);
    }
    assert_eq!(answer!(store.due_alert_states(Timestamp::MAX, None, 10)).listing.found, []);
}

/// A walk over pages of `limit`.
async fn walk(
    limit: usize,
    page: impl AsyncFn(Option<&AlertKey>) -> table::ListPage<StoredAlertState>,
) -> Vec<StoredAlertState> {
    let mut all: Vec<StoredAlertState> = Vec::new();
    loop {
        let after = all.last().map(|it| it.key.clone());
        let page = page(after.as_ref()).await;
        assert!(page.listing.found.len() <= limit && page.listing.unreadable.is_empty());
        assert!(page.listing.found.len() == limit || !page.has_more);
        all.extend(page.listing.found);
        if !page.has_more {
            return all;
        }
    }
}

pub(super) async fn states_are_found_by_their_keys_by_rule_and_when_they_are_due(
    store: &impl AlertPorts,
) {
    let mut states = Vec::new();
    for rule in ["r", "r-a", "r.a", "s"] {
        for n in 0..12_i64 {
            let id = format!("d{n:02}");
            let subject = match n % 4 {
                0 => AlertSubject::Room(room(&id)),
                _ => AlertSubject::Device(device(&id)),
            };
            let key = AlertKey { rule: rule.parse().expect("an id"), subject };
            states.push(due_at(key, (n % 3 > 0).then_some(n * 4 * MINUTE)));
        }
    }
    // A device and a room may have the same id.
    let twin = AlertKey { subject: AlertSubject::Room(room("d01")), ..states[1].key.clone() };
    states.push(due_at(twin, None));
    for chunk in states.chunks(20) {
        join_all(chunk.iter().map(|it| put_state(store, it))).await;
    }
    states.sort_by(|a, b| a.key.cmp(&b.key));

    let missing = (0..90).map(|n| alert_key("r", &format!("missing{n}")));
    let asked: Vec<AlertKey> = missing.chain(states.iter().map(|it| it.key.clone())).collect();
    let mut found = answer!(store.alert_states(&asked)).found;
    found.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(found, states);
    assert_eq!(answer!(store.alert_states(&[])).found, []);

    for limit in [1, 5, 12, 13, 1_000] {
        for rule in [None, Some("r"), Some("r-a"), Some("r.a"), Some("none")] {
            if limit == 1 && rule.is_none() {
                continue;
            }
            let rule = rule.map(|id| id.parse().expect("an id"));
            let page = async |after: Option<&AlertKey>| {
                let given = invocation();
                let page = store.alert_state_page(rule.as_ref(), after, limit, &given);
                page.await.expect("read")
            };
            let is_asked =
                |it: &&StoredAlertState| rule.as_ref().is_none_or(|id| it.key.rule == *id);
            let expected: Vec<_> = states.iter().filter(is_asked).cloned().collect();
            assert_eq!(walk(limit, page).await, expected, "{limit} {rule:?}");
        }
        // What is due in more than a quarter of an hour was put by a clock that was ahead.
        for now in [-MINUTE, 0, 5 * MINUTE, 22 * MINUTE, 60 * MINUTE] {
            let (mut due, mut after) = (Vec::new(), None);
            loop {
                let given = invocation();
                let page = store.due_alert_states(at(now), after.as_deref(), limit, &given);
                let page = page.await.expect("read");
                due.extend(page.listing.found);
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            let is_due = |it: &&StoredAlertState| {
                let due = it.state.due();
                due.is_some_and(|due| due <= at(now) || due > at(now + 15 * MINUTE))
            };
            let expected: Vec<_> = states.iter().filter(is_due).cloned().collect();
            assert_eq!(due, expected, "{limit} {now}");
        }
    }
}

pub(super) async fn states_are_deleted_by_rule_or_as_they_were_read(store: &impl AlertPorts) {
    for rule in ["r", "r-a"] {
        for n in 0..30 {
            put_state(store, &firing(rule, &format!("d{n}"))).await;
        }
    }
    let known = firing("r-a", "d0");
    put_state(store, &following(&known)).await;
    let delete = async |version| answer!(store.delete_alert_state(&known.key, version));
    assert!(!delete(1).await, "it has moved on");
    assert!(delete(2).await);
    assert!(!delete(2).await, "it is gone");
    for count in [30, 0] {
        assert_eq!(answer!(store.delete_alert_states(&"r".parse().expect("an id"))), count);
    }
    let left = answer!(store.alert_state_page(None, None, 100));
    assert_eq!(left.listing.found.len(), 29);
    assert!(left.listing.found.iter().all(|it| it.key.rule.as_str() == "r-a"));
}

// ---- Messages ----------------------------------------------------------------------------------

pub(super) async fn what_was_told_is_walked_newest_first(store: &impl AlertPorts) {
    let mut all = Vec::new();
    for (n, id) in (0..40).map(|n| (n, if n % 5 == 0 { "rare" } else { "r" })) {
        let rule = alert_rule(id, at(0));
        if n < 2 {
            assert!(save(store, &rule).await);
        }
        // Several at the same millisecond, and some states with several messages.
        let state = firing(id, &format!("d{n}"));
        let numbers = if n % 8 == 0 { 9..=11 } else { 3..=3 };
        let messages = numbers.map(|it| message(it, News::Passed)).collect();
        let made = NewJudgement::new(&rule, state, messages, &[], at(i64::from(n / 4)));
        assert_eq!(put(store, &made).await, JudgementOutcome::Stored);
        all.extend(made.logged().to_vec());
    }
    all.sort_by_key(|it| std::cmp::Reverse(it.key()));
    for (range, rule) in [
        (always(), None),
        (range(2, 7), None),
        (always(), Some("rare")),
        (range(1, 9), Some("r")),
        (always(), Some("none")),
        (range(100, 101), None),
    ] {
        let rule = rule.map(|id| id.parse().expect("an id"));
        let is_asked = |it: &&LoggedMessage| {
            range.contains(it.at) && rule.as_ref().is_none_or(|id| it.alert.rule == *id)
        };
        let expected: Vec<_> = all.iter().filter(is_asked).cloned().collect();
        for limit in [1, 3, 100] {
            let mut query = MessageQuery { range, rule: rule.clone(), after: None, limit };
            let mut found = Vec::new();
            loop {
                let page = answer!(store.told_messages(&query));
                found.extend(page.listing.found);
                if !page.has_more {
                    break;
                }
                query.after = found.last().map(LoggedMessage::key);
            }
            assert_eq!(found, expected, "{range:?} {rule:?} {limit}");
        }
    }
}

/// Messages that wait for channels, each from a time on.
async fn wait(store: &impl AlertPorts, numbers: u64, channels: &[(&str, i64)]) {
    let rule = saved(store, "r").await;
    let channels: Vec<_> = channels.iter().map(|(id, next)| (channel_id(id), at(*next))).collect();
    let messages = (1..=numbers).map(|it| message(it, News::Fired)).collect();
    let made = NewJudgement::new(&rule, firing("r", "d"), messages, &channels, at(0));
    assert_eq!(put(store, &made).await, JudgementOutcome::Stored);
    assert_eq!(made.left_out(), 0);
}

pub(super) async fn a_channel_has_its_own_messages_when_their_time_has_come(
    store: &impl AlertPorts,
) {
    let quiet = 8 * 60 * MINUTE;
    wait(store, 12, &[("c", 0), ("c-a", quiet), ("c.a", 0)]).await;
    assert_eq!(waiting(store, "c-a", quiet - 1).await, []);
    assert_eq!(waiting(store, "c-a", quiet).await.len(), 12);
    assert_eq!(waiting(store, "c-a", -48 * 60 * MINUTE).await.len(), 12, "of a wrong clock");
    assert_eq!(waiting(store, "c", -MINUTE).await.len(), 12, "judged by a clock that was ahead");
    assert_eq!(waiting(store, "d", 0).await, []);
    let all = waiting(store, "c", 0).await;
    let numbers: Vec<_> = all.iter().map(|it| it.logged.message.number).collect();
    assert_eq!(numbers, (1..=12).collect::<Vec<_>>(), "in their order, also past nine");
    let lease = async |known: &WaitingMessage, until| {
        let leased = store.lease_waiting(known, at(until), &invocation()).await;
        leased.expect("asked").expect("free")
    };
    lease(&all[0], MINUTE).await;
    let postponed = lease(&all[1], MINUTE).await;
    let next = at(2 * MINUTE);
    assert!(answer!(store.postpone_waiting(&postponed, next, false)));
    for (now, first) in [(0, 3), (MINUTE - 1, 3), (MINUTE, 1), (2 * MINUTE, 1)] {
        let found = waiting(store, "c", now).await;
        assert_eq!(found[0].logged.message.number, first, "{now}");
        assert_eq!(
            found.len(),
            if first == 3 {
                10
            } else if now < 2 * MINUTE {
                11
            } else {
                12
            }
        );
    }
    for limit in [1, 5, 12, 20] {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let (id, given) = (channel_id("c"), invocation());
            let page = store.waiting_messages(&id, after.as_ref(), limit, &given);
            let page = page.await.expect("read");
            assert!(page.listing.found.len() <= limit);
            found.extend(page.listing.found);
            if !page.has_more {
                break;
            }
            after = found.last().map(WaitingMessage::key);
        }
        let keys = |messages: &[WaitingMessage]| messages.iter().map(WaitingMessage::key).collect();
        let (found, all): (Vec<_>, Vec<_>) = (keys(&found), keys(&all));
        assert_eq!(found, all, "{limit}: also those that are leased and postponed");
    }
}

pub(super) async fn of_leases_at_once_one_is_given(store: &impl AlertPorts) {
    wait(store, 1, &[("c", 0)]).await;
    let [known] = &waiting(store, "c", 0).await[..] else { panic!("one") };
    let lease =
        async |known: &WaitingMessage, until| answer!(store.lease_waiting(known, at(until)));
    let leases = join_all((1..9).map(|n| lease(known, n * 1_000))).await;
    let given: Vec<WaitingMessage> = leases.into_iter().flatten().collect();
    let [first] = &given[..] else { panic!("{given:?}") };
    let expected = WaitingMessage { attempts: 1, lease: first.lease, ..known.clone() };
    assert_eq!(*first, expected);
    // Once it is over, another one has it, and the first one hears so.
    let [free] = &waiting(store, "c", 9_000).await[..] else { panic!("one") };
    assert_eq!(free, first);
    let second = lease(free, 60_000).await.expect("free");
    assert_eq!(second.attempts, 2);
    assert!(!answer!(store.delete_waiting(first)));
    let postpone = async |leased: &WaitingMessage, next, may_have_arrived| {
        let given = invocation();
        store.postpone_waiting(leased, at(next), may_have_arrived, &given).await.expect("asked")
    };
    assert!(!postpone(first, 0, false).await);
    assert_eq!(lease(first, 99_000).await, None);
    assert!(postpone(&second, 3, true).await);
    assert_eq!(waiting(store, "c", 59_999).await, [], "its lease still holds it");
    let [unsure] = &waiting(store, "c", 60_000).await[..] else { panic!("one") };
    assert_eq!((unsure.next, unsure.lease), (at(3), Some(at(60_000))));
    assert!(postpone(&second, 5, false).await);
    assert!(!postpone(&second, 5, false).await, "twice");
    let [again] = &waiting(store, "c", 5).await[..] else { panic!("one") };
    let expected = WaitingMessage { attempts: 2, next: at(5), lease: None, ..second.clone() };
    assert_eq!(*again, expected);
    let third = lease(again, 60_000).await.expect("free");
    assert!(answer!(store.delete_waiting(&third)));
    assert!(!answer!(store.delete_waiting(&third)), "twice");
    assert!(!answer!(store.delete_waiting(known)), "without a lease");
    assert_eq!(lease(again, 60_000).await, None);
    assert_eq!(waiting(store, "c", MINUTE).await, []);
}

// ---- Rechecks, and when the system last ran ----------------------------------------------------

async fn rechecks(store: &impl AlertPorts) -> Vec<Recheck> {
    answer!(store.rechecks(None, 1_000)).listing.found
}

async fn touch(store: &impl AlertPorts, touched: &[(Rechecked, Timestamp)]) {
    let outcome = store.note_rechecks(touched, &invocation()).await;
    assert!(outcome.not_stored.is_empty() && outcome.cause.is_none(), "{outcome:?}");
}

pub(super) async fn a_look_keeps_the_earliest_instant_and_is_removed_only_as_it_was_read(
    store: &impl AlertPorts,
) {
    let remove = async |recheck: &Recheck| answer!(store.remove_recheck(recheck));
    let mut known: Option<Recheck> = None;
    for (millis, earliest) in [(50, 50), (90, 50), (50, 50), (20, 20), (30, 20)] {
        touch(store, &[(device("d").into(), at(millis))]).await;
        let [recheck] = &rechecks(store).await[..] else { panic!("one") };
        assert_eq!(
            (&recheck.target, recheck.since),
            (&device("d").into(), at(earliest)),
            "{millis}"
        );
        if let Some(known) = known {
            assert!(!remove(&known).await, "it was touched again at {millis}");
        }
        known = Some(recheck.clone());
    }
    let known = known.expect("one");
    assert!(remove(&known).await);
    assert!(!remove(&known).await, "twice");
    touch(store, &[(known.target.clone(), known.since)]).await;
    assert!(!remove(&known).await, "a later look at the same instant");
    assert_eq!(rechecks(store).await.len(), 1);
}

pub(super) async fn a_look_at_a_rule_moves_on_until_the_rule_is_touched(store: &impl AlertPorts) {
    let step =
        async |recheck: &Recheck, to: &str| answer!(store.move_recheck(recheck, &device(to)));
    let rule = Rechecked::Rule("r".parse().expect("an id"));
    touch(store, &[(device("r").into(), at(5)), (rule.clone(), at(9))]).await;
    let [first, of_device] = &rechecks(store).await[..] else { panic!("two") };
    assert_eq!((&first.target, &first.after), (&rule, &None), "rules come before devices");
    assert_eq!(of_device.target, device("r").into());

    assert!(step(first, "d1").await);
    assert!(step(first, "d2").await, "the place is no touch");
    let moved = &rechecks(store).await[0];
    assert_eq!(moved, &Recheck { after: Some(device("d2")), ..first.clone() });

    for since in [9, 20] {
        touch(store, &[(rule.clone(), at(since))]).await;
        let touched = &rechecks(store).await[0];
        assert_eq!((touched.since, &touched.after), (at(9), &None), "it begins anew");
        assert!(!step(moved, "d3").await);
        assert!(!answer!(store.remove_recheck(moved)));
    }
    let last = &rechecks(store).await[0];
    assert!(step(last, "d9").await);
    assert!(answer!(store.remove_recheck(last)), "as far as it came");
    assert!(!step(last, "d9").await, "it is gone");
    assert_eq!(rechecks(store).await.len(), 1);
}

pub(super) async fn looks_at_once_keep_the_earliest_instant(store: &impl AlertPorts) {
    let names: Vec<String> = (0..60).map(|n| format!("d{n:02}")).collect();
    let all: Vec<_> = names.iter().map(|id| (device(id).into(), at(100))).collect();
    touch(store, &all).await;
    let one = |n: i64| async move { touch(store, &[(device("d07").into(), at(100 + n))]).await };
    join_all([3, -4, 5, -20, 7, -1].map(one)).await;
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = answer!(store.rechecks(after.as_ref(), 7));
        found.extend(page.listing.found);
        if !page.has_more {
            break;
        }
        after = found.last().map(|recheck: &Recheck| recheck.target.clone());
    }
    assert_eq!(found.iter().map(|recheck| recheck.target.to_string()).collect::<Vec<_>>(), names);
    for recheck in &found {
        let expected = if recheck.target == device("d07").into() { 80 } else { 100 };
        assert_eq!(recheck.since, at(expected), "{recheck:?}");
    }
    // Touched while somebody removes them, no touch is lost.
    let again = async |recheck: Recheck| {
        let touched = [(recheck.target.clone(), recheck.since)];
        let (removed, ()) = futures_util::join!(
            async { answer!(store.remove_recheck(&recheck)) },
            touch(store, &touched)
        );
        (recheck, removed)
    };
    for (recheck, _) in join_all(found.into_iter().map(again)).await {
        let left = rechecks(store).await;
        assert!(
            left.iter().any(|it| it.target == recheck.target && it.touch != recheck.touch),
            "{recheck:?}"
        );
    }
}

pub(super) async fn the_mark_of_running_moves_on_from_what_was_read(store: &impl AlertPorts) {
    assert_eq!(answer!(store.running_note()), None);
    let mut mark = RunningNote { version: 1, at: at(0), pauses: Vec::new() };
    let first = mark.clone();
    assert!(!answer!(store.put_running_note(&first, Expected::Present)), "no mark to replace");
    for n in 1..4 {
        let marks: Vec<_> =
            (0..4).map(|it| RunningNote { at: at(n * 10 + it), ..mark.clone() }).collect();
        let expected = Expected::before(mark.version);
        let put = async |mark| answer!(store.put_running_note(mark, expected));
        let stored = join_all(marks.iter().map(put)).await;
        assert_eq!(stored.iter().filter(|is_stored| **is_stored).count(), 1, "{stored:?}");
        let found = answer!(store.running_note()).expect("a mark");
        let expected = marks.iter().zip(stored).find(|it| it.1).map(|it| it.0);
        assert_eq!(Some(&found), expected);
        mark = RunningNote { version: found.version + 1, ..found };
        mark.pauses.push(TimeRange::new(at(n), at(n + 1)).expect("a range"));
    }
    assert!(answer!(store.put_running_note(&first, Expected::Present)));
    assert_eq!(answer!(store.running_note()), Some(first));
}

// ---- What is in the table ----------------------------------------------------------------------

/// The attributes that other programs, the stream and the indexes see.
pub(super) async fn the_items_are_in_partitions_of_their_own_and_in_no_index(table: &Table) {
    let store = table.store();
    let rule = saved(&store, "r").await;
    assert!(answer!(store.put_channel(&channel("c"), Some(&secret("one")))));
    let made = judgement(&rule, &firing("r", "d"), [1], &["c"]);
    assert_eq!(put(&store, &made).await, JudgementOutcome::Stored);
    touch(&store, &[(device("d").into(), at(0))]).await;
    let mark = RunningNote { version: 1, at: at(0), pauses: Vec::new() };
    assert!(answer!(store.put_running_note(&mark, Expected::Absent)));
    let number = "00000000000000000001";
    let seconds = |days: i64| (at(0).as_millis() / 1_000 + days * 86_400).to_string();
    for (pk, sk, names, expires) in [
        ("ALERT#RULES", "r".to_owned(), &["changed", "rule", "ver"][..], None),
        ("ALERT#CHANNELS", "c".to_owned(), &["created", "quiet_hours", "settings", "ver"], None),
        ("ALERT#SECRETS", "c".to_owned(), &["secret"], None),
        ("ALERT#STATES", "r#device:d".to_owned(), &["due", "state", "ver"], None),
        (
            "ALERT#TOLD",
            format!("2026-01-11T16:00:00.000Z#r#device:d#{number}"),
            &["changed", "exp", "message", "rule"],
            Some(90),
        ),
        (
            "ALERT#WAITING",
            format!("c#r#device:d#{number}"),
            &["attempts", "changed", "exp", "judged_at", "link_key", "message", "next", "rule"],
            Some(14),
        ),
        ("ALERT#LOOKS", "d".to_owned(), &["since", "touch"], None),
        ("ALERT#RUNNING", "mark".to_owned(), &["at", "pauses", "ver"], None),
    ] {
        let [item] = &table.items(pk).await[..] else { panic!("one {pk}") };
        assert_eq!(item["sk"], json!({"S": sk}));
        let all = item.as_object().expect("an item").keys().map(String::as_str);
        let own: Vec<_> = all.filter(|name| !["pk", "sk"].contains(name)).collect();
        assert_eq!(own, names, "{pk}");
        let expires = expires.map(|days| json!({"N": seconds(days)}));
        assert_eq!(item.get("exp"), expires.as_ref(), "{pk}");
    }
    let [secret] = &table.items("ALERT#SECRETS").await[..] else { panic!("one") };
    assert!(secret.to_string().contains("https://"));
    let others = table.scan().await.into_iter().filter(|it| it["pk"]["S"] != "ALERT#SECRETS");
    assert!(others.into_iter().all(|it| !it.to_string().contains("https://")));
}

pub(super) async fn what_cannot_be_read_is_named_and_hides_nothing(table: &Table) {
    let store = table.store();
    let rule = saved(&store, "r").await;
    assert!(answer!(store.put_channel(&channel("c"), None)));
    let made = judgement(&rule, &due_at(alert_key("r", "d"), Some(0)), [1], &["c"]);
    assert_eq!(put(&store, &made).await, JudgementOutcome::Stored);
    touch(&store, &[(device("d").into(), at(0))]).await;
    let past = json!({"S": at(-1).to_string()});
    for (pk, sk) in [
        ("ALERT#RULES", "a"),
        ("ALERT#CHANNELS", "a"),
        ("ALERT#STATES", "r#device:a"),
        ("ALERT#TOLD", "2026-01-11T16:00:00.000Z#r#device:a#1"),
        ("ALERT#WAITING", "c#r#device:a#00000000000000000001"),
        ("ALERT#LOOKS", "a"),
        ("ALERT#RUNNING", "mark"),
    ] {
        let item = json!({"pk": {"S": pk}, "sk": {"S": sk}, "due": past, "next": past});
        table.put_item(item).await;
    }
    let rules = answer!(store.alert_rules());
    assert_eq!((rules.found.len(), rules.unreadable.len()), (1, 1));
    assert_eq!(
        chain(&rules.unreadable[0]),
        "the item ALERT#RULES a: ver is missing or has another type"
    );
    let channels = answer!(store.channels());
    assert_eq!((channels.found.len(), channels.unreadable.len()), (1, 1));
    let keys = [alert_key("r", "a"), alert_key("r", "d")];
    let states = answer!(store.alert_states(&keys));
    assert_eq!((states.found.len(), states.unreadable.len()), (1, 1));
    let due = answer!(store.due_alert_states(at(0), None, 10)).listing;
    assert_eq!((due.found.len(), due.unreadable.len()), (1, 1));
    let query = MessageQuery { range: always(), rule: None, after: None, limit: 10 };
    let told = answer!(store.told_messages(&query)).listing;
    assert_eq!((told.found.len(), told.unreadable.len()), (1, 1));
    let id: ChannelId = channel_id("c");
    let waiting = store.waiting_messages(&id, None, 10, &invocation()).await;
    let waiting = waiting.expect("read").listing;
    assert_eq!((waiting.found.len(), waiting.unreadable.len()), (1, 1));
    let rechecks = answer!(store.rechecks(None, 10)).listing;
    assert_eq!((rechecks.found.len(), rechecks.unreadable.len()), (1, 1));
    let damaged = store.running_note(&invocation()).await.expect_err("it is damaged");
    assert!(matches!(damaged, StoreError::Unreadable(_)), "{damaged:?}");
    // What is damaged can be replaced, or deleted with the rest.
    let mark = RunningNote { version: 1, at: at(0), pauses: Vec::new() };
    assert!(answer!(store.put_running_note(&mark, Expected::Present)));
    assert_eq!(answer!(store.running_note()), Some(mark));
    touch(&store, &[(device("a").into(), at(0))]).await;
    assert_eq!(self::rechecks(&store).await.len(), 2);
    assert_eq!(answer!(store.delete_alert_states(&rule.id)), 2);
    assert!(answer!(store.delete_alert_rule(&"a".parse().expect("an id"))));
}

/// The alerts of a device are deleted by whoever judges, which knows their rules.
pub(super) async fn a_device_that_is_deleted_takes_no_alert_with_it(table: &Table) {
    let store = table.store();
    let rule = saved(&store, "r").await;
    assert!(answer!(store.put_channel(&channel("c"), Some(&secret("one")))));
    let made = judgement(&rule, &firing("r", "d"), [1], &["c"]);
    assert_eq!(put(&store, &made).await, JudgementOutcome::Stored);
    touch(&store, &[(device("d").into(), at(0))]).await;
    crate::given::store_home(&store, &[crate::given::reading_in("d", 0, "room-a")]).await;
    let before = of_alerts(table).await;
    assert_eq!(before.len(), 7);
    // Also of devices that are called like a part of their keys.
    for id in ["d", "r", "c", "device:d", "ALERT", "RULES"] {
        let found = answer!(store.belongings(&device(id), 100));
        assert_eq!(found.found.len(), usize::from(id == "d"), "{id}");
        let removed = store.remove_belongings(&found.found, &invocation()).await;
        assert!(removed.cause.is_none());
    }
    assert_eq!(of_alerts(table).await, before);
}

async fn of_alerts(table: &Table) -> Vec<serde_json::Value> {
    let is_alert =
        |it: &serde_json::Value| it["pk"]["S"].as_str().is_some_and(|pk| pk.starts_with("ALERT#"));
    table.scan().await.into_iter().filter(is_alert).collect()
}
