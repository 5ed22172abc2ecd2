//! The bodies of requests about alerts. Knows no member.

use api::Problem;
use domain::MemberError;

/// The largest body, inflated.
pub(crate) const MAX_BODY: usize = 64 << 10;

pub(crate) fn wrong(error: MemberError) -> Problem {
    Problem::field(&error.field, error.why)
}
