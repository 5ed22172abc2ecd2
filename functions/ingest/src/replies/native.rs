//! The replies of Roomtide's own API to readings. Decides nothing about a reading.

use api::problem::within_a_megabyte;
use api::{FieldError, Problem, ProblemKind, Response};
use runtime::authentication::forbidden;
use serde::Serialize;
use table::StoreError;

use super::StoreReport;

/// The reply to readings:
///
/// - 201 if all readings are stored, 207 if some are refused;
/// - 204 without readings, 200 if everything is ignored;
/// - 400 if no reading is valid, 410 if all devices are being deleted;
/// - 503 if readings have to be sent again, 500 if they fail until the server is mended.
pub(crate) fn respond(mut report: StoreReport) -> Response {
    if let Some(cause) = report.cause.take() {
        return respond_not_stored(report, cause);
    }

    let StoreReport { accepted, accepted_before, rejected, ignored, of_deleted, .. } = report;
    let is_any_stored = accepted + accepted_before > 0;
    if !is_any_stored && !rejected.is_empty() {
        let is_deleted = of_deleted == rejected.len();
        let (kind, detail) = if is_deleted {
            let detail = "Every reading is of a device that is being deleted; nothing is stored.";
            (ProblemKind::Gone, detail)
        } else {
            (ProblemKind::BadRequest, "No reading of the request is valid.")
        };
        return Problem { errors: rejected, ignored, ..Problem::new(kind, detail) }.respond();
    }

    if !is_any_stored && ignored.is_empty() {
        return Response { status: 204, headers: Vec::new(), body: Vec::new() };
    }

    let status = match (is_any_stored, rejected.is_empty()) {
        (false, _) => 200,
        (true, true) => 201,
        (true, false) => 207,
    };
    Response::json(status, &Receipt::new(accepted, accepted_before, rejected, ignored))
}

/// 503 or 500: the readings that are not stored, and the cause.
fn respond_not_stored(report: StoreReport, cause: StoreError) -> Response {
    let StoreReport { accepted, accepted_before, rejected, ignored, not_stored, .. } = report;
    let before = match accepted_before {
        0 => String::new(),
        before => format!(", and {before} were stored by an earlier attempt"),
    };

    let problem = Problem::from(cause);
    let when = match problem.kind {
        ProblemKind::Internal => " once the server's error is mended",
        _ => "",
    };

    let all = accepted + accepted_before + not_stored.len();
    let detail = format!(
        "Of {all} readings {accepted} are stored{before}; send the readings in not_stored again{when}. A reading with \
         a timestamp is stored once, however often it is sent; a reading without a timestamp is a new one each time."
    );

    Problem { detail, not_stored, errors: rejected, ignored, ..problem }.respond()
}

/// 403: a request that names a device of another sender is refused as a whole.
pub(crate) fn foreign(rejected: Vec<FieldError>) -> Problem {
    let detail =
        "The token may not write for every device named here; nothing of this request is stored.";
    Problem { errors: rejected, ..forbidden(detail) }
}

/// The number of readings that are stored, and those that are refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Receipt {
    /// The number of readings that are stored.
    pub accepted: usize,
    /// The number of readings that an earlier attempt has stored. This attempt skips them, even if they were deleted since.
    #[serde(skip_serializing_if = "is_zero")]
    pub accepted_before: usize,
    /// The refused readings, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<FieldError>,
    /// The indices of further refused readings, for whose messages the answer has no room.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub more_rejected: Vec<usize>,
    /// The names of members of payloads that are not stored, at most 100 of a device: texts, and numbers without a metric.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}

impl Receipt {
    /// A receipt with the counts, and with the messages of as many refusals as fit into an answer.
    pub fn new(
        accepted: usize,
        accepted_before: usize,
        rejected: Vec<FieldError>,
        ignored: Vec<String>,
    ) -> Self {
        let (rejected, more_rejected) = within_a_megabyte(rejected);
        Self { accepted, accepted_before, rejected, more_rejected, ignored }
    }
}

impl From<StoreReport> for Receipt {
    fn from(report: StoreReport) -> Self {
        let StoreReport { accepted, accepted_before, rejected, ignored, .. } = report;
        Self::new(accepted, accepted_before, rejected, ignored)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands on a reference")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}
