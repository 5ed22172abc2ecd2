//! A message as the table keeps it: among all that was told, and for each channel until it is sent. Sends nothing.

use alerts::{AlertSubject, LinkKey, Message, News, NoData, Rule, Scope, Watch};
use chrono::TimeDelta;
use domain::{ChannelId, DeviceId, Label, RuleId, TimeRange, Timestamp};

use crate::AlertKey;

/// How long it is kept what was told.
pub const TOLD_KEPT: TimeDelta = TimeDelta::days(90);
/// How long a message waits that no channel takes, because its channel fails or was deleted.
pub const WAITING_KEPT: TimeDelta = TimeDelta::days(14);
/// The longest lease. One that ends later was taken by a clock that was wrong, and holds nobody up.
pub const MAX_LEASE: TimeDelta = TimeDelta::minutes(5);
/// How far ahead a message is postponed at most: over the quiet hours of a day. One that waits for longer was
/// postponed by a clock that was wrong.
pub const MAX_POSTPONED: TimeDelta = TimeDelta::hours(25);

/// A message, with what its text needs beside names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldMessage {
    /// The state that it is about.
    pub alert: AlertKey,
    /// When it was judged.
    pub at: Timestamp,
    /// The rule that it was judged by, as it was.
    pub rule: Rule,
    /// The message.
    pub message: Message,
}

/// The identity of a message. The order is that of time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToldKey {
    /// When it was judged.
    pub at: Timestamp,
    /// The state that it is about.
    pub alert: AlertKey,
    /// Its number among the messages of the state.
    pub number: u64,
}

impl ToldMessage {
    /// Its identity.
    pub fn key(&self) -> ToldKey {
        ToldKey { at: self.at, alert: self.alert.clone(), number: self.message.number }
    }
}

/// What is asked of the messages that were told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldQuery {
    /// When they were judged.
    pub range: TimeRange,
    /// The rule that they are of; without it, all.
    pub rule: Option<RuleId>,
    /// The last message of the page before.
    pub after: Option<ToldKey>,
    /// The largest number of messages.
    pub limit: usize,
}

/// A message that waits to be sent by a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingMessage {
    /// The channel.
    pub channel: ChannelId,
    /// The message.
    pub told: ToldMessage,
    /// The number of leases that were taken: the attempts to send, also the attempt under way.
    pub attempts: u32,
    /// When it is to be sent.
    pub next: Timestamp,
    /// The end of the lease of whoever is sending it. The attempt of a lease that is over may have arrived: its sender
    /// died, or had no answer.
    pub lease: Option<Timestamp>,
    /// The number of devices by which it is told, where many have messages of its rule. With the lease it says what an
    /// attempt told that may have arrived.
    pub storm: Option<usize>,
    /// The key of the link that acknowledges the episode; only messages of alerts that fire have a key.
    pub key: Option<LinkKey>,
}

/// The identity of a message that waits. Those of a state are in the order of their numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaitingKey {
    /// The channel.
    pub channel: ChannelId,
    /// The state that it is about.
    pub alert: AlertKey,
    /// Its number among the messages of the state.
    pub number: u64,
}

impl WaitingMessage {
    /// A message that nobody has tried to send.
    pub const fn new(channel: ChannelId, told: ToldMessage, next: Timestamp) -> Self {
        Self { channel, told, attempts: 0, next, lease: None, storm: None, key: None }
    }

    /// A message that says nothing but that the channel works. It is of no rule that there is.
    pub fn test(channel: ChannelId, name: Label, now: Timestamp) -> Self {
        let id = "test";
        let device: DeviceId = id.parse().expect("an id");

        let rule = Rule {
            name,
            scope: Scope::Device(device.clone()),
            watch: Watch::Silence { after: None },
            hold: TimeDelta::zero(),
            clear_hold: TimeDelta::zero(),
            no_data: NoData::Keep,
            repeat: None,
            tells_recovery: true,
            ignores_quiet_hours: true,
            is_on: true,
            paused_until: None,
            changed: now,
        };

        let message = Message {
            // Tests that were asked for before may wait too.
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
        Self::new(channel, ToldMessage { alert, at: now, rule, message }, now)
    }

    /// Its identity.
    pub fn key(&self) -> WaitingKey {
        let ToldKey { alert, number, .. } = self.told.key();
        WaitingKey { channel: self.channel.clone(), alert, number }
    }

    /// Whether it is to be sent, and nobody is sending it. A message that nobody postponed is sent whatever the
    /// clock shows: it is judged already, perhaps by a clock that was ahead.
    pub fn is_free(&self, now: Timestamp) -> bool {
        let is_due = self.next <= self.told.at || !is_ahead(self.next, MAX_POSTPONED, now);
        is_due && !self.is_leased(now)
    }

    /// Whether somebody is sending it, or died with it a moment ago.
    pub fn is_leased(&self, now: Timestamp) -> bool {
        self.lease.is_some_and(|until| is_ahead(until, MAX_LEASE, now))
    }
}

/// Whether a time is in the future, but by `longest` at most: a later time was set by a wrong clock.
fn is_ahead(at: Timestamp, longest: TimeDelta, now: Timestamp) -> bool {
    at > now && at <= now.saturating_add(longest)
}
