//! Storms: if a rule has messages about many devices within ten minutes, they are sent with the number of these
//! devices, and later messages of the rule wait. Reads the messages of these minutes; sends nothing.
//!
//! A message of these minutes that no longer waits counts as sent, so no list of sent messages is stored. A leased
//! message keeps the number of devices of its attempt, which another process repeats. If a storm is sent in part, the
//! process remembers its number.

use std::collections::{BTreeMap, BTreeSet};

use alerts::{AlertSubject, Scope};
use chrono::TimeDelta;
use domain::{ChannelId, RuleId, TimeRange, Timestamp};
use table::{
    BoundedMemory, LoggedMessage, MessageKey, MessageQuery, ReadToldMessages, Session,
    WaitingMessage,
};

use crate::sent::ChannelResult;
use crate::waiting::{MAX_READ, is_test};

/// The largest number of a rule's devices that get messages of their own within [`WINDOW`].
pub(crate) const MAX_SINGLE: usize = 20;
/// The time in which devices are counted.
pub(crate) const WINDOW: TimeDelta = TimeDelta::minutes(10);
/// The number of messages that one query reads.
const PAGE: usize = 200;
/// The largest number of recent messages that are read. It is twice the number of waiting messages that are read,
/// because waiting messages are recent too and do not count as sent.
const MAX_RECENT: usize = 2 * MAX_READ;

/// The rules with a storm.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Storms {
    /// The rules whose messages are sent with a device count now, each with this count.
    pub(crate) device_counts: BTreeMap<RuleId, usize>,
    /// The rules whose device count was sent in the last ten minutes. Their further messages wait.
    pub(crate) held: BTreeSet<RuleId>,
    /// For each rule, the number of due messages; empty if messages are sent again.
    due: BTreeMap<RuleId, usize>,
}

/// The messages that judgements made in the last ten minutes, sent or not.
#[derive(Debug, Default)]
pub(crate) struct RecentMessages {
    pub(crate) messages: Vec<LoggedMessage>,
    /// Whether all messages of these minutes were read.
    pub(crate) is_whole: bool,
}

/// For a channel and a rule, the device count of a storm that was sent in part; `None` once all of it is sent.
pub(crate) type BegunStorms = BoundedMemory<(ChannelId, RuleId), Option<usize>>;

/// The largest number of storms that are remembered. With more, all are forgotten.
const MAX_BEGUN: usize = 10_000;

/// A memory without storms.
pub(crate) fn none_begun() -> BegunStorms {
    BoundedMemory::new(MAX_BEGUN, WINDOW)
}

impl Storms {
    /// Notes the storms of a channel, and whether a part of each is left. `done` are the messages that this process or
    /// others sent or dropped. Messages that are sent again do not show whether a part is left, so they note nothing.
    pub(crate) fn note_begun(
        &self,
        begun: &BegunStorms,
        channel: &ChannelId,
        done: &[WaitingMessage],
        now: Timestamp,
    ) {
        let done = count_by_rule(done);
        for (rule, devices) in &self.device_counts {
            let Some(due) = self.due.get(rule) else { continue };
            let is_part = done.get(rule).is_none_or(|done| done < due);
            begun.keep((channel.clone(), rule.clone()), is_part.then_some(*devices), now);
        }
    }

    /// Finds storms by due messages, messages of the last ten minutes, and storms that were sent in part. Only a rule
    /// on each of several devices can storm.
    pub(crate) fn of(
        due: &[WaitingMessage],
        recent: &RecentMessages,
        begun: impl Fn(&RuleId) -> Option<usize>,
    ) -> Self {
        let mut waiting: BTreeMap<&RuleId, BTreeSet<&AlertSubject>> = BTreeMap::new();
        for message in due.iter().filter(|message| may_storm(message)) {
            let alert = &message.logged.alert;
            waiting.entry(&alert.rule).or_default().insert(&alert.subject);
        }

        let unsent: BTreeSet<MessageKey> = due.iter().map(|message| message.logged.key()).collect();
        let mut storms = Self { due: count_by_rule(due), ..Self::default() };
        for (rule, waiting) in waiting {
            let sent = recent.messages.iter().filter(|message| message.alert.rule == *rule);
            let sent = sent.filter(|message| !unsent.contains(&message.key()));
            let sent: BTreeSet<&AlertSubject> =
                sent.map(|message| &message.alert.subject).collect();

            let all = sent.union(&waiting).count();
            // If not all recent messages were read, only devices with due messages count.
            let known = if recent.is_whole { all } else { waiting.len() };
            if let Some(devices) = begun(rule) {
                storms.device_counts.insert(rule.clone(), known.max(devices));
            } else if sent.len() > MAX_SINGLE {
                storms.held.insert(rule.clone());
            } else if all > MAX_SINGLE {
                storms.device_counts.insert(rule.clone(), known);
            }
        }
        storms
    }

    /// The storms of messages that are sent again, each with the device count of the first attempt. This count already
    /// has the devices of these messages, so a storm does not hold them back.
    pub(crate) fn sent_again(repeated: &[WaitingMessage]) -> Self {
        let device_counts = repeated.iter().filter_map(|message| {
            let rule = message.logged.alert.rule.clone();
            Some((rule, message.storm?))
        });
        Self { device_counts: device_counts.collect(), ..Self::default() }
    }

    /// The device count of a storm's message; `None` for other messages.
    pub(crate) fn device_count(&self, message: &WaitingMessage) -> Option<usize> {
        self.device_counts.get(&message.logged.alert.rule).copied().filter(|_| !is_test(message))
    }

    /// Whether a storm holds a message back.
    pub(crate) fn holds(&self, message: &WaitingMessage) -> bool {
        !is_test(message) && self.held.contains(&message.logged.alert.rule)
    }
}

fn count_by_rule(messages: &[WaitingMessage]) -> BTreeMap<RuleId, usize> {
    let mut count = BTreeMap::new();
    for message in messages.iter().filter(|message| !is_test(message)) {
        *count.entry(message.logged.alert.rule.clone()).or_default() += 1;
    }
    count
}

/// The messages of the last ten minutes. If reading fails midway, the rest is missing, and messages may be sent that a
/// storm would hold back.
pub(crate) async fn read_recent(
    session: Session<'_, impl ReadToldMessages>,
    result: &mut ChannelResult,
) -> RecentMessages {
    let (mut recent, mut after) = (RecentMessages::default(), None);
    // Messages with a time up to ten minutes ahead count as recent, because clocks differ. A message that is hours
    // ahead does not count: it would hold a rule's messages back for hours.
    let Ok(range) =
        TimeRange::new(session.now.saturating_add(-WINDOW), session.now.saturating_add(WINDOW))
    else {
        return recent;
    };

    loop {
        let query = MessageQuery { range, rule: None, after, limit: PAGE };
        let page = match session.told_messages(&query).await {
            Ok(page) => page,
            Err(error) => {
                result.error = Some(error);
                return recent;
            }
        };

        recent.messages.extend(page.listing.found);
        recent.is_whole = !page.has_more;
        after = recent.messages.last().map(LoggedMessage::key);
        if recent.is_whole || after.is_none() || recent.messages.len() >= MAX_RECENT {
            return recent;
        }
    }
}

/// Whether a message may belong to a storm.
pub(crate) fn may_storm(message: &WaitingMessage) -> bool {
    !is_test(message) && matches!(message.logged.rule.scope, Scope::Each(_))
}
