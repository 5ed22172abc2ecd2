//! The time of measurement in a device's payload, and whether the device's clock can be trusted. Reads no clock.

use chrono::{NaiveDateTime, TimeDelta};
use domain::{Timestamp, TimestampError, Zone};

/// A device's clock that is farther off than this is not trusted.
const MAX_OFF: TimeDelta = TimeDelta::days(1);

/// The accepted forms of a local time.
const LOCAL: [&str; 3] = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M"];

/// The time of measurement, as a payload has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PayloadTime {
    /// The payload has no time, so the time of arrival counts.
    Arrival,
    /// A time that does not come from a device's clock.
    Known(Timestamp),
    /// The time by a device's clock.
    Shown(Timestamp),
    /// The time by a device's clock, in the home's time zone.
    Local(NaiveDateTime),
    /// The device has a clock, but it shows no valid time.
    Unset,
}

impl PayloadTime {
    /// The time by a device's clock: RFC 3339, an epoch number, or a local time without an offset.
    pub(crate) fn parse(text: &str) -> Self {
        match Timestamp::parse_absolute(text) {
            Ok(at) => Self::Shown(at),
            Err(TimestampError::NoOffset(_)) => {
                let local = LOCAL
                    .iter()
                    .find_map(|form| NaiveDateTime::parse_from_str(text.trim(), form).ok());
                local.map_or(Self::Unset, Self::Local)
            }
            Err(_) => Self::Unset,
        }
    }

    /// The timestamp, `None` if the time of arrival counts. Also whether the clock is wrong: never set, or more than a
    /// day off.
    ///
    /// A local time that occurs twice, because clocks are set back, means the instant nearer to the arrival.
    pub(crate) fn settle(self, arrived: Timestamp, zone: Zone) -> (Option<Timestamp>, bool) {
        let at = match self {
            Self::Arrival => return (None, false),
            Self::Known(at) => return (Some(at), false),
            Self::Unset => return (None, true),
            Self::Shown(at) => at,
            Self::Local(local) => zone.instant(local, arrived),
        };
        let is_off = at.since(arrived).abs() > MAX_OFF;
        ((!is_off).then_some(at), is_off)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given;

    fn settled(text: &str, arrived: &str, zone: &str) -> String {
        let arrived = given::at(arrived);
        match PayloadTime::parse(text).settle(arrived, given::zone(zone)) {
            (Some(at), false) => at.to_string(),
            (None, true) => "off".to_owned(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_local_time_is_the_homes_and_of_a_doubled_hour_the_nearer_instant() {
        for (text, arrived, expected) in [
            ("2026-01-11T17:00:00", "2026-01-11T16:00:01Z", "2026-01-11T16:00:00.000Z"),
            ("2026-01-11 17:00:00", "2026-01-11T16:00:01Z", "2026-01-11T16:00:00.000Z"),
            ("2026-10-25T02:30:00", "2026-10-25T00:30:05Z", "2026-10-25T00:30:00.000Z"),
            ("2026-10-25T02:30:00", "2026-10-25T01:30:05Z", "2026-10-25T01:30:00.000Z"),
            ("2026-10-25T02:30:00", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00.000Z"),
            ("2026-10-25T02:30:00", "2026-10-25T12:00:00Z", "2026-10-25T01:30:00.000Z"),
            // The clock skips it: by the clock that was not put forward yet.
            ("2026-03-29T02:30:00", "2026-03-29T01:30:05Z", "2026-03-29T01:30:00.000Z"),
            ("2026-01-11T16:00:00Z", "2026-01-11T16:00:01Z", "2026-01-11T16:00:00.000Z"),
            ("2026-01-11T16:00:00+09:00", "2026-01-11T16:00:01Z", "2026-01-11T07:00:00.000Z"),
            ("1768147200", "2026-01-11T16:00:01Z", "2026-01-11T16:00:00.000Z"),
        ] {
            assert_eq!(settled(text, arrived, "Europe/Berlin"), expected, "{text} at {arrived}");
        }
    }

    #[test]
    fn a_clock_that_is_never_set_or_more_than_a_day_off_is_not_believed() {
        for text in [
            "1970-01-01T00:00:35",
            "35",
            "0",
            "2018-02-15T17:37:10",
            "2026-01-10T15:59:59Z",
            "2026-01-12T16:00:01Z",
            "0001-01-01T00:00:00",
            "9999-12-31T23:59:59",
            "soon",
            "",
        ] {
            assert_eq!(settled(text, "2026-01-11T16:00:00Z", "Asia/Tokyo"), "off", "{text}");
        }
        let day_ago = settled("2026-01-10T16:00:00Z", "2026-01-11T16:00:00Z", "UTC");
        assert_eq!(day_ago, "2026-01-10T16:00:00.000Z");
    }

    #[test]
    fn without_a_clock_it_is_the_arrival_and_what_no_device_says_is_believed() {
        let now = given::at("2026-01-11T16:00:00Z");
        assert_eq!(PayloadTime::Arrival.settle(now, Zone::UTC), (None, false));
        let known = PayloadTime::Known(Timestamp::MIN).settle(now, Zone::UTC);
        assert_eq!(known, (Some(Timestamp::MIN), false));
    }
}
