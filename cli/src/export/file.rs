//! An export file in its format, which is complete or absent. Reads no API.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::value::RawValue;

use super::bytes::{Bytes, cannot_write};
use super::format::{FileFormat, Kind};
use super::lines;
use super::long_form::{Inexact, LongForm};
use super::row::Row;

/// The columns of a CSV before those of the metrics.
const COLUMNS: [&str; 3] = ["timestamp", "device_id", "room"];

/// A file that is being written. The file is removed if it is dropped before [`finish`](Self::finish).
pub(crate) struct ExportFile {
    path: PathBuf,
    form: Form,
}

enum Form {
    Ndjson(Bytes),
    Lines(Bytes),
    /// The header of CSV names all columns, but the metrics are known only after the last reading. So the rows are kept
    /// in a temporary file until then.
    Csv {
        bytes: Bytes,
        rows: BufWriter<File>,
        metrics: BTreeSet<String>,
    },
    Parquet(Box<LongForm>),
}

impl ExportFile {
    /// Creates a file beside `path` that only its owner can read.
    pub(super) fn create(path: &Path, format: FileFormat) -> anyhow::Result<Self> {
        let mut bytes = Bytes::create(path, format)?;
        let form = match format.kind {
            Kind::Ndjson => Form::Ndjson(bytes),
            Kind::Lp => {
                lines::begin(&mut bytes).with_context(|| cannot_write(path))?;
                Form::Lines(bytes)
            }
            Kind::Csv => {
                let rows = tempfile::tempfile().context(TEMPORARY)?;
                Form::Csv { bytes, rows: BufWriter::new(rows), metrics: BTreeSet::new() }
            }
            Kind::Parquet => {
                let file = LongForm::begin(bytes).with_context(|| cannot_write(path))?;
                Form::Parquet(Box::new(file))
            }
        };
        Ok(Self { path: path.to_owned(), form })
    }

    /// The temporary file before it is renamed, if there is one.
    pub(super) fn unfinished(&self) -> Option<&Path> {
        match &self.form {
            Form::Ndjson(bytes) | Form::Lines(bytes) | Form::Csv { bytes, .. } => {
                bytes.unfinished()
            }
            Form::Parquet(file) => file.unfinished(),
        }
    }

    /// Writes a reading.
    pub(super) fn reading(&mut self, row: &RawValue) -> anyhow::Result<()> {
        let path = || cannot_write(&self.path);
        match &mut self.form {
            Form::Ndjson(bytes) => writeln!(bytes, "{row}").with_context(path),
            Form::Lines(bytes) => lines::reading(bytes, &Row::of(row)?).with_context(path),
            Form::Parquet(file) => file.reading(&Row::of(row)?).with_context(path),
            Form::Csv { rows, metrics, .. } => {
                let members: BTreeMap<String, &RawValue> = serde_json::from_str(row.get())?;
                for name in members.into_keys() {
                    if !COLUMNS.contains(&name.as_str()) && !metrics.contains(&name) {
                        metrics.insert(name);
                    }
                }
                writeln!(rows, "{row}").context(TEMPORARY)
            }
        }
    }

    /// Writes the description of a device or a room, or another item, as a member of this name. CSV and Parquet have no
    /// descriptions.
    pub(crate) fn describe(&mut self, what: &str, json: &RawValue) -> anyhow::Result<()> {
        let written = match &mut self.form {
            Form::Ndjson(bytes) => writeln!(bytes, "{{\"{what}\":{json}}}"),
            Form::Lines(bytes) => lines::describe(bytes, what, json),
            Form::Csv { .. } | Form::Parquet(_) => Ok(()),
        };
        written.with_context(|| cannot_write(&self.path))
    }

    /// Renames the complete file to its path. Returns the values that the format cannot represent exactly.
    pub(super) fn finish(self) -> anyhow::Result<Inexact> {
        let Self { path, form } = self;
        match form {
            Form::Ndjson(bytes) | Form::Lines(bytes) => bytes.finish(&path)?,
            Form::Csv { bytes, rows, metrics } => {
                let rows = rows.into_inner().map_err(io::IntoInnerError::into_error);
                let mut rows = rows.context(TEMPORARY)?;
                rows.rewind().context(TEMPORARY)?;
                let bytes = write_csv(bytes, BufReader::new(rows), &metrics);
                bytes.with_context(|| cannot_write(&path))?.finish(&path)?;
            }
            Form::Parquet(file) => {
                let (bytes, inexact) = file.finish().with_context(|| cannot_write(&path))?;
                bytes.finish(&path)?;
                return Ok(inexact);
            }
        }

        Ok(Inexact::default())
    }
}

/// The start of an error message: the temporary file of the rows cannot be written.
const TEMPORARY: &str =
    "cannot write a temporary file of all rows, in the directory that TMPDIR names";

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

/// Writes a cell: a number with all its digits, or an id. An id beginning with `-` would be a formula in a spreadsheet,
/// so it is escaped with a leading `'`, which an import removes.
fn cell(value: &RawValue) -> anyhow::Result<String> {
    if !value.get().starts_with('"') {
        return Ok(value.get().to_owned());
    }
    let text: String = serde_json::from_str(value.get())?;
    Ok(if text.starts_with('-') { format!("'{text}") } else { text })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use domain::given;
    use domain::{DeviceId, MetricName, Timestamp};
    use proptest::prelude::*;

    use super::*;
    use history::csv;
    use history::csv::columns::Columns;
    use history::line::Line;
    use history::reading;
    use history::text_lines::TextLines;

    const ROW: &str = r#"{"device_id":"-m","timestamp":"2026-01-11T16:00:00.000Z","t":12345678901234567890123456789012345678}"#;

    fn row(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    fn create(path: &Path) -> anyhow::Result<ExportFile> {
        ExportFile::create(path, FileFormat::of(path, None)?)
    }

    #[test]
    fn a_file_is_whole_and_its_owner_s_or_not_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("b.csv");
        for name in ["b.csv", "b.lp", "b.parquet"] {
            let mut file = create(&directory.path().join(name)).unwrap();
            file.reading(&row(ROW)).unwrap();
            drop(file);
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "{name} is left behind");
        }

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

    #[test]
    #[cfg(unix)]
    fn what_is_no_file_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        fs::write(place("kept"), "kept").unwrap();
        std::os::unix::fs::symlink(place("kept"), place("link.csv")).unwrap();
        std::os::unix::fs::symlink(place("kept"), place("readings-2026-01.parquet")).unwrap();
        let fifo = std::process::Command::new("mkfifo").arg(place("fifo.lp.gz")).status().unwrap();
        assert!(fifo.success());
        for name in ["link.csv", "fifo.lp.gz", "readings-2026-01.parquet"] {
            let error = create(&place(name)).err().unwrap().to_string();
            assert_eq!(
                error,
                format!("{} is not a regular file, and is not replaced", place(name).display())
            );
        }
        assert!(fs::symlink_metadata(place("link.csv")).unwrap().is_symlink());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 4, "nothing is left behind");
    }

    fn id() -> impl Strategy<Value = String> {
        "[-'A-Za-z0-9_.:]{1,20}".prop_filter("an id", |text| text.parse::<DeviceId>().is_ok())
    }

    fn metric() -> impl Strategy<Value = (String, String)> {
        let name = "[a-z][a-z0-9_]{0,9}"
            .prop_filter("a name", |text: &String| text.parse::<MetricName>().is_ok());
        let number = ("-?(0|[1-9][0-9]{0,37})", -129..=88).prop_map(|(digits, exponent)| {
            given::number(&format!("{digits}e{exponent}")).to_string()
        });
        (name, number)
    }

    proptest! {
        #[test]
        fn readings_of_csv_come_back_equal_to_the_digit(
            readings in proptest::collection::vec(
                (id(), proptest::option::of(id()), proptest::collection::vec(metric(), 1..5)), 1..8
            )
        ) {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("a.csv");
            let mut file = create(&path).unwrap();
            let mut expected = Vec::new();
            for (n, (device, room, metrics)) in readings.into_iter().enumerate() {
                let metrics: BTreeMap<String, String> = metrics.into_iter().collect();
                let at = format!("2026-01-11T16:00:00.00{n}Z");
                let mut json = format!(r#"{{"device_id":"{device}","timestamp":"{at}""#);
                json.extend(room.map(|room| format!(r#","room":"{room}""#)));
                json.extend(metrics.iter().map(|(name, value)| format!(",\"{name}\":{value}")));
                json.push('}');
                file.reading(&row(&json)).unwrap();
                expected.push(json);
            }
            file.finish().unwrap();
            let lines = TextLines::new(BufReader::new(File::open(&path).unwrap()));
            let lines = csv::read(lines, &Columns::default(), Timestamp::MAX).unwrap();
            let told: Vec<String> = lines
                .map(|line| match line.unwrap() {
                    Line::Reading(read) => reading::json(&read.reading),
                    line => panic!("{line:?}"),
                })
                .collect();
            prop_assert_eq!(told, expected);
        }
    }
}
