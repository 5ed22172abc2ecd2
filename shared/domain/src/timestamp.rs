//! Timestamps in UTC milliseconds, and the forms in which a client may write them. Does not read a clock.

use std::fmt;

use chrono::{DateTime, NaiveDateTime, SecondsFormat, TimeDelta, Utc};
use serde::{Deserialize, Serialize, Serializer};

use super::{Decimal, LocalDate, TextOrNumber, duration, excerpt};

/// A point in time, in UTC, to the millisecond, from 1970-01-01 up to and including the year 9999.
///
/// The year always has four digits and the fraction three. So the texts of [`Display`](fmt::Display) have one width,
/// and their order is the order of the timestamps. The table's keys depend on this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "TextOrNumber")]
pub struct Timestamp(i64);

/// The reasons for which a text or a number is not a timestamp.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimestampError {
    /// The text has none of the accepted forms.
    #[error(
        "{0:?} is not a timestamp; write RFC 3339 like 2026-01-11T16:00:00Z or an epoch number"
    )]
    Unreadable(String),
    /// The text has none of the forms that a query accepts, which include relative times.
    #[error(
        "{0:?} is not a timestamp; write RFC 3339 like 2026-01-11T16:00:00Z, an epoch number, or now, -24h, now-7d"
    )]
    UnreadableQuery(String),
    /// The text is an epoch number before 2000. No clock that was set shows such a time, so a person means a year, such
    /// as 2024, or a date without its hyphens.
    #[error("{0:?} is an epoch number before 2000; write a date like 2026-01-11T00:00:00Z")]
    EarlyNumber(String),
    /// The text is a relative time.
    #[error(
        "{0:?} is a relative time, which only queries accept; write RFC 3339 like 2026-01-11T16:00:00Z or an epoch number"
    )]
    Relative(String),
    /// The text has no offset from UTC.
    #[error("{0:?} has no offset from UTC; add Z or an offset like +09:00")]
    NoOffset(String),
    /// The text is a date. Only a request with a time zone says when a date begins.
    #[error(
        "{0:?} is a date; write the time and the offset, too: {0}T00:00:00Z, or +09:00 in place of Z"
    )]
    Date(String),
    /// The time is before 1970 or after 9999.
    #[error("{0:?} is outside of the years 1970 to 9999")]
    OutOfRange(String),
}

impl Timestamp {
    /// 1970-01-01T00:00:00.000Z.
    pub const MIN: Self = Self(0);
    /// 9999-12-31T23:59:59.999Z.
    pub const MAX: Self = Self(253_402_300_799_999);
    /// 2000-01-01T00:00:00.000Z.
    const YEAR_2000: Self = Self(946_684_800_000);

    /// The timestamp `millis` milliseconds after 1970-01-01T00:00:00Z.
    pub fn from_millis(millis: i64) -> Result<Self, TimestampError> {
        if (Self::MIN.0..=Self::MAX.0).contains(&millis) {
            Ok(Self(millis))
        } else {
            Err(TimestampError::OutOfRange(millis.to_string()))
        }
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// The timestamp moved by `delta`, limited to [`MIN`](Self::MIN) and [`MAX`](Self::MAX).
    #[must_use]
    pub fn saturating_add(self, delta: TimeDelta) -> Self {
        Self(self.0.saturating_add(delta.num_milliseconds()).clamp(Self::MIN.0, Self::MAX.0))
    }

    /// The time from `earlier` to this timestamp.
    pub const fn since(self, earlier: Self) -> TimeDelta {
        TimeDelta::milliseconds(self.0 - earlier.0)
    }

    /// Parses RFC 3339 with any offset, an epoch number, or a time relative to `now`.
    ///
    /// The unit of an epoch number follows from its size: below 5e9 the unit is seconds, below 5e12 milliseconds, below
    /// 5e15 microseconds, else nanoseconds. Here an epoch number must be 0, or a time since 2000. Relative times are
    /// `now`, `-24h`, `now-7d`, `now+5m` with the units `s`, `m`, `h`, `d`, `w`. Digits below a millisecond are cut
    /// off.
    pub fn parse(text: &str, now: Self) -> Result<Self, TimestampError> {
        let text = text.trim();
        if let Some(offset) = relative(text) {
            let delta = distance(offset);
            let delta = delta.ok_or_else(|| TimestampError::UnreadableQuery(excerpt(text)))?;
            return Ok(now.saturating_add(delta));
        }

        let at = Self::parse_absolute(text).map_err(|why| match why {
            TimestampError::Unreadable(text) => TimestampError::UnreadableQuery(text),
            why => why,
        })?;
        if is_number(text) && Self::MIN < at && at < Self::YEAR_2000 {
            return Err(TimestampError::EarlyNumber(excerpt(text)));
        }
        Ok(at)
    }

    /// Parses the forms of [`parse`](Self::parse) except relative times: a reading with a relative time would get
    /// another timestamp each time it is sent.
    pub fn parse_absolute(text: &str) -> Result<Self, TimestampError> {
        let text = text.trim();
        if relative(text).is_some_and(|offset| distance(offset).is_some()) {
            return Err(TimestampError::Relative(excerpt(text)));
        }

        if is_number(text) {
            return epoch(text).ok_or_else(|| TimestampError::OutOfRange(excerpt(text)));
        }
        if let Ok(timestamp) = DateTime::parse_from_rfc3339(text) {
            return Self::from_millis(timestamp.timestamp_millis())
                .map_err(|_| TimestampError::OutOfRange(excerpt(text)));
        }

        let local = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M"];
        if local.iter().any(|form| NaiveDateTime::parse_from_str(text, form).is_ok()) {
            return Err(TimestampError::NoOffset(excerpt(text)));
        }

        if text.parse::<LocalDate>().is_ok() {
            return Err(TimestampError::Date(excerpt(text)));
        }

        Err(TimestampError::Unreadable(excerpt(text)))
    }
}

/// Whether a text is meant as an epoch number.
fn is_number(text: &str) -> bool {
    let numeric = |c: char| c.is_ascii_digit() || matches!(c, '-' | '.' | 'e' | 'E' | '+');
    // A minus sign after the first character is part of a date or of an exponent.
    let dated = |rest: &str| rest.contains('-') && !rest.contains(['e', 'E']);
    let begins = text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    begins && text.chars().all(numeric) && !dated(&text[1..])
}

/// The offset in a relative time, with or without `now` before it; `None` for every other form.
fn relative(text: &str) -> Option<&str> {
    let bare = || text.starts_with(['-', '+']) && text.ends_with(char::is_alphabetic);
    text.strip_prefix("now").or_else(|| bare().then_some(text))
}

/// The duration of a text such as `-24h`; zero for an empty text.
fn distance(text: &str) -> Option<TimeDelta> {
    if text.is_empty() {
        return Some(TimeDelta::zero());
    }
    let size = |text| duration::parse(text, "smhdw");
    match text.strip_prefix('-') {
        Some(back) => size(back).map(|distance| -distance),
        None => size(text.strip_prefix('+')?),
    }
}

/// An epoch number, whose unit follows from its size. Digits below a millisecond are cut off. `None` is out of range.
fn epoch(text: &str) -> Option<Timestamp> {
    // Computed with decimal digits: an `f64` is exact neither for 19 digits of nanoseconds nor for .001.
    let number = Decimal::parse(text).ok()?;
    let has_exponent = number.as_str().contains('E');
    if has_exponent {
        return None;
    }

    let (whole, fraction) = number.as_str().split_once('.').unwrap_or((number.as_str(), ""));
    let size: i128 = whole.parse().ok().filter(|_| !text.starts_with('-'))?;
    let millis = match size / 1_000_000_000 {
        0..5 => size * 1_000 + format!("{fraction:0<3}")[..3].parse::<i128>().ok()?,
        5..5_000 => size,
        5_000..5_000_000 => size / 1_000,
        _ => size / 1_000_000,
    };
    Timestamp::from_millis(i64::try_from(millis).ok()?).ok()
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let utc: DateTime<Utc> =
            DateTime::from_timestamp_millis(self.0).expect("within the years 1970 to 9999");
        f.write_str(&utc.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Reads a timestamp that is not relative.
impl TryFrom<TextOrNumber> for Timestamp {
    type Error = TimestampError;

    fn try_from(text: TextOrNumber) -> Result<Self, TimestampError> {
        Self::parse_absolute(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp(1_768_147_200_000); // 2026-01-11T16:00:00Z

    #[test]
    fn no_timestamp_is_after_the_year_9999() {
        assert!(Timestamp::from_millis(Timestamp::MAX.0 + 1).is_err());
    }

    #[test]
    fn an_epoch_number_beyond_the_years_is_out_of_range_in_each_form() {
        for text in ["1e60", "1.234567e60", "1.234567e-50", "-1", "9e18"] {
            let read = Timestamp::parse_absolute(text);
            assert!(matches!(read, Err(TimestampError::OutOfRange(_))), "{text}: {read:?}");
        }
        assert_eq!(Timestamp::parse_absolute("1.7681472e9"), Ok(NOW));
    }

    proptest! {
        #[test]
        fn the_order_of_texts_is_the_order_of_timestamps(
            a in Timestamp::MIN.0..=Timestamp::MAX.0,
            b in Timestamp::MIN.0..=Timestamp::MAX.0,
        ) {
            let texts = Timestamp(a).to_string().cmp(&Timestamp(b).to_string());
            prop_assert_eq!(texts, a.cmp(&b));
            prop_assert_eq!(Timestamp::parse(&Timestamp(a).to_string(), NOW), Ok(Timestamp(a)));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC{0,40}") {
            let _ = Timestamp::parse(&text, NOW);
        }
    }
}
