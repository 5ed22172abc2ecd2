//! How far this process has come with the judging tasks of each cause. Judges nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;
use domain::{SWEEP_GROUPS, Timestamp};
use table::{AlertKey, StoredRule};

use crate::rule_on_subject::RuleOnSubject;
use crate::rules::RulesOnSubjects;

/// The greatest difference between the clocks of two overlapping invocations.
const MAX_AHEAD: TimeDelta = TimeDelta::minutes(1);

/// The cause of judging tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trigger {
    /// Readings came by the stream.
    Batch,
    /// A recheck (a stored request to judge again) names a device.
    Recheck,
    /// A person saved a rule, which is judged at once, or later by a recheck.
    Saved,
    /// The due time of states has come.
    Due,
    /// Devices may have fallen silent.
    Silence,
    /// The rollups of further quarters of an hour are complete.
    Sealed,
}

/// The progress of this process.
#[derive(Debug, Default)]
pub(crate) struct TaskProgress(Mutex<TriedTasks>);

#[derive(Debug, Default)]
struct TriedTasks {
    /// For each trigger, the task that was tried last.
    last: BTreeMap<Trigger, AlertKey>,
    /// The `now` of the last call that asked for tasks.
    newest: Option<Timestamp>,
    /// For each trigger, the tasks that need no judgement for now.
    resting: BTreeMap<Trigger, BTreeMap<AlertKey, RestingTask>>,
    /// For each group of devices, the time up to which all complete quarters of an hour are judged.
    sealed_until: Option<[Timestamp; SWEEP_GROUPS]>,
}

/// A task that needs no judgement for now.
#[derive(Debug, Clone, Copy)]
struct RestingTask {
    /// When the rule was saved. If the rule is edited, or deleted and made again, the task no longer rests.
    changed: Timestamp,
    rest: TaskRest,
}

/// How long a task needs no judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskRest {
    /// Until a time before which the device cannot be silent.
    Until(Timestamp),
    /// While the rollups of the subject are complete up to this time: all these quarters are judged.
    SealedUntil(Timestamp),
}

impl TaskProgress {
    /// The task of a trigger that was tried last.
    pub(crate) fn last(&self, trigger: Trigger) -> Option<AlertKey> {
        self.lock().last.get(&trigger).cloned()
    }

    /// Notes that a task was tried, with any result.
    pub(crate) fn note(&self, trigger: Trigger, key: &AlertKey) {
        self.lock().last.insert(trigger, key.clone());
    }

    /// Notes that a task needs no judgement for now.
    pub(crate) fn rest(&self, trigger: Trigger, task: RuleOnSubject<'_>, rest: TaskRest) {
        let resting = RestingTask { changed: task.rule.definition.changed, rest };
        self.lock().resting.entry(trigger).or_default().insert(task.key.clone(), resting);
    }

    /// The tasks in `all` that do not rest at `now`. If the clock was set back, all tasks are awake, because they would
    /// rest for too long. If `all` is complete, other tasks are forgotten.
    pub(crate) fn awake<'a>(
        &self,
        trigger: Trigger,
        now: Timestamp,
        all: RulesOnSubjects<'a>,
        is_resting: impl Fn(&AlertKey, &StoredRule, TaskRest) -> bool,
    ) -> Vec<(AlertKey, &'a StoredRule)> {
        let mut progress = self.lock();
        if progress.newest > Some(now.saturating_add(MAX_AHEAD)) {
            progress.resting.clear();
        }
        progress.newest = Some(now);
        let resting = progress.resting.entry(trigger).or_default();

        let RulesOnSubjects { mut found, is_complete } = all;
        if is_complete {
            let keys: BTreeSet<&AlertKey> = found.iter().map(|(key, _)| key).collect();
            resting.retain(|key, _| keys.contains(key));
        }

        found.retain(|(key, rule)| {
            let rests = |task: &RestingTask| {
                task.changed == rule.definition.changed && is_resting(key, rule, task.rest)
            };
            !resting.get(key).is_some_and(rests)
        });
        found
    }

    /// Whether all complete quarters of an hour are judged up to these times, one for each group of devices.
    pub(crate) fn is_judged_up_to(&self, sealed_until: &[Timestamp; SWEEP_GROUPS]) -> bool {
        self.lock().sealed_until.as_ref() == Some(sealed_until)
    }

    /// Notes that all complete quarters of an hour are judged up to these times, one for each group of devices.
    pub(crate) fn note_sealed(&self, sealed_until: [Timestamp; SWEEP_GROUPS]) {
        self.lock().sealed_until = Some(sealed_until);
    }

    fn lock(&self) -> MutexGuard<'_, TriedTasks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
