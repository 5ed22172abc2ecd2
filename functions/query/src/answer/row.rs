//! One entry of a list, and its cells in CSV. Knows no list.

use domain::{Decimal, MetricName};
use serde::Serialize;

/// The largest size of the end of a page: the cursor, and the names around it.
pub(crate) const TAIL: usize = 1_000;

/// One entry of a list.
pub(crate) trait Row: Serialize {
    /// The cells of the columns that all rows of its kind have in CSV.
    fn cells(&self) -> Vec<Cell>;
    /// Its metrics: in CSV each has a column, which is empty for a row without it.
    fn values(&self) -> impl Iterator<Item = (&MetricName, &Decimal)>;
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
    /// A number, which no spreadsheet runs.
    pub(crate) fn number(number: &impl ToString) -> Self {
        Self(number.to_string())
    }

    /// `true` or `false`; empty where nobody said which.
    pub(crate) fn flag(flag: Option<bool>) -> Self {
        flag.map_or_else(Self::empty, |flag| Self::number(&flag))
    }

    /// An empty cell.
    pub(crate) const fn empty() -> Self {
        Self(String::new())
    }
}
