//! When each rule asks about the silence of each device next. Asks about none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;
use domain::Timestamp;
use table::AlertKey;

/// When each pair is asked about next.
#[derive(Debug, Default)]
pub(crate) struct NextQuestions(Mutex<BTreeMap<AlertKey, Timestamp>>);

impl NextQuestions {
    /// Whether a pair is to be asked about. A time that no right clock sets is not believed.
    pub(crate) fn is_due(&self, key: &AlertKey, now: Timestamp) -> bool {
        let latest = now.saturating_add(TimeDelta::days(15));
        self.known().get(key).is_none_or(|next| *next <= now || *next > latest)
    }

    pub(crate) fn set(&self, key: &AlertKey, next: Timestamp) {
        self.known().insert(key.clone(), next);
    }

    /// Forgets the pairs that there are no longer.
    pub(crate) fn keep(&self, keys: &BTreeSet<AlertKey>) {
        self.known().retain(|key, _| keys.contains(key));
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<AlertKey, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
