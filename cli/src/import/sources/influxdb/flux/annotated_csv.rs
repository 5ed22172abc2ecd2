//! Annotated CSV, in which InfluxDB 2 answers: tables with the types of their columns, read as they come. Asks nothing.
//!
//! Sources: <https://docs.influxdata.com/influxdb/v2/reference/syntax/annotated-csv/>,
//! <https://github.com/influxdata/flux/blob/master/csv/result.go>

use std::io::{self, Read};

use anyhow::{Context as _, bail, ensure};
use csv::StringRecord;

/// What stands before the names of annotations: the number sign.
const MARK: u8 = 0x23;

/// The columns of a table. Each list begins with the column of the annotations' names.
#[derive(Debug, Default)]
struct Table {
    types: Vec<String>,
    /// Whether a column is part of the key by which rows are grouped.
    is_key: Vec<String>,
    defaults: Vec<String>,
    /// Empty until the header is read.
    names: Vec<String>,
}

/// A row of a table.
#[derive(Debug)]
pub(super) struct Row<'a> {
    table: &'a Table,
    cells: &'a StringRecord,
}

impl<'a> Row<'a> {
    /// Returns the value of a column, unless it is empty.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        self.value(self.place(name)?)
    }

    /// Returns the type of a column, or nothing.
    pub(super) fn kind(&self, name: &str) -> &'a str {
        let kind = self.place(name).and_then(|place| self.table.types.get(place));
        kind.map_or("", |kind| kind)
    }

    /// Returns the columns that are part of the key, with their values, unless they are empty.
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

/// Reads all rows of an answer. An answer of 200 may have a table with an error, and one that ends elsewhere than behind
/// its last table is not whole.
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
            // A table of results has the column `result` there.
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

/// A reader that knows the last bytes, without carriage returns.
struct Tail<R> {
    reader: R,
    last: [u8; 2],
}

impl<R> Tail<R> {
    /// Whether the last line is empty: that is the delimiter behind a result, `DelimitedMultiResultEncoder` in
    /// <https://github.com/influxdata/flux/blob/master/result.go>. A result without tables is the delimiter alone.
    fn is_end(&self) -> bool {
        matches!(self.last, [b'\n' | 0, b'\n'])
    }
}

impl<R: Read> Read for Tail<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(buffer)?;
        // Two ends of lines have four bytes at most.
        let last = buffer[length.saturating_sub(4)..length].iter();
        for byte in last.filter(|byte| **byte != b'\r') {
            self.last = [self.last[1], *byte];
        }
        Ok(length)
    }
}
