//! Months of UTC. For each month the table records the rooms of a device. Knows no time zone of a home.

use std::fmt;
use std::str::FromStr;

use super::Timestamp;

/// A month of UTC, such as `2026-01`. Months are ordered by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month {
    year: u16,
    month: u8,
}

/// The text is not a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a month such as 2026-01")]
pub struct MonthError;

impl Month {
    /// The month of a timestamp.
    pub fn of(at: Timestamp) -> Self {
        at.to_string()[..7].parse().expect("a timestamp begins with year and month")
    }

    /// The first instant after the month, or the last timestamp of all if there is no later instant.
    pub fn end(self) -> Timestamp {
        let (year, month) =
            if self.month == 12 { (self.year + 1, 1) } else { (self.year, self.month + 1) };
        let first = Timestamp::parse_absolute(&format!("{year:04}-{month:02}-01T00:00:00Z"));
        first.unwrap_or(Timestamp::MAX)
    }
}

impl FromStr for Month {
    type Err = MonthError;

    fn from_str(text: &str) -> Result<Self, MonthError> {
        let (year, month) = text.split_once('-').ok_or(MonthError)?;
        let parsed = Self {
            year: year.parse().map_err(|_| MonthError)?,
            month: month.parse().map_err(|_| MonthError)?,
        };
        // Of the texts that mean the same month, only one is accepted.
        let is_month = (1..=12).contains(&parsed.month) && parsed.to_string() == text;
        is_month.then_some(parsed).ok_or(MonthError)
    }
}

impl TryFrom<String> for Month {
    type Error = MonthError;

    fn try_from(text: String) -> Result<Self, MonthError> {
        text.parse()
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.year, self.month)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::given;

    #[test]
    fn a_month_is_that_of_utc_and_comes_back_from_its_text() {
        let month = |at: &str| Month::of(given::at(at));
        assert_eq!(month("2026-10-31T23:59:59.999Z").to_string(), "2026-10");
        assert_eq!(month("2026-11-01T00:30:00+01:00").to_string(), "2026-10");
        assert!(month("2026-12-01T00:00:00Z") < month("2027-01-01T00:00:00Z"));
        let end = |at: &str| month(at).end().to_string();
        assert_eq!(end("2026-10-31T23:59:59.999Z"), "2026-11-01T00:00:00.000Z");
        assert_eq!(end("2026-12-01T00:00:00Z"), "2027-01-01T00:00:00.000Z");
        assert_eq!(Month::of(Timestamp::MAX).end(), Timestamp::MAX);
        assert_eq!("2026-11".parse(), Ok(month("2026-11-30T12:00:00Z")));
        for text in ["2026-13", "2026-00", "2026-1", "26-01", "2026-01-01", "+026-01", ""] {
            assert_eq!(text.parse::<Month>(), Err(MonthError), "{text}");
        }
    }
}
