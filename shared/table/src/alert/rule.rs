//! The stored form of a rule of alerts. Judges nothing.

use alerts::{AlertSubject, Rule};
use domain::RuleId;

use crate::AlertKey;

/// A rule of alerts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRule {
    /// The id of the rule.
    pub id: RuleId,
    /// The number of times that the rule was saved.
    pub version: u64,
    /// The rule, with the time at which it was saved.
    pub definition: Rule,
}

impl StoredRule {
    /// The key of the rule's state on a subject.
    pub fn on(&self, subject: AlertSubject) -> AlertKey {
        AlertKey { rule: self.id.clone(), subject }
    }
}
