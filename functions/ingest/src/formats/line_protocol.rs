//! InfluxDB's line protocol: a body becomes lines, each read by itself. Maps nothing to devices or metrics.
//!
//! Source: <https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol/>

mod line;
pub(crate) mod mapping;
mod number;
mod precision;
#[cfg(test)]
mod tests;

pub(crate) use line::{LineError, LineValue, ProtocolLine};
pub(crate) use precision::Precision;

use line::Text;
use number::decimal;

/// The number sign, with which a comment begins.
const COMMENT: u8 = 0x23;

/// A line of a body, parsed or with the reason why it cannot be.
#[derive(Debug, Clone)]
pub(crate) struct Numbered<'a> {
    /// The number of the line in the body, counted from 1.
    pub(crate) number: usize,
    /// The line as it was sent, without its end.
    pub(crate) text: &'a [u8],
    pub(crate) line: Result<ProtocolLine<'a>, LineError>,
}

/// The lines of a body that are neither blank nor a comment.
///
/// A line ends at the first line feed outside of quotes. A damaged line ends at its first line feed, even in quotes, so
/// that a stray quote spoils one line only.
pub(crate) fn lines(body: &[u8]) -> impl Iterator<Item = Numbered<'_>> {
    let mut rest = body;
    let mut number = 1;
    std::iter::from_fn(move || {
        loop {
            let blank = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            number += line_feeds(&rest[..blank]);
            rest = &rest[blank..];
            let to_feed = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            if *rest.first()? == COMMENT {
                rest = &rest[to_feed..];
                continue;
            }

            let (line, length) = match line::parse(rest) {
                Ok((line, length)) => (Ok(line), length),
                Err(error) => (Err(error), to_feed),
            };

            let (text, behind) = rest.split_at(length);
            let read = Numbered { number, text: text.trim_ascii_end(), line };
            number += line_feeds(text);
            rest = behind;
            return Some(read);
        }
    })
}

fn line_feeds(text: &[u8]) -> usize {
    text.split(|byte| *byte == b'\n').count() - 1
}
