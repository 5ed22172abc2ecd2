//! What became of a request's readings, and the answer that says so. Decides nothing about a reading.

use api::{FieldError, Problem, ProblemKind, Response};
use runtime::authentication::forbidden;
use table::StoreError;

use crate::event::Receipt;

/// What became of the readings of one request.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) accepted: usize,
    /// What is wrong with readings, in the order of the request.
    pub(crate) rejected: Vec<FieldError>,
    /// The places in the request of the readings that may not be stored, ascending.
    pub(crate) not_stored: Vec<usize>,
    /// Why, where anything is not stored.
    pub(crate) cause: Option<StoreError>,
}

impl Outcome {
    /// 201 all stored, 207 some refused, 400 none valid, 429 or 503 not all stored.
    pub(crate) fn respond(self) -> Response {
        let Self { accepted, rejected, not_stored, cause } = self;
        if let Some(cause) = cause {
            let detail = format!(
                "Of {} readings {accepted} are stored; send those of not_stored again. With a \
                 timestamp a reading is stored once however often it is sent; without one it is a new \
                 reading each time.",
                accepted + not_stored.len()
            );
            let problem = Problem { detail, errors: rejected, not_stored, ..Problem::from(&cause) };
            return problem.respond();
        }
        if accepted == 0 {
            let none = Problem::new(ProblemKind::BadRequest, "No reading of the request is valid.");
            return Problem { errors: rejected, ..none }.respond();
        }
        let status = if rejected.is_empty() { 201 } else { 207 };
        Response::json(status, &Receipt::new(accepted, rejected))
    }
}

/// Nothing of a request is stored that reaches for another's device.
pub(crate) fn foreign(rejected: Vec<FieldError>) -> Problem {
    let detail = "The token may not write for every device named here; nothing is stored.";
    Problem { errors: rejected, ..forbidden(detail) }
}
