//! Reads a text whose lines are readings or settings. Parses none of them.

use std::io::BufRead;

use crate::line::{Line, Record};
use crate::text_lines::TextLines;

/// Returns the JSON of a line, or the reason to refuse it; `None` for a line without content.
pub(crate) type Json = fn(&[u8]) -> Option<Result<String, String>>;

/// Reads the lines of a text as readings or settings.
pub(crate) struct Records<R> {
    lines: TextLines<R>,
    json: Json,
}

impl<R: BufRead> Records<R> {
    pub(crate) const fn new(lines: TextLines<R>, json: Json) -> Self {
        Self { lines, json }
    }
}

impl<R: BufRead> Iterator for Records<R> {
    type Item = anyhow::Result<Line>;

    fn next(&mut self) -> Option<anyhow::Result<Line>> {
        let Self { lines, json } = self;
        loop {
            match lines.read().transpose()? {
                Ok(Ok(())) => {}
                Ok(Err(refusal)) => return Some(Ok(Line::Refused(refusal))),
                Err(error) => return Some(Err(error)),
            }
            match json(&lines.text) {
                None => {}
                Some(Ok(json)) => {
                    return Some(Ok(Line::Reading(Record { line: lines.line, json })));
                }
                Some(Err(reason)) => return Some(Ok(Line::Refused(lines.refusal(reason)))),
            }
        }
    }
}
