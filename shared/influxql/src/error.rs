//! Why a query is refused or a statement fails, in the words of InfluxDB 1.x. Decides no status.

/// Ends a function with a refusal in these words.
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
    /// A failure that is told in these words.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// A function, a clause or a statement that InfluxDB has and Roomtide has not.
    #[must_use]
    pub fn unsupported(what: impl std::fmt::Display) -> Self {
        Self(format!("{what} is not supported by Roomtide"))
    }
}
