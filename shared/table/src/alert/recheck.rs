//! The rechecks: a device, or a rule that was saved, is to be judged again. Judges none.

use std::fmt::{self, Display, Formatter};

use domain::{DeviceId, RuleId, Timestamp};

/// What is to be rechecked. Its order is that of the sort keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rechecked {
    /// A rule, on each of its devices.
    Rule(RuleId),
    /// A device, by each rule that is about it.
    Device(DeviceId),
}

/// The note that something was stored, changed or deleted which no judgement has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recheck {
    /// The device or rule.
    pub what: Rechecked,
    /// The earliest instant that was touched.
    pub since: Timestamp,
    /// The device of a rule up to which it is judged.
    pub after: Option<DeviceId>,
    /// Changes whenever something is touched, also where the earliest instant stays: who has judged removes the recheck
    /// that was read, and no later one.
    pub touch: u64,
}

impl Recheck {
    /// Whether nothing was touched since `read` was read. The place up to which a rule is judged may have moved.
    pub fn is_untouched_since(&self, read: &Self) -> bool {
        self.since == read.since && self.touch == read.touch
    }
}

impl From<DeviceId> for Rechecked {
    fn from(device: DeviceId) -> Self {
        Self::Device(device)
    }
}

impl From<RuleId> for Rechecked {
    fn from(rule: RuleId) -> Self {
        Self::Rule(rule)
    }
}

impl Display for Rechecked {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => write!(f, "the rule {rule}"),
            Self::Device(device) => Display::fmt(device, f),
        }
    }
}
