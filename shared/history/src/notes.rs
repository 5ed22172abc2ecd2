//! A source's remarks, and its counts of points and values that are left out, by reason. Decides nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;
use domain::{Exact, Month, Timestamp};

use crate::refusals::{Refusal, Refusals};

/// The notes, shared by a source and the import.
#[derive(Debug, Clone, Default)]
pub struct Notes(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    says: Vec<String>,
    left_out: BTreeMap<String, u64>,
    refusals: Refusals,
    own_sums: BTreeMap<String, OwnSum>,
    hourly: BTreeMap<String, i64>,
}

/// A counter's sum by the source's own count, as in Home Assistant's statistics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnSum {
    /// The unit of the sums.
    pub unit: Option<String>,
    /// The time of the first sum, and that sum.
    pub first: (i64, Exact),
    /// The last sum of each month in UTC, with its time.
    pub months: BTreeMap<Month, (i64, Exact)>,
}

impl Notes {
    /// Adds a remark about the source.
    pub fn say(&self, text: String) {
        self.noted().says.push(text);
    }

    /// Adds a remark, unless the same remark was added before.
    pub fn say_once(&self, text: &str) {
        let mut noted = self.noted();
        if !noted.says.iter().any(|said| said == text) {
            noted.says.push(text.to_owned());
        }
    }

    /// Counts something that is left out; `what` names it in the report.
    pub fn leave_out(&self, what: &str) {
        self.leave_out_many(what, 1);
    }

    /// Counts several things of one kind that are left out.
    pub fn leave_out_many(&self, what: &str, count: u64) {
        if count == 0 {
            return;
        }
        *self.noted().left_out.entry(what.to_owned()).or_default() += count;
    }

    /// Adds the refusal of a line.
    pub fn refuse(&self, line: u64, reason: String) {
        self.noted().refusals.extend([Refusal { line, reason }]);
    }

    /// Notes the source's own sum of a counter at a time in nanoseconds. Times of a counter must be in order.
    pub fn sum(&self, id: &str, unit: Option<&str>, nanos: i64, sum: &str) {
        let at = Timestamp::from_millis(nanos.div_euclid(1_000_000)).ok();
        let (Some(at), Some(sum)) = (at, Exact::parse(sum)) else { return };
        let mut noted = self.noted();
        let known = noted.own_sums.entry(id.to_owned()).or_insert_with(|| OwnSum {
            unit: unit.map(ToOwned::to_owned),
            first: (nanos, sum.clone()),
            months: BTreeMap::new(),
        });
        // A sum at midnight belongs to the month before.
        let month = Month::of(at.saturating_add(TimeDelta::milliseconds(-1)));
        known.months.insert(month, (nanos, sum));
    }

    /// Notes that a series has an hour's mean at a time in nanoseconds.
    pub fn hour(&self, id: &str, nanos: i64) {
        let mut noted = self.noted();
        let last = noted.hourly.entry(id.to_owned()).or_insert(nanos);
        *last = nanos.max(*last);
    }

    /// Returns the time of each series' newest hourly mean, in nanoseconds, by id.
    pub fn hourly(&self) -> BTreeMap<String, i64> {
        self.noted().hourly.clone()
    }

    /// Returns the source's own sums by the ids of its series.
    pub fn own_sums(&self) -> BTreeMap<String, OwnSum> {
        self.noted().own_sums.clone()
    }

    /// Takes the refusals noted so far.
    pub fn take_refusals(&self) -> Refusals {
        std::mem::take(&mut self.noted().refusals)
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noted = self.noted();
        let says = noted.says.iter().cloned();
        let left_out =
            noted.left_out.iter().map(|(what, count)| format!("left out     {count} {what}"));
        f.write_str(&says.chain(left_out).collect::<Vec<_>>().join("\n"))
    }
}
