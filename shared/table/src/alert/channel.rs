//! A channel by which alerts are told, as the table keeps it, and apart from it what is secret. Sends nothing.

use std::fmt;

use alerts::QuietHours;
use domain::{ChannelId, Timestamp};
use serde_json::{Map, Value};

use crate::Expected;

/// A channel, as everybody who may read may see it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredChannel {
    /// Its id.
    pub id: ChannelId,
    /// The number of times that it was put; notes do not count.
    pub version: u64,
    /// Its kind and the other settings that are not secret: what whoever sends makes of them. A member that is null
    /// is not stored.
    pub settings: Map<String, Value>,
    /// The time of the local day in which messages wait.
    pub quiet_hours: Option<QuietHours>,
    /// Whether it fails.
    pub failing: Option<Failing>,
}

/// That a channel takes no message at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failing {
    /// Since when.
    pub since: Timestamp,
    /// When it is tried next.
    pub next: Timestamp,
}

impl StoredChannel {
    /// What a put of it expects in its place: the version before.
    #[must_use]
    pub const fn expected(&self) -> Expected {
        Expected::before(self.version)
    }
}

/// What is secret of a channel: its address and its keys. It is in no log: `Debug` does not show it.
#[derive(Clone, PartialEq)]
pub struct ChannelSecret(pub Map<String, Value>);

impl fmt::Debug for ChannelSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChannelSecret(..)")
    }
}
