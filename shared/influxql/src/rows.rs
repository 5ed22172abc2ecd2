//! Rows as a statement answers them: what a statement around it takes for points. Writes none.

use crate::value::Value;

/// A row: its time in nanoseconds, and a value for each column.
pub(crate) type OutRow = (i64, Vec<Option<Value>>);

/// The rows of one measurement with the same tags.
#[derive(Debug)]
pub struct Rows {
    pub(crate) measurement: String,
    /// The tags of `GROUP BY`, with their values.
    pub(crate) tags: Vec<(String, String)>,
    /// The names of the columns.
    pub(crate) columns: Vec<String>,
    /// In the order of the answer.
    pub(crate) list: Vec<OutRow>,
}

impl Rows {
    /// The place of a column.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|it| it == name)
    }

    /// A tag; empty where it is lacking.
    pub(crate) fn tag(&self, name: &str) -> &str {
        let found = self.tags.iter().find(|(it, _)| it == name);
        found.map_or("", |(_, value)| value)
    }
}
