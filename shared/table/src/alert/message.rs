//! The stored forms of a message: in the log of messages, and for each channel until it is sent. Sends nothing.

use alerts::{AlertSubject, LinkKey, Message, News, NoData, Rule, Scope, Watch};
use chrono::TimeDelta;
use domain::{ChannelId, DeviceId, Label, RuleId, TimeRange, Timestamp};

use crate::AlertKey;

/// How long messages stay in the log.
pub const LOG_KEPT: TimeDelta = TimeDelta::days(90);
/// How long a message is stored if its channel fails or was deleted.
pub const WAITING_KEPT: TimeDelta = TimeDelta::days(14);
/// The longest lease. A lease that ends later was taken by a wrong clock and is ignored.
pub const MAX_LEASE: TimeDelta = TimeDelta::minutes(5);
/// The longest time for which a message is postponed: over the quiet hours of a day. A message with a later time was
/// postponed by a wrong clock.
pub const MAX_POSTPONED: TimeDelta = TimeDelta::hours(25);

/// A message in the log, with everything that its text needs except names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedMessage {
    /// The key of the state that the message is about.
    pub alert: AlertKey,
    /// When the message was judged.
    pub at: Timestamp,
    /// The rule by which the message was judged, as it was at that time.
    pub rule: Rule,
    /// The message.
    pub message: Message,
}

/// The identity of a message in the log. Identities sort by time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageKey {
    /// When the message was judged.
    pub at: Timestamp,
    /// The key of the state that the message is about.
    pub alert: AlertKey,
    /// The number of the message: each state counts its own messages.
    pub number: u64,
}

impl LoggedMessage {
    /// The identity of the message.
    pub fn key(&self) -> MessageKey {
        MessageKey { at: self.at, alert: self.alert.clone(), number: self.message.number }
    }
}

/// A query for messages of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageQuery {
    /// The range in which the messages were judged.
    pub range: TimeRange,
    /// The rule of the messages; `None`: all rules.
    pub rule: Option<RuleId>,
    /// The last message of the previous page; `None` for the first page.
    pub after: Option<MessageKey>,
    /// The largest number of messages.
    pub limit: usize,
}

/// A message that waits to be sent by a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingMessage {
    /// The channel.
    pub channel: ChannelId,
    /// The message.
    pub logged: LoggedMessage,
    /// The number of attempts to send, including the current one. Each attempt takes a lease.
    pub attempts: u32,
    /// The earliest time at which the message may be sent.
    pub next: Timestamp,
    /// The end of the sender's lease. If the lease has ended, the sender died or got no answer, and the message may
    /// have arrived.
    pub lease: Option<Timestamp>,
    /// For a storm, when many devices have messages of one rule: the number of devices that the text of this message
    /// names. An attempt that may have arrived has sent this number.
    pub storm: Option<usize>,
    /// The key of the link by which a person acknowledges the alert. Only messages of firing alerts have a key.
    pub key: Option<LinkKey>,
}

/// The identity of a waiting message. Messages of a state sort by their numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaitingKey {
    /// The channel.
    pub channel: ChannelId,
    /// The key of the state that the message is about.
    pub alert: AlertKey,
    /// The number of the message: each state counts its own messages.
    pub number: u64,
}

impl WaitingMessage {
    /// A message that no sender has tried to send yet.
    pub const fn new(channel: ChannelId, logged: LoggedMessage, next: Timestamp) -> Self {
        Self { channel, logged, attempts: 0, next, lease: None, storm: None, key: None }
    }

    /// A test message, which says only that the channel works. Its rule does not exist.
    pub fn test(channel: ChannelId, name: Label, now: Timestamp) -> Self {
        let id = "test";
        let device: DeviceId = id.parse().expect("an id");

        let rule = Rule {
            name,
            scope: Scope::Device(device.clone()),
            watch: Watch::Silence { after: None },
            breach_time: TimeDelta::zero(),
            clear_time: TimeDelta::zero(),
            no_data: NoData::Keep,
            repeat: None,
            sends_recovery: true,
            ignores_quiet_hours: true,
            is_on: true,
            paused_until: None,
            changed: now,
        };

        let message = Message {
            // Earlier test messages may still wait, so each needs its own number.
            number: u64::try_from(now.as_millis()).unwrap_or_default(),
            news: News::Test,
            since: now,
            fired: now,
            ended: None,
            value: None,
            seen: None,
            is_silent: false,
        };

        let alert =
            AlertKey { rule: id.parse().expect("an id"), subject: AlertSubject::Device(device) };
        Self::new(channel, LoggedMessage { alert, at: now, rule, message }, now)
    }

    /// The identity of the message.
    pub fn key(&self) -> WaitingKey {
        let MessageKey { alert, number, .. } = self.logged.key();
        WaitingKey { channel: self.channel.clone(), alert, number }
    }

    /// Whether the time of the message has come. A message that was never postponed is always due. So is a message that
    /// was judged after `now`, by a clock that is ahead.
    pub fn is_due(&self, now: Timestamp) -> bool {
        let was_never_postponed = self.next <= self.logged.at;
        let is_of_clock_ahead = self.logged.at > now;
        was_never_postponed || is_of_clock_ahead || !is_ahead(self.next, MAX_POSTPONED, now)
    }

    /// Whether the message has a lease. Its sender is at work, or died a moment ago.
    pub fn is_leased(&self, now: Timestamp) -> bool {
        self.lease.is_some_and(|until| is_ahead(until, MAX_LEASE, now))
    }
}

/// Whether a time is in the future by at most `longest`. A later time comes from a wrong clock.
fn is_ahead(at: Timestamp, longest: TimeDelta, now: Timestamp) -> bool {
    at > now && at <= now.saturating_add(longest)
}
