//! Annotated CSV, the format of InfluxDB 2's answers: tables with typed columns, parsed as they arrive. Sends no
//! request.

use std::io::{self, Read};

use anyhow::{Context as _, bail, ensure};
use csv::StringRecord;

/// The number sign (`#`), which precedes the names of annotations.
const MARK: u8 = 0x23;

/// The columns of a table. The first column of each row holds the name of an annotation.
#[derive(Debug, Default)]
struct Table {
    types: Vec<String>,
    /// For each column, whether it is part of the group key.
    is_key: Vec<String>,
    defaults: Vec<String>,
    /// The names of the columns; empty until the header is read.
    names: Vec<String>,
}

/// A row of a table.
#[derive(Debug)]
pub(super) struct Row<'a> {
    table: &'a Table,
    cells: &'a StringRecord,
}

impl<'a> Row<'a> {
    /// Returns the value of a column; `None` if it is empty.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        self.value(self.place(name)?)
    }

    /// Returns the type of a column, or an empty text.
    pub(super) fn kind(&self, name: &str) -> &'a str {
        let kind = self.place(name).and_then(|place| self.table.types.get(place));
        kind.map_or("", |kind| kind)
    }

    /// Returns the non-empty columns of the group key, with their values.
    pub(super) fn keys(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'_, 'a> {
        let places = (0..self.table.names.len())
            .filter(|place| self.table.is_key.get(*place).is_some_and(|it| it == "true"));
        places.filter_map(|place| Some((&*self.table.names[place], self.value(place)?)))
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.table.names.iter().position(|known| known == name)
    }

    fn value(&self, place: usize) -> Option<&'a str> {
        let cell = self.cells.get(place).filter(|cell| !cell.is_empty());
        let default = || self.table.defaults.get(place).map(|it| &**it);
        cell.or_else(default).filter(|it| !it.is_empty())
    }
}

/// Reads all rows of an answer. Even an answer with status 200 may contain a table with an error. An answer is
/// incomplete unless it ends with the delimiter after its last table.
pub(super) fn read(
    reader: impl Read,
    mut each: impl FnMut(&Row<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut tail = Tail { reader, last: [0; 2] };
    let mut csv =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(&mut tail);
    let (mut table, mut cells) = (Table::default(), StringRecord::new());
    while csv.read_record(&mut cells).context("the answer of InfluxDB cannot be read")? {
        let first = cells.get(0).unwrap_or_default();
        if let Some(annotation) = first.strip_prefix(char::from(MARK)) {
            if !table.names.is_empty() {
                table = Table::default();
            }
            let texts = cells.iter().map(ToOwned::to_owned).collect();
            match annotation {
                "datatype" => table.types = texts,
                "group" => table.is_key = texts,
                "default" => table.defaults = texts,
                _ => {}
            }
        } else if table.names.is_empty() {
            ensure!(
                !table.types.is_empty(),
                "InfluxDB answers without annotations: {}",
                domain::excerpt(cells.iter().collect::<Vec<_>>().join(",").trim())
            );
            table.names = cells.iter().map(ToOwned::to_owned).collect();
        } else {
            let row = Row { table: &table, cells: &cells };
            // A table of results has the column `result` in this position.
            if table.names.get(1).is_some_and(|name| name == "error") {
                bail!(
                    "InfluxDB answers: {}",
                    row.get("error").unwrap_or("an error without a text")
                );
            }
            ensure!(
                cells.len() == table.names.len(),
                "the answer of InfluxDB is not whole: a row has {} columns of {}",
                cells.len(),
                table.names.len()
            );
            each(&row)?;
        }
    }
    drop(csv);
    ensure!(tail.is_end(), "the answer of InfluxDB is not whole: it ends before its last line");
    Ok(())
}

/// A reader that remembers the last bytes, without carriage returns.
struct Tail<R> {
    reader: R,
    last: [u8; 2],
}

impl<R> Tail<R> {
    /// Whether the last line is empty, which is the delimiter after a result: `DelimitedMultiResultEncoder` in
    /// <https://github.com/influxdata/flux/blob/master/result.go>. A result without tables is only the delimiter.
    fn is_end(&self) -> bool {
        matches!(self.last, [b'\n' | 0, b'\n'])
    }
}

impl<R: Read> Read for Tail<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(buffer)?;
        // Two line ends have at most four bytes.
        let last = buffer[length.saturating_sub(4)..length].iter();
        for byte in last.filter(|byte| **byte != b'\r') {
            self.last = [self.last[1], *byte];
        }
        Ok(length)
    }
}
