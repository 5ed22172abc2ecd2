//! Why a statement has no result: an error of the query or of the table. Decides no status.

use influxql::QueryError;
use table::StoreError;

/// A failure of a statement.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The statement cannot be answered, and its result says why.
    Query(QueryError),
    /// An error of the table: the whole request fails.
    Store(StoreError),
}

impl From<QueryError> for Failure {
    fn from(error: QueryError) -> Self {
        Self::Query(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<series::SeriesError> for Failure {
    fn from(failure: series::SeriesError) -> Self {
        use series::SeriesError as Series;
        match failure {
            Series::Store(error) => Self::Store(error),
            Series::OutOfReach(why) => Self::Query(QueryError::new(why)),
        }
    }
}
