//! The rules and channels as this process knows them, and which rules are about a device. Judges nothing.

use std::time::Duration;

use alerts::{Rule, Scope, Subject, Watch};
use chrono::TimeDelta;
use domain::{ChannelId, Device, DeviceId, RuleId, TimeRange, Timestamp, Zone};
use table::{
    AlertKey, Invocation, RunningMark, StoreError, StoreResult, StoredChannel, StoredRule,
    UnreadableItem,
};
use tokio::sync::OnceCell;

use crate::devices::{Devices, is_in};
use crate::energy::meter;
use crate::ports::Store;

/// A longer time since the system last ran is a pause, although nobody has noted it yet.
pub(crate) const MAX_UNMARKED: TimeDelta = TimeDelta::minutes(15);
/// The longest time for each item without which messages are sent all the same.
const MAX_ASKING: Duration = Duration::from_secs(3);

/// What each judgement needs beside readings.
#[derive(Debug)]
pub struct Rules {
    /// The rules, sorted by id.
    pub rules: Vec<StoredRule>,
    /// The channels, sorted by id; none where there is no rule.
    pub channels: Vec<StoredChannel>,
    /// The zone of the system's days; UTC where there is no rule or the zone was never read.
    pub zone: Zone,
    /// When nothing was taken in, in order; empty while it could not be read.
    pauses: OnceCell<Vec<TimeRange>>,
    /// The rules and channels that could not be read.
    pub unreadable: Vec<UnreadableItem>,
    /// Why the zone or the pauses could not be read.
    pub lacking: Vec<StoreError>,
}

impl Rules {
    /// Asks the table. Without a rule nothing else is asked. Of the zone and of pauses, what was read `before` holds
    /// while the table does not tell them: sending needs no pauses, and budgets have a zone of their own.
    pub(crate) async fn read(
        store: &impl Store,
        before: Option<&Self>,
        now: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<Self> {
        let rules = store.alert_rules(invocation).await?;
        let mut read = Self {
            rules: rules.found,
            channels: Vec::new(),
            zone: Zone::UTC,
            pauses: OnceCell::new(),
            unreadable: rules.unreadable,
            lacking: Vec::new(),
        };
        if read.rules.is_empty() {
            return Ok(read);
        }
        let channels = store.channels(invocation).await?;
        read.channels = channels.found;
        read.unreadable.extend(channels.unreadable);

        let asking = || invocation.part_of(MAX_ASKING.min(invocation.remaining() / 2));
        read.zone = match store.rollup_state(&asking()).await {
            Ok(state) => state.and_then(|state| state.zone.parse().ok()).unwrap_or(Zone::UTC),
            Err(error) => {
                read.lacking.push(error);
                before.map_or(Zone::UTC, |before| before.zone)
            }
        };
        let pauses = match store.running_mark(&asking()).await {
            Ok(mark) => Some(pauses_of(mark, now)),
            Err(error) => {
                // A damaged mark counts as absent: whoever notes next that the system runs replaces it.
                let is_damaged = error.is_permanent();
                read.lacking.push(error);
                let known = before.and_then(|before| before.pauses.get().cloned());
                known.or_else(|| is_damaged.then(Vec::new))
            }
        };
        read.pauses = OnceCell::new_with(pauses);
        Ok(read)
    }

    /// When nothing was taken in, in order. A judgement asks again where nobody could read it in the short time before
    /// messages are sent. Without an answer it fails: devices would be called silent because the system stood still.
    pub(crate) async fn pauses(
        &self,
        store: &impl Store,
        now: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<&[TimeRange]> {
        let asked = self.pauses.get_or_try_init(async || {
            let mark = store.running_mark(invocation).await?;
            Ok(pauses_of(mark, now))
        });
        asked.await.map(Vec::as_slice)
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

/// The pauses of a mark, with one that nobody has noted yet.
fn pauses_of(mark: Option<RunningMark>, now: Timestamp) -> Vec<TimeRange> {
    let Some(mark) = mark else { return Vec::new() };
    let mut pauses = mark.pauses;
    if now.since(mark.at) > MAX_UNMARKED {
        pauses.extend(TimeRange::new(mark.at, now));
    }
    pauses
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
        Scope::Each(_) => {
            devices_of(rule, devices).map(|device| Subject::Device(device.id().clone())).collect()
        }
    }
}

/// Those of some devices that a rule is about, be it by their mean.
pub fn devices_of<'a>(
    rule: &'a Rule,
    devices: impl Iterator<Item = &'a Device> + 'a,
) -> impl Iterator<Item = &'a Device> {
    devices.filter(|device| match &rule.scope {
        Scope::RoomMean(room) => device.place().room() == Some(room),
        scope => is_about(scope, device.id(), Some(device)),
    })
}

/// Whether a device has ever sent what a rule watches.
#[must_use]
pub fn has_sent_watched(rule: &Rule, device: &Device) -> bool {
    match &rule.watch {
        Watch::Metric { metric, .. } | Watch::Counter { metric, .. } => {
            device.metrics().contains_key(metric)
        }
        Watch::Budget { .. } | Watch::Demand { .. } => meter(device).is_some(),
        Watch::Silence { .. } => true,
    }
}
