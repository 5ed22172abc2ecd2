//! Turns the failure of a series into a problem for the client. The status is 422, unless the table has failed.

use api::{Problem, ProblemKind};
use series::SeriesError;

pub(crate) fn problem(failure: SeriesError) -> Problem {
    match failure {
        SeriesError::Store(error) => error.into(),
        SeriesError::OutOfReach(detail) => Problem::new(ProblemKind::Unanswerable, detail),
    }
}
