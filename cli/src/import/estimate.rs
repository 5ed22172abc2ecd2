//! Estimates the size and the cost of an import, at the prices of us-east-1. Sends nothing.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::mem;
use std::path::Path;

use domain::{DeviceId, Reading, RoomId, Timestamp};
use history::notes::OwnSum;
use history::points::line_reader::LineReader;
use history::refusals::Refusals;

use super::decoded::DecodedLines;
use super::energy::Energy;
use super::listed::ListedNames;
use super::registry::RegistryLine;
use super::rollup_estimate::RollupEstimate;
use super::round::{Rounds, batches};
use super::upload::UploadOptions;
use crate::pace::HALF;

/// Dollars per million write units, read units, HTTP API requests and Lambda requests.
///
/// Source: <https://aws.amazon.com/dynamodb/pricing/on-demand/>, <https://aws.amazon.com/api-gateway/pricing/>,
/// <https://aws.amazon.com/lambda/pricing/>
const WRITE_UNIT: f64 = 0.625;
const READ_UNIT: f64 = 0.125;
const API_REQUEST: f64 = 1.00;
const LAMBDA_REQUEST: f64 = 0.20;

/// The write units per second of the default stack's table.
///
/// Source: `MAX_WRITE_UNITS` in `template.yaml` with `RoomIndex=on`.
const HOME_UNITS: f64 = 11.0;
/// The seconds of a day.
const DAY: f64 = 86_400.0;
/// Thinning is recommended if at least this many readings become one.
const WORTH_THINNING: u64 = 2;

/// The number of lines in a round.
const ROUND: usize = 16_000;

/// The counted contents of a source.
#[derive(Debug, Default)]
pub(super) struct Estimate {
    /// The number of lines that became part of another line's reading.
    folded: u64,
    readings: u64,
    devices: BTreeMap<DeviceId, Written>,
    rooms: BTreeSet<RoomId>,
    span: Option<(Timestamp, Timestamp)>,
    requests: u64,
    registry: usize,
    rollups: RollupEstimate,
    energy: Energy,
    listed: ListedNames,
    /// Whether the series of points are listed; otherwise devices are.
    lists_series: bool,
    /// The write units per second that the person chose.
    pace: Option<f64>,
    /// The number of readings that thinning would leave, if the report mentions it.
    pub(super) thinned: Option<u64>,
    pub(super) refusals: Refusals,
}

/// The writes of one device, each rounded up to whole KB.
#[derive(Debug, Default)]
struct Written {
    kilobytes: u64,
    has_room: bool,
}

impl Estimate {
    /// Makes an empty estimate of lines of readings.
    pub(super) fn of_lines(options: UploadOptions) -> Self {
        Self { pace: options.pace, ..Self::default() }
    }

    /// Makes an empty estimate of points whose source has these sums of its own.
    pub(super) fn of_points(own: BTreeMap<String, OwnSum>, options: UploadOptions) -> Self {
        Self { energy: Energy::new(own), lists_series: true, ..Self::of_lines(options) }
    }

    /// Adds all lines of a source.
    pub(super) fn add_all(
        &mut self,
        lines: DecodedLines<'_>,
        batch: usize,
        reader: &LineReader,
    ) -> anyhow::Result<()> {
        let listed = RefCell::new(mem::take(&mut self.listed));
        let lines = lines.inspect(|decoded| {
            decoded.iter().for_each(|decoded| listed.borrow_mut().add(decoded, reader));
        });

        for round in Rounds::new(Box::new(lines), ROUND) {
            let round = round?;
            self.requests += batches(&round.readings, batch).len() as u64;
            round.readings.iter().for_each(|read| self.add(&read.reading));
            self.folded += round.folded;
            self.refusals.extend(round.refusals);
        }

        self.listed = listed.into_inner();
        Ok(())
    }

    /// Adds the source's descriptions of devices and rooms. Must be called after all readings are added.
    pub(super) fn add_registry(&mut self, registry: &[RegistryLine]) {
        self.registry += registry.len();
        for (device, name, unit) in registry.iter().flat_map(RegistryLine::units) {
            self.listed.set_unit(&device, &name, unit);
        }

        let behind = registry.iter().filter_map(RegistryLine::behind);
        behind.for_each(|device| self.energy.put_behind(device));
    }

    /// Writes the map of the series, for a person to edit.
    pub(super) fn write_map(&self, path: &Path) -> anyhow::Result<()> {
        self.listed.write_map(path)
    }

    fn add(&mut self, reading: &Reading) {
        self.energy.add(reading);
        self.readings += 1;
        let (first, last) = self.span.unwrap_or((reading.at, reading.at));
        self.span = Some((first.min(reading.at), last.max(reading.at)));

        let written = self.devices.entry(reading.device.clone()).or_default();
        let bytes = bytes(reading);
        written.kilobytes += bytes.div_ceil(1_024);
        self.rollups.add(reading, bytes);
        if let Some(room) = &reading.room {
            written.has_room = true;
            self.rooms.insert(room.clone());
        }
    }

    /// Returns the write units: one per started KB in the table, and the same in the index by room. A reading without a
    /// room gets its device's room when it is stored.
    fn write_units(&self) -> u64 {
        let units = |written: &Written| written.kilobytes * if written.has_room { 2 } else { 1 };
        self.devices.values().map(units).sum()
    }
}

/// Returns the size of a reading's item: names and values, with a byte for every digit. DynamoDB counts at most that.
fn bytes(reading: &Reading) -> u64 {
    let keys = "pk".len() + reading.device.as_str().len() + "sk".len() + 27;
    let room = reading.room.as_ref().map_or(0, |room| "room".len() + room.as_str().len());
    let metrics =
        reading.metrics().iter().map(|(name, value)| name.as_str().len() + value.as_str().len());
    u64::try_from(keys + room + metrics.sum::<usize>()).unwrap_or(u64::MAX)
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_contents(f)?;
        self.write_cost(f)?;
        write!(f, "{}", self.refusals)
    }
}

impl Estimate {
    fn write_contents(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lists_series {
            writeln!(f, "series       {}", self.listed.len())?;
            self.listed.write(f, "points")?;
        }

        write!(f, "{}", self.energy)?;
        writeln!(f, "readings     {}", self.readings)?;
        if let Some((first, last)) = self.span {
            writeln!(f, "             from {first} to {last}")?;
        }

        if self.folded > 0 {
            let text = "lines of the same device and timestamp as another";
            writeln!(f, "duplicates   {} {text}", self.folded)?;
        }

        writeln!(f, "devices      {}", self.devices.len())?;
        if !self.lists_series {
            self.listed.write(f, "readings")?;
        }

        writeln!(f, "rooms        {}", self.rooms.len())?;
        if self.registry > 0 {
            writeln!(f, "registry     {} devices and rooms", self.registry)?;
        }
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "an estimate in dollars")]
    fn write_cost(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "requests     {}", self.requests)?;
        writeln!(f, "write units  {}", self.write_units())?;

        let (quarters, days) = (self.rollups.quarters(), self.rollups.days());
        writeln!(f, "rollups      {quarters} of 15 minutes, {days} of days")?;
        let (written, read) = (self.rollups.write_units(), self.rollups.read_units());
        writeln!(f, "             {written} write units, {read} read units")?;

        let requests = self.requests as f64 * (API_REQUEST + LAMBDA_REQUEST) / 1e6;
        let rollups = (written as f64 * WRITE_UNIT + read as f64 * READ_UNIT) / 1e6;
        let dollars = |write_units: f64| write_units * WRITE_UNIT / 1e6 + requests + rollups;
        let all = dollars(self.write_units() as f64);
        writeln!(
            f,
            "dollars      {all:.4}, with {rollups:.4} for rollups (us-east-1, on demand, with the index \
             by room; a device whose room only the registry knows costs one unit a reading more)"
        )?;

        // The index has capacity units of its own.
        let of_table: u64 = self.devices.values().map(|written| written.kilobytes).sum();
        let of_table = (of_table + written) as f64;
        let pace = self.pace.unwrap_or(HOME_UNITS * HALF);
        let days = |write_units: f64| shown_time(write_units / pace);
        write!(f, "provisioned  {} at {pace} write units a second", days(of_table))?;
        match self.pace {
            Some(_) => write!(f, " (--pace)")?,
            None => write!(
                f,
                ", half of a home's table; --pace {HOME_UNITS} takes all of it: {}",
                shown_time(of_table / HOME_UNITS)
            )?,
        }

        let count = self.readings;
        if let Some(thinned) = self.thinned
            && count >= WORTH_THINNING * thinned.max(1)
        {
            // Assumes the usual size of a reading.
            let share = thinned as f64 / count as f64;
            let (thin, thin_of_table) = (
                dollars(self.write_units() as f64 * share) - requests * (1.0 - share),
                (of_table - written as f64) * share + written as f64,
            );
            write!(
                f,
                "\n--thin-before TIME leaves {thinned} readings, if all are older: {thin:.4} dollars, {} provisioned",
                days(thin_of_table)
            )?;
        }
        Ok(())
    }
}

/// A time in seconds, for people.
fn shown_time(seconds: f64) -> String {
    if seconds < DAY {
        format!("{:.1} hours", seconds / 3_600.0)
    } else {
        format!("{:.1} days", seconds / DAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::decoded;
    use crate::import::patterns::NamePatterns;
    use history::line::{JsonRecord, Line};
    use history::notes::Notes;

    const OPTIONS: UploadOptions =
        UploadOptions { batch: 2, pace: None, keeps_rooms: true, merge: false };

    fn estimate(lines: &[&str]) -> Estimate {
        let lines =
            (1..).zip(lines).map(|(line, json)| JsonRecord { line, json: (*json).to_owned() });
        let mut lines: Vec<Line> =
            lines.map(|record| Line::decode(record, Timestamp::MAX)).collect();
        lines.sort_by_key(Line::owner);
        let lines =
            decoded::lines(lines.into_iter().map(Ok), NamePatterns::default(), Notes::default());
        let reader = LineReader { now: Timestamp::MAX, rules: history::LineRules::default() };
        let mut estimate = Estimate::of_lines(OPTIONS);
        estimate.add_all(lines, OPTIONS.batch, &reader).unwrap();
        estimate
    }

    #[test]
    fn figures_are_those_of_the_readings() {
        let lines = [
            r#"{"device_id": "a", "room": "r", "timestamp": "2026-01-11T16:00:00Z", "t": 1}"#,
            r#"{"device_id": "b", "timestamp": "2026-01-11T17:00:00Z", "t": 1}"#,
            r#"{"device_id": "ROOM", "timestamp": 1768147200, "t": 1}"#,
        ];
        let estimate = estimate(&lines);
        assert_eq!((estimate.readings, estimate.requests, estimate.write_units()), (2, 1, 3));
        assert_eq!((estimate.devices.len(), estimate.rooms.len()), (2, 1));
        let text = estimate.to_string();
        assert!(
            text.contains("from 2026-01-11T16:00:00.000Z to 2026-01-11T17:00:00.000Z"),
            "{text}"
        );
        assert!(text.contains("line 3: device_id: \"ROOM\" is a reserved name"), "{text}");
        assert!(!text.contains("duplicates"), "{text}");
    }

    #[test]
    fn rollups_are_counted_by_device_quarter_and_day() {
        let line = |device: &str, at: &str| {
            format!(r#"{{"device_id": "{device}", "timestamp": "2026-01-{at}Z", "t": 1}}"#)
        };
        let lines = [
            line("a", "11T16:00:00"),
            line("a", "11T16:14:59"),
            line("a", "11T16:15:00"),
            line("a", "12T16:00:00"),
            line("b", "11T16:00:00"),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let text = estimate(&lines).to_string();
        let expected =
            "rollups      4 of 15 minutes, 3 of days\n             7 write units, 14 read units\n";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn the_choices_of_a_deployed_import_are_told() {
        let lines: Vec<String> = (0..3_000)
            .map(|n| {
                format!(r#"{{"device_id": "a", "timestamp": {}, "t": 1}}"#, 1_768_147_200 + 60 * n)
            })
            .collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut estimate = estimate(&lines);
        // 3000 readings, 200 quarters, 3 days and twice 6 edges of the stream's batches.
        let text = estimate.to_string();
        let home = "\nprovisioned  0.2 hours at 5.5 write units a second, half of a home's table; --pace 11 takes all of it: 0.1 hours";
        assert!(text.contains(home) && !text.contains("--thin"), "{text}");
        (estimate.pace, estimate.thinned) = (Some(0.01), Some(200));
        let text = estimate.to_string();
        assert!(
            text.contains("\nprovisioned  3.7 days at 0.01 write units a second (--pace)\n"),
            "{text}"
        );
        assert!(
            text.contains("\n--thin-before TIME leaves 200 readings, if all are older: 0.0"),
            "{text}"
        );
        assert!(text.contains(" dollars, 11.5 hours provisioned"), "{text}");
    }

    #[test]
    fn a_duplicate_is_one_reading_and_is_written_once() {
        let line = r#"{"device_id": "a", "timestamp": 1768147200, "t": 1}"#;
        let estimate = estimate(&[line; 3]);
        assert_eq!((estimate.readings, estimate.write_units()), (1, 1));
        assert!(estimate.to_string().contains("duplicates   2 "), "{estimate}");
    }

    #[test]
    fn a_reading_without_a_room_is_indexed_by_its_device_s() {
        let lines = [
            r#"{"device_id": "a", "timestamp": 1768147200, "t": 1}"#,
            r#"{"device_id": "a", "room": "r", "timestamp": 1768147201, "t": 1}"#,
            r#"{"device_id": "b", "timestamp": 1768147201, "t": 1}"#,
        ];
        assert_eq!(estimate(&lines).write_units(), 5);
    }
}
