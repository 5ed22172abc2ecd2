//! Recognizes the kind of a source by its first bytes. Reads no line.

use std::path::Path;

use anyhow::{Context as _, bail};

use crate::exported_lines::is_export;
use crate::home_assistant::is_archive;
use crate::point::COMMENT;
use crate::shelly;
use crate::sqlite::MAGIC;

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A header row, then one row a line
    Csv,
    /// One JSON object a line
    Ndjson,
    /// Line protocol, as `influx_inspect` and `influxd` export it
    LineProtocol,
    /// The database of Home Assistant, home-assistant_v2.db
    HomeAssistant,
    /// A backup of Home Assistant, with its database
    HomeAssistantBackup,
    /// The log of a Shelly energy meter, `emdata` or `em_data`
    Shelly,
    /// A running InfluxDB
    InfluxDb,
    /// Line protocol that `roomtide export` wrote
    ExportedLines,
}

/// The end of an error: the list of supported kinds.
const KNOWN: &str = "\
import takes JSON lines, CSV with a header row, line protocol (influx_inspect export, influxd inspect export-lp), \
Home Assistant's database (home-assistant_v2.db), each also with gzip, its backup, the log of a Shelly meter, and the \
address of a running InfluxDB (http://HOST:8086)";

/// The number sign (`#`), which begins a comment of line protocol and an annotation row of Flux.
const MARK: u8 = COMMENT as u8;
/// Byte order marks of UTF-16 text, as Excel and PowerShell write it.
const UTF_16: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];
const CONVERT: &str = "`iconv -f UTF-16 -t UTF-8` converts it";
/// Unsupported kinds: their first bytes, their name, and the advice for them.
const FOREIGN: [(&[u8], &str, &str); 10] = [
    (UTF_16[0], "text in UTF-16", CONVERT),
    (UTF_16[1], "text in UTF-16", CONVERT),
    (b"PAR1", "a Parquet file", "write it as CSV, as DuckDB does with COPY ... TO 'x.csv'"),
    (b"PK\x03\x04", "a zip archive", "unpack it first"),
    (b"\x1f\x8b", "a gzip file in another one", "unpack it once"),
    (b"BZh", "a bzip2 file", "unpack it first"),
    (b"\xfd7zXZ\0", "an xz file", "unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a zstd file", "unpack it first"),
    (
        b"\x16\xd1\x16\xd1",
        "a TSM file of InfluxDB",
        "influx_inspect export writes line protocol of it",
    ),
    (
        b"-- MariaDB dump",
        "a dump of MariaDB",
        "Home Assistant's database is imported from SQLite only",
    ),
];

/// The kinds that a person may name, and their names.
pub const NAMED: [(&str, Format); 6] = [
    ("csv", Format::Csv),
    ("ndjson", Format::Ndjson),
    ("line-protocol", Format::LineProtocol),
    ("home-assistant", Format::HomeAssistant),
    ("home-assistant-backup", Format::HomeAssistantBackup),
    ("shelly", Format::Shelly),
];

impl Format {
    /// Whether a source of the kind `found` can also be read as this kind.
    pub fn is_also(self, found: Self) -> bool {
        self == found
            || (self, found) == (Self::LineProtocol, Self::ExportedLines)
            || (self, found) == (Self::HomeAssistant, Self::HomeAssistantBackup)
    }

    /// Returns the name of the kind for a sentence.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Csv => "CSV",
            Self::Ndjson => "NDJSON",
            Self::LineProtocol => "line protocol",
            Self::HomeAssistant => "a database of SQLite",
            Self::HomeAssistantBackup => "an archive",
            Self::Shelly => "the log of a Shelly meter",
            Self::InfluxDb => "a server",
            Self::ExportedLines => "an export of Roomtide",
        }
    }

    /// Whether a source of this kind has points. Any other has lines of readings.
    pub const fn has_points(self) -> bool {
        !matches!(self, Self::Csv | Self::Ndjson | Self::ExportedLines)
    }

    /// Whether the share of the file's bytes that were read shows the progress. A database is not read in the order of
    /// its bytes, and a meter's log is read whole before its points are made.
    pub const fn is_read_in_order(self) -> bool {
        !self.has_points() || matches!(self, Self::LineProtocol)
    }

    /// Returns the kind that belongs to a file's extension.
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        match name.strip_suffix(".gz").unwrap_or(&name).rsplit_once('.')?.1 {
            "csv" | "tsv" => Some(Self::Csv),
            "ndjson" | "jsonl" => Some(Self::Ndjson),
            "lp" => Some(Self::LineProtocol),
            _ => None,
        }
    }
}

/// Returns the kind of a file with these decompressed first bytes: the requested kind, else the kind of the bytes, else
/// that of the file's extension.
pub fn of(bytes: &[u8], path: &Path, asked: Option<Format>) -> anyhow::Result<Format> {
    let shown = path.display();
    let Some(first) = bytes.iter().find(|byte| !byte.is_ascii_whitespace() && byte.is_ascii())
    else {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            // Empty standard input is an export of an empty table, which is NDJSON.
            let stream = (path == Path::new("-")).then_some(Format::Ndjson);
            let is_database = path.extension().is_some_and(|end| end == "db");
            let database = is_database.then_some(Format::HomeAssistant);
            let format = asked.or_else(|| Format::of(path)).or(stream).or(database);
            return format.with_context(|| format!("{shown} is empty"));
        }
        bail!("{shown} is not a text; {KNOWN}");
    };

    ensure_not_foreign(bytes, path)?;

    let header = bytes.split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
    let told = of_magic(bytes).or_else(|| of_header(header).filter(|_| asked.is_none()));
    if let Some(format) = told {
        return Ok(format);
    }

    // Checked before the file's name: a power cut may leave a file that consists of zeros.
    if bytes.contains(&0) {
        bail!("{shown} is not a text; {KNOWN}");
    }

    if let Some(format) = asked.or_else(|| Format::of(path)) {
        return Ok(format);
    }

    match first {
        b'{' => return Ok(Format::Ndjson),
        b'[' => bail!("{shown} holds a JSON array; write one object a line instead"),
        _ => {}
    }

    if is_line_protocol(bytes) {
        return Ok(Format::LineProtocol);
    }

    // A header row has at least two columns: a timestamp and a metric.
    if header.iter().any(|byte| b",;\t".contains(byte)) {
        return Ok(Format::Csv);
    }
    bail!("{shown} begins with {:?}; {KNOWN}", domain::excerpt(&String::from_utf8_lossy(header)))
}

/// Fails if the first bytes belong to a kind of file that is not supported.
fn ensure_not_foreign(bytes: &[u8], path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    if let Some((&MARK, annotation)) = bytes.split_first()
        && [b"group,".as_slice(), b"datatype,", b"default,"]
            .iter()
            .any(|column| annotation.starts_with(column))
    {
        bail!(
            "{shown} is annotated CSV of Flux: influxd inspect export-lp writes line protocol of a bucket; {KNOWN}"
        );
    }

    let foreign = FOREIGN.iter().find(|(magic, ..)| bytes.starts_with(magic));
    if let Some((_, what, advice)) = foreign {
        bail!("{shown} is {what}: {advice}; {KNOWN}");
    }
    Ok(())
}

/// Returns the kind that the first bytes prove, whatever kind a person asked for.
///
/// All databases of SQLite begin alike, so each counts as Home Assistant's here. The reader checks the tables.
fn of_magic(bytes: &[u8]) -> Option<Format> {
    if is_archive(bytes) {
        return Some(Format::HomeAssistantBackup);
    }
    if bytes.starts_with(MAGIC) {
        return Some(Format::HomeAssistant);
    }
    is_export(bytes).then_some(Format::ExportedLines)
}

/// Returns the kind of a CSV whose header row shows which program wrote it.
fn of_header(header: &[u8]) -> Option<Format> {
    let header = std::str::from_utf8(header).ok()?;
    shelly::is_header(header).then_some(Format::Shelly)
}

/// Whether the first line that is not a comment is line protocol, or the first line is a comment of InfluxDB's exports.
fn is_line_protocol(bytes: &[u8]) -> bool {
    const EXPORT: [&[u8]; 4] = [b"DDL", b"DML", b"CONTEXT-DATABASE:", b"INFLUXDB EXPORT"];
    let mut lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.find(|line| !line.is_empty()).unwrap_or_default();
    if let Some((&MARK, comment)) = first.split_first()
        && EXPORT.iter().any(|mark| comment.trim_ascii().starts_with(mark))
    {
        return true;
    }
    ingest::read_line(bytes).is_some_and(|line| line.is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(bytes: &[u8]) -> Result<Format, String> {
        of(bytes, Path::new("a"), None).map_err(|error| error.to_string())
    }

    #[test]
    fn the_bytes_tell_the_kind_before_a_name_is_needed() {
        for (bytes, format) in [
            (b"{\"a\": 1}".as_slice(), Format::Ndjson),
            (b"timestamp,device_id,t\n1,d,2\n", Format::Csv),
            (b"Zeit;Ger\xe4t\n", Format::Csv),
            (b"# DDL\nCREATE DATABASE x", Format::LineProtocol),
            (b"# roomtide export\n# DML\nreadings,device_id=a t=1 5", Format::ExportedLines),
            (b"\n# a comment\ncpu,host=a usage=1.5 17\n", Format::LineProtocol),
            ("°C,domain=sensor,entity_id=a value=1".as_bytes(), Format::LineProtocol),
        ] {
            assert_eq!(kind(bytes), Ok(format), "{}", String::from_utf8_lossy(bytes));
        }
        let named = |name| of(b"damaged", Path::new(name), None).unwrap();
        assert_eq!((named("a.lp.gz"), named("a.csv")), (Format::LineProtocol, Format::Csv));
        let asked = of(b"a b=c,d\n", Path::new("a"), Some(Format::Csv)).unwrap();
        assert_eq!(asked, Format::Csv);
    }

    #[test]
    fn an_unknown_kind_is_named_with_what_there_is() {
        for (bytes, expected) in [
            (b"PAR1\x15".as_slice(), "a is a Parquet file: write it as CSV"),
            (b"\xff\xfet\0", "a is text in UTF-16: `iconv -f UTF-16 -t UTF-8` converts it"),
            (b"\xfe\xff\0t", "a is text in UTF-16"),
            (b"\x1f\x8b\x08", "a is a gzip file in another one: unpack it once"),
            (b"\xff\xff\0\0", "a is not a text"),
            (b"a\0b,c", "a is not a text"),
            (b"hello\n", "a begins with \"hello\""),
            (b"#group,false\n", "a is annotated CSV of Flux"),
        ] {
            let error = kind(bytes).unwrap_err();
            assert!(error.starts_with(expected) && error.ends_with(KNOWN), "{error}");
        }
        let zeros = of(&[0; 8], Path::new("a.csv"), Some(Format::Csv)).unwrap_err().to_string();
        assert!(zeros.starts_with("a.csv is not a text"), "{zeros}");
        assert_eq!(kind(b" \n").unwrap_err(), "a is empty");
        for (name, format) in
            [("a.csv", Format::Csv), ("-", Format::Ndjson), ("a.jsonl.gz", Format::Ndjson)]
        {
            assert_eq!(of(b"", Path::new(name), None).unwrap(), format, "{name}");
        }
    }
}
