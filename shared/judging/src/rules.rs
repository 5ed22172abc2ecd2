//! The rules and channels as this process knows them, and which rules are about a device. Judges nothing.

use alerts::{Rule, Scope, Subject, Watch};
use chrono::TimeDelta;
use domain::{ChannelId, Device, DeviceId, RuleId, TimeRange, Timestamp, Zone};
use table::{AlertKey, Invocation, StoreResult, StoredChannel, StoredRule, UnreadableItem};

use crate::devices::{Devices, is_in};
use crate::ports::Store;

/// A longer time since the system last ran is a pause, although nobody has noted it yet.
const MAX_UNMARKED: TimeDelta = TimeDelta::minutes(15);

/// What each judgement needs beside readings.
#[derive(Debug)]
pub struct Rules {
    /// The rules, sorted by id.
    pub rules: Vec<StoredRule>,
    /// The channels, sorted by id; none where there is no rule.
    pub channels: Vec<StoredChannel>,
    /// The zone of the system's days; UTC where there is no rule.
    pub zone: Zone,
    /// When nothing was taken in, in order.
    pub pauses: Vec<TimeRange>,
    /// The rules and channels that could not be read.
    pub unreadable: Vec<UnreadableItem>,
}

impl Rules {
    /// Asks the table. Without a rule nothing else is asked.
    pub(crate) async fn read(
        store: &impl Store,
        now: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<Self> {
        let rules = store.alert_rules(invocation).await?;
        let mut read = Self {
            rules: rules.found,
            channels: Vec::new(),
            zone: Zone::UTC,
            pauses: Vec::new(),
            unreadable: rules.unreadable,
        };
        if read.rules.is_empty() {
            return Ok(read);
        }
        let channels = store.channels(invocation).await?;
        read.channels = channels.found;
        read.unreadable.extend(channels.unreadable);
        let state = store.rollup_state(invocation).await?;
        read.zone = state.and_then(|it| it.zone.parse().ok()).unwrap_or(Zone::UTC);
        if let Some(mark) = store.running_mark(invocation).await? {
            read.pauses = mark.pauses;
            if now.since(mark.at) > MAX_UNMARKED {
                read.pauses.extend(TimeRange::new(mark.at, now));
            }
        }
        Ok(read)
    }

    /// The rule of an id.
    #[must_use]
    pub fn get(&self, id: &RuleId) -> Option<&StoredRule> {
        self.rules.iter().find(|it| it.id == *id)
    }

    /// The rules that are on and about a device; without the device as it is registered, those that name it.
    pub fn of<'a, 'd>(
        &'a self,
        id: &'d DeviceId,
        device: Option<&'d Device>,
    ) -> impl Iterator<Item = &'a StoredRule> + use<'a, 'd> {
        self.rules.iter().filter(move |it| it.rule.is_on && is_about(&it.rule.scope, id, device))
    }

    /// Some of the rules, each with each device or room that it is about.
    pub(crate) fn keys(
        &self,
        devices: &Devices,
        is_asked: impl Fn(&StoredRule) -> bool,
    ) -> Vec<AlertKey> {
        let mut keys = Vec::new();
        for rule in self.rules.iter().filter(|rule| is_asked(rule)) {
            let subjects = subjects_of(&rule.rule, devices.iter()).into_iter();
            keys.extend(subjects.map(|subject| AlertKey { rule: rule.id.clone(), subject }));
        }
        keys
    }

    /// Those of some rules whose devices are not known, because there are more than memory holds.
    pub(crate) fn of_unknown_devices(
        &self,
        devices: &Devices,
        is_asked: impl Fn(&StoredRule) -> bool,
    ) -> Vec<RuleId> {
        let is_unknown = |rule: &&StoredRule| {
            !devices.is_whole() && !matches!(rule.rule.scope, Scope::Device(_)) && is_asked(rule)
        };
        self.rules.iter().filter(is_unknown).map(|rule| rule.id.clone()).collect()
    }

    /// Whether a rule is about what devices share, so that it has to be known what a device is.
    #[must_use]
    pub fn has_groups(&self) -> bool {
        self.rules.iter().any(|it| it.rule.is_on && matches!(it.rule.scope, Scope::Each(_)))
    }

    /// The channels of a message of a rule, each with the time from which on it may send: the end of its quiet hours.
    pub(crate) fn channels_of(&self, rule: &Rule, now: Timestamp) -> Vec<(ChannelId, Timestamp)> {
        let next = |channel: &StoredChannel| match channel.quiet_hours {
            Some(quiet) if !rule.ignores_quiet_hours => quiet.end(now, self.zone),
            _ => now,
        };
        self.channels.iter().map(|channel| (channel.id.clone(), next(channel))).collect()
    }
}

/// Whether a scope has a device, as each of its devices has a state of its own.
pub(crate) fn is_about(scope: &Scope, id: &DeviceId, device: Option<&Device>) -> bool {
    match scope {
        Scope::Device(named) => named == id,
        Scope::Each(group) => device.is_some_and(|device| is_in(group, device)),
        Scope::RoomMean(_) => false,
    }
}

/// What a rule is judged on, of some devices. The mean of a room is of a metric only.
pub fn subjects_of<'a>(
    rule: &'a Rule,
    devices: impl Iterator<Item = &'a Device> + 'a,
) -> Vec<Subject> {
    match &rule.scope {
        Scope::Device(id) => vec![Subject::Device(id.clone())],
        Scope::RoomMean(room) => match rule.watch {
            Watch::Metric { .. } => vec![Subject::Room(room.clone())],
            _ => Vec::new(),
        },
        Scope::Each(group) => devices
            .filter(|device| is_in(group, device))
            .map(|device| Subject::Device(device.id().clone()))
            .collect(),
    }
}
