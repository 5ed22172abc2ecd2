//! A line of an imported file: a reading, or an error. Reads no file.

use domain::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::refusals::Refusal;

/// A reading in the form of `POST /readings`, and its line number in the file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Record {
    /// The line of the file, from 1.
    pub line: u64,
    /// The reading as a JSON object.
    pub json: String,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum Line {
    /// A reading, not yet checked.
    Reading(Record),
    /// A line or a cell that cannot be read, with the reason.
    Refused(Refusal),
}

impl Line {
    /// Returns the device and the timestamp of a line, in milliseconds; empty for a line that is not a reading.
    pub fn owner(&self) -> (String, Option<i64>) {
        #[derive(Deserialize)]
        struct Form<'a> {
            device_id: String,
            #[serde(borrow)]
            timestamp: &'a RawValue,
        }
        let Self::Reading(record) = self else { return Default::default() };
        let Ok(Form { device_id, timestamp }) = serde_json::from_str(&record.json) else {
            return Default::default();
        };
        let text = serde_json::from_str::<String>(timestamp.get());
        let at = Timestamp::parse_absolute(text.as_deref().unwrap_or(timestamp.get()));
        at.map_or_else(|_| Default::default(), |at| (device_id, Some(at.as_millis())))
    }
}

/// The lines of a file, in order. An error is the last element.
pub type Lines = Box<dyn Iterator<Item = anyhow::Result<Line>> + Send>;
