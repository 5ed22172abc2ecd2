//! A line of a file of readings: a reading, a row, an entry of the registry, or a refusal. Reads no file.

use domain::Timestamp;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::csv::rows::CsvRow;
use crate::reading::{self, HistoryReading};
use crate::refusals::Refusal;

/// The JSON of a line, and its number in the file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct JsonRecord {
    /// The line of the file, from 1.
    pub line: u64,
    /// The JSON object.
    pub json: String,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum Line {
    /// A reading.
    Reading(HistoryReading),
    /// A row whose amounts are added up later, in order of time.
    Row(CsvRow),
    /// The description of a device or a room, an annotation, or a tariff.
    Registry(JsonRecord),
    /// A line or a cell that cannot be read, with the reason.
    Refused(Refusal),
}

/// The lines of a file, in order. An error is the last element.
pub type Lines = Box<dyn Iterator<Item = anyhow::Result<Line>> + Send>;

/// The members that tell the kinds of lines apart.
#[derive(Deserialize)]
struct LineKind<'a> {
    #[serde(borrow)]
    device: Option<&'a RawValue>,
    #[serde(borrow)]
    room: Option<&'a RawValue>,
    #[serde(borrow)]
    annotation: Option<&'a RawValue>,
    #[serde(borrow)]
    tariff: Option<&'a RawValue>,
    timestamp: Option<IgnoredAny>,
    #[serde(rename = "Item")]
    item: Option<IgnoredAny>,
}

impl LineKind<'_> {
    /// Whether a line describes a device or a room, or is an annotation or a tariff.
    fn is_of_registry(&self) -> bool {
        let is_object = |value: &&RawValue| value.get().starts_with('{');
        [self.device, self.room, self.annotation, self.tariff].iter().flatten().any(is_object)
    }

    /// Returns the reason why the line is no reading of a file.
    fn refusal(&self) -> Option<&'static str> {
        if self.item.is_some() {
            return Some("is a rollup; rollups are imported with --rollups");
        }
        let is_timeless = self.timestamp.is_none();
        is_timeless.then_some("timestamp: is missing; a file does not tell when it was measured")
    }
}

impl Line {
    /// Decodes a line of JSON that was received at `now`.
    pub fn decode(record: JsonRecord, now: Timestamp) -> Self {
        // A line that is not an object is decoded as a reading, which returns the error.
        let kind = serde_json::from_str::<LineKind<'_>>(&record.json).ok();
        if kind.as_ref().is_some_and(LineKind::is_of_registry) {
            return Self::Registry(record);
        }

        let line = record.line;
        let refused = |reason| Self::Refused(Refusal { line, reason });
        if let Some(reason) = kind.and_then(|kind| kind.refusal()) {
            return refused(reason.to_owned());
        }

        let decoded = reading::decode(&record.json, now);
        decoded.map_or_else(refused, |reading| Self::Reading(HistoryReading { line, reading }))
    }

    /// Returns the device and the time of a reading or a row, in milliseconds.
    pub fn owner(&self) -> (String, Option<i64>) {
        match self {
            Self::Reading(HistoryReading { reading, .. }) => {
                (reading.device.to_string(), Some(reading.at.as_millis()))
            }
            Self::Row(row) => (row.device.clone(), Some(row.at.as_millis())),
            Self::Registry(_) | Self::Refused(_) => Default::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_timestamp_has_its_place() {
        let owner = |json: &str| {
            let record = JsonRecord { line: 1, json: json.to_owned() };
            Line::decode(record, Timestamp::MAX).owner()
        };
        let at = Some(1_768_147_200_000);
        for timestamp in ["1768147200", "\"2026-01-11T17:00:00+01:00\"", "1768147200000"] {
            let json = format!(r#"{{"device_id":"\u0064","t":1,"timestamp":{timestamp}}}"#);
            assert_eq!(owner(&json), ("d".to_owned(), at), "{timestamp}");
        }
        for other in
            ["{", r#"{"device":{"device_id":"d"}}"#, r#"{"device_id":"d","timestamp":"-1h"}"#]
        {
            assert_eq!(owner(other), (String::new(), None), "{other}");
        }
    }

    #[test]
    fn a_line_that_is_no_reading_is_refused_with_its_reason() {
        for (json, expected) in [
            (r#"{"device_id":"d","t":1}"#, "timestamp: is missing"),
            (r#"{"device_id":"d","timestamp":null,"t":1}"#, "timestamp: is missing"),
            (
                r#"{"device_id":"ROOM","timestamp":1768147200,"t":1}"#,
                "device_id: \"ROOM\" is a reserved name",
            ),
            ("{", "EOF"),
            ("5", "must be an object"),
            (r#"{"Item":{},"timestamp":1}"#, "is a rollup"),
        ] {
            let record = JsonRecord { line: 7, json: json.to_owned() };
            let Line::Refused(refusal) = Line::decode(record, Timestamp::MAX) else {
                panic!("{json}")
            };
            assert_eq!(refusal.line, 7);
            assert!(refusal.reason.starts_with(expected), "{refusal}");
        }
    }
}
