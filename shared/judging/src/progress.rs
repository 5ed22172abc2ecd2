//! How far this process has come with the tasks of each trigger. Judges nothing.

use std::collections::BTreeMap;
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
    /// A recheck of a device was noted.
    Recheck,
    /// A person saved a rule. It is judged at once, or by its recheck.
    Saved,
    /// The due time of states has come.
    Due,
    /// Devices may have fallen silent.
    Silence,
    /// Quarters of an hour were sealed.
    Sealed,
}

impl Trigger {
    /// Whether each minute goes on where the minute before ended.
    pub(crate) const fn keeps_place(self) -> bool {
        matches!(self, Self::Due | Self::Silence | Self::Sealed)
    }

    /// Whether judging begins with the first task, and not with a random one. Still no task waits for ever: unjudged
    /// tasks of a batch become rechecks, and the recheck of a saved rule keeps its own place.
    pub(crate) const fn is_in_order(self) -> bool {
        matches!(self, Self::Batch | Self::Saved)
    }
}

/// The progress of this process.
#[derive(Debug, Default)]
pub(crate) struct TaskProgress(Mutex<TriedTasks>);

#[derive(Debug, Default)]
struct TriedTasks {
    /// The last task that was tried, by trigger.
    last: BTreeMap<Trigger, AlertKey>,
    /// The `now` of the last call that asked for tasks.
    newest: Option<Timestamp>,
    /// The tasks that rest, by trigger.
    resting: BTreeMap<Trigger, BTreeMap<AlertKey, RestingTask>>,
    /// For each group of devices, the time up to which all sealed quarters are judged.
    sealed: Option<[Timestamp; SWEEP_GROUPS]>,
}

/// A task that needs no judgement for now.
#[derive(Debug, Clone, Copy)]
struct RestingTask {
    /// The version of the rule. A task of an edited rule is judged again.
    version: u64,
    /// The time until which silence needs no judgement, or up to which sealed quarters are judged.
    at: Timestamp,
}

impl TaskProgress {
    /// The last task of a trigger that was tried.
    pub(crate) fn last(&self, trigger: Trigger) -> Option<AlertKey> {
        self.lock().last.get(&trigger).cloned()
    }

    /// Notes that a task was tried, with any result.
    pub(crate) fn note(&self, trigger: Trigger, key: &AlertKey) {
        self.lock().last.insert(trigger, key.clone());
    }

    /// Lets a task rest.
    pub(crate) fn rest(&self, trigger: Trigger, key: &AlertKey, rule: &StoredRule, at: Timestamp) {
        let rest = RestingTask { version: rule.version, at };
        self.lock().resting.entry(trigger).or_default().insert(key.clone(), rest);
    }

    /// The tasks in `all` that do not rest at `now`. Notes of tasks outside `all` are forgotten. If the clock was set
    /// back, all notes are forgotten, because a clock that was ahead let tasks rest for too long.
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
        let known = std::mem::take(resting);

        all.retain(|(key, rule)| {
            let rest = known.get(key).copied();
            let rest =
                rest.filter(|rest| rest.version == rule.version && is_resting(key, rule, rest.at));
            resting.extend(rest.map(|rest| (key.clone(), rest)));
            rest.is_none()
        });
        all
    }

    /// Whether all sealed quarters are judged up to these times, one for each group of devices.
    pub(crate) fn is_judged_up_to(&self, edges: &[Timestamp; SWEEP_GROUPS]) -> bool {
        self.lock().sealed.as_ref() == Some(edges)
    }

    /// Notes that all sealed quarters are judged up to these times, one for each group of devices.
    pub(crate) fn note_sealed(&self, edges: [Timestamp; SWEEP_GROUPS]) {
        self.lock().sealed = Some(edges);
    }

    fn lock(&self) -> MutexGuard<'_, TriedTasks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
