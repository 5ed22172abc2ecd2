//! What came of several judgements. Judges nothing.

use domain::{DeviceId, RuleId};
use series::SeriesError;
use table::panic::Panic;
use table::{AlertKey, StoreError};

use crate::result::JudgementResult;

/// What came of several judgements.
#[derive(Debug, Default)]
pub struct JudgingReport {
    /// The number of states that were judged.
    pub judged: usize,
    /// The messages that were told.
    pub messages: usize,
    /// The messages that are told to nobody ([`JudgementResult::left_out`]).
    pub left_out: usize,
    /// What could not be judged, and why.
    pub failures: Vec<(AlertKey, SeriesError)>,
    /// The judgements that a mistake in the code ended. They are left.
    pub panics: Vec<(AlertKey, Panic)>,
    /// The tasks that are to be judged again: for want of time, or because they failed and may succeed.
    pub left: Vec<AlertKey>,
    /// The states whose rule is gone, or no longer about their subject: they are to be deleted.
    pub(crate) obsolete: Vec<AlertKey>,
    /// Whether the time did not suffice.
    pub is_cut: bool,
    /// The rules that are judged on nothing, because there are more devices than memory holds and nobody knows which of
    /// them the rule is about.
    pub unjudged: Vec<RuleId>,
    /// The last device that was judged, of a rule on each device of a group.
    pub up_to: Option<DeviceId>,
}

impl JudgingReport {
    /// Takes the result of a task in; `None` where there was nothing to judge.
    pub(crate) fn add(
        &mut self,
        key: AlertKey,
        result: Result<Option<JudgementResult>, SeriesError>,
    ) {
        match result {
            Ok(None) => {}
            Ok(Some(result)) => {
                self.judged += 1;
                self.messages += result.messages;
                self.left_out += result.left_out;
                self.obsolete.extend(result.is_obsolete.then_some(key));
            }
            Err(failure) => {
                if may_succeed(&failure) {
                    self.left.push(key.clone());
                }
                self.failures.push((key, failure));
            }
        }
    }

    /// Leaves a task whose judgement panicked.
    pub(crate) fn leave_panicked(&mut self, key: AlertKey, panic: Panic) {
        self.left.push(key.clone());
        self.panics.push((key, panic));
    }

    /// Leaves a task because the time is over.
    pub(crate) fn cut_before(&mut self, key: AlertKey) {
        self.is_cut = true;
        self.left.push(key);
    }

    /// Takes further judgements in.
    pub fn append(&mut self, more: Self) {
        self.judged += more.judged;
        self.messages += more.messages;
        self.left_out += more.left_out;
        self.failures.extend(more.failures);
        self.panics.extend(more.panics);
        self.left.extend(more.left);
        self.is_cut |= more.is_cut;
        self.unjudged.extend(more.unjudged);
    }

    /// Whether nothing is left that may succeed later.
    pub const fn is_done(&self) -> bool {
        !self.is_cut && self.left.is_empty()
    }
}

/// Whether the same judgement may succeed later. One of a damaged state, or of more readings than a judgement reads,
/// would fail each time.
pub(crate) fn may_succeed(failure: &SeriesError) -> bool {
    match failure {
        SeriesError::Store(error) => !error.is_permanent(),
        SeriesError::OutOfReach(_) => false,
    }
}

/// Whether the table let a judgement wait until its time was over.
pub(crate) const fn is_throttled(failure: &SeriesError) -> bool {
    matches!(failure, SeriesError::Store(StoreError::Throttled(_) | StoreError::TimedOut))
}
