//! The note that says when the system ran. Reads no clock.

use chrono::TimeDelta;
use domain::{TimeRange, Timestamp};

/// A longer time since the last note is a pause. The note is put every five minutes, and two invocations may be late.
pub const LEAST_PAUSE: TimeDelta = TimeDelta::minutes(7);

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

impl RunningNote {
    /// The pause that ends now, if there is one. Nobody has noted it yet.
    pub fn pause_until(&self, now: Timestamp) -> Option<TimeRange> {
        let is_pause = now.since(self.at) > LEAST_PAUSE;
        is_pause.then(|| TimeRange::new(self.at, now).ok()).flatten()
    }
}
