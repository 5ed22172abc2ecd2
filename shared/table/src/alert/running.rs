//! When the system last ran, and when it did not. Reads no clock.

use chrono::TimeDelta;
use domain::{TimeRange, Timestamp};

/// A longer time since the last note is a pause: it is noted every five minutes, and two invocations may be late.
pub const LEAST_PAUSE: TimeDelta = TimeDelta::minutes(7);

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

impl RunningNote {
    /// The pause that ends now, if there is one. Nobody has noted it yet.
    pub fn pause_until(&self, now: Timestamp) -> Option<TimeRange> {
        let is_pause = now.since(self.at) > LEAST_PAUSE;
        is_pause.then(|| TimeRange::new(self.at, now).ok()).flatten()
    }
}
