//! Units of the calendar and their buckets. Folds no values.

use std::fmt;
use std::iter::successors;
use std::str::FromStr;

use chrono::{Datelike, Days, Months, NaiveDate, Weekday};

use super::Zone;
use super::zone::{range, second};
use crate::{TimeRange, Timestamp, excerpt};

crate::words! {
    /// The unit of a series' rows.
    ///
    /// A bucket of a unit shorter than a day begins where the local clock shows a multiple of the unit, and at each
    /// transition of the zone's offset. So no bucket is longer than its unit, and near a transition some are shorter. A
    /// unit of a day or more consists of whole local days.
    ///
    /// Since 2000, buckets of 15 minutes or more begin and end at UTC quarters of an hour, except at transitions one
    /// minute past the hour. Seven zones of Canada, Palestine and Antarctica had such transitions, the last in 2022.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum CalendarUnit {
        /// `1m`
        Minute = "1m",
        /// `5m`
        Minutes5 = "5m",
        /// `15m`, a quarter of an hour.
        QuarterHour = "15m",
        /// `30m`
        HalfHour = "30m",
        /// `1h`
        Hour = "1h",
        /// `6h`
        Hours6 = "6h",
        /// `1d`
        Day = "1d",
        /// `1w`, from Monday on, as in ISO 8601.
        Week = "1w",
        /// `1mo`
        Month = "1mo",
        /// `1y`
        Year = "1y",
    }
}

/// The text is not a [`CalendarUnit`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a unit; expected one of 1m, 5m, 15m, 30m, 1h, 6h, 1d, 1w, 1mo, 1y")]
pub struct CalendarUnitError(String);

impl CalendarUnit {
    /// The buckets that touch `range`, in order and without a gap.
    ///
    /// The first begins at or before the range, the last ends at or after it. The buckets are computed one by one, in
    /// constant time each. Their number is not limited: eight thousand years have four billion minutes.
    pub fn buckets(self, range: TimeRange, zone: Zone) -> impl Iterator<Item = TimeRange> {
        successors(Some(self.bucket_of(range.from(), zone)), move |bucket| {
            (bucket.to() < range.to()).then(|| self.bucket_of(bucket.to(), zone))
        })
    }

    /// The bucket that contains `at`, cut to the years of [`Timestamp`].
    ///
    /// The very last bucket ends at [`Timestamp::MAX`], so no bucket contains this timestamp.
    pub fn bucket_of(self, at: Timestamp, zone: Zone) -> TimeRange {
        let (from, to) = match self.length() {
            Length::Seconds(length) => clock_span(second(at), length, zone),
            Length::Dates(first, months, days) => {
                let first = first(zone.date(at).naive());
                let next = first + Months::new(months) + Days::new(days);
                (zone.first_second(first), zone.first_second(next))
            }
        };
        range(from, to)
            .expect("a bucket begins at or before its timestamp and ends after its second")
    }

    fn length(self) -> Length {
        match self {
            Self::Minute => Length::Seconds(60),
            Self::Minutes5 => Length::Seconds(5 * 60),
            Self::QuarterHour => Length::Seconds(15 * 60),
            Self::HalfHour => Length::Seconds(30 * 60),
            Self::Hour => Length::Seconds(60 * 60),
            Self::Hours6 => Length::Seconds(6 * 60 * 60),
            Self::Day => Length::Dates(|date| date, 0, 1),
            Self::Week => Length::Dates(|date| date.week(Weekday::Mon).first_day(), 0, 7),
            Self::Month => Length::Dates(|date| date - Days::new(date.day0().into()), 1, 0),
            Self::Year => Length::Dates(|date| date - Days::new(date.ordinal0().into()), 12, 0),
        }
    }
}

/// The length of a unit.
enum Length {
    /// Seconds on the local clock.
    Seconds(i64),
    /// A function that returns the first date of the unit around a date; then the unit's length in months and days.
    Dates(fn(NaiveDate) -> NaiveDate, u32, u64),
}

/// The bucket that contains `second`, for a unit shorter than a day. Its ends are the nearest multiples of `length` on
/// the local clock, or transitions that are nearer.
fn clock_span(second: i64, length: i64, zone: Zone) -> (i64, i64) {
    let offset = zone.offset(second);
    let from = (second + offset).div_euclid(length) * length - offset;
    let to = from + length;
    (zone.transition(from, second).unwrap_or(from), zone.transition(second, to).unwrap_or(to))
}

impl FromStr for CalendarUnit {
    type Err = CalendarUnitError;

    fn from_str(text: &str) -> Result<Self, CalendarUnitError> {
        Self::parse(text).ok_or_else(|| CalendarUnitError(excerpt(text)))
    }
}

impl fmt::Display for CalendarUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
