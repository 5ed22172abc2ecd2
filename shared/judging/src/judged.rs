//! What came of several judgements. Judges nothing.

use std::time::Duration;

use series::Failure;
use table::{AlertKey, Invocation, StoreError};

use crate::outcome::Outcome;

/// No judgement is begun with less time: what it has read would be read for nothing.
const LEAST_TIME: Duration = Duration::from_secs(1);

/// What came of several judgements.
#[derive(Debug, Default)]
pub struct Judged {
    /// The number of states that were judged.
    pub judged: usize,
    /// The messages that were told.
    pub messages: usize,
    /// What could not be judged, and why.
    pub failures: Vec<(AlertKey, Failure)>,
}

impl Judged {
    /// Takes the result of one judgement in.
    pub fn add(&mut self, key: AlertKey, result: Result<Outcome, Failure>) {
        match result {
            Ok(outcome) => {
                self.judged += 1;
                self.messages += outcome.messages();
            }
            Err(failure) => self.failures.push((key, failure)),
        }
    }

    /// Takes further judgements in.
    pub fn append(&mut self, more: Self) {
        self.judged += more.judged;
        self.messages += more.messages;
        self.failures.extend(more.failures);
    }

    /// Whether nothing is left that may succeed later.
    #[must_use]
    pub fn is_done(&self) -> bool {
        !self.failures.iter().any(|(_, failure)| may_succeed(failure))
    }
}

/// Whether the same judgement may succeed later. One of a damaged state, or of more readings than a judgement reads,
/// would fail each time.
pub(crate) fn may_succeed(failure: &Failure) -> bool {
    match failure {
        Failure::Store(error) => !error.is_permanent(),
        Failure::OutOfReach(_) => false,
    }
}

/// Refuses to begin a judgement for which there is no time.
pub(crate) fn check_time(invocation: &Invocation) -> Result<(), Failure> {
    if invocation.remaining() < LEAST_TIME {
        return Err(StoreError::TimedOut.into());
    }
    Ok(())
}
