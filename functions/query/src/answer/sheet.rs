//! A page of CSV: the rows that fit, and their columns. Reads nothing.

use std::collections::HashMap;

use api::response::{MAX_CARRIED, carried_bytes};
use domain::{Decimal, Device, MetricName};

use crate::answer::row::{Row, TAIL};

/// With more known metrics than this, a page has columns only for the metrics of its own rows. Each column costs a
/// separator in every row.
const MAX_KNOWN: usize = 1_024;

/// The columns of a page that do not depend on its rows.
#[derive(Debug)]
pub(crate) struct FixedColumns {
    /// The columns that all rows have.
    pub(crate) own: &'static [&'static str],
    /// Metrics that are known before any row is read. Their columns are the same on every page.
    pub(crate) known: Vec<MetricName>,
}

/// A page of CSV while rows are added: its columns, which grow with the rows, and its size.
#[derive(Debug)]
pub(crate) struct Sheet {
    own: &'static [&'static str],
    /// Metrics with a column: first the known metrics, then others in the order of the readings.
    metrics: Vec<MetricName>,
    columns: HashMap<MetricName, usize>,
    rows: usize,
    /// The size of all cells, without the separators before metrics.
    cells: usize,
}

impl Sheet {
    /// A page without rows.
    pub(crate) fn new(columns: FixedColumns) -> Self {
        let FixedColumns { own, known } = columns;
        let cells = carried_bytes(&record(own)) + TAIL;
        let (metrics, columns) = (Vec::new(), HashMap::new());
        let mut sheet = Self { own, metrics, columns, rows: 0, cells };
        if known.len() <= MAX_KNOWN {
            known.iter().for_each(|name| sheet.add_column(name));
        }
        sheet
    }

    /// Adds a row and its new columns, unless the answer would get too large for Lambda. The first row is always added.
    /// Returns whether the row was added.
    pub(crate) fn add(&mut self, row: &impl Row) -> bool {
        let mut cells = carried_bytes(&record(row.cells(self.own)));
        let mut new = Vec::new();
        for (name, value) in row.values() {
            cells += value.as_str().len();
            if !self.columns.contains_key(name) {
                new.push(name);
            }
        }

        let names: usize = new.iter().map(|name| name.as_str().len()).sum();
        let columns = self.metrics.len() + new.len();
        if self.rows > 0 && size(self.cells + cells + names, self.rows + 1, columns) > MAX_CARRIED {
            return false;
        }

        new.into_iter().for_each(|name| self.add_column(name));
        self.cells += cells;
        self.rows += 1;
        true
    }

    fn add_column(&mut self, name: &MetricName) {
        self.cells += name.as_str().len();
        self.columns.insert(name.clone(), self.metrics.len());
        self.metrics.push(name.clone());
    }

    /// The size of the answer so far.
    pub(crate) fn bytes(&self) -> usize {
        size(self.cells, self.rows, self.metrics.len())
    }

    /// The page as CSV, from the rows that were added.
    pub(crate) fn write(&self, rows: &[impl Row]) -> Vec<u8> {
        let metrics = self.metrics.iter().map(MetricName::as_str);
        let mut text = record(self.own.iter().copied().chain(metrics));
        for row in rows {
            text.extend(record(row.cells(self.own)));
            text.pop(); // the line end, which comes after the metrics

            let mut values: Vec<(usize, &Decimal)> =
                row.values().map(|(name, value)| (self.columns[name], value)).collect();
            values.sort_unstable_by_key(|(column, _)| *column);
            let mut written = 0;
            for (column, value) in values {
                text.resize(text.len() + column + 1 - written, b',');
                text.extend_from_slice(value.as_str().as_bytes());
                written = column + 1;
            }

            text.resize(text.len() + self.metrics.len() - written, b',');
            text.push(b'\n');
        }

        text
    }
}

/// The size of a header and `rows` rows: the cells, and in each line a separator before each metric.
const fn size(cells: usize, rows: usize, metrics: usize) -> usize {
    cells + (rows + 1) * metrics
}

/// One line of CSV.
pub(crate) fn record(cells: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Vec<u8> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(cells).expect("writing to memory does not fail");
    csv.into_inner().expect("writing to memory does not fail")
}

/// The names of all metrics of some devices, sorted. These columns are the same on every page.
pub(crate) fn metrics_of<'a>(devices: impl Iterator<Item = &'a Device>) -> Vec<MetricName> {
    let names: std::collections::BTreeSet<&MetricName> =
        devices.flat_map(|device| device.metrics().keys()).collect();
    names.into_iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use domain::given::{metric, number};
    use serde::Serialize;

    use super::*;
    use crate::answer::row::CsvCell;

    #[derive(Serialize)]
    struct Sample(&'static str, Vec<(MetricName, Decimal)>);

    impl Row for Sample {
        fn cells(&self, _: &[&str]) -> Vec<CsvCell> {
            vec![CsvCell::text(self.0), CsvCell::text("x")]
        }

        fn values(&self) -> impl Iterator<Item = (&MetricName, &Decimal)> {
            self.1.iter().map(|(name, value)| (name, value))
        }
    }

    fn sample(text: &'static str, values: &[(&str, &str)]) -> Sample {
        let value = |(name, value): &(&str, &str)| (metric(name), number(value));
        Sample(text, values.iter().map(value).collect())
    }

    fn sheet(known: &[&str]) -> Sheet {
        let known = known.iter().map(|name| metric(name)).collect();
        Sheet::new(FixedColumns { own: &["a", "b"], known })
    }

    #[test]
    fn known_columns_come_first_and_its_size_is_what_is_counted() {
        let rows = [
            sample("=1", &[("t", "-5.5"), ("z", "2")]),
            sample("with, comma", &[]),
            sample("", &[("a", "1"), ("h", "3")]),
        ];
        let mut sheet = sheet(&["h", "t"]);
        assert!(rows.iter().all(|row| sheet.add(row)));
        let text = sheet.write(&rows);
        let expected = "a,b,h,t,z,a\n'=1,x,,-5.5,2,\n\"with, comma\",x,,,,\n,x,3,,,1\n";
        assert_eq!(String::from_utf8_lossy(&text), expected);
        assert_eq!(sheet.bytes(), carried_bytes(&text) + TAIL);
    }

    #[test]
    fn a_row_alone_is_added_however_many_columns_it_has() {
        let names: Vec<String> = (0..100_000).map(|n| format!("m{n:060}")).collect();
        let values: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
        let rows = [sample("wide", &values), sample("next", &[("t", "1")])];
        let mut sheet = sheet(&[]);
        assert_eq!(rows.each_ref().map(|row| sheet.add(row)), [true, false]);
        assert_eq!(sheet.metrics.len(), 100_000);
    }

    #[test]
    fn no_text_is_run_as_a_formula() {
        for (text, cell) in [
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("\r=1", "'\r=1"),
            ("a=b", "a=b"),
            ("'quoted", "'quoted"),
            ("", ""),
        ] {
            assert_eq!(CsvCell::text(text).as_ref(), cell.as_bytes());
        }
    }
}
