//! The note that says when the system ran. Reads no clock.

use domain::{TimeRange, Timestamp};

/// When alerts were last judged, and the pauses before. While a laptop sleeps, no device counts as silent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningNote {
    /// The number of times that the note was put.
    pub version: u64,
    /// When the system last ran.
    pub at: Timestamp,
    /// The pauses, during which the system did not run, in order of time.
    pub pauses: Vec<TimeRange>,
}
