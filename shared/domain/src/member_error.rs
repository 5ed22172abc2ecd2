//! The error of JSON that people write: the wrong member, and why. Knows no member.

use std::fmt;

use crate::excerpt;

/// The member that is wrong, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct MemberError {
    /// The member.
    pub field: String,
    /// The reason, with what is allowed.
    pub why: String,
}

impl MemberError {
    /// The error of a member.
    pub fn of(field: &str, why: impl fmt::Display) -> Self {
        Self { field: excerpt(field), why: why.to_string() }
    }
}
