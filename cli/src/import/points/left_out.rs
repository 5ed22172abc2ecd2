//! Removes the lines of an import that its caller leaves out. Decides about no line.

use domain::{DeviceId, Exact, MetricName};

use crate::import::imported::value_metric;
use history::points::line_reader::LineReader;
use history::points::unite::{Group, SentLine};

/// Removes the lines that a predicate selects, and groups that become empty.
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

/// The value that a line has for an entity.
pub(super) struct EntityValue {
    pub(super) device: DeviceId,
    pub(super) metric: MetricName,
    pub(super) value: Exact,
}

impl EntityValue {
    /// Parses a line as the server would.
    pub(super) fn read(line: &SentLine, reader: &LineReader) -> Option<Self> {
        let read = reader.read(&line.text, line.way).ok()?;
        read.readings.into_iter().find_map(|reading| {
            let metric = value_metric(&reading)?.clone();
            let value = Exact::from(reading.metrics().get(&metric)?);
            Some(Self { device: reading.device, metric, value })
        })
    }
}
