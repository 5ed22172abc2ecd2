//! The troubles that a test asks for: failures, panics, slowness, throttling, items that are not stored. Makes none by
//! itself.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::{Action, Permission, PutOutcome, StoreError};

pub(super) type Hits = Box<dyn Fn(Permission) -> bool + Send>;
/// Whether an action on a partition is throttled.
pub(super) type Throttles = Box<dyn Fn(Action, &str) -> bool + Send>;

/// The troubles that a test has asked for, in order.
#[derive(Default)]
pub(super) struct Troubles {
    pub(super) waiting: Vec<WaitingTrouble>,
    pub(super) slow: Vec<Slow>,
    pub(super) throttled: Vec<Throttles>,
    pub(super) not_stored: Vec<usize>,
}

/// A trouble for one of the matching requests, after a number of them that pass.
pub(super) struct WaitingTrouble {
    pub(super) hits: Hits,
    pub(super) after: usize,
    pub(super) trouble: Trouble,
}

/// The time that matching queries take for each visited item.
pub(super) struct Slow {
    pub(super) hits: Hits,
    pub(super) time: Duration,
}

/// The trouble that a request meets.
pub(super) enum Trouble {
    Fail(StoreError),
    Panic(String),
}

impl Trouble {
    /// The error. Panics if the trouble is a panic.
    pub(super) fn into_error(self) -> StoreError {
        match self {
            Self::Fail(error) => error,
            Self::Panic(text) => panic!("{text}"),
        }
    }
}

impl Troubles {
    pub(super) fn throttles(&self, action: Action, partition: &str) -> bool {
        self.throttled.iter().any(|hits| hits(action, partition))
    }

    /// Finds the trouble of a request: the first that matches and has let enough requests pass. For earlier troubles
    /// that match, the request counts as passed.
    pub(super) fn meet(&mut self, needed: &BTreeSet<Permission>) -> Result<(), Trouble> {
        for position in 0..self.waiting.len() {
            let waiting = &mut self.waiting[position];
            if !needed.iter().any(|permission| (waiting.hits)(*permission)) {
                continue;
            }
            if waiting.after == 0 {
                return Err(self.waiting.remove(position).trouble);
            }
            waiting.after -= 1;
        }
        Ok(())
    }

    /// The time that a query takes for each item.
    pub(super) fn pause(&self, needed: Permission) -> Duration {
        self.slow.iter().filter(|slow| (slow.hits)(needed)).map(|slow| slow.time).sum()
    }

    /// The outcome with which a put of this number of items begins: the items that are not to be stored.
    pub(super) fn take_not_stored(&mut self, count: usize) -> PutOutcome {
        let mut not_stored = std::mem::take(&mut self.not_stored);
        not_stored.retain(|position| *position < count);
        let cause = (!not_stored.is_empty()).then(|| StoreError::Throttled("on demand".into()));
        PutOutcome { not_stored, cause }
    }
}
