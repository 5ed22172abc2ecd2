//! One entry of a list, and the cells of a row in CSV. Knows no list.

use std::collections::BTreeMap;
use std::iter;

use domain::{Decimal, MetricName};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// The largest size of the end of a page: the cursor, and the names around it.
pub(crate) const TAIL: usize = 1_000;

/// One entry of a list.
pub(crate) trait Row: Serialize {
    /// The cells of the columns that all rows of its kind have in CSV.
    fn cells(&self, columns: &[&str]) -> Vec<Cell> {
        cells(self, columns)
    }

    /// Its metrics: in CSV each has a column, which is empty for a row without it.
    fn values(&self) -> impl Iterator<Item = (&MetricName, &Decimal)> {
        iter::empty()
    }
}

/// The cells of a row in CSV: the members that have the names of columns. A column such as `from_value` or
/// `temperature.mean` is a member of a member.
pub(crate) fn cells(
    row: &(impl Serialize + ?Sized),
    columns: impl IntoIterator<Item = impl AsRef<str>>,
) -> Vec<Cell> {
    let text = serde_json::to_string(row).expect("our own types have string keys");
    let members = members(&text).expect("a row is an object");
    let columns = columns.into_iter();
    columns
        .map(|column| find(&members, column.as_ref()).map_or_else(Cell::empty, Cell::of))
        .collect()
}

/// The members of an object as they are written, so that no digit is lost.
type Members<'a> = BTreeMap<&'a str, &'a RawValue>;

fn members(text: &str) -> Option<Members<'_>> {
    serde_json::from_str(text).ok()
}

fn find<'a>(row: &Members<'a>, column: &str) -> Option<&'a RawValue> {
    let within = || {
        let (outer, inner) = column.split_once('.').or_else(|| column.split_once('_'))?;
        members(row.get(outer)?.get())?.get(inner).copied()
    };
    row.get(column).copied().or_else(within)
}

/// Members whose names are not known before, such as metrics, in an order of their own.
#[derive(Debug)]
pub(crate) struct Entries<K, V>(pub(crate) Vec<(K, V)>);

impl<K: Serialize, V: Serialize> Serialize for Entries<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// One cell of CSV.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell(String);

impl Cell {
    /// A text. One that a spreadsheet would run as a formula is escaped with a leading `'`.
    ///
    /// Source: <https://owasp.org/www-community/attacks/CSV_Injection>
    pub(crate) fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self(if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
            format!("'{text}")
        } else {
            text
        })
    }
}

impl AsRef<[u8]> for Cell {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl Cell {
    /// A value of JSON: several words have blanks between them, and no spreadsheet runs a number.
    fn of(value: &RawValue) -> Self {
        let json = value.get();
        if json == "null" {
            Self::empty()
        } else if let Ok(text) = serde_json::from_str::<String>(json) {
            Self::text(text)
        } else if let Ok(words) = serde_json::from_str::<Vec<String>>(json) {
            Self::text(words.join(" "))
        } else {
            Self(json.to_owned())
        }
    }

    const fn empty() -> Self {
        Self(String::new())
    }
}
