//! A rule of alerts as the table keeps it. Judges nothing.

use alerts::{AlertSubject, Rule};
use domain::RuleId;

use crate::{AlertKey, Expected};

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
    /// The key of its state on a subject.
    pub fn on(&self, subject: AlertSubject) -> AlertKey {
        AlertKey { rule: self.id.clone(), subject }
    }

    /// What a put of it expects in its place: the version before.
    pub const fn expected(&self) -> Expected {
        Expected::before(self.version)
    }
}
