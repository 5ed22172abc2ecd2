//! The parts of answers: rows, pages, CSV, cursors. Reads nothing.

pub(crate) mod cursor;
pub(crate) mod lack;
pub(crate) mod latest_values;
pub(crate) mod page;
pub(crate) mod pagination;
pub(crate) mod range_page;
pub(crate) mod row;
pub(crate) mod rows;
pub(crate) mod sheet;
