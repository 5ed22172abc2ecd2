//! The rows with which a statement is answered. To an outer statement, they are points. Writes no row.

use std::collections::BTreeMap;

use crate::value::Value;

/// A row.
#[derive(Debug)]
pub(crate) struct OutRow {
    /// Nanoseconds since 1970.
    pub(crate) at: i64,
    /// A value for each column.
    pub(crate) cells: Vec<Option<Value>>,
}

/// The rows of one measurement with the same tags.
#[derive(Debug)]
pub struct Rows {
    pub(crate) measurement: String,
    /// The tags of `GROUP BY`, with their values.
    pub(crate) tags: BTreeMap<String, String>,
    /// The names of the columns.
    pub(crate) columns: Vec<String>,
    /// The rows, in the order of the answer.
    pub(crate) list: Vec<OutRow>,
}

impl Rows {
    /// The index of a column.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// The value of a tag; empty without such a tag.
    pub(crate) fn tag(&self, name: &str) -> &str {
        self.tags.get(name).map_or("", String::as_str)
    }
}
