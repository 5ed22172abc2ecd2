//! A rule and the subject on which it is judged. Judges nothing.

use domain::Timestamp;
use table::{AlertKey, StoredRule};

use crate::rules::AlertRules;

/// A rule and the subject on which it is judged now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RuleOnSubject<'a> {
    pub(crate) rule: &'a StoredRule,
    pub(crate) key: &'a AlertKey,
    /// The earliest time of readings that were stored, overwritten or deleted. `None` if no reading changed: the rule
    /// was saved, or only time has passed.
    pub(crate) touched: Option<Timestamp>,
    /// All rules, with the channels and pauses.
    pub(crate) rules: &'a AlertRules,
    /// Whether the rule is no longer about the subject.
    pub(crate) has_left: bool,
}
