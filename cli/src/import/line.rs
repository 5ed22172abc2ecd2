//! A line of an imported file: a reading, or an error. Reads no file.

use serde::{Deserialize, Serialize};

use super::refusals::Refusal;

/// A reading in the form of `POST /readings`, and its line number in the file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Record {
    /// The line of the file, from 1.
    pub(crate) line: u64,
    /// The reading as a JSON object.
    pub(crate) json: String,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum Line {
    /// A reading, not yet checked.
    Reading(Record),
    /// A line or a cell that cannot be read, with the reason.
    Refused(Refusal),
}

/// The lines of a file, in order. An error is the last element.
pub(crate) type Lines = Box<dyn Iterator<Item = anyhow::Result<Line>> + Send>;
