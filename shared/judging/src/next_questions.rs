//! When each rule asks about the silence of each device next. Asks about none.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;
use domain::Timestamp;
use table::AlertKey;

/// Whether a device is silent by a rule, as the rule is in one of its versions: one that is edited asks anew.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Question {
    pub(crate) key: AlertKey,
    pub(crate) version: u64,
}

/// When each question is asked next.
#[derive(Debug, Default)]
pub(crate) struct NextQuestions(Mutex<BTreeMap<Question, Timestamp>>);

impl NextQuestions {
    /// The questions that are to be asked now. The others of `questions` keep their times, and all further ones are
    /// forgotten. A time that no right clock sets is not believed.
    pub(crate) fn due(&self, questions: Vec<Question>, now: Timestamp) -> Vec<Question> {
        let latest = now.saturating_add(TimeDelta::days(15));
        let mut known = self.known();
        let mut kept = BTreeMap::new();
        let mut due = Vec::new();

        for question in questions {
            match known.remove(&question) {
                Some(next) if next > now && next <= latest => drop(kept.insert(question, next)),
                _ => due.push(question),
            }
        }
        *known = kept;
        due
    }

    pub(crate) fn set(&self, question: Question, next: Timestamp) {
        self.known().insert(question, next);
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Question, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
