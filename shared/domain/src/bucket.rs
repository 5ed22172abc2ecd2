//! The buckets by which readings are rolled up: quarters of an hour, and local days. Knows no time zone.

use chrono::TimeDelta;

use super::{LocalDate, TimeRange, Timestamp};

/// A quarter of an hour that begins at a multiple of 15 minutes in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuarterHour(Timestamp);

impl QuarterHour {
    /// The length of a quarter.
    pub const LENGTH: TimeDelta = TimeDelta::minutes(15);

    /// The quarter in which a timestamp lies.
    pub fn of(at: Timestamp) -> Self {
        let start = at.as_millis() - at.as_millis() % Self::LENGTH.num_milliseconds();
        Self(Timestamp::from_millis(start).expect("not before 1970"))
    }

    /// The quarter that begins exactly at a timestamp; `None` if the timestamp is inside a quarter.
    pub fn starting_at(start: Timestamp) -> Option<Self> {
        Some(Self::of(start)).filter(|quarter| quarter.0 == start)
    }

    /// The first timestamp of the quarter.
    pub const fn start(self) -> Timestamp {
        self.0
    }

    /// The first timestamp after the quarter. The very last quarter ends at the last timestamp that exists.
    pub fn end(self) -> Timestamp {
        self.0.saturating_add(Self::LENGTH)
    }

    /// The timestamps of the quarter.
    pub fn range(self) -> TimeRange {
        TimeRange::new(self.0, self.end()).expect("it is longer than nothing")
    }

    /// The next quarter. The very last quarter returns itself.
    #[must_use]
    pub fn next(self) -> Self {
        Self::of(self.end())
    }
}

/// A bucket of readings of one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bucket {
    /// 15 minutes.
    QuarterHour(QuarterHour),
    /// A local day, by its date. The time zone decides when the day begins and ends.
    Day(LocalDate),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::given;

    #[test]
    fn a_quarter_begins_at_a_multiple_of_15_minutes() {
        let at = |text: &str| given::at(text);
        let quarter = QuarterHour::of(at("2026-01-11T16:14:59.999Z"));
        assert_eq!(quarter.start(), at("2026-01-11T16:00:00Z"));
        assert_eq!(quarter.end(), at("2026-01-11T16:15:00Z"));
        assert_eq!(QuarterHour::of(quarter.end()), quarter.next());
        assert_eq!(QuarterHour::starting_at(quarter.start()), Some(quarter));
        assert_eq!(QuarterHour::starting_at(at("2026-01-11T16:00:00.001Z")), None);
        let last = QuarterHour::of(Timestamp::MAX);
        assert_eq!((last.end(), last.next()), (Timestamp::MAX, last));
    }
}
