//! Caches for values that one process has read. Reads nothing.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::TimeDelta;
use domain::Timestamp;

/// A cached value and the time at which it was read.
#[derive(Debug)]
pub struct Remembered<T>(Mutex<Option<(Timestamp, Arc<T>)>>);

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> Remembered<T> {
    /// The remembered value, if it is younger than `max_age`. If it was read a minute or more after `now`, the clock
    /// was set back and the value is not used.
    pub fn get(&self, now: Timestamp, max_age: impl Fn(&T) -> TimeDelta) -> Option<Arc<T>> {
        let remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (read_at, value) = remembered.as_ref()?;
        is_young(*read_at, max_age(value), now).then(|| Arc::clone(value))
    }

    /// Stores a value that was read at `now`.
    pub fn keep(&self, value: T, now: Timestamp) -> Arc<T> {
        let value = Arc::new(value);
        let kept = Arc::clone(&value);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, kept));
        value
    }
}

/// Cached values by key, each with the time at which it was read. If there are too many, all are dropped.
#[derive(Debug)]
pub struct BoundedMemory<K, V> {
    max_entries: usize,
    max_age: TimeDelta,
    entries: Mutex<HashMap<K, (Timestamp, V)>>,
}

impl<K: Eq + Hash, V: Clone> BoundedMemory<K, V> {
    /// An empty memory.
    pub fn new(max_entries: usize, max_age: TimeDelta) -> Self {
        Self { max_entries, max_age, entries: Mutex::default() }
    }

    /// The remembered value of a key, if it is young enough. If it was read a minute or more after `now`, the clock was
    /// set back and the value is not used.
    pub fn get(&self, key: &K, now: Timestamp) -> Option<V> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let (read_at, value) = entries.get(key)?;
        is_young(*read_at, self.max_age, now).then(|| value.clone())
    }

    /// Stores the value of a key.
    pub fn keep(&self, key: K, value: V, read_at: Timestamp) {
        self.keep_all([(key, value)], read_at);
    }

    /// Stores the values of keys that were read together.
    pub fn keep_all(&self, values: impl IntoIterator<Item = (K, V)>, read_at: Timestamp) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= self.max_entries {
            entries.clear();
        }
        entries.extend(values.into_iter().map(|(key, value)| (key, (read_at, value))));
    }
}

/// How much later than `now` a value may have been read. Another invocation, which began later, may have read it.
const MAX_AHEAD: TimeDelta = TimeDelta::minutes(1);

fn is_young(read_at: Timestamp, max_age: TimeDelta, now: Timestamp) -> bool {
    let age = now.since(read_at);
    -MAX_AHEAD < age && age < max_age
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::given::at_second;

    #[test]
    fn a_value_is_used_until_it_is_old_and_not_by_a_clock_that_was_set_back() {
        let (one, many) = (Remembered::default(), BoundedMemory::new(2, TimeDelta::seconds(60)));
        one.keep("value", at_second(100));
        many.keep("key", "value", at_second(100));
        for (second, is_used) in [(40, false), (41, true), (159, true), (160, false)] {
            let now = at_second(second);
            assert_eq!(one.get(now, |_| TimeDelta::seconds(60)).is_some(), is_used, "{second}");
            assert_eq!(many.get(&"key", now).is_some(), is_used, "{second}");
        }
    }

    #[test]
    fn a_full_memory_begins_anew() {
        let memory = BoundedMemory::new(2, TimeDelta::MAX);
        for key in 0..3 {
            memory.keep(key, (), at_second(0));
        }
        assert_eq!([0, 1, 2].map(|key| memory.get(&key, at_second(0))), [None, None, Some(())]);
    }
}
