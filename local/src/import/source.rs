//! A file of readings: opened, inflated, cut into lines. Knows nothing of where they go.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use anyhow::{Context as _, bail};
use flate2::bufread::MultiGzDecoder;
use indicatif::{ProgressBar, ProgressStyle};

use super::clock_change::Passes;
use super::columns::Columns;
use super::refusals::Refusal;
use super::rows::Rows;

/// The longest line of NDJSON: more than a reading with 64 metrics can be long.
const MAX_LINE: usize = 1 << 20;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// A header row, then one row a line
    Csv,
    /// One JSON object a line
    Ndjson,
}

impl Format {
    /// The format that a file's name tells.
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        match name.strip_suffix(".gz").unwrap_or(&name).rsplit_once('.')?.1 {
            "csv" | "tsv" => Some(Self::Csv),
            "ndjson" | "jsonl" => Some(Self::Ndjson),
            _ => None,
        }
    }
}

/// One JSON object, a reading as `POST /readings` takes it, and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    /// The line of the file, from 1.
    pub(crate) line: u64,
    /// The JSON object.
    pub(crate) json: String,
}

/// What is found in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// A reading, not yet checked.
    Reading(Record),
    /// A line or a cell that cannot be read.
    Refused(Refusal),
}

/// Lines, one after the other; an error ends them.
pub(crate) type Lines = Box<dyn Iterator<Item = anyhow::Result<Line>> + Send>;

/// An open file.
pub(super) struct Source {
    reader: Box<dyn BufRead + Send>,
    format: Format,
    bar: ProgressBar,
}

/// Opens a file; `-` is standard input.
pub(super) fn open(path: &Path, format: Option<Format>) -> anyhow::Result<Source> {
    let (raw, bar): (Box<dyn Read + Send>, _) = if path == Path::new("-") {
        (Box::new(io::stdin()), ProgressBar::new_spinner())
    } else {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        let bytes = file.metadata()?.len();
        let style = "  {bar:40} {percent:>3} %  {msg}  {eta} left";
        let bar = ProgressBar::new(bytes).with_style(ProgressStyle::with_template(style)?);
        (Box::new(bar.wrap_read(file)), bar)
    };
    let mut raw = BufReader::new(raw);
    let cannot_read = || format!("cannot read {}", path.display());
    let gzip = raw.fill_buf().with_context(cannot_read)?.starts_with(&[0x1f, 0x8b]);
    let mut reader: Box<dyn BufRead + Send> =
        if gzip { Box::new(BufReader::new(MultiGzDecoder::new(raw))) } else { Box::new(raw) };
    if reader.fill_buf().with_context(cannot_read)?.starts_with(b"\xef\xbb\xbf") {
        reader.consume(3); // a mark of UTF-8, which is no part of the first record
    }
    let first = reader.fill_buf().with_context(cannot_read)?;
    let first = first.iter().find(|byte| !byte.is_ascii_whitespace() && byte.is_ascii());
    let told = match (first, format.or_else(|| Format::of(path))) {
        (None, _) => bail!("{} is empty", path.display()),
        (_, Some(format)) => format,
        (Some(b'{'), None) => Format::Ndjson,
        (Some(b'['), None) => {
            bail!("{} holds a JSON array; write one object a line instead", path.display())
        }
        (Some(_), None) => Format::Csv,
    };
    Ok(Source { reader, format: told, bar })
}

impl Source {
    /// How much of the file has been read.
    pub(super) fn progress_bar(&self) -> ProgressBar {
        self.bar.clone()
    }

    /// What it holds.
    pub(super) const fn format(&self) -> Format {
        self.format
    }

    /// The lines.
    pub(super) fn lines(self, columns: &Columns) -> anyhow::Result<Lines> {
        match self.format {
            Format::Csv => csv_lines(self.reader, columns),
            Format::Ndjson => Ok(Box::new(NdjsonLines { reader: self.reader, line: 0 })),
        }
    }
}

/// The lines of NDJSON but for blank ones.
struct NdjsonLines<R> {
    reader: R,
    line: u64,
}

impl<R: BufRead> Iterator for NdjsonLines<R> {
    type Item = anyhow::Result<Line>;

    fn next(&mut self) -> Option<anyhow::Result<Line>> {
        loop {
            self.line += 1;
            let line = self.line;
            let refused = |reason: String| Some(Ok(Line::Refused(Refusal { line, reason })));
            let mut bytes = Vec::new();
            match (&mut self.reader).take(MAX_LINE as u64).read_until(b'\n', &mut bytes) {
                Ok(0) => return None,
                Ok(MAX_LINE) if bytes.last() != Some(&b'\n') => {
                    if let Err(error) = self.reader.skip_until(b'\n') {
                        return Some(Err(error).with_context(|| cannot_read_line(line)));
                    }
                    return refused(format!("is longer than {MAX_LINE} bytes"));
                }
                Ok(_) => {}
                Err(error) => return Some(Err(error).with_context(|| cannot_read_line(line))),
            }
            match String::from_utf8(bytes) {
                Ok(json) if json.trim().is_empty() => {}
                Ok(json) => return Some(Ok(Line::Reading(Record { line, json }))),
                Err(error) => {
                    let at = error.utf8_error().valid_up_to();
                    return refused(format!("is not UTF-8: byte {at} cannot be read"));
                }
            }
        }
    }
}

fn cannot_read_line(line: u64) -> String {
    format!("line {line} cannot be read")
}

/// The readings of a CSV with a header row.
pub(crate) fn csv_lines(
    reader: impl Read + Send + 'static,
    columns: &Columns,
) -> anyhow::Result<Lines> {
    let mut reader = BufReader::new(reader);
    let mut header = Vec::new();
    reader.read_until(b'\n', &mut header).context("the header row cannot be read")?;
    let separator = separator(&header);
    let mut csv = csv::ReaderBuilder::new()
        .delimiter(separator)
        .trim(csv::Trim::All)
        .from_reader(Cursor::new(header).chain(reader));
    let header = csv.headers().context("the header row cannot be read")?;
    let mut rows = Rows::new(columns, header, separator)?;
    let mut passes = Passes::default();
    // Behind the last row stands the end, which decides what waited for it.
    let records = csv.into_records().map(Some).chain([None]);
    let mut failed = false;
    let lines = records.flat_map(move |record| {
        let mut lines = Vec::new();
        match record {
            _ if failed => {}
            None => passes.finish(&mut lines),
            Some(Ok(row)) => {
                let line = row.position().map_or(0, csv::Position::line);
                let (mut drafts, mut refusals) = (Vec::new(), Vec::new());
                rows.read(line, &row, &mut drafts, &mut refusals);
                lines.extend(refusals.into_iter().map(Line::Refused));
                drafts.into_iter().for_each(|draft| passes.push(draft, &mut lines));
            }
            Some(Err(error)) => match refusal(&error) {
                Some(refusal) => lines.push(Line::Refused(refusal)),
                None => {
                    failed = true;
                    return vec![Err(anyhow::Error::from(error))];
                }
            },
        }
        lines.into_iter().map(Ok).collect()
    });
    // What follows an error of the disk would be an error again, for ever.
    let mut ended = false;
    Ok(Box::new(lines.take_while(move |line| !std::mem::replace(&mut ended, line.is_err()))))
}

/// What is wrong with a row that is none; nothing if it is the file that cannot be read.
fn refusal(error: &csv::Error) -> Option<Refusal> {
    let (position, reason) = match error.kind() {
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
            (pos.as_ref(), format!("has {len} columns; the header has {expected_len}"))
        }
        csv::ErrorKind::Utf8 { pos, err } => {
            (pos.as_ref(), format!("is not UTF-8 in column {}", err.field() + 1))
        }
        _ => return None,
    };
    Some(Refusal { line: position.map_or(0, csv::Position::line), reason })
}

/// The separator of a header row: the one that stands most often outside of quotes.
fn separator(header: &[u8]) -> u8 {
    let mut quoted = false;
    let mut counts = [(b'\t', 0), (b';', 0), (b',', 0)];
    for byte in header {
        quoted ^= *byte == b'"';
        let counted = counts.iter_mut().find(|(separator, _)| separator == byte && !quoted);
        if let Some((_, count)) = counted {
            *count += 1;
        }
    }
    // Of equals the last is taken.
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map_or(b',', |(separator, _)| separator)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn written(bytes: &[u8], suffix: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::Builder::new().suffix(suffix).tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn lines_of(bytes: &[u8], suffix: &str) -> anyhow::Result<Vec<Line>> {
        open(written(bytes, suffix).path(), None)?.lines(&Columns::default())?.collect()
    }

    fn lines(bytes: &[u8]) -> anyhow::Result<Vec<Line>> {
        lines_of(bytes, "")
    }

    /// The lines of the readings, and all refusals.
    fn told(bytes: &[u8]) -> (Vec<u64>, Vec<String>) {
        let (mut readings, mut refusals) = (Vec::new(), Vec::new());
        for line in lines(bytes).unwrap() {
            match line {
                Line::Reading(record) => readings.push(record.line),
                Line::Refused(refusal) => refusals.push(refusal.to_string()),
            }
        }
        (readings, refusals)
    }

    #[test]
    fn csv_and_ndjson_are_told_apart_and_gzip_is_inflated() {
        let csv = b"timestamp,device_id,room,temperature\n2026-01-11T16:00:00Z,d,r,21.50\n2026-01-11T16:01:00Z,d,,\n";
        let expected = Line::Reading(Record {
            line: 2,
            json: r#"{"timestamp":"2026-01-11T16:00:00.000Z","device_id":"d","room":"r","temperature":21.5}"#.to_owned(),
        });
        assert_eq!(
            lines(csv).unwrap(),
            vec![expected.clone()],
            "a row without a value is no reading"
        );
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(csv).unwrap();
        assert_eq!(lines(&gzip.finish().unwrap()).unwrap(), vec![expected]);
        assert_eq!(told(b"{\"a\": 1}\n\n{\"b\": 2}").0, [1, 3]);
        assert_eq!(told(b"\xef\xbb\xbf{}").0, [1], "without the mark");
        // The name tells before the first character does, which may be damaged.
        for suffix in [".ndjson", ".jsonl", ".NDJSON.gz"] {
            assert_eq!(lines_of(b"damaged\n{\"b\": 2}", suffix).unwrap().len(), 2, "{suffix}");
        }
    }

    #[test]
    fn the_header_tells_the_separator_and_a_comma_may_be_decimal() {
        for (file, value) in [
            ("timestamp;device_id;\"t\"\n1768147200;d;21,5\n", "21.5"),
            ("timestamp\tdevice_id\tt\n1768147200\td\t21.5\n", "21.5"),
            ("timestamp,device_id,t\n1768147200,d,21.5\n", "21.5"),
        ] {
            let Line::Reading(record) = &lines(file.as_bytes()).unwrap()[0] else {
                panic!("{file}")
            };
            assert!(record.json.ends_with(&format!("\"t\":{value}}}")), "{}", record.json);
        }
        let (_, refusals) = told(b"timestamp,device_id,t\n1768147200,d,\"1,234\"\n");
        assert!(refusals[0].contains("--decimal-comma"), "{refusals:?}");
    }

    #[test]
    fn a_line_that_cannot_be_read_is_refused_and_the_rest_goes_on() {
        let csv = b"timestamp,device_id,t\n1768147201,d,1\n2,d\n3,d,\xff\n,d,4\n1768147205,d,warm\n1768147206,d,6\n";
        let (readings, refusals) = told(csv);
        assert_eq!(readings, [2, 7]);
        assert_eq!(
            refusals,
            [
                "line 3: has 2 columns; the header has 3",
                "line 4: is not UTF-8 in column 3",
                "line 5: timestamp: is empty",
                "line 6: t: \"warm\" is not a number",
            ]
        );
        let (readings, refusals) = told(b"{\"a\": 1}\n{\"a\": \"\xff\"}\n{\"b\": 2}\n");
        assert_eq!(readings, [1, 3]);
        assert_eq!(refusals, ["line 2: is not UTF-8: byte 7 cannot be read"]);
        let long = [b"{}\n{\"".as_slice(), &vec![b'x'; MAX_LINE + 5], b"\n{}\n"].concat();
        let (readings, refusals) = told(&long);
        assert_eq!((readings, refusals.len()), (vec![1, 3], 1));
    }

    #[test]
    fn a_file_that_ends_too_early_is_an_error() {
        for text in ["timestamp,device_id,t\n1768147201,d,1\n", "{\"a\": 1}\n"] {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
            gzip.write_all(text.repeat(2_000).as_bytes()).unwrap();
            let gzip = gzip.finish().unwrap();
            assert!(lines(&gzip[..gzip.len() / 2]).is_err(), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_at_all_says_so() {
        let error = |bytes: &[u8]| format!("{:#}", lines(bytes).unwrap_err());
        assert!(error(b"").contains("is empty"));
        assert!(error(b"[1]").contains("one object a line"));
        assert!(error(b"time,device_id\n1,d\n").contains("no column \"timestamp\""));
        let missing = open(Path::new("no/such/file"), None).err().unwrap();
        assert!(format!("{missing:#}").contains("no/such/file"));
        let directory = tempfile::tempdir().unwrap();
        let error = format!("{:#}", open(directory.path(), None).err().unwrap());
        assert!(error.contains(&*directory.path().to_string_lossy()), "{error}");
    }
}
