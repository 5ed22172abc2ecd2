//! What the client sees of a series that cannot be answered. Decides no status but 422.

use api::{Problem, ProblemKind};
use runtime::http::Call;
use series::SeriesError;

/// The problem of a failure.
pub(crate) fn problem(failure: SeriesError, call: &mut Call<'_>) -> Problem {
    match failure {
        SeriesError::Store(error) => call.failed(&error),
        SeriesError::OutOfReach(detail) => Problem::new(ProblemKind::Unanswerable, detail),
    }
}
