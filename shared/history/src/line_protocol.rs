//! Files of line protocol, as `influx_inspect export` and `influxd inspect export-lp` write them. Opens no file and
//! unites no points.
//!
//! An export has one field per line, series after series, and the write-ahead log last. Comments name the database and
//! the retention policy of the lines after them.
//!
//! Source: <https://github.com/influxdata/influxdb/blob/1.8/cmd/influx_inspect/export/export.go>

mod context;

use std::collections::VecDeque;
use std::io::BufRead;

use ingest::LineTexts;

use crate::notes::Notes;
use crate::point::{Point, Way};
use crate::text_lines::TextLines;
use context::Contexts;
pub use context::Database;

/// The maximum number of lines that a quoted string spans.
const MAX_LINES_OF_STRING: usize = 64;
/// The nanoseconds of each precision, by the precision's names.
const PRECISIONS: [(&[&str], i64); 4] =
    [(&["ns", "n"], 1), (&["us", "u"], 1_000), (&["ms"], 1_000_000), (&["s"], 1_000_000_000)];

/// The server's advice to a sender whose times have another unit: a parameter of the write.
pub const PRECISION_HINT: &str = "; add precision=";

/// The refusal of a line that is cut.
const CUT: &str =
    "is the last one, has no end, and its timestamp is shorter than the one before: it is cut";

/// The precision of a file's timestamps: the length of its unit in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimePrecision(i64);

impl Default for TimePrecision {
    fn default() -> Self {
        Self::NANOSECONDS
    }
}

impl TimePrecision {
    /// The unit in which lines are sent.
    pub const NANOSECONDS: Self = Self(1);

    /// Rewrites the server's refusal of a time: gives the number in the file's unit instead of nanoseconds, and the
    /// command's option that fits. Returns any other refusal unchanged.
    pub fn explain(self, refusal: &str) -> String {
        self.of_file(refusal).unwrap_or_else(|| refusal.to_owned())
    }

    fn of_file(self, refusal: &str) -> Option<String> {
        let (why, meant) = refusal.split_once(PRECISION_HINT)?;
        let (number, is) = why.strip_suffix("ns")?.split_once(' ')?;
        let number = number.parse::<i64>().ok()? / self.0;
        let meant = meant.parse::<Self>().ok().and_then(|meant| Self(meant.0 * self.0).name());
        let advice = meant.map(|name| format!("; --precision {name} fits")).unwrap_or_default();
        Some(format!("{number} {is}{}{advice}", self.name()?))
    }

    fn name(self) -> Option<&'static str> {
        let known = PRECISIONS.iter().find(|(_, nanos)| *nanos == self.0);
        known.map(|(names, _)| names[0])
    }
}

impl std::str::FromStr for TimePrecision {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = PRECISIONS.iter().find(|(names, _)| names.contains(&text));
        known.map(|(_, nanos)| Self(*nanos)).ok_or_else(|| "expected ns, us, ms or s".to_owned())
    }
}

/// An iterator of the points in a file of line protocol.
pub struct LineFile<R> {
    lines: TextLines<R>,
    precision: TimePrecision,
    contexts: Contexts,
    /// Lines that were read ahead, with their line numbers.
    ahead: VecDeque<(u64, Vec<u8>)>,
    /// The previous point's timestamp, in the file's unit.
    before: Option<i64>,
    notes: Notes,
}

impl<R: BufRead> LineFile<R> {
    /// Reads the points of the requested databases, or else of one database.
    pub fn new(
        lines: TextLines<R>,
        precision: TimePrecision,
        wanted: Vec<Database>,
        notes: Notes,
    ) -> Self {
        let contexts = Contexts::new(wanted, notes.clone());
        Self { lines, precision, contexts, ahead: VecDeque::new(), before: None, notes }
    }

    /// Reads the next line of the file, including its line end.
    fn read(&mut self) -> anyhow::Result<Option<(u64, Vec<u8>)>> {
        loop {
            return Ok(match self.lines.read()? {
                None => None,
                Some(Ok(())) => Some((self.lines.line, std::mem::take(&mut self.lines.text))),
                Some(Err(refusal)) => {
                    self.notes.refuse(refusal.line, refusal.reason);
                    continue;
                }
            });
        }
    }

    fn next_point(&mut self) -> anyhow::Result<Option<Point>> {
        loop {
            let next = match self.ahead.pop_front() {
                Some(line) => Some(line),
                None => self.read()?,
            };

            let Some((number, mut text)) = next else {
                self.contexts.finish()?;
                return Ok(None);
            };

            if self.contexts.is_mark(&text) {
                continue;
            }
            let Some(first) = ingest::read_line(&text) else { continue };
            if !self.contexts.takes() {
                continue;
            }

            let is_unfinished = first.is_err_and(ingest::LineTextError::is_unfinished);
            if is_unfinished {
                self.complete(&mut text)?;
            }

            let line = ingest::read_line(&text).expect("there was a line");
            let timestamp = line.as_ref().ok().and_then(|line| line.timestamp);
            if text.last() != Some(&b'\n') && is_cut(timestamp, self.before) {
                self.notes.refuse(number, CUT.to_owned());
                continue;
            }

            self.before = timestamp.or(self.before);
            match line.map_err(|error| error.to_string()).and_then(|line| self.point(&line, number))
            {
                Ok(point) => return Ok(Some(point)),
                Err(reason) => self.notes.refuse(number, reason),
            }
        }
    }

    /// Adds the following lines of a string that spans several lines. If the string has no end, these lines are read as
    /// lines of their own.
    fn complete(&mut self, text: &mut Vec<u8>) -> anyhow::Result<()> {
        let mut whole = text.clone();

        for n in 0..MAX_LINES_OF_STRING {
            if n == self.ahead.len() {
                match self.read()? {
                    Some(line) => self.ahead.push_back(line),
                    None => return Ok(()),
                }
            }
            whole.extend_from_slice(&self.ahead[n].1);
            if ingest::read_line(&whole).is_some_and(|line| line.is_ok()) {
                self.ahead.drain(..=n);
                *text = whole;
                return Ok(());
            }
        }

        Ok(())
    }

    fn point(&self, line: &LineTexts<'_>, number: u64) -> Result<Point, String> {
        let Some(timestamp) = line.timestamp else {
            return Err("has no timestamp; a file does not tell when it was measured".to_owned());
        };
        let nanos = timestamp
            .checked_mul(self.precision.0)
            .ok_or("the timestamp is too large; is --precision right?")?;

        let mut tags = line.tags.clone();
        tags.sort_unstable();
        let tags: Vec<String> = tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let fields = line.fields.iter().map(|(key, value)| ((*key).to_owned(), value.to_string()));

        Ok(Point {
            measurement: line.measurement.to_owned(),
            tags: tags.join(","),
            fields: fields.collect(),
            nanos,
            line: number,
            way: Way::Plain,
            hour: None,
        })
    }
}

/// Whether the last line of a growing or cut file lacks digits of its timestamp: it has fewer than the line before.
fn is_cut(timestamp: Option<i64>, before: Option<i64>) -> bool {
    let digits = |number: i64| number.unsigned_abs().checked_ilog10();
    timestamp.zip(before).is_some_and(|(last, before)| digits(last) < digits(before))
}

impl<R: BufRead> Iterator for LineFile<R> {
    type Item = anyhow::Result<Point>;

    fn next(&mut self) -> Option<anyhow::Result<Point>> {
        self.next_point().transpose()
    }
}

#[cfg(test)]
mod tests;
