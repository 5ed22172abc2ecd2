//! The rules and channels as a process remembers them, and the devices that a rule is about. Judges nothing.

use alerts::{AlertSubject, Rule, Scope, Watch};
use domain::{ChannelId, Device, DeviceId, RuleId, TimeRange, Timestamp, Zone};
use table::{AlertKey, StoreError, StoredChannel, StoredRule, UnreadableItem};
use tokio::sync::OnceCell;

use crate::devices::{ListedDevices, is_in, meter};

/// All that a judgement needs except readings.
#[derive(Debug)]
pub struct AlertRules {
    /// The rules, sorted by id.
    pub rules: Vec<StoredRule>,
    /// The channels, sorted by id; empty without rules.
    pub channels: Vec<StoredChannel>,
    /// The zone of the system's days; `None` where there is no rule or the zone was never read.
    pub(crate) zone: Option<Zone>,
    /// The pauses of the system, in order; empty while they could not be read.
    pub(crate) pauses: OnceCell<Vec<TimeRange>>,
    /// The rules and channels that could not be read.
    pub unreadable: Vec<UnreadableItem>,
    /// Why the zone or the pauses could not be read.
    pub lacking: Vec<StoreError>,
}

/// Rules, each with a device or room.
pub(crate) struct RulesOnSubjects<'a> {
    pub(crate) found: Vec<(AlertKey, &'a StoredRule)>,
    /// Whether no device or room is missing.
    pub(crate) is_complete: bool,
}

impl AlertRules {
    /// The rule with an id.
    pub fn get(&self, id: &RuleId) -> Option<&StoredRule> {
        self.rules.iter().find(|rule| rule.id == *id)
    }

    /// The zone of the system's days; UTC where it is not known.
    pub fn zone(&self) -> Zone {
        self.zone.unwrap_or(Zone::UTC)
    }

    /// The active rules on a device. If `device` is `None`, the groups of the device are not known, and only rules that
    /// name its id are returned.
    pub fn of<'a, 'd>(
        &'a self,
        id: &'d DeviceId,
        device: Option<&'d Device>,
    ) -> impl Iterator<Item = &'a StoredRule> + use<'a, 'd> {
        let rules = self.rules.iter().filter(|rule| rule.definition.is_on);
        rules.filter(move |rule| is_about(&rule.definition.scope, id, device))
    }

    /// Each wanted rule with each device or room that it is about. Without the list of devices nobody knows the devices
    /// of a group or room, so only rules that name a device are found.
    pub(crate) fn on_subjects(
        &self,
        devices: &ListedDevices,
        is_listed: bool,
        is_wanted: impl Fn(&StoredRule) -> bool,
    ) -> RulesOnSubjects<'_> {
        let names_device = |rule: &StoredRule| matches!(rule.definition.scope, Scope::Device(_));
        let mut found = Vec::new();
        for rule in self.rules.iter().filter(|rule| is_wanted(rule)) {
            if is_listed || names_device(rule) {
                let subjects = subjects_of(&rule.definition, devices.iter()).into_iter();
                found.extend(subjects.map(|subject| (rule.on(subject), rule)));
            }
        }
        RulesOnSubjects { found, is_complete: is_listed }
    }

    /// The wanted rules whose devices are not known, because there are more devices than memory holds.
    pub(crate) fn of_unknown_devices(
        &self,
        devices: &ListedDevices,
        is_wanted: impl Fn(&StoredRule) -> bool,
    ) -> Vec<RuleId> {
        let is_unknown = |rule: &&StoredRule| {
            !devices.is_whole()
                && !matches!(rule.definition.scope, Scope::Device(_))
                && is_wanted(rule)
        };
        self.rules.iter().filter(is_unknown).map(|rule| rule.id.clone()).collect()
    }

    /// The active rules on groups of devices. To judge them, the room, kind and tags of each device must be known.
    pub(crate) fn on_groups(&self) -> impl Iterator<Item = &StoredRule> {
        let is_on_group = |rule: &Rule| rule.is_on && matches!(rule.scope, Scope::Each(_));
        self.rules.iter().filter(move |rule| is_on_group(&rule.definition))
    }

    /// All channels, each with the time from which it may send a message of `rule`: now, or the end of its quiet hours.
    /// If the zone is not known, the time is now: the sender reads the zone again and decides.
    pub(crate) fn send_times(&self, rule: &Rule, now: Timestamp) -> Vec<(ChannelId, Timestamp)> {
        let next = |channel: &StoredChannel| match (channel.quiet_hours, self.zone) {
            (Some(quiet), Some(zone)) if !rule.ignores_quiet_hours => quiet.end(now, zone),
            _ => now,
        };
        self.channels.iter().map(|channel| (channel.id.clone(), next(channel))).collect()
    }
}

/// Whether a rule with this scope is judged on this device. The mean of a room is judged on the room.
pub(crate) fn is_about(scope: &Scope, id: &DeviceId, device: Option<&Device>) -> bool {
    match scope {
        Scope::Device(named) => named == id,
        Scope::Each(group) => device.is_some_and(|device| is_in(group, device)),
        Scope::RoomMean(_) => false,
    }
}

/// The subjects of a rule among some devices. The mean of a room is judged for a metric only.
pub fn subjects_of<'a>(
    rule: &'a Rule,
    devices: impl Iterator<Item = &'a Device> + 'a,
) -> Vec<AlertSubject> {
    match &rule.scope {
        Scope::Device(id) => vec![AlertSubject::Device(id.clone())],
        Scope::RoomMean(room) => match rule.watch {
            Watch::Metric { .. } => vec![AlertSubject::Room(room.clone())],
            _ => Vec::new(),
        },
        Scope::Each(_) => devices_of(rule, devices)
            .map(|device| AlertSubject::Device(device.id().clone()))
            .collect(),
    }
}

/// The devices that a rule is about, also if the rule watches their mean.
pub fn devices_of<'a>(
    rule: &'a Rule,
    devices: impl Iterator<Item = &'a Device> + 'a,
) -> impl Iterator<Item = &'a Device> {
    devices.filter(|device| match &rule.scope {
        Scope::RoomMean(room) => device.place().room() == Some(room),
        scope => is_about(scope, device.id(), Some(device)),
    })
}

/// Whether a device has ever sent values of the kind that a rule watches.
pub fn has_sent_watched(rule: &Rule, device: &Device) -> bool {
    match &rule.watch {
        Watch::Metric { metric, .. } | Watch::Counter { metric, .. } => {
            device.metrics().contains_key(metric)
        }
        Watch::Budget { .. } | Watch::Demand { .. } => meter(device).is_some(),
        Watch::Silence { .. } => true,
    }
}
