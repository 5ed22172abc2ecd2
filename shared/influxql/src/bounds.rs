//! The bounds of a statement's windows and of its answer, and the errors beyond them. Counts nothing.

use crate::error::QueryError;

/// The series of an answer.
pub(crate) const MAX_SERIES: usize = 500;
/// The values of an answer, and of the rows of a subquery.
pub(crate) const MAX_VALUES: usize = 100_000;
/// The number of windows of one series.
const MAX_WINDOWS: i64 = 11_000;
/// The number of windows of one series of a subquery.
const MAX_INNER_WINDOWS: i64 = 100_000;

/// The number of windows that a series may have.
pub(crate) const fn most_windows(is_subquery: bool) -> i64 {
    if is_subquery { MAX_INNER_WINDOWS } else { MAX_WINDOWS }
}

pub(crate) fn too_many_windows(number: i64, is_subquery: bool) -> QueryError {
    let most = most_windows(is_subquery);
    QueryError::new(format!(
        "max-select-buckets limit exceeded: ({number}/{most}); narrow the time range or choose a longer interval"
    ))
}

pub(crate) fn too_many_series(number: usize) -> QueryError {
    QueryError::new(format!(
        "max-select-series limit exceeded: ({number}/{MAX_SERIES}); ask for fewer measurements or tags"
    ))
}

pub(crate) fn too_many_values(number: usize) -> QueryError {
    QueryError::new(format!(
        "max-select-point limit exceeded: ({number}/{MAX_VALUES}); narrow the time range or set a LIMIT"
    ))
}
