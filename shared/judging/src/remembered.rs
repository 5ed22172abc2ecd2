//! What this process has read and uses for some time. Reads nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::TimeDelta;
use domain::Timestamp;

/// The most values that are remembered of one kind. Beyond, all are forgotten.
const MAX_KEPT: usize = 20_000;

/// A value and when it was read.
#[derive(Debug)]
pub(crate) struct Remembered<T>(Mutex<Option<(Timestamp, Arc<T>)>>);

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> Remembered<T> {
    /// The remembered value, if younger than `max_age`. A value from the future is dropped: the clock was set back.
    pub(crate) fn get(&self, now: Timestamp, max_age: impl Fn(&T) -> TimeDelta) -> Option<Arc<T>> {
        let remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (read_at, value) = remembered.as_ref()?;
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

/// Values of keys, each with the instant at which it was read.
#[derive(Debug)]
pub(crate) struct RememberedByKey<K, V>(Mutex<BTreeMap<K, (Timestamp, V)>>);

impl<K, V> Default for RememberedByKey<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord, V: Clone> RememberedByKey<K, V> {
    /// The remembered value of a key, if younger than `max_age`. A value from the future is dropped.
    pub(crate) fn get(&self, key: &K, max_age: TimeDelta, now: Timestamp) -> Option<V> {
        let remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (read_at, value) = remembered.get(key)?;
        (*read_at <= now && now.since(*read_at) < max_age).then(|| value.clone())
    }

    /// Keeps the value of a key.
    pub(crate) fn keep(&self, key: K, value: V, read_at: Timestamp) {
        let mut remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= MAX_KEPT {
            remembered.clear();
        }
        remembered.insert(key, (read_at, value));
    }
}
