//! The result of several judgements. Judges nothing.

use domain::{DeviceId, RuleId};
use series::SeriesError;
use table::panic::Panic;
use table::{AlertKey, StoreError};

use crate::result::{JudgementResult, NotJudged};

/// The result of several judgements.
#[derive(Debug, Default)]
pub struct JudgingReport {
    /// The number of states that were judged.
    pub judged: usize,
    /// The number of tasks that were done, with or without a judgement.
    done: usize,
    /// The number of states that were stored.
    stored: usize,
    /// The number of judgements whose state could not be stored for now.
    unstored: usize,
    /// The number of messages that were stored.
    pub messages: usize,
    /// The number of messages that go to nobody ([`JudgementResult::lost_messages`]).
    pub lost_messages: usize,
    /// The tasks that failed, and why. Tasks that may succeed later are also in `left`.
    pub failures: Vec<(AlertKey, SeriesError)>,
    /// The tasks whose judgement panicked. These tasks are also in `left`.
    pub panics: Vec<(AlertKey, Panic)>,
    /// The tasks to judge again: there was no time, or they failed and may succeed later.
    pub left: Vec<AlertKey>,
    /// The states to delete, because their rule is gone or no longer about their subject.
    pub(crate) obsolete: Vec<AlertKey>,
    /// Whether the time ran out.
    pub is_cut: bool,
    /// The rules on groups or rooms that are judged on no device, because there are more devices than memory holds.
    pub unjudged: Vec<RuleId>,
    /// Why the list of devices could not be read. Without the list, only rules that name a device were judged.
    pub unlisted: Option<StoreError>,
    /// For the recheck of a rule, the last device that was judged.
    pub up_to: Option<DeviceId>,
}

impl JudgingReport {
    /// Adds the result of a task; `None` if there was nothing to judge.
    pub(crate) fn add(
        &mut self,
        key: AlertKey,
        result: Result<Option<JudgementResult>, NotJudged>,
    ) {
        match result {
            Ok(None) => self.done += 1,
            Ok(Some(result)) => {
                self.done += 1;
                self.judged += 1;
                self.stored += usize::from(result.is_stored);
                self.messages += result.messages;
                self.lost_messages += result.lost_messages;
                self.obsolete.extend(result.is_obsolete.then_some(key));
            }
            Err(NotJudged { failure, is_unstored }) => {
                if may_succeed(&failure) {
                    self.unstored += usize::from(is_unstored);
                    self.left.push(key.clone());
                }
                self.failures.push((key, failure));
            }
        }
    }

    /// Leaves a task whose judgement panicked, to be judged again.
    pub(crate) fn leave_panicked(&mut self, key: AlertKey, panic: Panic) {
        self.left.push(key.clone());
        self.panics.push((key, panic));
    }

    /// Leaves a task because the time is over, to be judged again.
    pub(crate) fn cut_before(&mut self, key: AlertKey) {
        self.is_cut = true;
        self.left.push(key);
    }

    /// Adds further judgements. The obsolete states and `up_to` belong to a single call, and are not added.
    pub fn append(&mut self, more: Self) {
        self.judged += more.judged;
        self.done += more.done;
        self.stored += more.stored;
        self.unstored += more.unstored;
        self.messages += more.messages;
        self.lost_messages += more.lost_messages;
        self.failures.extend(more.failures);
        self.panics.extend(more.panics);
        self.left.extend(more.left);
        self.is_cut |= more.is_cut;
        self.unjudged.extend(more.unjudged);
        self.unlisted = self.unlisted.take().or(more.unlisted);
    }

    /// Whether states failed to be stored and no state was stored, or no task was done and tasks of several devices are
    /// left. A single device that the table throttles says nothing about other devices.
    pub fn has_failed(&self) -> bool {
        let are_of_several = self.left.windows(2).any(|two| two[0].subject != two[1].subject);
        self.unstored > 0 && self.stored == 0 || self.done == 0 && are_of_several
    }

    /// Whether the list of devices could be read, and each task was judged or failed for good.
    pub const fn is_done(&self) -> bool {
        !self.is_cut && self.left.is_empty() && self.unlisted.is_none()
    }
}

/// Whether the same judgement may succeed later. A judgement of a damaged state, or of too many readings, fails each
/// time.
pub(crate) fn may_succeed(failure: &SeriesError) -> bool {
    match failure {
        SeriesError::Store(error) => !error.is_permanent(),
        SeriesError::OutOfReach(_) => false,
    }
}

/// Whether a judgement failed because the table throttled it until its time was over.
pub(crate) const fn is_throttled(failure: &SeriesError) -> bool {
    matches!(failure, SeriesError::Store(StoreError::Throttled(_) | StoreError::TimedOut))
}
