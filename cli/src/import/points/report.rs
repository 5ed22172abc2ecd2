//! The report of a dry run: series with their spans, devices, metrics and units, and the cost of the import. Sends
//! nothing.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use domain::Reading;

use super::map::{self, Row};
use crate::import::decoded::{self, PointRules};
use crate::import::estimate::Estimate;
use crate::import::listed::{self, MAX_SHOWN};
use crate::import::round::Rounds;
use crate::import::span::Span;
use crate::import::upload::UploadOptions;
use history::notes::OwnSum;
use history::points::line_reader::LineReader;
use history::points::unite::{Group, SentLine};
use history::refusals::Refusals;

/// The number of lines in a round.
const ROUND: usize = 16_000;

/// The report of a dry run.
#[derive(Debug)]
pub(in crate::import) struct Report {
    series: AllSeries,
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

/// The series by measurement and tags.
#[derive(Debug, Default)]
struct AllSeries(BTreeMap<String, Series>);

impl AllSeries {
    /// Counts a line for its series. The first accepted line decides what the series becomes.
    fn note(&mut self, line: &SentLine, reader: &LineReader) -> anyhow::Result<()> {
        let span = match self.0.get_mut(&line.series) {
            Some(series) => {
                series.span.add(line.millis);
                if !series.becomes.is_empty() {
                    return Ok(());
                }
                series.span
            }
            None => Span::at(line.millis),
        };

        let (becomes, room) = becomes(line, reader)?;
        self.0.insert(line.series.clone(), Series { span, becomes, room });
        Ok(())
    }
}

impl Series {
    fn shown(&self) -> String {
        let room = self.room.as_ref().map(|room| format!(", room {room}")).unwrap_or_default();
        format!("{}{room}", self.becomes)
    }
}

impl Report {
    /// Makes the report of a source, with the source's own sums.
    pub(in crate::import) fn of(
        groups: impl Iterator<Item = anyhow::Result<Group>>,
        own_sums: BTreeMap<String, OwnSum>,
        rules: PointRules,
        options: UploadOptions,
    ) -> anyhow::Result<Self> {
        let (series, reader) = (RefCell::new(AllSeries::default()), rules.reader.clone());
        let groups = groups.map(|group| {
            let group = group?;
            group.iter().try_for_each(|line| series.borrow_mut().note(line, &reader))?;
            Ok(group)
        });
        let mut estimate = Estimate::of_points(own_sums, options);
        let rounds = Rounds::new(decoded::points(groups, rules), ROUND, true);
        estimate.add_all(rounds, options.batch)?;
        Ok(Self { series: series.into_inner(), estimate })
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
        map::write(path, self.series.0.iter().map(row))
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

/// The target of a line: the device with its metrics and their units, and the room.
fn becomes(line: &SentLine, reader: &LineReader) -> anyhow::Result<(String, Option<String>)> {
    let read = reader.read(&line.text, line.way)?;
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
        writeln!(f, "series       {}", self.series.0.len())?;
        for (name, series) in self.series.0.iter().take(MAX_SHOWN) {
            writeln!(f, "  {name}")?;
            series.span.write(f, "points", &series.shown())?;
        }
        if self.series.0.len() > MAX_SHOWN {
            writeln!(f, "  and {} more", self.series.0.len() - MAX_SHOWN)?;
        }
        write!(f, "{}", self.estimate)
    }
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;

    use super::*;
    use history::point::Way;

    #[test]
    fn a_series_whose_first_point_is_refused_becomes_what_the_next_one_says() {
        let now = Timestamp::from_millis(1_800_000_000_000).unwrap();
        let line = |value: &str, second: i64| SentLine {
            line: 1,
            device: "a::m".to_owned(),
            series: "m,host=a".to_owned(),
            millis: second * 1_000,
            text: format!("m,host=a v={value} {second}000000000"),
            way: Way::Plain,
            hour: None,
        };
        let reader = LineReader { now, rules: history::LineRules::default() };
        // No reading is of a time before 1970.
        let mut report = AllSeries::default();
        report.note(&line("1", -1), &reader).unwrap();
        assert_eq!(report.0["m,host=a"].becomes, "", "it is refused");
        report.note(&line("2", 1_768_147_200), &reader).unwrap();
        let series = &report.0["m,host=a"];
        assert_eq!((&*series.becomes, series.span.count), ("a::m v", 2));
    }
}
