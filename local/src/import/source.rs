//! A file of readings: opened, inflated, cut into records. Knows nothing of where they go.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context as _, bail};
use flate2::bufread::MultiGzDecoder;
use indicatif::{ProgressBar, ProgressStyle};

use super::columns::Columns;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// A header row, then one row a line
    Csv,
    /// One JSON object a line
    Ndjson,
}

/// One reading, as `POST /readings` takes it, and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    /// The line of the file, from 1.
    pub(crate) line: u64,
    /// The JSON object.
    pub(crate) json: String,
}

/// Records, one after the other; an error ends them.
pub(crate) type Records = Box<dyn Iterator<Item = anyhow::Result<Record>> + Send>;

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
    let told = match first {
        None => bail!("{} is empty", path.display()),
        Some(b'{') => Format::Ndjson,
        Some(b'[') => {
            bail!("{} holds a JSON array; write one object a line instead", path.display())
        }
        Some(_) => Format::Csv,
    };
    Ok(Source { reader, format: format.unwrap_or(told), bar })
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

    /// The readings.
    pub(super) fn records(self, columns: &Columns) -> anyhow::Result<Records> {
        match self.format {
            Format::Csv => csv_records(self.reader, columns),
            Format::Ndjson => Ok(Box::new(ndjson_records(self.reader))),
        }
    }
}

fn ndjson_records(reader: impl BufRead) -> impl Iterator<Item = anyhow::Result<Record>> {
    reader.lines().zip(1..).filter_map(|(text, line)| match text {
        Ok(text) if text.trim().is_empty() => None,
        Ok(json) => Some(Ok(Record { line, json })),
        Err(error) => Some(Err(error).with_context(|| format!("line {line} cannot be read"))),
    })
}

/// The readings of a CSV with a header row.
pub(crate) fn csv_records(
    reader: impl Read + Send + 'static,
    columns: &Columns,
) -> anyhow::Result<Records> {
    let mut csv = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(reader);
    let mut rows = columns.bind(csv.headers().context("the header row cannot be read")?)?;
    let records = csv.into_records().flat_map(move |row| {
        let found = row.map_err(anyhow::Error::from).and_then(|row| {
            let line = row.position().map_or(0, csv::Position::line);
            let found = rows.readings(&row).with_context(|| format!("line {line}"))?;
            Ok(found.into_iter().map(move |json| Ok(Record { line, json })).collect::<Vec<_>>())
        });
        found.unwrap_or_else(|error| vec![Err(error)])
    });
    // An error ends the import: what follows it would leave a hole that nobody sees.
    let mut failed = false;
    Ok(Box::new(records.take_while(move |record| {
        let go_on = !failed;
        failed |= record.is_err();
        go_on
    })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn written(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn records(bytes: &[u8]) -> anyhow::Result<Vec<Record>> {
        open(written(bytes).path(), None)?.records(&Columns::default())?.collect()
    }

    #[test]
    fn csv_and_ndjson_are_told_apart_and_gzip_is_inflated() {
        let csv = b"timestamp,device_id,room,temperature\n2026-01-11T16:00:00Z,d,r,21.50\n2026-01-11T16:01:00Z,d,,\n";
        let expected = Record {
            line: 2,
            json: r#"{"timestamp":"2026-01-11T16:00:00Z","device_id":"d","room":"r","temperature":21.50}"#.to_owned(),
        };
        assert_eq!(
            records(csv).unwrap(),
            vec![expected.clone()],
            "a row without a value is no reading"
        );
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(csv).unwrap();
        assert_eq!(records(&gzip.finish().unwrap()).unwrap(), vec![expected]);
        let ndjson = records(b"{\"a\": 1}\n\n{\"b\": 2}").unwrap();
        assert_eq!(ndjson.iter().map(|record| record.line).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(records(b"\xef\xbb\xbf{}").unwrap()[0].json, "{}", "without the mark");
    }

    #[test]
    fn what_cannot_be_read_says_where() {
        let error = |bytes: &[u8]| format!("{:#}", records(bytes).unwrap_err());
        assert!(error(b"").contains("is empty"));
        assert!(error(b"[1]").contains("one object a line"));
        assert!(error(b"time,device_id\n1,d\n").contains("no column \"timestamp\""));
        assert!(error(b"timestamp,device_id,t\n1,d,1\n2,d,warm\n").contains("line 3: t: \"warm\""));
        assert!(error(b"timestamp,device_id,t\n1,d\n").contains("line: 2"));
        let missing = open(Path::new("no/such/file"), None).err().unwrap();
        assert!(format!("{missing:#}").contains("no/such/file"));
        let directory = tempfile::tempdir().unwrap();
        let error = format!("{:#}", open(directory.path(), None).err().unwrap());
        assert!(error.contains(&*directory.path().to_string_lossy()), "{error}");
    }
}
