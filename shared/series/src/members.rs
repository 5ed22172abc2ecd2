//! What a sum leaves out, and how many devices one answer is about. Chooses no devices.

use std::collections::BTreeMap;

use domain::{Device, DeviceId, Meter, MetricName, NotCounted, Role, TimeRange, Timestamp};
use serde::Serialize;

use super::counting::Counted;
use super::failure::Failure;

/// The largest number of devices of one answer.
pub const MAX_DEVICES: usize = 200;
/// The number of devices that are asked at once.
pub const DEVICE_CONCURRENCY: usize = 4;

/// What a sum leaves out, and why: a device whose values are a part of another's, or metrics of a device that
/// measure no consumption.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut<'a> {
    device_id: &'a DeviceId,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<&'a DeviceId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    metrics: Vec<&'a MetricName>,
    /// When it is left out, if not always.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    during: Vec<During>,
    /// Whether nothing of the device is in the sum.
    #[serde(skip)]
    is_whole: bool,
}

/// A range of time as answers show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct During {
    from: Timestamp,
    to: Timestamp,
}

/// Why an answer is about too many devices.
#[must_use]
pub fn too_many(number: std::fmt::Arguments<'_>) -> Failure {
    Failure::OutOfReach(format!(
        "This is about {number} devices; one request answers for at most {MAX_DEVICES}. Ask room by room, or \
         device by device."
    ))
}

impl<'a> LeftOut<'a> {
    /// That a device is left out of a sum; `None` if it never is.
    #[must_use]
    pub fn behind_meter(device: &'a Device, counted: &Counted<'a>) -> Option<Self> {
        let (meter, during) = counted.by_meter.as_ref()?;
        let is_whole = counted.itself.is_empty();
        let during = during.iter().filter(|_| !is_whole);
        let during = during.map(|it| During { from: it.from(), to: it.to() }).collect();
        let (device_id, behind) = (device.id(), Some(*meter));
        Some(Self { device_id, reason: "behind", behind, metrics: Vec::new(), during, is_whole })
    }

    /// That it concerns these metrics alone.
    #[must_use]
    pub fn of_metrics(self, metrics: Vec<&'a MetricName>) -> Self {
        Self { metrics, ..self }
    }

    /// What is said of a device whose metrics are left out so: once, without their names, if it is the same of all.
    #[must_use]
    pub fn joined(of_metrics: Vec<Option<Self>>) -> Vec<Self> {
        let nameless = |it: &Option<Self>| it.clone().map(|it| it.of_metrics(Vec::new()));
        let all: Vec<_> = of_metrics.iter().map(nameless).collect();
        match all.first() {
            Some(Some(first)) if all.iter().all(|it| it.as_ref() == Some(first)) => {
                vec![first.clone()]
            }
            _ => of_metrics.into_iter().flatten().collect(),
        }
    }

    /// That metrics of a device are left out for their roles, one for each role.
    #[must_use]
    pub fn of_roles(device: &'a Device, meter: &Meter<'a>) -> Vec<Self> {
        let mut by_role: BTreeMap<Role, Vec<&'a MetricName>> = BTreeMap::new();
        for (name, why) in &meter.left_out {
            if let NotCounted::Role(role) = why {
                by_role.entry(*role).or_default().push(name);
            }
        }
        let is_whole = !meter.is_of_sums();
        let each = |(role, metrics): (Role, _)| Self {
            device_id: device.id(),
            reason: role.as_str(),
            behind: None,
            metrics,
            during: Vec::new(),
            is_whole,
        };
        by_role.into_iter().map(each).collect()
    }

    /// When it is left out, if not always.
    #[must_use]
    pub fn during(&self) -> Vec<TimeRange> {
        self.during.iter().filter_map(|it| TimeRange::new(it.from, it.to).ok()).collect()
    }

    /// Whether what a device measured at a timestamp is left out, of a device that counts at other times.
    #[must_use]
    pub fn is_at(&self, device: &DeviceId, at: Timestamp) -> bool {
        self.device_id == device && self.during.iter().any(|it| it.from <= at && at < it.to)
    }

    /// Whether it is all of a device.
    #[must_use]
    pub fn is_of_whole(&self, device: &DeviceId) -> bool {
        self.is_whole && self.device_id == device
    }

    /// Whether it is all of a metric of a device.
    #[must_use]
    pub fn is_of_metric(&self, device: &DeviceId, metric: &MetricName) -> bool {
        self.is_of_whole(device) && (self.metrics.is_empty() || self.metrics.contains(&metric))
    }

    /// The device.
    #[must_use]
    pub const fn device(&self) -> &'a DeviceId {
        self.device_id
    }

    /// The meter that measures it too.
    #[must_use]
    pub const fn behind(&self) -> Option<&'a DeviceId> {
        self.behind
    }
}
