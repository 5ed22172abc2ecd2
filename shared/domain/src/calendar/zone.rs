//! Time zones and their local days. Holds no rules of its own: the IANA database is compiled in.
//!
//! The database cannot be asked for its transitions, only for the offset at an instant. They are found by
//! bisection, which needs that no two lie in one stretch of [`MAX_STRETCH`] seconds. Since 1970 any two
//! are at least six days apart, in every zone.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Days, NaiveDate, NaiveDateTime, Offset, TimeZone};
use chrono_tz::Tz;

use super::LocalDate;
use crate::{TimeRange, Timestamp, excerpt};

/// Seconds of a day without a transition.
const DAY: i64 = 86_400;

/// The longest stretch, in seconds, that is searched for a transition: an offset is shorter than a day.
pub(super) const MAX_STRETCH: i64 = 2 * DAY;

/// A time zone of the IANA database that is compiled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone(Tz);

/// The text is not the name of a [`Zone`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a time zone; write a name of the IANA database like Europe/Berlin, with its capitals"
)]
pub struct ZoneError(String);

impl Zone {
    /// The zone whose offset is always zero.
    pub const UTC: Self = Self(Tz::UTC);

    /// The name in the IANA database, such as `Europe/Berlin`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// The release of the IANA database, such as `2025b`.
    #[must_use]
    pub const fn database_version() -> &'static str {
        chrono_tz::IANA_TZDB_VERSION
    }

    /// The date of the local day that contains `at`.
    ///
    /// The clock may show another one: where it goes back over midnight, the day that has begun goes on.
    /// No day follows 9999-12-31, which lasts until [`Timestamp::MAX`].
    #[must_use]
    pub fn date(self, at: Timestamp) -> LocalDate {
        let second = second(at);
        let clock = DateTime::from_timestamp(second + self.offset(second), 0);
        let shown = clock.expect("at most a day from a timestamp").date_naive();
        let next = shown + Days::new(1);
        let begun = if self.first_second(next) <= second { next } else { shown };
        LocalDate::saturating_from(begun)
    }

    /// The local day: from the first instant of its date to the first instant of the next date that exists.
    ///
    /// `None` if the clock skips the date, as Pacific/Apia skips 2011-12-30, or if no timestamp lies in the
    /// day. The first and the last day are cut to the years of [`Timestamp`].
    #[must_use]
    pub fn day(self, date: LocalDate) -> Option<TimeRange> {
        let date = date.naive();
        range(self.first_second(date), self.first_second(date + Days::new(1)))
    }

    /// The instant at which the local clock shows `local`, held within the years of a timestamp.
    ///
    /// Where it shows it twice, this is the instant nearest to `near`. Where the clock skips it, it is the
    /// instant at which a clock that was not put forward shows it.
    #[must_use]
    pub fn instant(self, local: NaiveDateTime, near: Timestamp) -> Timestamp {
        let held = |millis: i64| {
            let millis = millis.clamp(Timestamp::MIN.as_millis(), Timestamp::MAX.as_millis());
            Timestamp::from_millis(millis).expect("held within the years of a timestamp")
        };
        let utc = held(local.and_utc().timestamp_millis());
        let offsets = [-DAY, DAY].map(|distance| self.offset(second(utc) + distance));
        let instant = |offset: &i64| held(utc.as_millis() - offset * 1_000);
        let shown = offsets.iter().filter(|it| self.offset(second(instant(it))) == **it);
        let nearest = shown.map(instant).min_by_key(|at| at.since(near).abs());
        nearest.unwrap_or_else(|| instant(&offsets[0]))
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
    /// `None` if the offset is the same at both ends. These are at most [`MAX_STRETCH`] apart.
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
    #[must_use]
    pub fn offset(self, second: i64) -> i64 {
        let utc = DateTime::from_timestamp(second, 0).expect("at most days from a timestamp");
        self.0.offset_from_utc_datetime(&utc.naive_utc()).fix().local_minus_utc().into()
    }
}

/// The second of a timestamp, since 1970.
pub(super) const fn second(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(1_000)
}

/// The range between two seconds since 1970, cut to the years of [`Timestamp`]; `None` if nothing is left.
pub(super) fn range(from: i64, to: i64) -> Option<TimeRange> {
    let bounded = |second: i64| {
        let millis = (second * 1_000).clamp(Timestamp::MIN.as_millis(), Timestamp::MAX.as_millis());
        Timestamp::from_millis(millis).expect("held within the years of a timestamp")
    };
    TimeRange::new(bounded(from), bounded(to)).ok()
}

impl FromStr for Zone {
    type Err = ZoneError;

    fn from_str(text: &str) -> Result<Self, ZoneError> {
        text.parse().map(Self).map_err(|_| ZoneError(excerpt(text)))
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
