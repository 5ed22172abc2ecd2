//! The stored times at which the system ran, and its pauses. Reads no clock.

use chrono::TimeDelta;
use domain::{TimeRange, Timestamp};

/// If the last note is older than this, the system paused. A note is stored every five minutes, and may be two minutes
/// late.
pub const LEAST_PAUSE: TimeDelta = TimeDelta::minutes(7);

/// When alerts were last judged, and the earlier pauses of the system. During a pause, such as the sleep of a laptop,
/// no device counts as silent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningNote {
    /// The number of times that the note was stored.
    pub version: u64,
    /// When the system last ran.
    pub at: Timestamp,
    /// The pauses, during which the system did not run, in order of time.
    pub pauses: Vec<TimeRange>,
}

impl RunningNote {
    /// The pause between the note and `now`, if that time is long enough for a pause.
    pub fn pause_until(&self, now: Timestamp) -> Option<TimeRange> {
        let is_pause = now.since(self.at) > LEAST_PAUSE;
        is_pause.then(|| TimeRange::new(self.at, now).ok()).flatten()
    }
}
