//! When the system last ran, and when it did not. Reads no clock.

use domain::{TimeRange, Timestamp};

/// When alerts were last judged, and the pauses before: a laptop sleeps, and no device is silent for that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningNote {
    /// The number of times that it was put.
    pub version: u64,
    /// When the system last ran.
    pub at: Timestamp,
    /// When it did not, in order.
    pub pauses: Vec<TimeRange>,
}
