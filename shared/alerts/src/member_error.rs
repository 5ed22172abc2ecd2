//! The error of a rule or a channel that cannot be: the member that is wrong, and why.

use std::fmt;

use domain::excerpt;

/// The member that is wrong, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct MemberError {
    /// The member.
    pub field: String,
    /// The reason, with what is allowed.
    pub why: String,
}

pub(crate) fn wrong(field: &str, why: impl fmt::Display) -> MemberError {
    MemberError { field: excerpt(field), why: why.to_string() }
}
