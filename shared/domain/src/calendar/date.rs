//! Local dates. Knows no time zone, so it cannot say when a date begins or ends.

use std::fmt;
use std::str::FromStr;

use chrono::{Datelike, NaiveDate};

use crate::excerpt;

/// A date of the Gregorian calendar, in the years 0000 to 9999.
///
/// [`Display`](fmt::Display) writes `2026-01-11`, always in ten characters: the order of the texts is
/// the order of the dates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalDate(NaiveDate);

/// The text is not a [`LocalDate`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a date; write year, month and day like 2026-01-11")]
pub struct LocalDateError(String);

impl LocalDate {
    /// 9999-12-31.
    pub(super) const MAX: Self =
        Self(NaiveDate::from_ymd_opt(9999, 12, 31).expect("December has 31 days"));

    /// Converts a date of chrono, whose year is 0 or later. A date after the last becomes the last.
    pub fn saturating_from(date: NaiveDate) -> Self {
        Self(date).min(Self::MAX)
    }

    /// The date as chrono's type.
    pub const fn naive(self) -> NaiveDate {
        self.0
    }
}

impl FromStr for LocalDate {
    type Err = LocalDateError;

    fn from_str(text: &str) -> Result<Self, LocalDateError> {
        // chrono also accepts signs, spaces and single digits. Here each date has only one text.
        let date = text.parse().ok().map(Self);
        date.filter(|date| (0..=9999).contains(&date.0.year()) && date.to_string() == text)
            .ok_or_else(|| LocalDateError(excerpt(text)))
    }
}

impl<'de> serde::Deserialize<'de> for LocalDate {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl serde::Serialize for LocalDate {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for LocalDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_has_one_text_and_the_order_of_the_texts() {
        let texts = ["0000-01-01", "1969-12-31", "2024-02-29", "2026-01-11", "9999-12-31"];
        let dates = texts.map(|text| text.parse::<LocalDate>().expect(text));
        assert!(dates.is_sorted());
        assert_eq!(dates.map(|date| date.to_string()), texts);
    }
}
