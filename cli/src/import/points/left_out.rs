//! Lines that are left out for what the table has: takes them out of their groups. Decides about none.

use domain::{DeviceId, Exact, MetricName, Timestamp};

use super::unite::{Group, SentLine};
use crate::import::comparison::value_metric;

/// The most series that are remembered: an owner, whose lines follow each other, has fewer.
pub(super) const MAX_SERIES: usize = 100;

/// The groups without lines that are left out. A group from which nothing stays goes too.
pub(super) fn without(
    groups: impl Iterator<Item = anyhow::Result<Group>>,
    mut is_left_out: impl FnMut(&SentLine) -> anyhow::Result<bool>,
) -> impl Iterator<Item = anyhow::Result<Group>> {
    let mut kept_of = move |group: Group| {
        let mut kept = Group::with_capacity(group.len());
        for line in group {
            if !is_left_out(&line)? {
                kept.push(line);
            }
        }
        anyhow::Ok((!kept.is_empty()).then_some(kept))
    };
    groups.filter_map(move |group| group.and_then(&mut kept_of).transpose())
}

/// The value of an entity, as a line has it.
pub(super) struct EntityValue {
    pub(super) device: DeviceId,
    pub(super) metric: MetricName,
    pub(super) value: Exact,
}

impl EntityValue {
    /// Reads it as the server would.
    pub(super) fn read(line: &SentLine, now: Timestamp) -> Option<Self> {
        let (device_tags, room_tag) = line.way.tags();
        let read = local::read_points(line.text.as_bytes(), now, device_tags, room_tag).ok()?;
        read.readings.into_iter().find_map(|reading| {
            let metric = value_metric(&reading)?.clone();
            let value = Exact::from(reading.metrics().get(&metric)?);
            Some(Self { device: reading.device, metric, value })
        })
    }
}
