//! How far this process has come with the judging tasks of each cause. Judges nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;
use domain::{SWEEP_GROUPS, Timestamp};
use table::{AlertKey, StoredRule};

/// The greatest difference between the clocks of two overlapping invocations.
const MAX_AHEAD: TimeDelta = TimeDelta::minutes(1);

/// The cause of judging tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trigger {
    /// Readings came by the stream.
    Batch,
    /// A recheck (a stored request to judge again) names a device.
    Recheck,
    /// A person saved a rule. It is judged at once, or later by a recheck.
    Saved,
    /// The due time of states has come.
    Due,
    /// Devices may have fallen silent.
    Silence,
    /// The rollups of further quarters of an hour are complete.
    Sealed,
}

impl Trigger {
    /// Whether each call begins after the task that the call before tried last.
    pub(crate) const fn keeps_place(self) -> bool {
        matches!(self, Self::Due | Self::Silence | Self::Sealed)
    }

    /// Whether judging begins with the first task, and not with a random one. Even so, no task waits for ever. Unjudged
    /// tasks of a batch become rechecks, and the recheck of a saved rule names its last judged device.
    pub(crate) const fn is_in_order(self) -> bool {
        matches!(self, Self::Batch | Self::Saved)
    }
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
    sealed: Option<[Timestamp; SWEEP_GROUPS]>,
}

/// A task that needs no judgement for now.
#[derive(Debug, Clone, Copy)]
struct RestingTask {
    /// When the rule was saved. If the rule is edited, or deleted and made again, the task no longer rests.
    changed: Timestamp,
    /// The time until which a device cannot be silent, or up to which complete quarters of an hour are judged.
    at: Timestamp,
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
    pub(crate) fn rest(&self, trigger: Trigger, key: &AlertKey, rule: &StoredRule, at: Timestamp) {
        let rest = RestingTask { changed: rule.definition.changed, at };
        self.lock().resting.entry(trigger).or_default().insert(key.clone(), rest);
    }

    /// Forgets which tasks rest, except those in `all`.
    pub(crate) fn forget_others(&self, trigger: Trigger, all: &[(AlertKey, &StoredRule)]) {
        let keys: BTreeSet<&AlertKey> = all.iter().map(|(key, _)| key).collect();
        let mut progress = self.lock();
        let resting = progress.resting.entry(trigger).or_default();
        resting.retain(|key, _| keys.contains(key));
    }

    /// The tasks in `all` that do not rest at `now`. If the clock was set back, none rests: they would rest for too
    /// long.
    pub(crate) fn awake<'a>(
        &self,
        trigger: Trigger,
        now: Timestamp,
        mut all: Vec<(AlertKey, &'a StoredRule)>,
        is_resting: impl Fn(&AlertKey, &StoredRule, Timestamp) -> bool,
    ) -> Vec<(AlertKey, &'a StoredRule)> {
        let mut progress = self.lock();
        if progress.newest > Some(now.saturating_add(MAX_AHEAD)) {
            progress.resting.clear();
        }
        progress.newest = Some(now);
        let resting = progress.resting.entry(trigger).or_default();

        all.retain(|(key, rule)| {
            let rests = |rest: &RestingTask| {
                rest.changed == rule.definition.changed && is_resting(key, rule, rest.at)
            };
            !resting.get(key).is_some_and(rests)
        });
        all
    }

    /// Whether all complete quarters of an hour are judged up to these times, one for each group of devices.
    pub(crate) fn is_judged_up_to(&self, edges: &[Timestamp; SWEEP_GROUPS]) -> bool {
        self.lock().sealed.as_ref() == Some(edges)
    }

    /// Notes that all complete quarters of an hour are judged up to these times, one for each group of devices.
    pub(crate) fn note_sealed(&self, edges: [Timestamp; SWEEP_GROUPS]) {
        self.lock().sealed = Some(edges);
    }

    fn lock(&self) -> MutexGuard<'_, TriedTasks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
