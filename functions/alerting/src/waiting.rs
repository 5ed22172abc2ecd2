//! Decides which waiting messages of a channel are sent now, and which are dropped. Reads and sends nothing.

use std::collections::{BTreeMap, BTreeSet};

use alerts::{MAX_PAUSE, next_attempt};
use chrono::TimeDelta;
use domain::{ChannelId, RuleId, Timestamp};
use judging::AlertRules;
use table::{
    AlertKey, AlertState, Listing, MessageKey, StoredAlertState, StoredChannel, WaitingMessage,
};

/// The largest number of a channel's messages that one round reads. It is larger than the number that is sent, because
/// quiet hours and storms hold some back. To postpone each of these would cost a write, and would not save its read.
pub(crate) const MAX_READ: usize = 5_000;

/// The largest number of a channel's messages that one invocation sends or drops: as many as alerts may fire.
pub(crate) const MAX_MESSAGES: usize = 1_000;
/// The number of attempts that repeat an unanswered message unchanged. They take ten minutes.
const MAX_SAME: u32 = 6;
/// How long messages that were tried for ten minutes let other messages go first.
const MAX_PUT_OFF: TimeDelta = TimeDelta::minutes(2);
/// How long a message is news. After that, a newer message of its state can replace it.
const NEWS: TimeDelta = TimeDelta::minutes(5);

/// The messages that wait for a channel.
pub(crate) struct Waiting {
    /// The messages that may be sent now, in the order of their keys.
    pub(crate) free: Vec<WaitingMessage>,
    /// The messages that this process has delivered, and that are still to be deleted.
    pub(crate) delivered: Vec<WaitingMessage>,
    /// The number of messages that are not delivered; `None` if not all were read.
    pub(crate) count: Option<usize>,
}

/// The messages of a channel, by what is done with them.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    /// The messages to send in one request, in order.
    pub(crate) send: Vec<WaitingMessage>,
    /// The messages to delete: their rule is deleted or off, their channel was deleted, a later message says more, or
    /// they are no longer true.
    pub(crate) obsolete: Vec<WaitingMessage>,
}

/// The time of a message's first attempt, estimated from the time when the channel began to fail.
pub(crate) fn first_attempt(
    message: &WaitingMessage,
    channel: &StoredChannel,
    now: Timestamp,
) -> Timestamp {
    channel.failing.map_or(now, |failing| failing.since).max(message.logged.at).min(now)
}

/// Takes out messages whose rule was deleted or is off, and messages for an earlier channel with the same id.
pub(crate) fn take_ended(
    messages: &mut Vec<WaitingMessage>,
    channel: &StoredChannel,
    ended: &BTreeSet<RuleId>,
    now: Timestamp,
) -> Vec<WaitingMessage> {
    let has_ended = |message: &mut WaitingMessage| {
        channel.is_younger_than(message.logged.at, now)
            || !is_test(message) && ended.contains(&message.logged.alert.rule)
    };
    messages.extract_if(.., has_ended).collect()
}

/// Takes out the messages to send again: those of the oldest lease that has ended because its sender died or got no
/// answer. The receiver recognizes a repeat by the id of the request, which depends only on its messages.
///
/// Messages that were tried for ten minutes are not news and stay. A message that follows an older one of the same
/// state also stays, unless both were sent together.
pub(crate) fn take_repeated(messages: &mut Vec<WaitingMessage>) -> Vec<WaitingMessage> {
    // For each state, the lease of its first message. Later messages of the state go along only if they have the same
    // lease.
    let mut lease_of_first = BTreeMap::new();
    let mut candidates = BTreeSet::new();
    for message in &*messages {
        let first = lease_of_first.entry(message.logged.alert.clone()).or_insert(message.lease);
        if message.lease.is_some() && message.lease == *first && message.attempts <= MAX_SAME {
            candidates.insert((message.lease, message.key()));
        }
    }

    let oldest = candidates.first().and_then(|(lease, _)| *lease);
    let is_repeated = |message: &mut WaitingMessage| candidates.contains(&(oldest, message.key()));
    messages.extract_if(.., is_repeated).collect()
}

/// Removes messages that have to wait, and later messages of the same states, because older messages go first. A test
/// message belongs to no state.
pub(crate) fn hold_back(
    messages: &mut Vec<WaitingMessage>,
    waits: impl Fn(&WaitingMessage) -> bool,
) {
    let mut left = BTreeSet::new();
    messages.retain(|message| {
        let alert = &message.logged.alert;
        let is_left = waits(message) || !is_test(message) && left.contains(alert);
        if is_left {
            left.insert(alert.clone());
        }
        !is_left
    });
}

/// Leaves messages that were tried for ten minutes to a later round, if others are due. So a message that its receiver
/// never takes, for example because of its length, delays no new messages. After two minutes all are sent together.
/// Returns whether messages are left.
pub(crate) fn put_off_stubborn(due: &mut Vec<WaitingMessage>, now: Timestamp) -> bool {
    let is_stubborn = |message: &WaitingMessage| {
        message.attempts > MAX_SAME && now.since(message.next) < MAX_PUT_OFF
    };
    let (stubborn, mut others): (Vec<_>, Vec<_>) = due.iter().cloned().partition(is_stubborn);
    hold_back_following(&mut others, &stubborn);
    let is_left = !stubborn.is_empty() && !others.is_empty();
    if is_left {
        *due = others;
    }
    is_left
}

/// The largest number of messages of a request. After ten minutes of attempts, each further attempt halves the number,
/// down to an eighth. A webhook's body is then 50 KB, which any receiver takes.
pub(crate) fn most_at_once(due: &[WaitingMessage]) -> usize {
    let attempts = due.iter().map(|message| message.attempts).max().unwrap_or_default();
    MAX_MESSAGES >> attempts.saturating_sub(MAX_SAME).min(3)
}

/// Leaves to the next round the messages of states that have messages in `left`.
pub(crate) fn hold_back_following(messages: &mut Vec<WaitingMessage>, left: &[WaitingMessage]) {
    let left: BTreeSet<&AlertKey> = left.iter().map(|message| &message.logged.alert).collect();
    messages.retain(|message| is_test(message) || !left.contains(&message.logged.alert));
}

/// Puts messages into their order of sending: by time, and within a state by number. The times of a state's messages
/// may be out of order, because two processes may have made them by different clocks or minutes.
pub(crate) fn put_in_order(messages: &mut [WaitingMessage]) {
    messages.sort_by_key(|message| message.logged.message.number);

    let mut latest: BTreeMap<AlertKey, Timestamp> = BTreeMap::new();
    let mut times = BTreeMap::new();
    for message in &*messages {
        let time = latest.entry(message.logged.alert.clone()).or_insert(message.logged.at);
        *time = message.logged.at.max(*time);
        times.insert(message.key(), *time);
    }

    messages.sort_by_key(|message| {
        let MessageKey { alert, number, .. } = message.logged.key();
        (times[&message.key()], alert, number)
    });
}

/// The messages to send now. Others wait while quiet hours or a pause of the rule last, or until a failing channel is
/// to be tried again. After a day of failures they wait for a newer message.
pub(crate) fn due(
    messages: Vec<WaitingMessage>,
    channel: &StoredChannel,
    rules: &AlertRules,
    now: Timestamp,
) -> Vec<WaitingMessage> {
    let is_quiet = channel.quiet_hours.is_some_and(|hours| hours.contain(now, rules.zone()));
    let latest = now.saturating_add(MAX_PAUSE);
    // A failure with a time ahead of the clock was noted by a wrong clock, and holds nothing back.
    let is_blocked = channel.failing.is_some_and(|failing| {
        failing.since <= now && failing.next > now && failing.next <= latest
    });
    let is_paused = |message: &WaitingMessage| {
        let rule = rules.get(&message.logged.alert.rule);
        rule.is_some_and(|rule| rule.definition.paused_until.is_some_and(|until| until > now))
    };
    let is_out_of_attempts = |message: &WaitingMessage| {
        let first = first_attempt(message, channel, now);
        message.attempts > 0 && next_attempt(first, message.attempts, now, None).is_none()
    };

    let mut due = messages;
    hold_back(&mut due, |message| {
        let is_in_quiet_hours = is_quiet && !message.logged.rule.ignores_quiet_hours;
        !is_test(message) && (is_blocked || is_in_quiet_hours || is_paused(message))
    });
    if channel.failing.is_some() && due.iter().all(is_out_of_attempts) {
        due.clear();
    }
    due
}

/// The states that decide about messages that waited, or that belong to a storm.
pub(crate) fn states_needed(
    due: &[WaitingMessage],
    device_counts: &BTreeMap<RuleId, usize>,
    now: Timestamp,
) -> Vec<AlertKey> {
    let needs_state = |message: &&WaitingMessage| {
        let is_late = has_waited(message, now) || message.lease.is_some();
        (is_late || is_of_storm(message, device_counts)) && !is_test(message)
    };
    let keys: BTreeSet<_> =
        due.iter().filter(needs_state).map(|message| message.logged.alert.clone()).collect();
    keys.into_iter().collect()
}

/// Chooses among due messages. If messages of a subject waited, over quiet hours or for a failing channel, or belong to
/// a storm, only the newest is sent, and only if it is still true. A message about a budget's period or a counter's
/// step is sent once and is never replaced.
pub(crate) fn newest_or_all(
    due: Vec<WaitingMessage>,
    device_counts: &BTreeMap<RuleId, usize>,
    states: &Listing<StoredAlertState>,
    now: Timestamp,
) -> Chosen {
    let (damaged, states) = (states.damaged(), by_key(states));
    let mut by_alert: BTreeMap<AlertKey, Vec<WaitingMessage>> = BTreeMap::new();
    let mut chosen = Chosen::default();
    for message in due {
        if is_test(&message) {
            chosen.send.push(message);
        } else {
            by_alert.entry(message.logged.alert.clone()).or_default().push(message);
        }
    }

    for (key, mut messages) in by_alert {
        // Without the state it is not known whether the messages are still true.
        if damaged.contains(&key) {
            chosen.send.append(&mut messages);
            continue;
        }

        let state = states.get(&key).copied();
        let is_any_of_storm = messages.iter().any(|message| is_of_storm(message, device_counts));
        // A later message does not repeat a budget's period or a counter's step.
        let is_told_once = matches!(state, Some(AlertState::Figures(_)));
        let has_waited = messages.iter().any(|message| has_waited(message, now));
        if !is_told_once && (is_any_of_storm || has_waited) {
            let is_newest_true = messages.last().is_some_and(|newest| is_true(newest, state));
            // All but the newest are dropped, and the newest too if it is no longer true.
            let overtaken = messages.len() - usize::from(is_newest_true);
            chosen.obsolete.extend(messages.drain(..overtaken));
        }
        chosen.send.append(&mut messages);
    }

    put_in_order(&mut chosen.send);
    chosen
}

fn by_key(states: &Listing<StoredAlertState>) -> BTreeMap<&AlertKey, &AlertState> {
    states.found.iter().map(|stored| (&stored.key, &stored.state)).collect()
}

/// The key by which a process remembers a message. It has the message's time, because a state that was deleted and made
/// again may repeat a number.
pub(crate) fn lasting_key(message: &WaitingMessage) -> (ChannelId, MessageKey) {
    (message.channel.clone(), message.logged.key())
}

/// Whether a message is only a test of the channel.
pub(crate) fn is_test(message: &WaitingMessage) -> bool {
    message.logged.message.news == alerts::News::Test
}

/// Whether the rule of a message has a storm.
fn is_of_storm(message: &WaitingMessage, device_counts: &BTreeMap<RuleId, usize>) -> bool {
    device_counts.contains_key(&message.logged.alert.rule)
}

/// Chooses among messages to send again. All are sent unchanged, except those that newer messages of the same subject
/// have overtaken. `later` are due messages that are left to the next round.
pub(crate) fn without_overtaken(
    repeated: Vec<WaitingMessage>,
    later: &[WaitingMessage],
    states: &Listing<StoredAlertState>,
) -> Chosen {
    let (damaged, states) = (states.damaged(), by_key(states));
    let mut newest: BTreeMap<AlertKey, WaitingMessage> = BTreeMap::new();
    for message in repeated.iter().chain(later) {
        let known = newest.entry(message.logged.alert.clone()).or_insert_with(|| message.clone());
        if known.logged.message.number < message.logged.message.number {
            *known = message.clone();
        }
    }

    let mut chosen = Chosen::default();
    for message in repeated {
        let alert = &message.logged.alert;
        let is_overtaken = is_overtaken(&newest[alert], states.get(alert).copied());
        if is_overtaken && !is_test(&message) && !damaged.contains(alert) {
            chosen.obsolete.push(message);
        } else {
            chosen.send.push(message);
        }
    }

    put_in_order(&mut chosen.send);
    chosen
}

/// Whether a message was postponed, by quiet hours or a failed delivery, or is no longer news.
fn has_waited(message: &WaitingMessage, now: Timestamp) -> bool {
    message.next > message.logged.at || now.since(message.logged.at) > NEWS
}

/// Whether the newest due message of a subject was overtaken: the message may have arrived, newer messages were sent
/// since, and the message is no longer true. Sent again, it would be the last message that the receiver gets, and
/// wrong.
fn is_overtaken(newest_due: &WaitingMessage, state: Option<&AlertState>) -> bool {
    let is_followed = match state {
        Some(AlertState::Episodes(state)) => state.number > newest_due.logged.message.number,
        Some(AlertState::Figures(_)) => false,
        None => true,
    };
    newest_due.lease.is_some() && is_followed && !is_true(newest_due, state)
}

/// Whether a message is still true. Messages about figures stay true. A state that is gone was normal, or its device
/// was deleted.
fn is_true(message: &WaitingMessage, state: Option<&AlertState>) -> bool {
    match state {
        Some(AlertState::Episodes(state)) => message.logged.message.is_still_true(state),
        Some(AlertState::Figures(_)) => true,
        None => !message.logged.message.news.is_firing(),
    }
}

#[cfg(test)]
mod tests {
    use alerts::News;
    use table::{LoggedMessage, given};

    use super::*;

    fn waiting(device: &str, number: u64, second: i64) -> WaitingMessage {
        let at = given::at_second(second);
        let told = LoggedMessage {
            alert: given::alert_key("r", device),
            at,
            rule: given::alert_rule("r", at).definition,
            message: given::message(number, News::Fired),
        };
        WaitingMessage::new(given::channel_id("c"), told, at)
    }

    /// A test message belongs to no state.
    #[test]
    fn a_stubborn_message_lets_others_go_first_and_is_sent_where_there_are_none() {
        let now = given::at_second(60);
        let stubborn = |news| {
            let mut message = waiting("a", 1, 0);
            message.logged.message.news = news;
            WaitingMessage { attempts: MAX_SAME + 1, next: now, ..message }
        };
        for news in [News::Fired, News::Test] {
            let mut alone = vec![stubborn(news)];
            assert!(!put_off_stubborn(&mut alone, now) && alone.len() == 1, "{news:?}");
            let mut both = vec![stubborn(news), waiting("b", 1, 0)];
            assert!(put_off_stubborn(&mut both, now), "{news:?}");
            assert_eq!(both[0].logged.alert, given::alert_key("r", "b"), "{news:?}");
        }
    }

    /// A minute that began before judged later: its message has the earlier time and the later number.
    #[test]
    fn messages_of_a_state_are_told_by_number_whatever_their_times_are() {
        let due = vec![waiting("a", 5, 10), waiting("a", 6, 0), waiting("b", 1, 5)];
        let chosen =
            newest_or_all(due, &BTreeMap::new(), &Listing::default(), given::at_second(20));
        let order: Vec<_> = chosen
            .send
            .iter()
            .map(|message| {
                (message.logged.alert.subject.to_string(), message.logged.message.number)
            })
            .collect();
        let expected = [("device:b", 1), ("device:a", 5), ("device:a", 6)];
        assert_eq!(order, expected.map(|(subject, number)| (subject.to_owned(), number)));
    }
}
