//! What the client sees of a series that cannot be answered. Decides no status but 422.

use api::{Problem, ProblemKind};
use runtime::http::Call;
use series::Failure;

/// The problem of a failure.
pub(crate) fn problem(failure: Failure, call: &mut Call<'_>) -> Problem {
    match failure {
        Failure::Store(error) => call.failed(&error),
        Failure::OutOfReach(detail) => Problem::new(ProblemKind::Unanswerable, detail),
    }
}
