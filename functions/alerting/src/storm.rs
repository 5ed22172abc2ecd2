//! Storms: a rule that has messages about many devices within ten minutes tells their count, and what follows waits.
//! Reads the messages of these minutes; sends nothing.
//!
//! What was judged and waits no more was sent, so nothing is stored of a storm but the number that an attempt told,
//! and whoever sends sees the same. Where the table lets only a part of a storm be sent, the process remembers the number.

use std::collections::{BTreeMap, BTreeSet};

use alerts::{AlertSubject, Scope};
use chrono::TimeDelta;
use domain::{ChannelId, RuleId, TimeRange, Timestamp};
use table::{
    BoundedMemory, ReadToldMessages, Session, ToldKey, ToldMessage, ToldQuery, WaitingMessage,
};

use crate::sent::Sent;
use crate::waiting::{MAX_READ, is_test};

/// The most devices of a rule that are told one by one within [`WINDOW`].
pub(crate) const MAX_SINGLE: usize = 20;
/// The time in which devices are counted.
pub(crate) const WINDOW: TimeDelta = TimeDelta::minutes(10);
/// The number of messages that one query reads.
const PAGE: usize = 200;
/// The most recent messages that are read: twice as many as waiting messages, because those are among them and are not
/// counted as sent.
const MAX_RECENT: usize = 2 * MAX_READ;

/// The rules that storm.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Storms {
    /// The rules that are told by a count now, each with the number of devices.
    pub(crate) counted: BTreeMap<RuleId, usize>,
    /// The rules whose count was told in the last ten minutes: their messages wait.
    pub(crate) held: BTreeSet<RuleId>,
    /// How many messages of those that are told by their count are due.
    due: BTreeMap<RuleId, usize>,
}

/// The messages that were judged in the last ten minutes, sent or not.
#[derive(Debug, Default)]
pub(crate) struct RecentMessages {
    pub(crate) messages: Vec<ToldMessage>,
    /// Whether all messages of that time were read.
    pub(crate) is_whole: bool,
}

/// By channel and rule, the device count that a partly sent storm told; `None` once it is sent in full.
pub(crate) type BegunStorms = BoundedMemory<(ChannelId, RuleId), Option<usize>>;

/// The most storms that are remembered; beyond, all are forgotten.
const MAX_BEGUN: usize = 10_000;

/// A memory without storms.
pub(crate) fn none_begun() -> BegunStorms {
    BoundedMemory::new(MAX_BEGUN, WINDOW)
}

impl Storms {
    /// Notes the storms that were told to a channel, and whether a part of each is left. `done` are the messages of this
    /// process and of other senders.
    pub(crate) fn note_begun(
        &self,
        begun: &BegunStorms,
        channel: &ChannelId,
        done: &[&WaitingMessage],
        now: Timestamp,
    ) {
        for (rule, devices) in &self.counted {
            let count = done.iter().filter(|message| message.told.alert.rule == *rule).count();
            let is_part = self.due.get(rule).is_some_and(|due| count < *due);
            begun.keep((channel.clone(), rule.clone()), is_part.then_some(*devices), now);
        }
    }

    /// The storms of rules, found by due messages, messages of the last ten minutes, and storms that were sent in part.
    /// Only a rule on each of several devices can storm.
    pub(crate) fn of(
        due: &[WaitingMessage],
        recent: &RecentMessages,
        begun: impl Fn(&RuleId) -> Option<usize>,
    ) -> Self {
        let mut waiting: BTreeMap<&RuleId, BTreeSet<&AlertSubject>> = BTreeMap::new();
        for message in due.iter().filter(|message| may_storm(message)) {
            let alert = &message.told.alert;
            waiting.entry(&alert.rule).or_default().insert(&alert.subject);
        }

        let unsent: BTreeSet<ToldKey> = due.iter().map(|message| message.told.key()).collect();
        let mut storms = Self { due: count_by_rule(due), ..Self::default() };
        for (rule, waiting) in waiting {
            let sent = recent.messages.iter().filter(|message| message.alert.rule == *rule);
            let sent = sent.filter(|message| !unsent.contains(&message.key()));
            let sent: BTreeSet<&AlertSubject> =
                sent.map(|message| &message.alert.subject).collect();

            let all = sent.union(&waiting).count();
            // Of a history that was read in part only the devices that are due are counted.
            let known = if recent.is_whole { all } else { waiting.len() };
            if let Some(devices) = begun(rule) {
                storms.counted.insert(rule.clone(), known.max(devices));
            } else if sent.len() > MAX_SINGLE {
                storms.held.insert(rule.clone());
            } else if all > MAX_SINGLE {
                storms.counted.insert(rule.clone(), known);
            }
        }
        storms
    }

    /// The storms of messages that are sent again, each with the number that was sent before. A storm does not hold these
    /// messages. During a dead sender's lease they were not due, so the sent count already has their devices.
    pub(crate) fn told_again(repeated: &[WaitingMessage]) -> Self {
        let counted = repeated.iter().filter_map(|message| {
            let rule = message.told.alert.rule.clone();
            Some((rule, message.storm?))
        });
        Self { counted: counted.collect(), due: count_by_rule(repeated), ..Self::default() }
    }

    /// The number of devices by which a message is told.
    pub(crate) fn number(&self, message: &WaitingMessage) -> Option<usize> {
        self.counted.get(&message.told.alert.rule).copied().filter(|_| !is_test(message))
    }

    /// Whether a message waits.
    pub(crate) fn holds(&self, message: &WaitingMessage) -> bool {
        !is_test(message) && self.held.contains(&message.told.alert.rule)
    }
}

fn count_by_rule(messages: &[WaitingMessage]) -> BTreeMap<RuleId, usize> {
    let mut count = BTreeMap::new();
    for message in messages.iter().filter(|message| !is_test(message)) {
        *count.entry(message.told.alert.rule.clone()).or_default() += 1;
    }
    count
}

/// The messages of the last ten minutes, as far as they can be read: with less, messages that a storm would hold are sent.
pub(crate) async fn read_recent(
    session: Session<'_, impl ReadToldMessages>,
    sent: &mut Sent,
) -> RecentMessages {
    let (mut recent, mut after) = (RecentMessages::default(), None);
    // A judgement by a clock that is a little ahead is one of now. One by a clock that was hours ahead would hold a
    // rule's messages for hours.
    let Ok(range) =
        TimeRange::new(session.now.saturating_add(-WINDOW), session.now.saturating_add(WINDOW))
    else {
        return recent;
    };

    loop {
        let query = ToldQuery { range, rule: None, after, limit: PAGE };
        let page = match session.told_messages(&query).await {
            Ok(page) => page,
            Err(error) => {
                sent.error = Some(error);
                return recent;
            }
        };

        recent.messages.extend(page.listing.found);
        recent.is_whole = !page.has_more;
        after = recent.messages.last().map(ToldMessage::key);
        if recent.is_whole || after.is_none() || recent.messages.len() >= MAX_RECENT {
            return recent;
        }
    }
}

/// Whether a message may be one of a storm.
pub(crate) fn may_storm(message: &WaitingMessage) -> bool {
    !is_test(message) && matches!(message.told.rule.scope, Scope::Each(_))
}
