//! One scheduled invocation: chooses the groups of devices to sweep, and their order. Folds nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::TimeDelta;
use domain::{SWEEP_GROUPS, Timestamp};
use rollups::{newest_sealable_end, newest_watermark};
use runtime::clock::{Clock, Deadline};
use runtime::telemetry::{Telemetry, WideEvent};
use runtime::work_queue::WorkQueue;
use table::panic::catching;
use table::{Invocation, RollupState, Session, StoreError, StoreResult};

use crate::bucket_folding::{BucketFolding, NotDone};
use crate::log::Done;
use crate::pace::BackgroundPace;
use crate::ports::{NAME, Store};
use crate::run::{MAX_HOME, ScheduledRun};

/// The warning that the clock of an earlier sweep was ahead.
#[derive(Debug, thiserror::Error)]
#[error(
    "the rollups were noted as complete up to {wrong}, by a clock that was ahead; everything since {back} is swept again"
)]
struct WrongClock {
    wrong: Timestamp,
    back: Timestamp,
}

/// A group that lags by more than this is swept in addition to the group of the minute.
const MAX_LAG: TimeDelta = TimeDelta::minutes(30);
/// How far back quarters are swept again after a sweep whose clock was ahead.
const SWEPT_AGAIN: TimeDelta = TimeDelta::days(1);
/// The time that is reserved for storing how far groups are swept.
const NOTING: Duration = Duration::from_secs(10);
/// The milliseconds of a minute.
const MINUTE_MILLIS: i64 = 60_000;

impl<S: Store, W: WorkQueue, C: Clock> BucketFolding<S, W, C> {
    /// Sweeps the group of this minute, then late groups. Then folds the rollups of devices with new settings again.
    pub(crate) async fn handle_schedule(
        &self,
        deadline: Deadline,
        telemetry: &Telemetry,
    ) -> Result<(), NotDone> {
        let invocation = Invocation::until(deadline);
        let mut log = WideEvent::begin(NAME);
        let working = invocation.shortened_to(invocation.remaining().saturating_sub(NOTING));

        let (pace, done) = (BackgroundPace::new(&self.settings), Done::default());
        let noting = Session::new(&self.store, &invocation, self.clock.now());
        let session = noting.within(&working);
        let (swept, throttled) = (BTreeSet::new(), BTreeSet::new());
        let mut run = ScheduledRun { session, noting, pace, done, swept, throttled, state: None };

        let result = catching(Box::pin(self.run(&mut run, &mut log))).await;
        let result = result.map_err(NotDone::from).flatten();
        let result = match result {
            // The next invocation continues, because the progress is stored.
            Err(NotDone::Store(StoreError::TimedOut)) if working.remaining().is_zero() => {
                log.set("rollup.out_of_time", true);
                Ok(())
            }
            result => result,
        };

        if let Err(error) = &result {
            log.error("rollup.error", error.cause());
        }

        if let Some(state) = &run.state {
            let share = invocation.with_quarter_patience();
            match self.oldest_unfinished(noting.within(&share), state).await {
                Ok(age) => log.seconds("rollup.oldest_unfinished_seconds", age),
                Err(error) => log.warn("rollup.age_error", &error),
            }
        }

        log.set("rollup.devices", run.done.devices);
        run.done.note(&mut log);
        log.emit(&invocation, telemetry, &self.clock);
        result
    }

    /// The age, in seconds, of the oldest work that is left after a sweep; 0 without such work.
    ///
    /// A late mark announces changes of the past, which the stream may bring some time later. The age counts from the
    /// time of the mark, so ages of up to two minutes are usual.
    pub(crate) async fn oldest_unfinished(
        &self,
        session: Session<'_, S>,
        state: &RollupState,
    ) -> StoreResult<i64> {
        let now = self.clock.now();
        let late = session.late_changes().await?;
        let changed = now.since(self.settings.rollup_delay.folded_until(&late, now));
        let left = newest_sealable_end(now).since(state.sealed());
        let queued = self.queue_busy.since(state.queue).map(|since| now.since(since));
        let ages = [Some(changed), Some(left), queued].into_iter().flatten();
        Ok(ages.map(|age| age.num_seconds()).max().unwrap_or_default().max(0))
    }

    async fn run(&self, run: &mut ScheduledRun<'_, S>, log: &mut WideEvent) -> Result<(), NotDone> {
        let state = self.state(run.session, log).await?;
        let now = self.clock.now();
        let target = newest_sealable_end(now);

        let mut sealed_until = state.stored.sealed;
        let set_back = self.set_back(&mut sealed_until, state.stored.since, now, run, log).await;

        let sealed = sealed_until.iter().copied().min().expect("there are groups");
        log.set("rollup.sealed", sealed.to_string());
        log.set("rollup.lag_seconds", target.since(sealed).num_seconds().max(0));
        run.state = Some(RollupState { sealed: sealed_until, ..state.stored });

        let (mut tried, mut swept) = (Vec::new(), Ok(()));
        for (from, groups) in self.groups_to_sweep(&sealed_until, target, now, run).await? {
            if !tried.is_empty() && run.pace.is_time_over() {
                break;
            }
            // If a sweep fails, another attempt follows in a minute. The other groups are swept now.
            swept = swept.and(self.sweep(&groups, from, target, state.zone, run).await);
            tried.extend(groups);
        }

        log.set("rollup.groups", tried);

        // A group that could not be set back is folded again only as far as its quarters are over.
        let over = newest_watermark(now);
        let sealed_until = run.state.as_ref().map_or(sealed_until, |state| state.sealed);
        let folded_until = sealed_until.map(|sealed| sealed.min(over));
        let refolded = self.refold(&folded_until, state.zone, now, run).await;
        set_back.map_err(NotDone::from).and(swept).and(refolded)
    }

    /// Sets groups back that are swept up to a time ahead of the clock: a sweep whose clock was ahead has skipped
    /// quarters that were not over. These are swept again when they are over. The day before is swept again, too: an
    /// older program may have left readings to a sweep that had already passed. If the table throttles the write, these
    /// groups wait for the next invocation, and other groups are swept.
    async fn set_back(
        &self,
        sealed_until: &mut [Timestamp; SWEEP_GROUPS],
        since: Timestamp,
        now: Timestamp,
        run: &ScheduledRun<'_, S>,
        log: &mut WideEvent,
    ) -> Result<(), StoreError> {
        let limit = newest_watermark(now);
        let ahead: BTreeSet<usize> =
            (0..SWEEP_GROUPS).filter(|group| sealed_until[*group] > limit).collect();
        if ahead.is_empty() {
            return Ok(());
        }

        let back = newest_sealable_end(now.saturating_add(-SWEPT_AGAIN)).max(since);
        let wrong = ahead.iter().map(|group| sealed_until[*group]).max().unwrap_or(back);
        log.warn("rollup.clock", &WrongClock { wrong, back });
        log.set("rollup.set_back", ahead.len());

        let part = run.session.invocation.with_quarter_patience();
        run.session.within(&part).set_back_sealed(&ahead, back).await?;
        ahead.iter().for_each(|group| sealed_until[*group] = back);
        Ok(())
    }

    /// The groups to sweep in this invocation, each with the time up to which it is already swept. The group of this
    /// minute comes first, then the group that lags most. So a failing or slow group delays others once in a quarter of
    /// an hour.
    ///
    /// All groups of a home are swept together, so that their progress is stored once in a quarter of an hour, and not
    /// each minute. A fleet is swept in single groups: the group of this minute, then late groups.
    async fn groups_to_sweep(
        &self,
        sealed_until: &[Timestamp; SWEEP_GROUPS],
        target: Timestamp,
        now: Timestamp,
        run: &ScheduledRun<'_, S>,
    ) -> Result<Vec<(Timestamp, BTreeSet<usize>)>, StoreError> {
        let mut lagging: Vec<usize> =
            (0..SWEEP_GROUPS).filter(|group| sealed_until[*group] < target).collect();
        if lagging.is_empty() {
            return Ok(Vec::new());
        }

        lagging.sort_by_key(|group| sealed_until[*group]);
        let due = due_group(now);

        let listed = self.listed_for(run.session, target).await?;
        if listed.devices.len() > MAX_HOME {
            let is_late = |group: usize| target.since(sealed_until[group]) > MAX_LAG;
            lagging.retain(|group| *group == due || is_late(*group));
            lagging.sort_by_key(|group| *group != due);
            return Ok(lagging
                .into_iter()
                .map(|group| (sealed_until[group], [group].into()))
                .collect());
        }

        let together = lagging.chunk_by(|one, other| sealed_until[*one] == sealed_until[*other]);
        let of_chunk =
            |groups: &[usize]| (sealed_until[groups[0]], groups.iter().copied().collect());
        let mut together: Vec<(Timestamp, BTreeSet<usize>)> = together.map(of_chunk).collect();
        together.sort_by_key(|(_, groups)| !groups.contains(&due));
        Ok(together)
    }
}

/// The group that is swept in the minute of `now`.
fn due_group(now: Timestamp) -> usize {
    let minute =
        usize::try_from(now.as_millis() / MINUTE_MILLIS).expect("no timestamp is before 1970");
    minute % SWEEP_GROUPS
}
