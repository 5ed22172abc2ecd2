//! What this process has read and uses for some time. Reads nothing.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::TimeDelta;
use domain::Timestamp;

/// A value and when it was read.
#[derive(Debug)]
pub(crate) struct Known<T>(Mutex<Option<(Timestamp, Arc<T>)>>);

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> Known<T> {
    /// The value, if it is younger than it says itself that it may be. One from ahead of the clock is not used: the
    /// clock was put back.
    pub(crate) fn get(&self, now: Timestamp, max_age: impl Fn(&T) -> TimeDelta) -> Option<Arc<T>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (read_at, value) = known.as_ref()?;
        let is_young = *read_at <= now && now.since(*read_at) < max_age(value);
        is_young.then(|| Arc::clone(value))
    }

    /// Keeps a value that was asked for at `now`.
    pub(crate) fn keep(&self, value: T, now: Timestamp) -> Arc<T> {
        let value = Arc::new(value);
        let kept = Arc::clone(&value);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, kept));
        value
    }
}
