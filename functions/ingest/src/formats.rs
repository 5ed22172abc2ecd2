//! The formats in which readings are sent: one file each, from bytes to drafts. Knows no sender and no clock.

pub(crate) mod json;
pub(crate) mod line_protocol;

use api::{Problem, is_ndjson};

use crate::draft::Entry;

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// A JSON document, or lines of JSON that no type announces.
    Json,
    /// One JSON object a line.
    Ndjson,
}

impl Format {
    /// The format of a body with that `Content-Type`.
    pub(crate) fn of(content_type: &str) -> Self {
        if is_ndjson(content_type) { Self::Ndjson } else { Self::Json }
    }

    /// The entries of a body. A bad entry does not take the others down; a body that cannot be taken
    /// apart is refused whole.
    pub(crate) fn read(self, body: &[u8]) -> Result<Vec<Entry>, Problem> {
        match self {
            Self::Json => json::document_or_lines(body),
            Self::Ndjson => json::lines(body),
        }
    }
}
