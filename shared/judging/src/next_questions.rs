//! When each rule asks about the silence of each device next. Asks about none.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;
use domain::Timestamp;
use table::AlertKey;

/// When each pair is asked about next.
#[derive(Debug, Default)]
pub(crate) struct NextQuestions(Mutex<BTreeMap<AlertKey, Timestamp>>);

impl NextQuestions {
    /// The pairs that are to be asked about now. The others of `keys` keep their times, and all further pairs are
    /// forgotten. A time that no right clock sets is not believed.
    pub(crate) fn due(&self, keys: Vec<AlertKey>, now: Timestamp) -> Vec<AlertKey> {
        let latest = now.saturating_add(TimeDelta::days(15));
        let mut known = self.known();
        let mut kept = BTreeMap::new();
        let mut due = Vec::new();

        for key in keys {
            match known.remove(&key) {
                Some(next) if next > now && next <= latest => drop(kept.insert(key, next)),
                _ => due.push(key),
            }
        }
        *known = kept;
        due
    }

    pub(crate) fn set(&self, key: AlertKey, next: Timestamp) {
        self.known().insert(key, next);
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<AlertKey, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
