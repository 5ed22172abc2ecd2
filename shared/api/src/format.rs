//! The format of a list that the client asks for: JSON, CSV or NDJSON. Writes no list.

use super::is_ndjson;
use super::preferences::weighted;

/// The format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the forms'")]
pub enum Format {
    Json,
    Csv,
    Ndjson,
}

impl Format {
    /// The form with that name or media type.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "json" | "application/json" => Some(Self::Json),
            "csv" | "text/csv" => Some(Self::Csv),
            "ndjson" | "application/x-ndjson" => Some(Self::Ndjson),
            _ => None,
        }
    }

    /// Content negotiation: the form with the highest `q` of an `Accept` header; JSON by default.
    pub fn accepted(accept: &str) -> Self {
        let mut best = (0.0, Self::Json);
        for (media, weight) in weighted(accept) {
            let form = match media.as_str() {
                "application/json" | "application/*" | "*/*" => Self::Json,
                "text/csv" => Self::Csv,
                media if is_ndjson(media) => Self::Ndjson,
                _ => continue,
            };
            if weight > best.0 {
                best = (weight, form);
            }
        }

        best.1
    }

    /// The media type of the form.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Ndjson => "application/x-ndjson",
        }
    }
}
