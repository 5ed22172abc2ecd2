//! Leaves out long-term statistics of hours for which the table has finer readings: with both, the hour's energy would
//! count twice. Sends nothing.
//!
//! Such hours occur when a newer database is imported whose states were purged meanwhile, or when a live sender writes
//! to the same table. If an hour has only values equal to its statistics, these come from an earlier import.

use std::collections::BTreeMap;

use domain::{Exact, Timestamp};

use super::left_out::{EntityValue, without};
use crate::import::imported::{Imported, StoredHour};
use crate::moment::MILLISECOND;
use history::notes::Notes;
use history::points::line_reader::LineReader;
use history::points::unite::{Group, SentLine};

/// The maximum number of remembered series. The lines of one owner follow each other, and an owner has fewer series.
pub(super) const MAX_SERIES: usize = 100;
/// The reasons for leaving statistics out, as the report names them.
const FINER: &str = "hours of statistics for which the table has finer readings";
const UNTOLD: &str =
    "hours of statistics of days for which the table has readings, and tells no hours any more";

/// Decides which hourly statistics are left out.
struct VacantHours<'a> {
    imported: &'a Imported<'a>,
    notes: Notes,
    reader: LineReader,
    /// For each series, its newest statistics.
    newest: BTreeMap<String, Newest>,
    has_begun: bool,
}

/// The newest hourly statistics of a series, and the decision about that hour.
struct Newest {
    hour: i64,
    is_left_out: bool,
    millis: i64,
    value: Exact,
}

/// Removes the statistics of hours for which the table has finer readings.
pub(in crate::import) fn in_vacant_hours<'a>(
    groups: impl Iterator<Item = anyhow::Result<Group>>,
    imported: &'a Imported<'a>,
    notes: Notes,
    reader: LineReader,
) -> impl Iterator<Item = anyhow::Result<Group>> {
    let newest = BTreeMap::new();
    let mut hours = VacantHours { imported, notes, reader, newest, has_begun: false };
    without(groups, move |line| match line.hour {
        Some(hour) => hours.is_left_out(line, hour),
        None => Ok(false),
    })
}

impl VacantHours<'_> {
    /// Decides for all lines of an hour at its first line.
    fn is_left_out(&mut self, line: &SentLine, hour: i64) -> anyhow::Result<bool> {
        self.begin();
        let Some(statistics) = EntityValue::read(line, &self.reader) else { return Ok(false) };
        let before = self.newest.remove(&line.series);
        let is_left_out = match &before {
            Some(before) if before.hour == hour => before.is_left_out,
            _ => self.decide(&statistics, before.as_ref(), hour)?,
        };

        if self.newest.len() == MAX_SERIES {
            self.newest.clear();
        }
        let newest = Newest { hour, is_left_out, millis: line.millis, value: statistics.value };
        self.newest.insert(line.series.clone(), newest);
        Ok(is_left_out)
    }

    /// Adds a remark, once, if the table cannot be asked.
    fn begin(&mut self) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        if let Some(why) = self.imported.why_unknown() {
            self.notes.say(format!(
                "statistics   of hours are stored whatever the table has, and so are finer readings: {why}; where it has \
                 the others of an hour, the energy of the hour counts twice"
            ));
        }
    }

    /// Decides whether an hour is left out, and counts it. A counter has the value of the previous hour's statistics at
    /// the start of this hour: that value does not count as a finer reading.
    fn decide(
        &self,
        statistics: &EntityValue,
        before: Option<&Newest>,
        hour: i64,
    ) -> anyhow::Result<bool> {
        let EntityValue { device, metric, value } = statistics;
        let millis = hour.div_euclid(MILLISECOND);
        let Ok(start) = Timestamp::from_millis(millis) else { return Ok(false) };
        let at_start = before.filter(|before| before.millis == millis).map(|before| &before.value);
        let is_of_statistics = |found: &Exact| found == value || Some(found) == at_start;

        let why = match self.imported.stored_hour(device, metric, start)? {
            StoredHour::Empty => return Ok(false),
            StoredHour::Between(least, largest)
                if is_of_statistics(&least) && is_of_statistics(&largest) =>
            {
                return Ok(false);
            }
            StoredHour::Between(..) => FINER,
            StoredHour::Untold => UNTOLD,
        };
        self.notes.leave_out(why);
        Ok(true)
    }
}
