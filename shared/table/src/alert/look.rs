//! That a device, or a rule that was saved, is to be looked at again. Looks at none.

use std::fmt::{self, Display, Formatter};

use domain::{DeviceId, RuleId, Timestamp};

/// What is to be looked at again. Its order is that of the sort keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Looked {
    /// A rule, on each of its devices.
    Rule(RuleId),
    /// A device, by each rule that is about it.
    Device(DeviceId),
}

/// That something was stored, changed or deleted which no judgement has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The device or rule.
    pub what: Looked,
    /// The earliest instant that was touched.
    pub since: Timestamp,
    /// The device of a rule up to which it is judged.
    pub after: Option<DeviceId>,
    /// Changes whenever something is touched, also where the earliest instant stays: who has looked removes the look
    /// that was read, and no later one.
    pub touch: u64,
}

impl Look {
    /// Whether nothing was touched since `read` was read. The place up to which a rule is judged may have moved.
    #[must_use]
    pub fn is_untouched_since(&self, read: &Self) -> bool {
        self.since == read.since && self.touch == read.touch
    }
}

impl From<DeviceId> for Looked {
    fn from(device: DeviceId) -> Self {
        Self::Device(device)
    }
}

impl From<RuleId> for Looked {
    fn from(rule: RuleId) -> Self {
        Self::Rule(rule)
    }
}

impl Display for Looked {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => write!(f, "the rule {rule}"),
            Self::Device(device) => Display::fmt(device, f),
        }
    }
}
