//! The report of a dry run: series with their spans, devices, metrics and units, and the cost of the import. Sends
//! nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use domain::{Reading, Timestamp};

use super::map::{self, Row};
use super::send::{Batch, advised, batches, body};
use super::unite::{Group, SentLine};
use crate::import::estimate::Estimate;
use crate::import::listed::{self, MAX_SHOWN};
use crate::import::refusals::{Refusal, Refusals};
use crate::import::settings::Taught;
use crate::import::sources::line_protocol::Precision;
use crate::import::sources::{OwnSum, Way};
use crate::import::span::Span;
use crate::import::upload::UploadOptions;

/// The number of lines that are parsed at once.
const CHUNK: usize = 2_000;

/// The report of a dry run.
#[derive(Debug, Default)]
pub(in crate::import) struct Report {
    /// The series by measurement and tags.
    series: BTreeMap<String, Series>,
    estimate: Estimate,
}

/// A series of the source, and its counts.
#[derive(Debug)]
struct Series {
    span: Span,
    /// The target of the series: the device, and each metric with its unit.
    becomes: String,
    room: Option<String>,
}

impl Series {
    fn shown(&self) -> String {
        let room = self.room.as_ref().map(|room| format!(", room {room}")).unwrap_or_default();
        format!("{}{room}", self.becomes)
    }
}

impl Report {
    /// Makes the report of a source, with the source's own sums and the requests' size of the options.
    pub(in crate::import) fn of(
        groups: impl Iterator<Item = anyhow::Result<Group>>,
        own_sums: BTreeMap<String, OwnSum>,
        taught: &Taught,
        options: UploadOptions,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let estimate = Estimate::with_own_sums(own_sums, options.pace);
        let mut report = Self { series: BTreeMap::new(), estimate };
        let mut groups = groups.peekable();
        while groups.peek().is_some() {
            let chunk: Vec<Group> = groups.by_ref().take(CHUNK).collect::<anyhow::Result<_>>()?;
            for batch in batches(&chunk, options.batch) {
                report.add(&batch, options.precision, taught, now)?;
            }
            for line in chunk.iter().flatten() {
                report.note(line, now)?;
            }
        }
        Ok(report)
    }

    /// Counts a line for its series. The first accepted line decides what the series becomes.
    fn note(&mut self, line: &SentLine, now: Timestamp) -> anyhow::Result<()> {
        let span = match self.series.get_mut(&line.series) {
            Some(series) => {
                series.span.add(line.millis);
                if !series.becomes.is_empty() {
                    return Ok(());
                }
                series.span
            }
            None => Span::at(line.millis),
        };

        let (becomes, room) = becomes(&line.text, line.way, now)?;
        self.series.insert(line.series.clone(), Series { span, becomes, room });
        Ok(())
    }

    fn add(
        &mut self,
        batch: &Batch<'_>,
        precision: Precision,
        taught: &Taught,
        now: Timestamp,
    ) -> anyhow::Result<()> {
        let body = body(batch);
        let mut read = read(&body, batch[0].way, now)?;
        read.readings.iter_mut().for_each(|reading| taught.add_to(reading));
        self.estimate.add_request(&read.readings);
        let lines: Vec<&str> = body.split('\n').collect();
        let refused = read.refused.into_iter().map(|(number, why)| {
            let line = lines.get(number - 1).map(|line| domain::excerpt(line)).unwrap_or_default();
            let why = advised(batch[0], &why, precision);
            Refusal { line: 0, reason: format!("{line}: {why}") }
        });
        self.estimate.refusals.extend(refused);
        Ok(())
    }

    /// Writes the map of the series, for a person to edit.
    pub(in crate::import) fn write_map(&self, path: &Path) -> anyhow::Result<()> {
        let row = |(name, series): (&String, &Series)| {
            let (first, last) = series.span.ends();
            Row {
                series: name.clone(),
                import: "yes".to_owned(),
                device: String::new(),
                room: String::new(),
                points: series.span.count,
                first,
                last,
                becomes: series.shown(),
            }
        };
        map::write(path, self.series.iter().map(row))
    }

    /// Makes the report show what thinning would save. For sources that are not thinned.
    pub(in crate::import) const fn show_thinning(&mut self) {
        self.estimate.can_be_thinned = true;
    }

    /// Adds the refusals of the source.
    pub(in crate::import) fn append(&mut self, refusals: Refusals) {
        self.estimate.refusals.append(refusals);
    }

    /// Returns the refusals of the source and of its lines.
    pub(in crate::import) const fn refusals(&self) -> &Refusals {
        &self.estimate.refusals
    }
}

fn read(body: &str, way: Way, now: Timestamp) -> anyhow::Result<local::PointsRead> {
    let (device_tags, room_tag) = way.tags();
    local::read_points(body.as_bytes(), now, device_tags, room_tag)
        .map_err(|problem| anyhow::anyhow!("{}", problem.detail))
}

/// The target of a line: the device with its metrics and their units, and the room.
fn becomes(line: &str, way: Way, now: Timestamp) -> anyhow::Result<(String, Option<String>)> {
    let read = read(line, way, now)?;
    let room = read.readings.iter().find_map(|reading| reading.room.as_ref());
    let room = room.map(ToString::to_string);
    let shown = read.readings.iter().map(described);
    Ok((shown.collect::<Vec<_>>().join("; "), room))
}

fn described(reading: &Reading) -> String {
    let metric = |name: &domain::MetricName| {
        let about = reading.about.as_ref().and_then(|about| about.metrics.get(name));
        let unit = about.and_then(|metric| metric.unit.clone());
        listed::with_unit(name, unit.or_else(|| name.well_known().1).as_ref())
    };
    let metrics: Vec<String> = reading.metrics().keys().map(metric).collect();
    format!("{} {}", reading.device, metrics.join(", "))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "series       {}", self.series.len())?;
        for (name, series) in self.series.iter().take(MAX_SHOWN) {
            writeln!(f, "  {name}")?;
            series.span.write(f, "points", &series.shown())?;
        }
        if self.series.len() > MAX_SHOWN {
            writeln!(f, "  and {} more", self.series.len() - MAX_SHOWN)?;
        }
        write!(f, "{}", self.estimate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_whose_first_point_is_refused_becomes_what_the_next_one_says() {
        let now = Timestamp::from_millis(1_800_000_000_000).unwrap();
        let line = |value: &str, second: i64| SentLine {
            line: 1,
            series: "m,host=a".to_owned(),
            millis: second * 1_000,
            text: format!("m,host=a v={value} {second}000000000"),
            way: Way::Plain,
            hour: None,
        };
        // No reading is of a time before 1970.
        let mut report = Report::default();
        report.note(&line("1", -1), now).unwrap();
        assert_eq!(report.series["m,host=a"].becomes, "", "it is refused");
        report.note(&line("2", 1_768_147_200), now).unwrap();
        let series = &report.series["m,host=a"];
        assert_eq!((&*series.becomes, series.span.count), ("a::m v", 2));
    }
}
