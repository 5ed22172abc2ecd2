//! Devices and metrics that are left out of sums and means, with the reasons, and meters that moved within the range.
//! Reads nothing.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    Device, DeviceId, Meter, MetricName, NotCounted, NotOfRoom, Role, TimeRange, Timestamp,
    meter_of, meters_above,
};
use serde::Serialize;

use super::error::SeriesError;
use super::presence::Presence;

/// The largest number of devices of one answer.
pub const MAX_DEVICES: usize = 200;
/// The reason for leaving out a meter that was outside of the rooms for too long.
const MOVED: &str = "moved";

/// The number of devices that are read at once.
pub const DEVICE_CONCURRENCY: usize = 4;

/// A device or some of its metrics that are left out of a sum, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut<'a> {
    device_id: &'a DeviceId,
    /// `behind`: another device measures this device too. `moved`: the meter was elsewhere for more than half of the
    /// range, so the devices behind it count instead. Any other reason is the role of the metrics.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["behind", MOVED, "production", "storage", "none"])))]
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<&'a DeviceId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    /// The metrics that are left out; absent if all metrics are.
    metrics: Vec<&'a MetricName>,
    /// Whether nothing of the device is in the sum.
    #[serde(skip)]
    is_whole: bool,
}

/// A meter that was in the rooms for only a part of the range. In the rest, energy of the devices behind it may be
/// missing. A request for each part alone shows all energy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MovedMeter<'a> {
    device_id: &'a DeviceId,
    /// The parts of the range in which the meter was in the rooms.
    during: Vec<During>,
}

/// A range of time as answers show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
struct During {
    from: Timestamp,
    to: Timestamp,
}

/// The error of an answer about too many devices.
pub fn too_many(number: std::fmt::Arguments<'_>) -> SeriesError {
    SeriesError::OutOfReach(format!(
        "This is about {number} devices; one request answers for at most {MAX_DEVICES}. Ask room by room, or \
         device by device."
    ))
}

/// The devices that a sum leaves out because a meter measures the same energy, and these meters.
#[derive(Debug, Default)]
pub struct BehindMeters<'a> {
    /// Devices that a meter in the sum measures too, and meters that were in the rooms for less than half of the range.
    pub left_out: BTreeMap<&'a DeviceId, LeftOut<'a>>,
    /// Meters that were in the rooms for a part of the range only.
    pub moved: BTreeMap<&'a DeviceId, MovedMeter<'a>>,
    /// The meters that are above any device of the sum and were in the rooms at some time.
    pub meters: BTreeSet<&'a DeviceId>,
}

impl<'a> BehindMeters<'a> {
    /// Finds the devices of a sum that are left out.
    ///
    /// A device is left out if a meter above it was in the rooms for at least half of the range. A meter that was there
    /// for less is left out itself, and the devices behind it count. So no device is counted twice.
    pub fn of(
        devices: impl Iterator<Item = &'a DeviceId>,
        behind: impl Fn(&DeviceId) -> Option<&'a DeviceId>,
        presences: &BTreeMap<&'a DeviceId, Presence>,
    ) -> Self {
        let is_mostly_there = |id: &DeviceId| presences.get(id).is_some_and(Presence::is_mostly);
        let mut found = Self::default();

        for device in devices {
            let above = meters_above(device, &behind).into_iter();
            let above = above.filter(|id| presences.get(id).is_some_and(Presence::is_ever));
            found.meters.extend(above.clone());

            match meter_of(device, &behind, is_mostly_there) {
                Some(meter) => {
                    found.left_out.insert(device, LeftOut::of_whole(device, "behind", Some(meter)));
                }
                None => {
                    for meter in above.filter(|id| !is_mostly_there(id)) {
                        let left_out = LeftOut::of_whole(meter, MOVED, None);
                        found.left_out.entry(meter).or_insert(left_out);
                    }
                }
            }
        }

        let moved = found.meters.iter().map(|id| (*id, &presences[id]));
        let moved = moved.filter(|(_, presence)| !presence.is_always());
        found.moved =
            moved.map(|(id, presence)| (id, MovedMeter::of(id, presence.stays()))).collect();
        found
    }
}

impl<'a> MovedMeter<'a> {
    fn of(device_id: &'a DeviceId, stays: &[TimeRange]) -> Self {
        let during = |stay: &TimeRange| During { from: stay.from(), to: stay.to() };
        Self { device_id, during: stays.iter().map(during).collect() }
    }

    /// Whether the meter was in the rooms in the whole of a range.
    pub fn was_there(&self, range: TimeRange) -> bool {
        self.during.iter().any(|stay| stay.from <= range.from() && range.to() <= stay.to)
    }
}

impl<'a> LeftOut<'a> {
    const fn of_whole(
        device_id: &'a DeviceId,
        reason: &'static str,
        behind: Option<&'a DeviceId>,
    ) -> Self {
        Self { device_id, reason, behind, metrics: Vec::new(), is_whole: true }
    }

    /// The same entry, limited to these metrics.
    #[must_use]
    pub fn of_metrics(self, metrics: Vec<&'a MetricName>) -> Self {
        Self { metrics, ..self }
    }

    /// Joins the entries of a device's metrics to a single entry that names no metric, if they are the same for all
    /// metrics.
    pub fn joined(of_metrics: Vec<Option<Self>>) -> Vec<Self> {
        let nameless = |left_out: &Option<Self>| {
            left_out.clone().map(|left_out| left_out.of_metrics(Vec::new()))
        };
        let all: Vec<_> = of_metrics.iter().map(nameless).collect();

        match all.first() {
            Some(Some(first)) if all.iter().all(|left_out| left_out.as_ref() == Some(first)) => {
                vec![first.clone()]
            }
            _ => of_metrics.into_iter().flatten().collect(),
        }
    }

    /// Entries for the metrics of a device that do not count because of their roles, one entry for each role.
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
            is_whole,
        };
        by_role.into_iter().map(each).collect()
    }

    /// Whether a device is left out because it was elsewhere for too long.
    pub fn is_moved(&self, device: &DeviceId) -> bool {
        self.reason == MOVED && self.device_id == device
    }

    /// Whether the entry leaves out the whole of this device.
    pub fn is_of_whole(&self, device: &DeviceId) -> bool {
        self.is_whole && self.device_id == device
    }

    /// Whether no metric of the device counts, and this entry is the reason for `metric`.
    pub fn is_of_metric(&self, device: &DeviceId, metric: &MetricName) -> bool {
        self.is_of_whole(device) && (self.metrics.is_empty() || self.metrics.contains(&metric))
    }

    /// The device.
    pub const fn device(&self) -> &'a DeviceId {
        self.device_id
    }

    /// The meter that measures the device too.
    pub const fn behind(&self) -> Option<&'a DeviceId> {
        self.behind
    }
}

/// A device that is left out of a sum, or a metric of a device that is left out of means.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub enum NotCombined<'a> {
    /// Another device measures this device too.
    Behind(LeftOut<'a>),
    /// The metric does not describe the room.
    NotOfRoom(OutOfMeans<'a>),
}

/// A metric of a device that is left out of the means of rooms.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "NotOfRoom"))]
pub struct OutOfMeans<'a> {
    device_id: &'a DeviceId,
    metric: &'a MetricName,
    not_of_room: NotOfRoom,
}

impl<'a> OutOfMeans<'a> {
    /// The entry of a metric; `None` if the metric describes the room.
    pub fn of(device: &'a Device, metric: &'a MetricName) -> Option<Self> {
        let not_of_room = device.not_of_room(metric)?;
        Some(Self { device_id: device.id(), metric, not_of_room })
    }
}

#[cfg(test)]
mod tests {
    use domain::given;

    use super::*;

    fn hours(from: i64, to: i64) -> TimeRange {
        TimeRange::new(given::at_minute(from * 60), given::at_minute(to * 60)).expect("a range")
    }

    /// A day, and the hours of it in which a meter is there.
    fn there(stays: &[(i64, i64)]) -> Presence {
        Presence::within(hours(0, 24), stays.iter().map(|(from, to)| hours(*from, *to)).collect())
    }

    /// The devices that are left out, each with the meter or the reason, and the meters that moved.
    fn found(
        behind: &[(&str, &str)],
        presences: &[(&str, Presence)],
    ) -> (Vec<String>, Vec<String>) {
        let ids: BTreeMap<&str, DeviceId> = behind
            .iter()
            .flat_map(|(device, meter)| [*device, *meter])
            .map(|id| (id, given::device(id)))
            .collect();
        let above = |id: &DeviceId| {
            let found = behind.iter().find(|(device, _)| *device == id.as_str());
            found.map(|(_, meter)| &ids[meter])
        };
        let presences: BTreeMap<&DeviceId, Presence> =
            presences.iter().map(|(id, presence)| (&ids[id], presence.clone())).collect();

        let BehindMeters { left_out, moved, .. } =
            BehindMeters::of(ids.values(), above, &presences);
        let shown = |left_out: &LeftOut<'_>| {
            let why = left_out.behind().map_or(left_out.reason, DeviceId::as_str);
            format!("{} {why}", left_out.device())
        };
        (
            left_out.values().map(shown).collect(),
            moved.into_keys().map(ToString::to_string).collect(),
        )
    }

    #[test]
    fn a_meter_counts_in_the_place_of_its_devices_from_half_of_the_range_on() {
        let behind = [("plug", "meter")];
        let of = |stays: &[(i64, i64)]| found(&behind, &[("meter", there(stays))]);
        assert_eq!(of(&[(0, 24)]), (vec!["plug meter".into()], Vec::new()));
        assert_eq!(of(&[(0, 6), (18, 24)]), (vec!["plug meter".into()], vec!["meter".into()]));
        assert_eq!(of(&[(3, 14)]), (vec!["meter moved".into()], vec!["meter".into()]));
        assert_eq!(of(&[]), (Vec::new(), Vec::new()), "it was never there");
    }

    #[test]
    fn above_a_meter_that_moved_the_next_one_counts() {
        let behind = [("plug", "floor"), ("floor", "main")];
        let main = |stays: &[(i64, i64)]| {
            found(&behind, &[("floor", there(&[(0, 1)])), ("main", there(stays))])
        };
        let of_main = ["floor main", "plug main"].map(String::from).to_vec();
        assert_eq!(main(&[(0, 24)]), (of_main, vec!["floor".into()]));
        let both = ["floor moved", "main moved"].map(String::from).to_vec();
        assert_eq!(main(&[(23, 24)]), (both, ["floor", "main"].map(String::from).to_vec()));
    }

    #[test]
    fn of_a_circle_one_counts() {
        let behind = [("a", "b"), ("b", "a")];
        let of = |a: Presence, b: Presence| found(&behind, &[("a", a), ("b", b)]).0;
        let (long, short) = (there(&[(0, 24)]), there(&[(0, 1)]));
        assert_eq!(of(long.clone(), long.clone()), ["b a"]);
        assert_eq!(of(short.clone(), long.clone()), ["a moved"]);
        assert_eq!(of(long, short), ["b a"]);
    }
}
