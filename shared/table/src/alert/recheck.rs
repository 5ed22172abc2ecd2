//! Rechecks: requests to judge a device or a saved rule again. Judges none.

use std::fmt::{self, Display, Formatter};

use domain::{DeviceId, RuleId, Timestamp};

/// The device or rule to recheck. The order is that of the sort keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rechecked {
    /// A rule, to be judged on each of its devices.
    Rule(RuleId),
    /// A device, to be judged by each rule about it.
    Device(DeviceId),
}

/// The request to judge a device or a rule again, because data were stored, changed or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recheck {
    /// The device or rule.
    pub target: Rechecked,
    /// The time of the earliest data that were stored, changed or deleted. For a rule that was saved, a day before it
    /// was saved.
    pub since: Timestamp,
    /// For a rule that was judged again on some of its devices: the last of these devices.
    pub after: Option<DeviceId>,
    /// A random number that changes whenever data are touched. A judgement removes only the recheck with the number
    /// that it has read.
    pub touch: u64,
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
