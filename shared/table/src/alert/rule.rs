//! A rule of alerts as the table keeps it. Judges nothing.

use alerts::Rule;
use domain::RuleId;

use crate::Expected;

/// A rule of alerts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRule {
    /// Its id.
    pub id: RuleId,
    /// The number of times that it was put.
    pub version: u64,
    /// The rule, with the time at which it was saved.
    pub rule: Rule,
}

impl StoredRule {
    /// What a put of it expects in its place: the version before.
    pub const fn expected(&self) -> Expected {
        Expected::before(self.version)
    }
}
