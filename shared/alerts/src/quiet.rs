//! Quiet hours: the part of the local day in which messages wait. Stores no message.

use std::fmt;
use std::str::FromStr;

use chrono::TimeDelta;
use domain::{Timestamp, Zone, excerpt};
use serde::{Deserialize, Deserializer};

const DAY: u16 = 24 * 60;

/// A part of the local day, such as `22:00-07:00`. The time on the local clock decides, also on days on which the clock
/// is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuietHours {
    /// The first quiet minute of the local day.
    from: u16,
    /// The first minute that is not quiet any more.
    to: u16,
}

/// The text that cannot be read as quiet hours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} are not quiet hours; write two different times like 22:00-07:00")]
pub struct QuietHoursError(String);

impl QuietHours {
    /// Whether an instant is quiet.
    pub fn contain(self, at: Timestamp, zone: Zone) -> bool {
        let second = at.as_millis().div_euclid(1_000);
        let minute = (second + zone.offset(second)).div_euclid(60).rem_euclid(DAY.into());
        let (from, to) = (i64::from(self.from), i64::from(self.to));
        if from < to { (from..to).contains(&minute) } else { minute >= from || minute < to }
    }

    /// The first instant from `at` on that is not quiet, in whole minutes of UTC.
    pub fn end(self, at: Timestamp, zone: Zone) -> Timestamp {
        let mut end = at;
        while self.contain(end, zone) && end < Timestamp::MAX {
            let into = TimeDelta::milliseconds(end.as_millis() % 60_000);
            end = end.saturating_add(TimeDelta::minutes(1) - into);
        }
        end
    }
}

impl<'de> Deserialize<'de> for QuietHours {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl FromStr for QuietHours {
    type Err = QuietHoursError;

    fn from_str(text: &str) -> Result<Self, QuietHoursError> {
        let minute = |text: &str| {
            let (hour, minute) = text.split_once(':')?;
            let part = |text: &str, end: u16| {
                let is_plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
                text.parse::<u16>().ok().filter(|part| is_plain && *part < end)
            };
            Some(part(hour, 24)? * 60 + part(minute, 60)?)
        };
        let read = || {
            let (from, to) = text.split_once('-')?;
            let (from, to) = (minute(from)?, minute(to)?);
            (from != to).then_some(Self { from, to })
        };
        read().ok_or_else(|| QuietHoursError(excerpt(text)))
    }
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to } = self;
        write!(f, "{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::{self, at};

    #[test]
    fn the_local_clock_decides() {
        let zone: Zone = given::zone("Europe/Berlin");
        let night: QuietHours = "22:00-07:00".parse().expect("quiet hours");
        for (text, is_quiet) in [
            ("2026-01-11T20:59:59.999Z", false),
            ("2026-01-11T21:00:00Z", true),
            ("2026-01-12T05:59:59Z", true),
            ("2026-01-12T06:00:00Z", false),
            ("2026-07-11T20:00:00Z", true),
        ] {
            assert_eq!(night.contain(at(text), zone), is_quiet, "{text}");
        }
        assert_eq!(night.end(at("2026-01-11T23:12:34.567Z"), zone), at("2026-01-12T06:00:00Z"));
        // The clock goes from 2 to 3 at 1:00 UTC: the night is an hour shorter.
        assert_eq!(night.end(at("2026-03-28T23:00:00Z"), zone), at("2026-03-29T05:00:00Z"));
        assert_eq!(night.end(at("2026-01-12T08:00:00Z"), zone), at("2026-01-12T08:00:00Z"));
    }

    #[test]
    fn a_skipped_end_is_the_change_of_the_clock() {
        let zone: Zone = given::zone("Europe/Berlin");
        let quiet: QuietHours = "01:00-02:30".parse().expect("quiet hours");
        assert_eq!(quiet.end(at("2026-03-29T00:30:00Z"), zone), at("2026-03-29T01:00:00Z"));
    }

    #[test]
    fn a_text_is_read_back_or_refused() {
        for text in ["22:00-07:00", "00:00-23:59"] {
            assert_eq!(text.parse::<QuietHours>().expect(text).to_string(), text);
        }
        for text in
            ["", "22-7", "22:00", "24:00-07:00", "22:00-22:00", "22:60-07:00", "+2:00-07:00"]
        {
            assert!(text.parse::<QuietHours>().is_err(), "{text}");
        }
    }
}
