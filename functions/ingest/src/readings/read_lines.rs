//! Parses line protocol for programs that prepare a write: the texts of a line, and the readings that a write would
//! store. Writes no table.

use std::borrow::Cow;

use api::Problem;
use domain::{DeviceId, Reading, Timestamp};

use crate::formats::line_protocol::mapping::MappingRules;
use crate::formats::line_protocol::{self, LineError, LineValue, Numbered, Precision};
use crate::intake::sender::RequestSender;
use crate::intake::times::Times;
use crate::readings::line_points::{LinePoints, Reader};
use crate::settings::Settings;

/// The texts of a line, still escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineTexts<'a> {
    /// The measurement.
    pub measurement: &'a str,
    /// Keys and values of the tags, in the order of the line.
    pub tags: Vec<(&'a str, &'a str)>,
    /// Keys and values of the fields. Integers come without their suffix, strings with their quotes.
    pub fields: Vec<(&'a str, Cow<'a, str>)>,
    /// The timestamp, as a number whose precision the line does not tell.
    pub timestamp: Option<i64>,
}

/// The reason why a line cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LineTextError(LineError);

impl LineTextError {
    /// Whether a string may go on in the next line of the file.
    pub fn is_unfinished(self) -> bool {
        self.0 == LineError::UnbalancedQuotes
    }
}

/// Parses the first line of a text; `None` if the text has only comments and blanks.
pub fn read_line(text: &[u8]) -> Option<Result<LineTexts<'_>, LineTextError>> {
    let Numbered { line, .. } = line_protocol::lines(text).next()?;
    Some(line.map_err(LineTextError).map(|line| LineTexts {
        measurement: line.measurement.raw(),
        tags: line.tags.iter().map(|(key, value)| (key.raw(), value.raw())).collect(),
        fields: line.fields.iter().map(|(key, value)| (key.raw(), written(*value))).collect(),
        timestamp: line.timestamp,
    }))
}

fn written(value: LineValue<'_>) -> Cow<'_, str> {
    match value {
        LineValue::Number(text) => text.into(),
        LineValue::Boolean(is) => if is { "t" } else { "f" }.into(),
        LineValue::String(text) => format!("\"{}\"", text.raw()).into(),
    }
}

/// The readings of a body of line protocol, and the refused lines.
#[derive(Debug, Default)]
pub struct PointsRead {
    /// The readings.
    pub readings: Vec<Reading>,
    /// The number of each line that is refused, counted from 1, and the reason.
    pub refused: Vec<(usize, String)>,
}

/// The settings of a token, or the parameters of a write, by which lines become devices and rooms.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineRules {
    /// The tags that identify a device, in this order; if empty, all tags that do not describe the device.
    pub device_tags: Vec<String>,
    /// The tag that names a room.
    pub room_tag: Option<String>,
    /// The prefix of every id.
    pub prefix: Option<DeviceId>,
}

/// Reads a body as a write at `now` would, with timestamps in nanoseconds and these rules.
pub fn read_points(body: &[u8], now: Timestamp, rules: &LineRules) -> Result<PointsRead, Problem> {
    let LineRules { device_tags, room_tag, prefix } = rules.clone();
    let reader = Reader {
        precision: Precision::Nanosecond,
        rules: MappingRules { device: None, prefix, device_tags, room_tag },
        sender: RequestSender::Anyone,
        times: Times::new(now, &Settings::default()),
    };

    let LinePoints { assembled, lines, .. } = reader.read(body)?;
    let refused = assembled.rejected.into_iter();
    let refused = refused
        .map(|refusal| (lines[refusal.index.unwrap_or_default()].0, refusal.message))
        .collect();
    Ok(PointsRead { readings: assembled.timed.readings, refused })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_s_texts_are_those_that_were_written() {
        let text =
            b"# a comment\nm\\ 1,t\\,a=x\\ y,b=z v=1.50,n=3i,b=true,s=\"a \\\"q\\\"\" 17\nnext v=1";
        let line = read_line(text).expect("a line").expect("a good one");
        assert_eq!((line.measurement, line.timestamp), ("m\\ 1", Some(17)));
        assert_eq!(line.tags, [("t\\,a", "x\\ y"), ("b", "z")]);
        let fields: Vec<_> = line.fields.iter().map(|(key, value)| (*key, &**value)).collect();
        assert_eq!(fields, [("v", "1.50"), ("n", "3"), ("b", "t"), ("s", "\"a \\\"q\\\"\"")]);
        assert_eq!(read_line(b"# nothing\n\n"), None);
        let unfinished = read_line(b"m s=\"one").expect("a line").expect_err("no end");
        assert!(unfinished.is_unfinished());
        let wrong = read_line(b"m 1").expect("a line").expect_err("no field");
        assert!(!wrong.is_unfinished(), "{wrong}");
    }

    #[test]
    fn a_body_s_readings_are_those_of_a_write() {
        let now = Timestamp::from_millis(1_800_000_000_000).expect("a timestamp");
        let body = b"kWh,domain=sensor,entity_id=meter,area=Hall value=5,friendly_name_str=\"M\" 1768147200000000000\n\
            m v=1 5";
        let rules = LineRules {
            device_tags: vec!["entity_id".to_owned()],
            room_tag: Some("area".to_owned()),
            prefix: None,
        };
        let read = read_points(body, now, &rules).expect("two lines");
        let reading = &read.readings[0];
        assert_eq!(reading.device.as_str(), "sensor.meter");
        assert_eq!(reading.room.as_ref().map(domain::RoomId::as_str), Some("Hall"));
        assert!(reading.about.as_ref().is_some_and(|about| about.name.is_some()));
        assert_eq!((read.readings.len(), read.refused[0].0), (1, 2), "{:?}", read.refused);
    }
}
