//! Reads a text whose lines are readings or entries of the registry. Knows no form of a line.

use std::io::BufRead;

use domain::Timestamp;

use crate::line::{JsonRecord, Line};
use crate::text_lines::TextLines;

/// Returns the JSON of a line, or the reason to refuse it; `None` for a line without content.
pub(crate) type Json = fn(&[u8]) -> Option<Result<String, String>>;

/// Decodes the lines of a text that are received at `now`.
pub(crate) fn decode(
    mut lines: TextLines<impl BufRead>,
    json: Json,
    now: Timestamp,
) -> impl Iterator<Item = anyhow::Result<Line>> {
    std::iter::from_fn(move || {
        loop {
            return Some(Ok(match lines.read().transpose()? {
                Err(error) => return Some(Err(error)),
                Ok(Err(refusal)) => Line::Refused(refusal),
                Ok(Ok(())) => match json(&lines.text) {
                    None => continue,
                    Some(Ok(json)) => Line::decode(JsonRecord { line: lines.line, json }, now),
                    Some(Err(reason)) => Line::Refused(lines.refusal(reason)),
                },
            }));
        }
    })
}
