//! Estimates the size and the cost of an import, at the prices of us-east-1. Sends nothing.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};

use domain::{DeviceId, Reading, RoomId, Timestamp};

use super::decoded::Entry;
use super::energy::Energy;
use super::listed::Listed;
use super::registry::RegistryLine;
use super::rollup_estimate::RollupEstimate;
use super::round::{Rounds, batches};
use super::thin_estimate::ThinEstimate;
use super::upload::UploadOptions;
use crate::pace::HALF;
use history::notes::OwnSum;
use history::refusals::Refusals;

/// Dollars per million write units, read units, HTTP API requests and Lambda requests.
///
/// Source: <https://aws.amazon.com/dynamodb/pricing/on-demand/>, <https://aws.amazon.com/api-gateway/pricing/>,
/// <https://aws.amazon.com/lambda/pricing/>
const WRITE_UNIT: f64 = 0.625;
const READ_UNIT: f64 = 0.125;
const API_REQUEST: f64 = 1.00;
const LAMBDA_REQUEST: f64 = 0.20;

/// The write units of the default stack's table, and the share that an import takes.
///
/// Source: `MAX_WRITE_UNITS` in `template.yaml` with `RoomIndex=on`.
const HOME_UNITS: f64 = 11.0;
/// The seconds of a day.
const DAY: f64 = 86_400.0;
/// Thinning is recommended if at least this many readings become one.
const WORTH_THINNING: u64 = 2;

/// The counted contents of a file.
#[derive(Debug, Default)]
pub(super) struct Estimate {
    lines: u64,
    /// Hashes of devices and timestamps: eight bytes per reading, because files may be large.
    keys: HashSet<u64>,
    hasher: RandomState,
    devices: BTreeMap<DeviceId, Written>,
    rooms: BTreeSet<RoomId>,
    span: Option<(Timestamp, Timestamp)>,
    requests: u64,
    registry: usize,
    rollups: RollupEstimate,
    energy: Energy,
    thinned: ThinEstimate,
    /// The devices of a file of readings.
    listed: Option<Listed>,
    /// The write units per second that the person chose.
    pace: Option<f64>,
    /// Whether the report mentions the option to thin.
    pub(super) can_be_thinned: bool,
    pub(super) refusals: Refusals,
}

/// The writes of one device, each rounded up to whole KB.
#[derive(Debug, Default)]
struct Written {
    kilobytes: u64,
    has_room: bool,
}

impl Estimate {
    /// Makes an empty estimate of a file of readings.
    pub(super) fn of_readings(options: UploadOptions) -> Self {
        Self { pace: options.pace, listed: Some(Listed::default()), ..Self::default() }
    }

    /// Makes an empty estimate of a source with its own sums. The source lists its series instead of devices.
    pub(super) fn of_points(own: BTreeMap<String, OwnSum>, options: UploadOptions) -> Self {
        Self { energy: Energy::new(own), pace: options.pace, ..Self::default() }
    }

    /// Adds all lines of an import.
    pub(super) fn add_all(&mut self, rounds: Rounds<'_>, batch: usize) -> anyhow::Result<()> {
        for round in rounds {
            let round = round?;
            // Merges come first: in a file ordered by time, a merged reading is the earliest of its device.
            for entries in [&round.merges, &round.puts] {
                self.requests += batches(entries, batch).len() as u64;
                for Entry { reading, .. } in entries {
                    self.add(reading);
                    self.listed.iter_mut().for_each(|listed| listed.add(reading));
                    self.lines += 1;
                }
            }
            self.lines += round.folded;
            self.registry += round.registry.len();
            for (device, name, unit) in round.registry.iter().flat_map(RegistryLine::units) {
                self.listed.iter_mut().for_each(|listed| {
                    listed.set_unit(&device, &name, unit.clone());
                });
            }
            let behind = round.registry.iter().filter_map(RegistryLine::behind);
            behind.for_each(|device| self.energy.put_behind(device));
            self.refusals.extend(round.refusals);
        }
        Ok(())
    }

    fn add(&mut self, reading: &Reading) {
        let (has_counter, has_other) = self.energy.add(reading);
        self.thinned.add(reading, has_counter, has_other);
        self.keys.insert(self.hasher.hash_one((&reading.device, reading.at)));
        let (first, last) = self.span.unwrap_or((reading.at, reading.at));
        self.span = Some((first.min(reading.at), last.max(reading.at)));
        if !self.devices.contains_key(&reading.device) {
            self.devices.insert(reading.device.clone(), Written::default());
        }
        let written = self.devices.get_mut(&reading.device).expect("it was just inserted");
        let bytes = bytes(reading);
        written.kilobytes += bytes.div_ceil(1_024);
        self.rollups.add(reading, bytes);
        if let Some(room) = &reading.room {
            written.has_room = true;
            if !self.rooms.contains(room) {
                self.rooms.insert(room.clone());
            }
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
    #[expect(clippy::cast_precision_loss, reason = "an estimate in dollars")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let readings = self.keys.len() as u64;
        write!(f, "{}", self.energy)?;
        writeln!(f, "readings     {readings}")?;
        if let Some((first, last)) = self.span {
            writeln!(f, "             from {first} to {last}")?;
        }
        if self.lines > readings {
            let text = "lines of the same device and timestamp as another";
            writeln!(f, "duplicates   {} {text}", self.lines - readings)?;
        }
        writeln!(f, "devices      {}", self.devices.len())?;
        if let Some(listed) = &self.listed {
            write!(f, "{listed}")?;
        }
        writeln!(f, "rooms        {}", self.rooms.len())?;
        if self.registry > 0 {
            writeln!(f, "registry     {} devices and rooms", self.registry)?;
        }
        writeln!(f, "requests     {}", self.requests)?;
        writeln!(f, "write units  {}", self.write_units())?;
        let rollups = &self.rollups;
        let (quarters, days) = (rollups.quarters(), rollups.days());
        writeln!(f, "rollups      {quarters} of 15 minutes, {days} of days")?;
        let units = (rollups.write_units(), rollups.read_units());
        writeln!(f, "             {} write units, {} read units", units.0, units.1)?;
        let requests = self.requests as f64 * (API_REQUEST + LAMBDA_REQUEST) / 1e6;
        let rollups = (units.0 as f64 * WRITE_UNIT + units.1 as f64 * READ_UNIT) / 1e6;
        let dollars = |write_units: f64| write_units * WRITE_UNIT / 1e6 + requests + rollups;
        let all = dollars(self.write_units() as f64);
        writeln!(
            f,
            "dollars      {all:.4}, with {rollups:.4} for rollups (us-east-1, on demand, with the index \
             by room; a device whose room only the registry knows costs one unit a reading more)"
        )?;
        // The index has capacity units of its own.
        let of_table: u64 = self.devices.values().map(|written| written.kilobytes).sum();
        let of_table = (of_table + units.0) as f64;
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
        let (count, thinned) = (self.keys.len() as u64, self.thinned.kept());
        if self.can_be_thinned && count >= WORTH_THINNING * thinned.max(1) {
            // Assumes the usual size of a reading.
            let share = thinned as f64 / count as f64;
            let (thin, thin_of_table) = (
                dollars(self.write_units() as f64 * share) - requests * (1.0 - share),
                (of_table - units.0 as f64) * share + units.0 as f64,
            );
            write!(
                f,
                "\n--thin 15m   {thinned} readings: {thin:.4} dollars, {} provisioned (--thin-before chooses what \
                 is old enough)",
                days(thin_of_table)
            )?;
        }
        write!(f, "{}", self.refusals)
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
    use crate::import::patterns::Patterns;
    use history::line::Lines;
    use history::line::{Line, Record};

    const OPTIONS: UploadOptions =
        UploadOptions { batch: 2, strict: false, pace: None, keeps_rooms: true };

    fn estimate_of(lines: Lines, now: Timestamp, size: usize) -> Estimate {
        let lines = decoded::rows(lines, now, Patterns::default());
        let mut estimate = Estimate::of_readings(OPTIONS);
        estimate.add_all(Rounds::new(lines, size, false), OPTIONS.batch).unwrap();
        estimate
    }

    fn estimate(lines: &[&str], size: usize) -> Estimate {
        let lines: Vec<_> = (1..)
            .zip(lines)
            .map(|(line, json)| Ok(Line::Reading(Record { line, json: (*json).to_owned() })))
            .collect();
        let now = Timestamp::from_millis(1_800_000_000_000).unwrap();
        estimate_of(Box::new(lines.into_iter()), now, size)
    }

    #[test]
    fn figures_are_those_of_the_readings() {
        let lines = [
            r#"{"device_id": "a", "room": "r", "timestamp": "2026-01-11T16:00:00Z", "t": 1}"#,
            r#"{"device_id": "b", "timestamp": "2026-01-11T17:00:00Z", "t": 1}"#,
            r#"{"device_id": "ROOM", "timestamp": 1768147200, "t": 1}"#,
        ];
        let estimate = estimate(&lines, 10);
        assert_eq!((estimate.keys.len(), estimate.requests, estimate.write_units()), (2, 1, 3));
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
        let text = estimate(&lines, 10).to_string();
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
        let mut estimate = estimate(&lines, 10_000);
        // 3000 readings, 200 quarters, 3 days and twice 6 edges of the stream's batches.
        let text = estimate.to_string();
        let home = "\nprovisioned  0.2 hours at 5.5 write units a second, half of a home's table; --pace 11 takes all of it: 0.1 hours";
        assert!(text.contains(home) && !text.contains("--thin"), "{text}");
        (estimate.pace, estimate.can_be_thinned) = (Some(0.01), true);
        let text = estimate.to_string();
        assert!(
            text.contains("\nprovisioned  3.7 days at 0.01 write units a second (--pace)\n"),
            "{text}"
        );
        assert!(text.contains("\n--thin 15m   200 readings: 0.0"), "{text}");
        assert!(text.contains(" dollars, 11.5 hours provisioned ("), "{text}");
    }

    #[test]
    fn a_duplicate_is_one_reading_and_is_written_as_often_as_it_is_sent() {
        let line = r#"{"device_id": "a", "timestamp": 1768147200, "t": 1}"#;
        let same_round = estimate(&[line; 3], 10);
        assert_eq!((same_round.keys.len(), same_round.write_units()), (1, 1));
        assert!(same_round.to_string().contains("duplicates   2 "), "{same_round}");
        let three_rounds = estimate(&[line; 3], 1);
        assert_eq!((three_rounds.keys.len(), three_rounds.write_units()), (1, 3));
        assert!(three_rounds.to_string().contains("duplicates   2 "), "{three_rounds}");
    }

    #[test]
    fn a_reading_without_a_room_is_indexed_by_its_device_s() {
        let lines = [
            r#"{"device_id": "a", "timestamp": 1768147200, "t": 1}"#,
            r#"{"device_id": "a", "room": "r", "timestamp": 1768147201, "t": 1}"#,
            r#"{"device_id": "b", "timestamp": 1768147201, "t": 1}"#,
        ];
        assert_eq!(estimate(&lines, 10).write_units(), 5);
    }
}
