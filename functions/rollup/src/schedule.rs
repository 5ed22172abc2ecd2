//! One invocation by the schedule: which groups of devices are swept, and in which order. Folds nothing.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use domain::{SWEEP_GROUPS, Timestamp};
use rollups::newest_sealable_edge;
use runtime::clock::{Clock, Deadline};
use runtime::panic::{Panic, catching};
use runtime::telemetry::{Telemetry, WideEvent};
use runtime::work_queue::{NotSent, WorkQueue};
use table::{Invocation, StoreError};

use crate::folder::{Folder, NotFolded};
use crate::log::Work;
use crate::pace::Pace;
use crate::{NAME, Store};

/// The schedule's work is not done; it is due again in a minute.
#[derive(Debug, thiserror::Error)]
pub enum NotDone {
    /// The table failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The queue does not take what could not be folded.
    #[error(transparent)]
    Queue(#[from] NotSent),
    /// The code panicked.
    #[error(transparent)]
    Panic(#[from] Panic),
}

impl From<NotFolded> for NotDone {
    fn from(error: NotFolded) -> Self {
        match error {
            NotFolded::Store(error) => Self::Store(error),
            NotFolded::Queue(error) => Self::Queue(error),
        }
    }
}

/// The part of an invocation by the schedule that all of its work needs.
pub(crate) struct Run<'a> {
    pub(crate) invocation: &'a Invocation,
    pub(crate) pace: Pace,
    pub(crate) work: Work,
}

/// The most devices of a home: they are swept at once, and listed each minute.
pub(crate) const MAX_HOME: usize = 100;
/// Another group is swept too while its mark is further behind than this: it has missed its turn.
const MAX_LAG: TimeDelta = TimeDelta::minutes(30);
/// The milliseconds of a minute.
const MINUTE: i64 = 60_000;

impl<S: Store, W: WorkQueue, C: Clock> Folder<S, W, C> {
    /// Sweeps the group whose minute it is, then those that are behind; folds again what new settings
    /// concern.
    pub(crate) async fn handle_schedule(
        &self,
        deadline: Deadline,
        telemetry: &Telemetry,
    ) -> Result<(), NotDone> {
        let invocation = Invocation::until(deadline);
        let mut log = WideEvent::begin(NAME);
        let pace = Pace::new(&self.settings);
        let mut run = Run { invocation: &invocation, pace, work: Work::default() };
        let done = catching(Box::pin(self.run(&mut run, &mut log))).await;
        let done = done.map_err(NotDone::from).and_then(|done| done.map_err(NotDone::from));
        let done = match done {
            // The marks and the folds under way are stored: the next invocation goes on from there.
            Err(NotDone::Store(StoreError::TimedOut)) if invocation.remaining().is_zero() => {
                log.set("rollup.out_of_time", true);
                Ok(())
            }
            done => done,
        };
        if let Err(error) = &done {
            log.error("rollup.error", error);
        }
        log.set("rollup.devices", run.work.devices);
        run.work.note(&mut log);
        log.emit(&invocation, telemetry, &self.clock);
        done
    }

    async fn run(&self, run: &mut Run<'_>, log: &mut WideEvent) -> Result<(), NotFolded> {
        let state = self.state(run.invocation, log).await?;
        let now = self.clock.now();
        let target = newest_sealable_edge(now);
        let mut sealed = state.stored.sealed;
        log.set("rollup.sealed", state.stored.sealed().to_string());
        log.set("rollup.lag_seconds", target.since(state.stored.sealed()).num_seconds().max(0));
        let mut swept = Vec::new();
        for (mark, groups) in self.groups_to_sweep(&sealed, target, now, run).await? {
            if !swept.is_empty() && run.pace.is_minute_over() {
                break;
            }
            self.sweep(&groups, (mark, target), state.zone, run).await?;
            groups.iter().for_each(|group| sealed[*group] = target);
            swept.extend(groups);
        }
        log.set("rollup.groups", swept);
        self.refold(&sealed, (state.zone, now), run).await
    }

    /// The groups that are swept in this invocation, by their marks, the oldest first.
    ///
    /// A home's devices are swept all at once: then their marks are written once in a quarter of an hour,
    /// which costs less than a write each minute. Of a fleet it is the group whose minute it is, and those
    /// that have missed their turns.
    async fn groups_to_sweep(
        &self,
        sealed: &[Timestamp; SWEEP_GROUPS],
        target: Timestamp,
        now: Timestamp,
        run: &Run<'_>,
    ) -> Result<BTreeMap<Timestamp, BTreeSet<usize>>, StoreError> {
        let mut behind: Vec<usize> =
            (0..SWEEP_GROUPS).filter(|group| sealed[*group] < target).collect();
        if behind.is_empty() {
            return Ok(BTreeMap::new());
        }
        let listed = self.listed_for(target, run.invocation).await?;
        if listed.devices.found.len() > MAX_HOME {
            let due = due_group(now);
            let is_late = |group: usize| target.since(sealed[group]) > MAX_LAG;
            behind.retain(|group| *group == due || is_late(*group));
        }
        let mut groups: BTreeMap<Timestamp, BTreeSet<usize>> = BTreeMap::new();
        for group in behind {
            groups.entry(sealed[group]).or_default().insert(group);
        }
        Ok(groups)
    }
}

/// The group whose minute it is.
fn due_group(now: Timestamp) -> usize {
    let minute = usize::try_from(now.as_millis() / MINUTE).expect("no timestamp is before 1970");
    minute % SWEEP_GROUPS
}
