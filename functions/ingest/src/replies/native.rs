//! The replies of Roomtide's own API to readings. Decides nothing about a reading.

use api::problem::told_in_full;
use api::{FieldError, Problem, ProblemKind, Response};
use runtime::authentication::forbidden;
use serde::Serialize;

use super::StoreReport;

/// 204 nothing to store, 200 nothing stored and told what is not, 201 all stored, 207 some refused, 400 none valid, 410 all of devices that are being deleted, 503 not all stored.
pub(crate) fn respond(report: StoreReport) -> Response {
    let StoreReport {
        accepted,
        accepted_before,
        rejected,
        ignored,
        of_deleted,
        not_stored,
        cause,
        ..
    } = report;
    let accepted_before = accepted_before.len();
    let all_accepted = accepted + accepted_before;
    let refused = |problem: Problem| Problem {
        errors: rejected.clone(),
        ignored: ignored.clone(),
        ..problem
    };
    if let Some(cause) = cause {
        let before = match accepted_before {
            0 => String::new(),
            before => format!(" and {before} were by an earlier attempt"),
        };
        let detail = format!(
            "Of {} readings {accepted} are stored{before}; send those of not_stored again. With a \
             timestamp a reading is stored once however often it is sent; without one it is a new \
             reading each time.",
            all_accepted + not_stored.len()
        );
        return refused(Problem { detail, not_stored, ..Problem::from(&cause) }).respond();
    }
    if all_accepted == 0 && rejected.is_empty() && ignored.is_empty() {
        return Response { status: 204, headers: Vec::new(), body: Vec::new() };
    }
    if all_accepted == 0 && rejected.is_empty() {
        return Response::json(200, &Receipt::new(accepted, accepted_before, rejected, ignored));
    }
    if all_accepted == 0 && of_deleted == rejected.len() {
        let gone = "Every reading is of a device that is being deleted; nothing is stored.";
        return refused(Problem::new(ProblemKind::Gone, gone)).respond();
    }
    if all_accepted == 0 {
        let none = "No reading of the request is valid.";
        return refused(Problem::new(ProblemKind::BadRequest, none)).respond();
    }
    let status = if rejected.is_empty() { 201 } else { 207 };
    Response::json(status, &Receipt::new(accepted, accepted_before, rejected, ignored))
}

/// 403: a request that names a device of another sender is refused whole.
pub(crate) fn foreign(rejected: Vec<FieldError>) -> Problem {
    let detail = "The token may not write for every device named here; nothing is stored.";
    Problem { errors: rejected, ..forbidden(detail) }
}

/// The number of readings that are stored, and those that are refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Receipt {
    /// Stored.
    pub accepted: usize,
    /// Stored by an earlier attempt of the same request and passed over by this one: what was deleted since is not there.
    #[serde(skip_serializing_if = "is_zero")]
    pub accepted_before: usize,
    /// Refused, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<FieldError>,
    /// The places of those that were refused beyond what an answer tells in full.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub more_rejected: Vec<usize>,
    /// The names of what a device's payload has and is not stored, at most 100 of a device: words, and numbers
    /// that have no place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}

impl Receipt {
    /// A receipt for so many readings, and as many refusals in full as an answer holds.
    #[must_use]
    pub fn new(
        accepted: usize,
        accepted_before: usize,
        rejected: Vec<FieldError>,
        ignored: Vec<String>,
    ) -> Self {
        let (rejected, more_rejected) = told_in_full(rejected);
        Self { accepted, accepted_before, rejected, more_rejected, ignored }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands on a reference")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}
