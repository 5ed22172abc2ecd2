//! Half-open time ranges, and the order of the results of a range query.

use chrono::TimeDelta;

use super::{Timestamp, TimestampError};

/// All timestamps `t` with `from <= t < to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    from: Timestamp,
    to: Timestamp,
}

/// The reasons for which two texts are not a [`TimeRange`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// `from` is not a timestamp.
    #[error("{0}")]
    From(TimestampError),
    /// `to` is not a timestamp.
    #[error("{0}")]
    To(TimestampError),
    /// `from` is not before `to`.
    #[error("{0} must be before to, which is {1}")]
    Empty(Timestamp, Timestamp),
}

impl TimeRange {
    /// All timestamps except the last.
    pub const ALL: Self = Self { from: Timestamp::MIN, to: Timestamp::MAX };

    /// The range between two timestamps.
    pub fn new(from: Timestamp, to: Timestamp) -> Result<Self, RangeError> {
        if from < to { Ok(Self { from, to }) } else { Err(RangeError::Empty(from, to)) }
    }

    /// The range of a query. Without `to` it ends one millisecond after `now`, to include readings of the present
    /// millisecond. Without `from` it begins 24 hours before its end.
    pub fn parse(from: Option<&str>, to: Option<&str>, now: Timestamp) -> Result<Self, RangeError> {
        let to = match to {
            Some(text) => Timestamp::parse(text, now).map_err(RangeError::To)?,
            None => now.saturating_add(TimeDelta::milliseconds(1)),
        };
        let from = match from {
            Some(text) => Timestamp::parse(text, now).map_err(RangeError::From)?,
            None => to.saturating_add(-TimeDelta::hours(24)),
        };
        Self::new(from, to)
    }

    /// The first timestamp in the range.
    pub const fn from(self) -> Timestamp {
        self.from
    }

    /// The first timestamp after the range.
    pub const fn to(self) -> Timestamp {
        self.to
    }

    /// The last timestamp in the range, for `DynamoDB`'s BETWEEN, which includes both ends.
    pub fn last(self) -> Timestamp {
        self.to.saturating_add(-TimeDelta::milliseconds(1))
    }

    /// The time from the first timestamp to the end.
    pub fn length(self) -> TimeDelta {
        self.to.since(self.from)
    }

    /// The timestamps that two ranges have in common.
    pub fn intersection(self, other: Self) -> Option<Self> {
        Self::new(self.from.max(other.from), self.to.min(other.to)).ok()
    }

    /// Whether the range contains all of another range.
    pub fn covers(self, other: Self) -> bool {
        self.from <= other.from && other.to <= self.to
    }

    /// Whether `timestamp` is in the range.
    pub fn contains(self, timestamp: Timestamp) -> bool {
        (self.from..self.to).contains(&timestamp)
    }
}

/// The order of a range query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Oldest first.
    #[default]
    Ascending,
    /// Newest first.
    Descending,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::given::at;

    #[test]
    fn without_bounds_it_is_the_last_day_and_this_millisecond() {
        let now = at("2026-01-11T16:00:00Z");
        let range = TimeRange::parse(None, None, now).expect("a range");
        assert!(range.contains(now) && range.last() == now);
        assert_eq!(range.from(), at("2026-01-10T16:00:00.001Z"));
        let range = TimeRange::parse(None, Some("2026-01-02T00:00:00Z"), now).expect("a range");
        assert_eq!(range.from(), at("2026-01-01T00:00:00Z"));
    }

    #[test]
    fn an_empty_or_backward_range_is_refused() {
        let now = at("2026-01-11T16:00:00Z");
        for from in ["now", "now+1h"] {
            let error = TimeRange::parse(Some(from), Some("now"), now).expect_err(from);
            assert!(error.to_string().contains("must be before"), "{error}");
        }
        assert!(matches!(TimeRange::parse(Some("x"), None, now), Err(RangeError::From(_))));
        assert!(matches!(TimeRange::parse(None, Some("x"), now), Err(RangeError::To(_))));
    }
}
