//! The maximum size and the errors of request bodies about alerts. Knows no member.

use api::Problem;
use domain::MemberError;

/// The maximum size of a body after decompression, in bytes.
pub(crate) const MAX_BODY: usize = 64 << 10;

pub(crate) fn wrong(error: MemberError) -> Problem {
    Problem::field(&error.field, error.why)
}
