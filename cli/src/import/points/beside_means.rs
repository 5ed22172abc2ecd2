//! Leaves out readings of a power in hours for which the table has the mean of long-term statistics: with both, the
//! hour's energy would count twice. Sends nothing.
//!
//! Such hours occur when a newer database, whose states of that time were purged, was imported before an older one. The
//! means in the table stay, so a second import does the same.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use domain::{Exact, Timestamp};

use super::left_out::{EntityValue, without};
use super::vacant_hours::MAX_SERIES;
use crate::import::imported::{Imported, StoredHour};
use history::home_assistant::POWERS;
use history::notes::Notes;
use history::points::line_reader::LineReader;
use history::points::unite::{Group, SentLine};

/// An hour, and a quarter of an hour, in milliseconds.
const HOUR: i64 = 3_600_000;
const QUARTER: i64 = HOUR / 4;
/// The number of quarters in an hour.
const QUARTERS: usize = 4;
/// The reason for leaving readings out, as the report names it.
const FINER: &str = "readings of powers in hours whose mean the table has";

/// The stored means of hours, cached for the lines that need them.
struct Means<'a> {
    imported: &'a Imported<'a>,
    reader: LineReader,
    /// For each series, its newest hour.
    newest: BTreeMap<String, MeanOfHour>,
}

/// An hour of a series, and the number of its quarters in which the table has the hour's mean. 0 if the table has other
/// values in that hour.
#[derive(Debug, Clone, Copy)]
struct MeanOfHour {
    /// The number of the hour since 1970.
    hour: i64,
    quarters: usize,
}

/// Removes the power readings in hours whose mean the table has.
pub(in crate::import) fn beside_no_means<'a>(
    groups: impl Iterator<Item = anyhow::Result<Group>>,
    imported: &'a Imported<'a>,
    notes: Notes,
    reader: LineReader,
) -> impl Iterator<Item = anyhow::Result<Group>> {
    let mut means = Means { imported, reader, newest: BTreeMap::new() };
    without(groups, move |line| {
        let is_left_out = means.is_beside(line)?;
        if is_left_out {
            notes.leave_out(FINER);
        }
        Ok(is_left_out)
    })
}

impl Means<'_> {
    /// Decides for all lines of an hour at its first line.
    fn is_beside(&mut self, line: &SentLine) -> anyhow::Result<bool> {
        if line.hour.is_some() || !is_power(&line.series) {
            return Ok(false);
        }

        let hour = line.millis.div_euclid(HOUR);
        let known = self.newest.get(&line.series).filter(|known| known.hour == hour);
        let quarters = match known {
            Some(known) => known.quarters,
            None => {
                let quarters = self.quarters_with_mean(line, hour)?;
                if self.newest.len() == MAX_SERIES {
                    self.newest.clear();
                }
                self.newest.insert(line.series.clone(), MeanOfHour { hour, quarters });
                quarters
            }
        };

        // Thinned powers are at quarters, too: if only some quarters have the value, an earlier, killed import of the
        // same readings has stored it.
        let is_at_quarter = line.millis.rem_euclid(QUARTER) == 0;
        Ok(quarters == QUARTERS || quarters > 0 && !is_at_quarter)
    }

    /// Asks the table for an hour's mean. A mean of 0 adds no energy, so it does not count.
    fn quarters_with_mean(&self, line: &SentLine, hour: i64) -> anyhow::Result<usize> {
        let Ok(start) = Timestamp::from_millis(hour * HOUR) else { return Ok(0) };
        let Some(EntityValue { device, metric, .. }) = EntityValue::read(line, &self.reader) else {
            return Ok(0);
        };
        match self.imported.stored_hour(&device, &metric, start)? {
            StoredHour::Empty => return Ok(0),
            StoredHour::Between(least, largest) if least != largest || least == Exact::zero() => {
                return Ok(0);
            }
            StoredHour::Between(..) | StoredHour::Untold => {}
        }

        let span = start..start.saturating_add(TimeDelta::milliseconds(HOUR));
        let values = self.imported.stored_values(&device, &metric, &span, QUARTERS + 1)?;
        let is_same = values.windows(2).all(|pair| pair[0].1 == pair[1].1);
        let are_at_quarters = values.iter().all(|(at, _)| at.as_millis().rem_euclid(QUARTER) == 0);
        Ok(if is_same && are_at_quarters { values.len() } else { 0 })
    }
}

/// Whether a series is the power of a Home Assistant entity: its measurement is a unit of power.
fn is_power(series: &str) -> bool {
    series
        .split_once(',')
        .is_some_and(|(unit, tags)| POWERS.contains(&unit) && tags.contains("entity_id="))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Means of two hours, 500 W and 200 W.
    const MEANS: &str = "\
CREATE TABLE schema_changes (change_id INTEGER PRIMARY KEY, schema_version INTEGER, changed DATETIME);
INSERT INTO schema_changes (schema_version) VALUES (50);
CREATE TABLE statistics_meta (id INTEGER PRIMARY KEY, statistic_id VARCHAR(255), source VARCHAR(32),
    unit_of_measurement VARCHAR(255), has_mean BOOLEAN, has_sum BOOLEAN, name VARCHAR(255), mean_type INTEGER);
CREATE TABLE statistics (id INTEGER PRIMARY KEY, metadata_id INTEGER, start_ts FLOAT, mean FLOAT, min FLOAT, max FLOAT,
    last_reset_ts FLOAT, state FLOAT, sum FLOAT);
INSERT INTO statistics_meta VALUES (1, 'sensor.pump', 'recorder', 'W', 1, 0, NULL, 1);
INSERT INTO statistics (metadata_id, start_ts, mean) VALUES (1, 1768147200, 500), (1, 1768150800, 200);";
    /// The finer readings of the second hour, and of one without a mean.
    const FINER_READINGS: &str = "\
W,domain=sensor,entity_id=pump value=800,state_class_str=\"measurement\" 1768150803200000000
W,domain=sensor,entity_id=pump value=0,state_class_str=\"measurement\" 1768151703200000000
W,domain=sensor,entity_id=pump value=70,state_class_str=\"measurement\" 1768154403200000000
";

    fn run(words: &[&str]) -> String {
        let (code, said) = crate::run_here([&["roomtide"], words].concat());
        assert_eq!(format!("{code:?}"), format!("{:?}", std::process::ExitCode::SUCCESS), "{said}");
        said
    }

    /// The minutes and seconds of the readings behind 16:00.
    fn stored(data: &str, place: &Path) -> BTreeSet<String> {
        let file = place.join("out.ndjson");
        drop(std::fs::remove_file(&file));
        run(&["export", file.to_str().unwrap(), "--data-dir", data]);
        let text = std::fs::read_to_string(file).unwrap();
        let times = text.lines().filter_map(|line| {
            let (_, rest) = line.split_once("\"timestamp\":\"2026-01-11T")?;
            Some(rest[..8].to_owned())
        });
        times.collect()
    }

    #[test]
    fn an_hour_has_its_mean_or_its_readings_whichever_comes_first() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
        let (means, finer) = (path("home-assistant_v2.db"), path("older.lp"));
        rusqlite::Connection::open(&means).unwrap().execute_batch(MEANS).unwrap();
        std::fs::write(&finer, FINER_READINGS).unwrap();
        let left_out = "left out     2 readings of powers in hours whose mean the table has";

        for (order, expected, is_finer_left_out) in [
            (
                [&means, &finer],
                "16:00:00 16:15:00 16:30:00 16:45:00 17:00:00 17:15:00 17:30:00 17:45:00 18:00:03",
                true,
            ),
            (
                [&finer, &means],
                "16:00:00 16:15:00 16:30:00 16:45:00 17:00:03 17:15:03 18:00:03",
                false,
            ),
        ] {
            let data = path(&format!("data {is_finer_left_out}"));
            // The second time each is there already.
            for _ in 0..2 {
                for file in order {
                    let said = run(&["import", file, "--data-dir", &data, "--again"]);
                    let is_said = is_finer_left_out && *file == finer;
                    assert_eq!(said.contains(left_out), is_said, "{said}");
                }
                let stored: Vec<String> = stored(&data, place.path()).into_iter().collect();
                assert_eq!(stored.join(" "), expected);
            }
        }
    }

    /// An import of means that was killed has stored some quarters of an hour; a thinned one, too.
    #[test]
    fn a_part_of_an_hour_s_mean_keeps_the_finer_readings_out_and_is_completed() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
        let (part, rest, data) = (path("part.lp"), path("rest.lp"), path("data"));
        let line = |second: i64| {
            let nanos = (1_768_150_800 + second) * 1_000_000_000;
            format!("W,domain=sensor,entity_id=pump value=200 {nanos}\n")
        };
        std::fs::write(&part, [line(0), line(900)].concat()).unwrap();
        std::fs::write(&rest, [line(1_803), line(1_800), line(2_700)].concat()).unwrap();

        run(&["import", &part, "--data-dir", &data]);
        let said = run(&["import", &rest, "--data-dir", &data]);
        assert!(said.contains("left out     1 readings of powers in hours"), "{said}");
        let stored: Vec<String> = stored(&data, place.path()).into_iter().collect();
        assert_eq!(stored, ["17:00:00", "17:15:00", "17:30:00", "17:45:00"]);
    }
}
