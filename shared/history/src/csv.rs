//! CSV with a header row: splits it into rows, and makes readings of them. Opens no file.

pub mod clock_change;
pub mod columns;
pub mod number;
pub mod rows;
pub mod timestamp;
pub mod totals;

use std::collections::VecDeque;
use std::io::{BufRead, Cursor, SeekFrom};

use anyhow::bail;
use csv::{ByteRecord, StringRecord};
use domain::Timestamp;

use crate::line::{JsonRecord, Line, Lines};
use crate::refusals::Refusal;
use crate::text_lines::TextLines;
use clock_change::Passes;
use columns::Columns;
use rows::{CsvRow, RowReader};

/// Reads the rows of a CSV, one a line, so that an unclosed quote spoils only its own line.
struct CsvRows<R> {
    lines: TextLines<R>,
    /// The CSV parser for the line that was read last.
    parser: csv::Reader<Cursor<Vec<u8>>>,
}

impl<R: BufRead> CsvRows<R> {
    /// Reads the header row. Returns the rows after it, the header and the separator.
    fn open(mut lines: TextLines<R>) -> anyhow::Result<(StringRecord, u8, Self)> {
        if let Some(Err(refusal)) = lines.read()? {
            bail!("the header row {}", refusal.reason);
        }

        let separator = separator(&lines.text);
        let mut builder = csv::ReaderBuilder::new();
        builder.has_headers(false).flexible(true).delimiter(separator);
        let parser = builder.from_reader(Cursor::default());
        let mut rows = Self { lines, parser };
        rows.parse_line()?;

        match rows.read()? {
            Some(Ok((_, header))) => Ok((header, separator, rows)),
            Some(Err(refusal)) => bail!("the header row {}", refusal.reason),
            None => Ok((StringRecord::new(), separator, rows)),
        }
    }

    /// Reads the next row, and returns its line number with it.
    fn read(&mut self) -> anyhow::Result<Option<Result<(u64, StringRecord), Refusal>>> {
        let mut row = ByteRecord::new();
        while !self.parser.read_byte_record(&mut row)? {
            match self.lines.read()? {
                Some(Ok(())) => self.parse_line()?,
                Some(Err(refusal)) => return Ok(Some(Err(refusal))),
                None => return Ok(None),
            }
        }

        let row = text_of(row).map_err(|reason| self.lines.refusal(reason));
        Ok(Some(row.map(|row| (self.lines.line, row))))
    }

    /// Parses the last line read.
    fn parse_line(&mut self) -> csv::Result<()> {
        let text = self.parser.get_mut().get_mut();
        std::mem::swap(text, &mut self.lines.text);
        if text.last() != Some(&b'\n') {
            text.push(b'\n'); // the last line of a file may have none
        }
        self.parser.seek_raw(SeekFrom::Start(0), csv::Position::new())
    }
}

/// Returns the cells of a row, or the reason why they cannot be read.
fn text_of(row: ByteRecord) -> Result<StringRecord, String> {
    // Only within quotes can a line end be part of a cell.
    if row.iter().next_back().is_some_and(|cell| cell.ends_with(b"\n")) {
        let column = row.len();
        return Err(format!(
            "has a quote in column {column} that does not end on this line; a cell holds no line break"
        ));
    }

    let mut row = StringRecord::from_byte_record(row)
        .map_err(|error| {
        let column = error.utf8_error().field() + 1;
        format!("is not UTF-8 in column {column}; `iconv -f WINDOWS-1252 -t UTF-8` converts a file of Windows")
    })?;

    row.trim();
    Ok(row)
}

/// Reads a CSV with a header row that is received at `now`. Rows with amounts stay [`Line::Row`]s until the amounts are
/// added up.
pub fn read(
    lines: TextLines<impl BufRead + Send + 'static>,
    columns: &Columns,
    now: Timestamp,
) -> anyhow::Result<Lines> {
    let has_totals = !columns.shape.totals().is_empty();
    let (header, separator, mut csv) = CsvRows::open(lines)?;
    // A header without rows may name no metric, as in an export of an empty table.
    let Some(first) = csv.read()? else { return Ok(Box::new(std::iter::empty())) };
    let (mut rows, mut passes) = (RowReader::new(columns, &header, separator)?, Passes::default());
    let (mut next, mut ready) = (Some(first), VecDeque::new());

    Ok(Box::new(std::iter::from_fn(move || {
        while ready.is_empty() {
            let mut lines = Vec::new();
            match next.take()? {
                Ok((line, row)) if row.len() == header.len() => {
                    let (mut drafts, mut refusals) = (Vec::new(), Vec::new());
                    rows.read(line, &row, &mut drafts, &mut refusals);
                    lines.extend(refusals.into_iter().map(Line::Refused));
                    drafts.into_iter().for_each(|draft| passes.push(draft, &mut lines));
                }
                Ok((line, row)) => {
                    let reason =
                        format!("has {} columns; the header has {}", row.len(), header.len());
                    lines.push(Line::Refused(Refusal { line, reason }));
                }
                Err(refusal) => lines.push(Line::Refused(refusal)),
            }

            let read = csv.read();
            if matches!(read, Ok(None)) {
                // Rows that wait for a later one are resolved.
                passes.finish(&mut lines);
            }

            ready.extend(lines.into_iter().map(|line| match line {
                Line::Row(row) if !has_totals => Ok(row_line(&row, now)),
                line => Ok(line),
            }));

            // After an error every further read would fail too, so the lines end with it.
            match read {
                Ok(row) => next = row,
                Err(error) => ready.push_back(Err(error)),
            }
        }
        ready.pop_front()
    })))
}

/// Decodes a row.
pub(crate) fn row_line(row: &CsvRow, now: Timestamp) -> Line {
    Line::decode(JsonRecord { line: row.line, json: row.json() }, now)
}

/// Returns the separator of a header row: the one that is most frequent outside of quotes.
pub fn separator(header: &[u8]) -> u8 {
    let mut quoted = false;
    let mut counts = [(b'\t', 0), (b';', 0), (b',', 0)];
    for byte in header {
        quoted ^= *byte == b'"';
        let counted = counts.iter_mut().find(|(separator, _)| separator == byte && !quoted);
        if let Some((_, count)) = counted {
            *count += 1;
        }
    }

    // Of equally frequent separators, the last is taken.
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map_or(b',', |(separator, _)| separator)
}
