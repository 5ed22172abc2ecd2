//! Rechecks: notes that a device or a saved rule must be judged again. Judges none.

use std::fmt::{self, Display, Formatter};

use domain::{DeviceId, RuleId, Timestamp};

/// The device or rule to recheck. Values sort as their sort keys do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rechecked {
    /// A rule, on each of its devices.
    Rule(RuleId),
    /// A device, by each rule about it.
    Device(DeviceId),
}

/// The note that something was stored, changed or deleted after the last judgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recheck {
    /// The device or rule.
    pub what: Rechecked,
    /// The earliest instant from which on data were touched.
    pub since: Timestamp,
    /// For a rule: the device up to which it was judged again.
    pub after: Option<DeviceId>,
    /// A number that changes whenever something is touched, even if the earliest instant stays. So a judgement removes
    /// only the recheck that it has read, and no later one.
    pub touch: u64,
}

impl Recheck {
    /// Whether nothing was touched since `read` was read. The device up to which a rule is judged may have changed.
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
