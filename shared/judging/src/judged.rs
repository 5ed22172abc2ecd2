//! What came of several judgements. Judges nothing.

use std::time::Duration;

use domain::{DeviceId, RuleId};
use series::Failure;
use table::{AlertKey, Invocation};

use crate::outcome::Outcome;

/// No judgement is begun with less time: what it has read would be read for nothing.
const LEAST_TIME: Duration = Duration::from_secs(1);
/// A judgement repeats for at least so long what the table throttles, if there is time.
const LEAST_PATIENCE: Duration = Duration::from_secs(2);

/// What came of several judgements.
#[derive(Debug, Default)]
pub struct Judged {
    /// The number of states that were judged.
    pub judged: usize,
    /// The messages that were told.
    pub messages: usize,
    /// The messages that are told to nobody ([`Outcome::left_out`]).
    pub left_out: usize,
    /// What could not be judged, and why.
    pub failures: Vec<(AlertKey, Failure)>,
    /// Whether the time did not suffice: something is left.
    pub is_cut: bool,
    /// The rules that are judged on nothing, because there are more devices than memory holds and nobody knows which of
    /// them the rule is about.
    pub unjudged: Vec<RuleId>,
    /// Of a rule on each device of a group, the last of its devices that was judged.
    pub up_to: Option<DeviceId>,
}

impl Judged {
    /// Takes the result of one judgement in.
    pub fn add(&mut self, key: AlertKey, result: Result<Outcome, Failure>) {
        match result {
            Ok(outcome) => {
                self.judged += 1;
                self.messages += outcome.messages;
                self.left_out += outcome.left_out;
            }
            Err(failure) => self.failures.push((key, failure)),
        }
    }

    /// Takes further judgements in.
    pub fn append(&mut self, more: Self) {
        self.judged += more.judged;
        self.messages += more.messages;
        self.left_out += more.left_out;
        self.failures.extend(more.failures);
        self.is_cut |= more.is_cut;
        self.unjudged.extend(more.unjudged);
    }

    /// Whether nothing is left that may succeed later.
    #[must_use]
    pub fn is_done(&self) -> bool {
        !self.is_cut && !self.failures.iter().any(|(_, failure)| may_succeed(failure))
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

/// Whether there is time for one more judgement.
pub(crate) fn has_time(invocation: &Invocation) -> bool {
    invocation.remaining() >= LEAST_TIME
}

/// The part of an invocation for one of several judgements: all of the time, and a quarter of the patience. A device that
/// the table throttles leaves time for the other devices.
pub(crate) fn for_one_of_several(invocation: &Invocation) -> Invocation {
    invocation.patient_for((invocation.patience() / 4).max(LEAST_PATIENCE))
}
