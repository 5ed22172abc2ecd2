//! When the address is asked that notices that it is no longer asked. Sends nothing.

use std::sync::{Mutex, PoisonError};

use chrono::TimeDelta;
use domain::Timestamp;

/// How often it is asked.
const EVERY: TimeDelta = TimeDelta::minutes(5);
/// The schedule is due each minute to the second or so: the fifth one counts, though it comes a little early.
const EARLY: TimeDelta = TimeDelta::seconds(20);

/// When an instance asked last. A new one asks at once.
#[derive(Debug, Default)]
pub(crate) struct Heartbeat(Mutex<Option<Timestamp>>);

impl Heartbeat {
    /// Whether it is time to ask. A clock that was put back asks at once.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.is_none_or(|last| now < last || now.since(last) >= EVERY - EARLY)
    }

    /// Remembers that it was asked.
    pub(crate) fn beat(&self, now: Timestamp) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }
}
