//! The error of a refused query or a failed statement, in the words of InfluxDB 1.x, and the limits of an answer.
//! Decides no status.

/// Returns an error with this message.
macro_rules! refuse {
    ($($words:tt)+) => {
        return Err($crate::error::QueryError::new(format_args!($($words)+).to_string()))
    };
}
pub(crate) use refuse;

/// A failure of one statement, or of the whole query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct QueryError(String);

impl QueryError {
    /// A failure with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// The failure of a function, a clause or a statement that InfluxDB has and Roomtide does not support.
    pub fn unsupported(what: impl std::fmt::Display) -> Self {
        Self(format!("{what} is not supported by Roomtide"))
    }
}

/// The largest number of series of an answer.
pub(crate) const MAX_SERIES: usize = 500;
/// The largest number of values of an answer, and of the rows of a subquery.
pub(crate) const MAX_VALUES: usize = 100_000;
/// The largest number of windows of one series.
const MAX_WINDOWS: i64 = 11_000;
/// The largest number of windows of one series of a subquery.
const MAX_INNER_WINDOWS: i64 = 100_000;

/// The largest number of windows of a series.
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
