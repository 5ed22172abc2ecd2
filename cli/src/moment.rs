//! Parses and writes times for people. Knows no command.

use domain::{Timestamp, TimestampError};
pub(crate) use history::point::MILLISECOND;
use runtime::clock::{Clock as _, SystemClock};

/// Parses a time, or a time relative to now, such as -30d.
///
/// `now` is the start of the command. If each page of a list used its own time, a server would see another range at
/// each request, and a deletion until now would never end while a device sends.
pub(crate) fn from_now(text: &str) -> Result<Timestamp, TimestampError> {
    Timestamp::parse(text, SystemClock.now())
}

/// Writes a time in nanoseconds for people; `?` if it is out of range.
pub(crate) fn shown_nanos(nanos: i64) -> String {
    shown_millis(nanos.div_euclid(MILLISECOND))
}

/// Writes a time in milliseconds for people; `?` if it is out of range.
pub(crate) fn shown_millis(millis: i64) -> String {
    Timestamp::from_millis(millis).map_or_else(|_| "?".to_owned(), |at| at.to_string())
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn a_relative_time_is_counted_from_now_and_any_other_is_as_it_stands() {
        let before = SystemClock.now();
        let month = from_now("-30d").unwrap().since(before);
        assert!(
            (TimeDelta::zero()..TimeDelta::minutes(1)).contains(&(month + TimeDelta::days(30)))
        );
        let at = "2026-01-11T16:00:00.000Z";
        assert_eq!(from_now(at).unwrap().to_string(), at);
        assert!(from_now("yesterday").is_err());
    }
}
