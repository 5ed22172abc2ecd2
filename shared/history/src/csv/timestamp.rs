//! Parses timestamp cells in every accepted form, and local times in their zone.
//!
//! A local time that the clock shows twice stays ambiguous here: `clock_change` resolves it with the help of other
//! lines.

use std::str::FromStr;

use chrono::format::{Fixed, Item, StrftimeItems};
use chrono::{
    DateTime, Datelike as _, FixedOffset, MappedLocalTime, NaiveDate, NaiveDateTime, NaiveTime,
    TimeDelta, TimeZone,
};
use domain::{Timestamp, TimestampError, excerpt};

/// The time zone of local times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zone {
    /// A fixed offset from UTC.
    Fixed(FixedOffset),
    /// A named time zone.
    Named(domain::Zone),
}

impl FromStr for Zone {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(offset) = text.parse() {
            return Ok(Self::Fixed(offset));
        }

        let named = text.parse().map(Self::Named);
        named.map_err(|_| {
            "expected a time zone such as Europe/Berlin, or an offset such as +01:00".into()
        })
    }
}

/// The length of the interval that begins at a row's time, if the row's values belong to the interval's end. Zero if
/// they belong to the time itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowInterval(TimeDelta);

impl FromStr for RowInterval {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Uses the units of relative times.
        let length = Timestamp::parse(&format!("+{text}"), Timestamp::MIN);
        let length = length.map(|end| end.since(Timestamp::MIN)).ok();
        let length = length.filter(|length| *length > TimeDelta::zero());
        length.map(Self).ok_or_else(|| "expected a time such as 15m, 1h or 1d".to_owned())
    }
}

impl RowInterval {
    /// Returns the end of the interval that begins at a time.
    pub fn end(self, begin: Timestamp) -> Timestamp {
        begin.saturating_add(self.0)
    }

    /// Returns the beginning of the interval that ends at a time.
    pub fn begin(self, end: Timestamp) -> Timestamp {
        end.saturating_add(-self.0)
    }
}

/// Checks a format of timestamps. With an invalid format, every line would be refused.
pub fn format(text: &str) -> Result<String, String> {
    for item in StrftimeItems::new(text) {
        match item {
            Item::Error => {
                return Err(
                    "has a part that names no part of a time; expected one such as '%d.%m.%Y %H:%M'"
                        .to_owned(),
                );
            }
            // chrono parses the name of a zone, but ignores it.
            Item::Fixed(Fixed::TimezoneName) => {
                let why = "%Z, the name of a zone, says nothing certain; cut it off, or write %z for an offset";
                return Err(why.to_owned());
            }
            _ => {}
        }
    }

    Ok(text.to_owned())
}

/// The meaning of a timestamp cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// One timestamp.
    At(Timestamp),
    /// A local time that the clock shows twice.
    Repeated {
        /// The local time on the clock.
        local: NaiveDateTime,
        /// The timestamp if the local time is in the first pass of the repeated hour.
        earlier: Timestamp,
        /// The timestamp if the local time is in the second pass.
        later: Timestamp,
    },
}

/// The years of local times that may be timestamps.
const YEARS: std::ops::RangeInclusive<i32> = 1969..=10_000;
/// The end of the refusal of a cell in an unknown form.
const OTHER_FORM: &str = "--timestamp-format reads another form, such as '%d.%m.%Y %H:%M'";

/// Parses a cell: RFC 3339, epoch digits, a date or a local time in `zone`, or a text in `format`.
pub fn read(text: &str, format: Option<&str>, zone: Option<Zone>) -> Result<Moment, String> {
    let shown = || excerpt(text);
    if text.is_empty() {
        return Err("is empty".to_owned());
    }

    let local = if let Some(format) = format {
        if let Ok(at) = DateTime::parse_from_str(text, format) {
            return timestamp(&at).map(Moment::At);
        }
        let local = NaiveDateTime::parse_from_str(text, format).or_else(|_| {
            NaiveDate::parse_from_str(text, format).map(|date| date.and_time(NaiveTime::MIN))
        });
        local.map_err(|_| format!("{:?} is not of the form {format:?}", shown()))?
    } else {
        // Relative times such as `now` and `-24h` are refused: they would depend on the time of the import.
        if !text.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(format!("{:?} is not a timestamp; {OTHER_FORM}", shown()));
        }
        match (Timestamp::parse_absolute(text), local_time(text)) {
            (Ok(at), _) => return Ok(Moment::At(at)),
            (Err(_), Some(local)) => local,
            (Err(why @ TimestampError::Unreadable(_)), None) => {
                return Err(format!("{why}; {OTHER_FORM}"));
            }
            (Err(why), None) => return Err(why.to_string()),
        }
    };

    // Close to the limits of chrono, zones have no offset.
    if !YEARS.contains(&local.year()) {
        return Err(TimestampError::OutOfRange(shown()).to_string());
    }

    match zone {
        None => Err(format!(
            "{:?} has no offset from UTC; add --time-zone, such as Europe/Berlin or +01:00",
            shown()
        )),
        Some(Zone::Fixed(offset)) => {
            let at = offset.from_local_datetime(&local).single();
            timestamp(&at.expect("a fixed offset shows each time once")).map(Moment::At)
        }
        Some(Zone::Named(zone)) => match zone.instants(local) {
            MappedLocalTime::Single(at) => timestamp(&at).map(Moment::At),
            MappedLocalTime::Ambiguous(earlier, later) => {
                let (earlier, later) = (timestamp(&earlier)?, timestamp(&later)?);
                Ok(Moment::Repeated { local, earlier, later })
            }
            MappedLocalTime::None => {
                Err(format!("{local} does not exist in {zone}: the clock skips it"))
            }
        },
    }
}

/// Parses a date, which means its midnight, or a date and a time without an offset.
fn local_time(text: &str) -> Option<NaiveDateTime> {
    const TIMES: [&str; 4] =
        ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"];

    let time = TIMES.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
    let date = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    time.or_else(|| date().map(|date| date.and_time(NaiveTime::MIN)))
}

fn timestamp<Z: TimeZone>(at: &DateTime<Z>) -> Result<Timestamp, String> {
    Timestamp::from_millis(at.timestamp_millis()).map_err(|why| why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::{at_millis, cases};

    fn shown(text: &str, format: &str, zone: &str) -> String {
        let format = (!format.is_empty()).then_some(format);
        match read(text, format, (!zone.is_empty()).then(|| zone.parse().unwrap())) {
            Ok(Moment::At(at)) => at.to_string(),
            Ok(Moment::Repeated { earlier, later, .. }) => format!("{earlier} or {later}"),
            Err(why) => format!("refused: {why}"),
        }
    }

    #[test]
    fn a_time_is_read_or_refused_as_its_case_says() {
        for case in cases(include_str!("timestamp/cases.txt")) {
            let [text, format, zone] = case.given.split('|').map(str::trim).collect::<Vec<_>>()[..]
            else {
                panic!("{case}")
            };
            let shown = shown(text, format, zone);
            match case.answer().strip_prefix("refused: ") {
                None => assert_eq!(shown, case.answer(), "{case}"),
                Some(why) => {
                    let refused = shown.strip_prefix("refused: ").expect(&shown);
                    assert!(refused.contains(why), "{case}: {shown}");
                }
            }
        }
        assert!("Europe/Nowhere".parse::<Zone>().is_err());
    }

    #[test]
    fn an_interval_ends_behind_its_beginning() {
        let begin = at_millis(0);
        let end = |text: &str| text.parse::<RowInterval>().map(|it| it.end(begin).to_string());
        assert_eq!(end("15m"), Ok("2026-01-11T16:15:00.000Z".to_owned()));
        assert_eq!(end("1d"), Ok("2026-01-12T16:00:00.000Z".to_owned()));
        assert_eq!(RowInterval::default().end(begin), begin);
        assert!(["quarter", "-15m", "0m", "0d"].iter().all(|text| end(text).is_err()));
    }

    #[test]
    fn a_format_is_checked_before_a_line_is_read() {
        for text in ["%d.%m.%Y %H:%M", "%s", "%Y-%m-%dT%H:%M:%S%.3f%z", "%%Z %+"] {
            assert_eq!(format(text), Ok(text.to_owned()));
        }
        for (text, why) in [("%Q", "expected one such as"), ("%Y %", "expected"), ("%d %Z", "%z")] {
            let refused = format(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }

    #[test]
    fn a_year_that_no_timestamp_has_is_refused_in_every_zone() {
        let format = Some("%Y-%m-%d %H:%M:%S");
        for zone in ["-14:00", "+14:00", "UTC", "Asia/Tokyo", "America/New_York"] {
            for year in ["-262143", "-0001", "1900", "+10001", "+262142"] {
                for day in ["01-01 00:00:00", "12-31 23:59:59"] {
                    let refused = read(&format!("{year}-{day}"), format, zone.parse().ok());
                    assert!(refused.is_err(), "{year} in {zone}: {refused:?}");
                }
            }
        }
    }
}
