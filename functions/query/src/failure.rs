//! What the client sees of a series that cannot be answered. Decides no status but 422.

use api::{Problem, ProblemKind};
use series::SeriesError;

pub(crate) fn problem(failure: SeriesError) -> Problem {
    match failure {
        SeriesError::Store(error) => error.into(),
        SeriesError::OutOfReach(detail) => Problem::new(ProblemKind::Unanswerable, detail),
    }
}
