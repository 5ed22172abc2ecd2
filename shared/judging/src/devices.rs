//! The registered devices that this process remembers, and whether a rule is about few of them. Writes nothing.

use std::collections::BTreeMap;

use alerts::{Group, Rule, Scope};
use chrono::TimeDelta;
use domain::{Device, DeviceId, Meter, MetricInfo, MetricKind, MetricName};

/// The largest number of devices of a rule that each batch judges.
pub const MAX_FEW: usize = 1_000;
/// How long a list is used for each thousand of its devices, rounded up. So reading lists costs some 110 read units a
/// minute at any size. A device that joins a group is found when the list is read again.
const AGE_OF_A_THOUSAND: TimeDelta = TimeDelta::minutes(1);
/// How long there are assumed to be too many devices for memory. A check costs over a thousand read units.
const AGE_OF_TOO_MANY: TimeDelta = TimeDelta::hours(1);

/// Devices by id.
#[derive(Debug, Default)]
pub struct ListedDevices {
    all: BTreeMap<DeviceId, Device>,
    /// Whether all devices are here. If there are more than memory holds, the list is empty.
    is_whole: bool,
}

impl ListedDevices {
    pub(crate) fn all(devices: Vec<Device>) -> Self {
        let all = devices.into_iter().map(|device| (device.id().clone(), device)).collect();
        Self { all, is_whole: true }
    }

    /// How long the list is used before it is read again.
    pub(crate) fn max_age(&self) -> TimeDelta {
        if !self.is_whole {
            return AGE_OF_TOO_MANY;
        }
        let thousands = self.all.len().div_ceil(1_000).max(1);
        i32::try_from(thousands).map_or(AGE_OF_TOO_MANY, |thousands| AGE_OF_A_THOUSAND * thousands)
    }

    /// A device, if it is in the list.
    pub fn get(&self, id: &DeviceId) -> Option<&Device> {
        self.all.get(id)
    }

    /// The devices in the list, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Device> {
        self.all.values()
    }

    /// Whether the list has all devices.
    pub const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Whether a rule is about so few devices that batches judge the rule.
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

/// The meter of a device: its counters, or its powers if it has no counter.
pub(crate) fn meter(device: &Device) -> Option<Meter<'_>> {
    Meter::of(device.metrics())?.alone(device.metrics())
}

/// The gauges of a device. A meter of gauges measures by power, not by counters.
pub(crate) fn gauges(device: &Device) -> BTreeMap<MetricName, MetricInfo> {
    let gauges = device.metrics().iter().filter(|(_, info)| info.kind == MetricKind::Gauge);
    gauges.map(|(name, info)| (name.clone(), info.clone())).collect()
}
