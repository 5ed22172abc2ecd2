//! The registered devices as this process knows them, and how many a rule is about. Writes nothing.

use std::collections::BTreeMap;

use alerts::{Group, Rule, Scope};
use chrono::TimeDelta;
use domain::{Device, DeviceId, Meter, MetricInfo, MetricKind, MetricName};

/// The most devices that are few: a rule on more is judged by the rechecks that `rollup` leaves of sealed quarters, not by
/// batches.
pub const MAX_FEW: usize = 1_000;
/// How long a list is used for each begun thousand of its devices: to read them again costs some 110 read units a
/// minute, however many they are. A device that is new in a group is found when the list is read again.
const AGE_OF_A_THOUSAND: TimeDelta = TimeDelta::minutes(1);
/// How long there are known to be too many devices for memory: to find it out again costs over a thousand read units.
const AGE_OF_TOO_MANY: TimeDelta = TimeDelta::hours(1);

/// The devices by id.
#[derive(Debug, Default)]
pub struct Devices {
    all: BTreeMap<DeviceId, Device>,
    /// Whether these are all: memory holds so many, and of more devices none is kept.
    is_whole: bool,
}

impl Devices {
    pub(crate) fn all(devices: Vec<Device>) -> Self {
        let all = devices.into_iter().map(|device| (device.id().clone(), device)).collect();
        Self { all, is_whole: true }
    }

    /// How long the list is used.
    pub(crate) fn max_age(&self) -> TimeDelta {
        if !self.is_whole {
            return AGE_OF_TOO_MANY;
        }
        let thousands = self.all.len().div_ceil(1_000).max(1);
        i32::try_from(thousands).map_or(AGE_OF_TOO_MANY, |thousands| AGE_OF_A_THOUSAND * thousands)
    }

    /// A device, if it is known.
    pub fn get(&self, id: &DeviceId) -> Option<&Device> {
        self.all.get(id)
    }

    /// All that are known, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Device> {
        self.all.values()
    }

    /// Whether these are all devices.
    pub const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Whether the devices of a rule are so few that it judges batches.
    pub fn are_few_of(&self, rule: &Rule) -> bool {
        match &rule.scope {
            Scope::Device(_) => true,
            Scope::RoomMean(_) => false,
            Scope::Each(group) => {
                let devices = self.all.values().filter(|device| is_in(group, device));
                self.is_whole && devices.take(MAX_FEW + 1).count() <= MAX_FEW
            }
        }
    }
}

/// Whether a device is in a group.
pub(crate) fn is_in(group: &Group, device: &Device) -> bool {
    match group {
        Group::Room(room) => device.place().room() == Some(room),
        Group::Kind(kind) => device.kind() == Some(kind),
        Group::Tag(tag) => device.tags().contains(tag),
    }
}

/// The meter of a device: its counters, else its powers.
pub(crate) fn meter(device: &Device) -> Option<Meter<'_>> {
    Meter::of(device.metrics())?.alone(device.metrics())
}

/// The metrics of a device that are no counters: the meter of them is made from powers.
pub(crate) fn gauges(device: &Device) -> BTreeMap<MetricName, MetricInfo> {
    let gauges = device.metrics().iter().filter(|(_, info)| info.kind == MetricKind::Gauge);
    gauges.map(|(name, info)| (name.clone(), info.clone())).collect()
}
