//! What a source leaves out, by name, and what it says about itself. Decides nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::import::refusals::{Refusal, Refusals};

/// Notes that are shared by a source and the import.
#[derive(Debug, Clone, Default)]
pub(in crate::import) struct Notes(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    says: Vec<String>,
    left_out: BTreeMap<String, u64>,
    refusals: Refusals,
}

impl Notes {
    /// Notes a sentence about the source.
    pub(in crate::import) fn say(&self, text: String) {
        self.noted().says.push(text);
    }

    /// Counts something that is left out.
    pub(in crate::import) fn leave_out(&self, what: &str) {
        self.leave_out_many(what, 1);
    }

    /// Counts several of one kind.
    pub(in crate::import) fn leave_out_many(&self, what: &str, count: u64) {
        if count == 0 {
            return;
        }
        let mut noted = self.noted();
        match noted.left_out.get_mut(what) {
            Some(known) => *known += count,
            None => drop(noted.left_out.insert(what.to_owned(), count)),
        }
    }

    /// Notes something that cannot be read.
    pub(in crate::import) fn refuse(&self, line: u64, reason: String) {
        self.noted().refusals.extend([Refusal { line, reason }]);
    }

    /// Takes the refusals so far.
    pub(in crate::import) fn take_refusals(&self) -> Refusals {
        std::mem::take(&mut self.noted().refusals)
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noted = self.noted();
        let says = noted.says.iter().cloned();
        let left_out =
            noted.left_out.iter().map(|(what, count)| format!("left out     {count} {what}"));
        f.write_str(&says.chain(left_out).collect::<Vec<_>>().join("\n"))
    }
}
