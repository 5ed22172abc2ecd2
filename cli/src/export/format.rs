//! The format of an export and its destination, from the file's name and the command line. Opens no file.

use std::path::{Path, is_separator};

use anyhow::bail;

/// The kind of an export file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Kind {
    /// One reading a line, then the settings of devices and rooms: the backup
    Ndjson,
    /// Line protocol of `InfluxDB`, with the settings as comments
    Lp,
    /// One reading a row, a column for each metric
    Csv,
    /// One value a row, for `DuckDB`, pandas and the like
    Parquet,
}

/// File extensions and their formats. Any other file name needs `--format`.
const ENDS: [(&str, Kind); 5] = [
    ("ndjson", Kind::Ndjson),
    ("jsonl", Kind::Ndjson),
    ("lp", Kind::Lp),
    ("csv", Kind::Csv),
    ("parquet", Kind::Parquet),
];

/// The format of an export, its compression and its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileFormat {
    pub(super) kind: Kind,
    pub(super) gzip: bool,
    pub(super) is_stdout: bool,
}

impl FileFormat {
    /// Returns the requested format, or else the format of the file's extension.
    pub(super) fn of(path: &Path, asked: Option<Kind>) -> anyhow::Result<Self> {
        let shown = path.display();
        if path == Path::new("-") {
            let kind = asked.unwrap_or(Kind::Ndjson);
            return Ok(Self { kind, gzip: false, is_stdout: true });
        }

        if path.is_dir() || path.to_string_lossy().ends_with(is_separator) {
            bail!("{shown} is a directory; an export needs the name of a file");
        }

        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let (name, gzip) = name.strip_suffix(".gz").map_or((name, false), |name| (name, true));
        let end = name.rsplit_once('.').map(|(_, end)| end);
        let named = ENDS.iter().find(|(known, _)| end == Some(*known)).map(|(_, kind)| *kind);
        let kind = match (asked, named) {
            (Some(asked), Some(named)) if asked != named => bail!(
                "{shown}: the name is that of another format than --format; an import sees the format from the name"
            ),
            (Some(kind), _) | (None, Some(kind)) => kind,
            (None, None) => bail!(
                "{shown}: expected a name that ends in .ndjson, .jsonl, .lp or .csv, with .gz after it or not, or in \
                 .parquet; or --format"
            ),
        };

        if gzip && kind == Kind::Parquet {
            bail!("{shown}: Parquet is compressed inside; expected a name without .gz");
        }
        Ok(Self { kind, gzip, is_stdout: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_or_the_option_tells_the_format() {
        let file = |kind, gzip| FileFormat { kind, gzip, is_stdout: false };
        let stdout = |kind| FileFormat { kind, gzip: false, is_stdout: true };
        for (name, asked, format) in [
            ("a/b.ndjson", None, file(Kind::Ndjson, false)),
            ("b.jsonl.gz", Some(Kind::Ndjson), file(Kind::Ndjson, true)),
            ("b.csv", None, file(Kind::Csv, false)),
            ("b.csv.gz", None, file(Kind::Csv, true)),
            ("b.lp.gz", None, file(Kind::Lp, true)),
            ("b", Some(Kind::Lp), file(Kind::Lp, false)),
            ("b.parquet", None, file(Kind::Parquet, false)),
            ("-", None, stdout(Kind::Ndjson)),
            ("-", Some(Kind::Csv), stdout(Kind::Csv)),
        ] {
            assert_eq!(FileFormat::of(Path::new(name), asked).unwrap(), format, "{name}");
        }
    }

    #[test]
    fn a_name_that_tells_nothing_or_something_else_is_refused() {
        for (name, asked, why) in [
            ("b", None, "expected a name that ends in .ndjson"),
            ("b.json", None, "or --format"),
            ("b.gz", None, "expected a name"),
            ("csv", None, "expected a name"),
            ("b.csv", Some(Kind::Lp), "another format than --format"),
            ("b.parquet.gz", None, "compressed inside"),
            ("b/", None, "is a directory"),
            ("/", Some(Kind::Parquet), "is a directory"),
        ] {
            let error = FileFormat::of(Path::new(name), asked).unwrap_err().to_string();
            assert!(error.contains(why), "{name}: {error}");
        }
    }
}
