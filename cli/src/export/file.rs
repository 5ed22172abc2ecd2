//! The file of an export: NDJSON or CSV, compressed or not, complete or absent. Reads no API.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek as _, Stdout, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::value::RawValue;
use tempfile::NamedTempFile;

/// The columns of CSV before the metrics.
const COLUMNS: [&str; 3] = ["timestamp", "device_id", "room"];

/// The format of the file, from its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// NDJSON to standard output.
    Stdout,
    /// A file of NDJSON.
    Ndjson { gzip: bool },
    /// A file of CSV.
    Csv { gzip: bool },
}

impl Format {
    /// Returns the format that a file's name names.
    pub(super) fn of(path: &Path) -> anyhow::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Stdout);
        }
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let (name, gzip) = name.strip_suffix(".gz").map_or((name, false), |name| (name, true));
        match name.rsplit_once('.') {
            Some((_, "ndjson" | "jsonl")) => Ok(Self::Ndjson { gzip }),
            Some((_, "csv")) => Ok(Self::Csv { gzip }),
            _ => bail!(
                "{}: expected a name that ends in .ndjson, .jsonl or .csv, with .gz after it or not",
                path.display()
            ),
        }
    }

    /// Returns whether standard output is written instead of a file.
    pub(super) const fn is_stdout(self) -> bool {
        matches!(self, Self::Stdout)
    }
}

/// A file that is being written. If it is dropped before [`finish`](Self::finish), no file remains.
pub(crate) struct ExportFile {
    path: PathBuf,
    form: Form,
}

enum Form {
    Ndjson(Bytes),
    /// The header of CSV names all columns, and only the readings name every metric: so the rows are kept
    /// in a temporary file until all are known.
    Csv {
        bytes: Bytes,
        rows: BufWriter<File>,
        metrics: BTreeSet<String>,
    },
}

enum Bytes {
    Stdout(BufWriter<Stdout>),
    Plain(BufWriter<NamedTempFile>),
    Gzip(GzEncoder<BufWriter<NamedTempFile>>),
}

impl ExportFile {
    /// Creates a file beside `path` that only its owner can read.
    pub(super) fn create(path: &Path, format: Format) -> anyhow::Result<Self> {
        let beside = || {
            let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
            let mut file = tempfile::Builder::new();
            let file = file.prefix(".roomtide-export-").suffix(".part");
            let file = file.tempfile_in(directory.unwrap_or(Path::new(".")));
            file.map(BufWriter::new).with_context(|| format!("cannot write {}", path.display()))
        };
        let bytes = match format {
            Format::Stdout => Bytes::Stdout(BufWriter::new(io::stdout())),
            Format::Ndjson { gzip: true } | Format::Csv { gzip: true } => {
                Bytes::Gzip(GzEncoder::new(beside()?, Compression::default()))
            }
            Format::Ndjson { gzip: false } | Format::Csv { gzip: false } => Bytes::Plain(beside()?),
        };
        let form = if let Format::Csv { .. } = format {
            let rows = tempfile::tempfile().context("cannot make a temporary file")?;
            Form::Csv { bytes, rows: BufWriter::new(rows), metrics: BTreeSet::new() }
        } else {
            Form::Ndjson(bytes)
        };
        Ok(Self { path: path.to_owned(), form })
    }

    /// The file that has not got its name yet, if there is one.
    pub(super) fn unfinished(&self) -> Option<&Path> {
        let (Form::Ndjson(bytes) | Form::Csv { bytes, .. }) = &self.form;
        match bytes {
            Bytes::Stdout(_) => None,
            Bytes::Plain(file) => Some(file.get_ref().path()),
            Bytes::Gzip(file) => Some(file.get_ref().get_ref().path()),
        }
    }

    /// Writes a reading.
    pub(super) fn reading(&mut self, row: &RawValue) -> anyhow::Result<()> {
        match &mut self.form {
            Form::Ndjson(bytes) => Ok(writeln!(bytes, "{row}")?),
            Form::Csv { rows, metrics, .. } => {
                let members: BTreeMap<String, &RawValue> = serde_json::from_str(row.get())?;
                for name in members.into_keys() {
                    if !COLUMNS.contains(&name.as_str()) && !metrics.contains(&name) {
                        metrics.insert(name);
                    }
                }
                Ok(writeln!(rows, "{row}")?)
            }
        }
    }

    /// Writes the description of a device or a room, or an item, as a member of this name. CSV holds none.
    pub(crate) fn describe(&mut self, what: &str, json: &RawValue) -> anyhow::Result<()> {
        match &mut self.form {
            Form::Ndjson(bytes) => Ok(writeln!(bytes, "{{\"{what}\":{json}}}")?),
            Form::Csv { .. } => Ok(()),
        }
    }

    /// Renames the complete file to its path.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        let Self { path, form } = self;
        let context = || format!("cannot write {}", path.display());
        let bytes = match form {
            Form::Ndjson(bytes) => bytes,
            Form::Csv { bytes, rows, metrics } => {
                let mut rows = rows.into_inner().map_err(io::IntoInnerError::into_error)?;
                rows.rewind()?;
                write_csv(bytes, BufReader::new(rows), &metrics)?
            }
        };
        let file = match bytes {
            Bytes::Stdout(mut stdout) => return stdout.flush().context("standard output"),
            Bytes::Plain(file) => file,
            Bytes::Gzip(gzip) => gzip.finish().with_context(context)?,
        };
        let file = file.into_inner().map_err(io::IntoInnerError::into_error);
        let file = file.with_context(context)?;
        file.as_file().sync_all().with_context(context)?;
        file.persist(&path).map_err(|error| error.error).with_context(context)?;
        Ok(())
    }
}

/// Writes the rows as CSV, with a column for each metric.
fn write_csv(
    bytes: Bytes,
    rows: impl BufRead,
    metrics: &BTreeSet<String>,
) -> anyhow::Result<Bytes> {
    let columns: Vec<&str> =
        COLUMNS.into_iter().chain(metrics.iter().map(String::as_str)).collect();
    let mut csv = csv::Writer::from_writer(bytes);
    csv.write_record(&columns)?;
    for row in rows.lines() {
        let row = row?;
        let mut members: BTreeMap<String, &RawValue> = serde_json::from_str(&row)?;
        let cells: Vec<String> = columns
            .iter()
            .map(|column| members.remove(*column).map_or(Ok(String::new()), cell))
            .collect::<anyhow::Result<_>>()?;
        csv.write_record(cells)?;
    }
    csv.into_inner().map_err(|error| error.into_error().into())
}

/// Writes a cell: a number with all its digits, or an id. An id that a spreadsheet would run as a formula
/// is escaped with a leading `'`, which an import removes; such an id begins with `-`.
fn cell(value: &RawValue) -> anyhow::Result<String> {
    if !value.get().starts_with('"') {
        return Ok(value.get().to_owned());
    }
    let text: String = serde_json::from_str(value.get())?;
    Ok(if text.starts_with('-') { format!("'{text}") } else { text })
}

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(gzip) => gzip.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::Plain(file) => file.flush(),
            Self::Gzip(gzip) => gzip.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const ROW: &str = r#"{"device_id":"-m","timestamp":"2026-01-11T16:00:00.000Z","t":12345678901234567890123456789012345678}"#;

    fn row(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    fn create(path: &Path) -> anyhow::Result<ExportFile> {
        ExportFile::create(path, Format::of(path)?)
    }

    #[test]
    fn a_name_tells_the_format() {
        for (name, format) in [
            ("-", Format::Stdout),
            ("a/b.ndjson", Format::Ndjson { gzip: false }),
            ("b.jsonl.gz", Format::Ndjson { gzip: true }),
            ("b.csv", Format::Csv { gzip: false }),
            ("b.csv.gz", Format::Csv { gzip: true }),
        ] {
            assert_eq!(Format::of(Path::new(name)).unwrap(), format);
        }
        for name in ["b", "b.json", "b.gz", "csv"] {
            assert!(Format::of(Path::new(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn a_file_is_whole_and_its_owner_s_or_not_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("b.csv");
        let mut file = create(&path).unwrap();
        file.reading(&row(ROW)).unwrap();
        drop(file);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");

        let mut file = create(&path).unwrap();
        file.reading(&row(ROW)).unwrap();
        // A metric that only a later reading has, and that the registry may have dropped.
        let later = r#"{"device_id":"d","timestamp":"2026-01-11T16:00:01.000Z","room":"r","h":5}"#;
        file.reading(&row(later)).unwrap();
        assert!(!path.exists());
        file.finish().unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "timestamp,device_id,room,h,t\n\
             2026-01-11T16:00:00.000Z,'-m,,,12345678901234567890123456789012345678\n\
             2026-01-11T16:00:01.000Z,d,r,5,\n"
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let nowhere = directory.path().join("no/such/b.csv");
        assert!(format!("{:#}", create(&nowhere).err().unwrap()).contains("no/such/b.csv"));
    }
}
