//! The report of a dry run: series with their spans, devices, metrics and units, and what an import costs. Sends
//! nothing.

use std::collections::BTreeMap;
use std::fmt;

use domain::{Hints, Reading, Timestamp};

use super::send::{batches, body, tags_of};
use super::unite::Group;
use crate::import::estimate::Estimate;
use crate::import::refusals::{Refusal, Refusals};

/// The most series that are shown.
const MAX_SHOWN: usize = 40;
/// The lines that are read at once.
const CHUNK: usize = 2_000;

/// The report.
#[derive(Debug, Default)]
pub(in crate::import) struct Report {
    /// By measurement and tags.
    series: BTreeMap<String, Series>,
    estimate: Estimate,
}

/// One series.
#[derive(Debug)]
struct Series {
    points: u64,
    /// Milliseconds.
    first: i64,
    last: i64,
    /// What becomes of it: the device, and each metric with its unit.
    becomes: String,
    room: Option<String>,
}

impl Report {
    /// Makes the report of an import with requests of this size.
    pub(in crate::import) fn of(
        groups: impl Iterator<Item = anyhow::Result<Group>>,
        path: &str,
        batch: usize,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let mut report = Self::default();
        let mut groups = groups.peekable();
        while groups.peek().is_some() {
            let chunk: Vec<Group> = groups.by_ref().take(CHUNK).collect::<anyhow::Result<_>>()?;
            for batch in batches(&chunk, batch) {
                report.add(&body(&batch), path, now)?;
            }
            for line in chunk.iter().flatten() {
                if let Some(series) = report.series.get_mut(&line.series) {
                    series.points += 1;
                    series.first = series.first.min(line.millis);
                    series.last = series.last.max(line.millis);
                    continue;
                }
                let (becomes, room) = becomes(&line.text, path, now)?;
                let (first, last) = (line.millis, line.millis);
                let series = Series { points: 1, first, last, becomes, room };
                report.series.insert(line.series.clone(), series);
            }
        }
        Ok(report)
    }

    fn add(&mut self, body: &str, path: &str, now: Timestamp) -> anyhow::Result<()> {
        let read = read(body, path, now)?;
        self.estimate.add_request(read.readings.iter().map(|(reading, _)| reading));
        let lines: Vec<&str> = body.split('\n').collect();
        let refused = read.refused.into_iter().map(|(number, why)| {
            let line = lines.get(number - 1).map(|line| domain::excerpt(line)).unwrap_or_default();
            Refusal { line: 0, reason: format!("{line}: {why}") }
        });
        self.estimate.refusals.extend(refused);
        Ok(())
    }

    /// Adds what the source refused.
    pub(in crate::import) fn append(&mut self, refusals: Refusals) {
        self.estimate.refusals.append(refusals);
    }

    /// Returns all refusals.
    pub(in crate::import) const fn refusals(&self) -> &Refusals {
        &self.estimate.refusals
    }
}

fn read(body: &str, path: &str, now: Timestamp) -> anyhow::Result<local::PointsRead> {
    let (device_tags, room_tag) = tags_of(path);
    local::read_points(body.as_bytes(), now, &device_tags, room_tag)
        .map_err(|problem| anyhow::anyhow!("{}", problem.detail))
}

/// What a line becomes: the device with its metrics and their units, and the room.
fn becomes(line: &str, path: &str, now: Timestamp) -> anyhow::Result<(String, Option<String>)> {
    let read = read(line, path, now)?;
    let room = read.readings.iter().find_map(|(reading, _)| reading.room.as_ref());
    let room = room.map(ToString::to_string);
    let shown = read.readings.iter().map(|(reading, hints)| described(reading, hints));
    Ok((shown.collect::<Vec<_>>().join("; "), room))
}

fn described(reading: &Reading, hints: &Hints) -> String {
    let metric = |name: &domain::MetricName| {
        let unit = hints.metrics.get(name).and_then(|it| it.unit.clone());
        let unit = unit.or_else(|| name.well_known().1);
        unit.map_or_else(|| name.to_string(), |unit| format!("{name} ({})", unit.as_str()))
    };
    let metrics: Vec<String> = reading.metrics().keys().map(metric).collect();
    format!("{} {}", reading.device, metrics.join(", "))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "series       {}", self.series.len())?;
        for (name, series) in self.series.iter().take(MAX_SHOWN) {
            let at = |millis| {
                Timestamp::from_millis(millis).map_or_else(|_| "?".to_owned(), |at| at.to_string())
            };
            let (first, last) = (at(series.first), at(series.last));
            writeln!(f, "  {name}")?;
            let room =
                series.room.as_ref().map(|room| format!(", room {room}")).unwrap_or_default();
            writeln!(
                f,
                "    {} points from {first} to {last}: {}{room}",
                series.points, series.becomes
            )?;
        }
        if self.series.len() > MAX_SHOWN {
            writeln!(f, "  and {} more", self.series.len() - MAX_SHOWN)?;
        }
        write!(f, "{}", self.estimate)
    }
}
