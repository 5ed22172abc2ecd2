//! Folds buckets (quarters and days of a device) with the device's current settings. A bucket that fails permanently is
//! left to the queue. Chooses no buckets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

use chrono::TimeDelta;
use domain::{DeviceId, LocalDate, QuarterHour, Rollup, TimeRange, Timestamp, Zone};
use judging::{RequestThrottle, SealedBreaches};
use rollups::{
    Assumed, DeviceFolds, DeviceRules, Folded, FoldedWindow, SeenRooms, over_until, part_of_day,
};
use runtime::clock::Clock;
use runtime::telemetry::chain;
use runtime::work_queue::{FoldRequest, NotSent, WorkQueue};
use table::panic::{Panic, catching};
use table::{BoundedMemory, Remembered, Session, StoreError, StoreResult};

use crate::log::Done;
use crate::memory::{QueueBusy, RegistryMemory};
use crate::ports::Store;
use crate::settings::Settings;

/// Folds buckets for the function's three handlers: of the stream, of the queue and of the schedule.
#[derive(Debug)]
pub(crate) struct BucketFolding<S, W, C> {
    pub(crate) store: S,
    pub(crate) queue: W,
    pub(crate) clock: C,
    pub(crate) settings: Settings,
    pub(crate) registered: RegistryMemory,
    /// Whether this process has seen the state of the rollups.
    pub(crate) has_state: AtomicBool,
    /// For each device whose rollups are all folded with its newest settings, the number of these settings.
    pub(crate) refolded: BoundedMemory<DeviceId, u64>,
    /// When this process last stored that there is a backlog.
    pub(crate) backlog: Remembered<()>,
    pub(crate) backlog_throttle: RequestThrottle,
    pub(crate) queue_busy: QueueBusy,
    pub(crate) seen: SeenRooms,
    pub(crate) alert_rules: SealedBreaches,
}

/// The reasons for which a bucket is not folded. The schedule tries again in a minute.
#[derive(Debug, thiserror::Error)]
pub enum NotDone {
    /// The table failed. A later attempt may succeed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The bucket failed, and its message could not be sent to the queue.
    #[error(transparent)]
    Queue(#[from] NotSent),
    /// The code panicked.
    #[error(transparent)]
    Panic(#[from] Panic),
}

impl NotDone {
    /// The underlying error, by which the log recognises a throttled table.
    pub(crate) fn cause(&self) -> &(dyn std::error::Error + 'static) {
        match self {
            Self::Store(error) => error,
            Self::Queue(error) => error,
            Self::Panic(error) => error,
        }
    }
}

/// A local day: a date in a time zone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalDay {
    pub(crate) zone: Zone,
    pub(crate) date: LocalDate,
}

/// Quarters of a device that are folded together, with two queries.
#[derive(Clone, Copy)]
enum QuarterSet<'a> {
    /// The quarters that begin in a range and have readings. Also quarters with a rollup, unless rollups are assumed
    /// absent.
    Of(TimeRange, Assumed),
    /// The quarters of this list, even quarters without readings.
    These(&'a BTreeSet<QuarterHour>),
}

/// The largest number of devices that are remembered as folded with their newest settings. With more, all are
/// forgotten.
const MAX_REFOLDED: usize = 500_000;
/// How long a device is remembered as folded with its newest settings. Settings are numbered from 0 again if a device
/// comes back after its tombstone has expired.
const REFOLDED_AGE: TimeDelta = TimeDelta::days(1);
/// The number of times that a device is read again because a rollup was folded with newer settings.
const MAX_READS: usize = 5;

impl<S: Store, W: WorkQueue, C: Clock> BucketFolding<S, W, C> {
    pub(crate) fn new(store: S, queue: W, clock: C, settings: Settings) -> Self {
        Self {
            store,
            queue,
            clock,
            settings,
            registered: RegistryMemory::default(),
            has_state: AtomicBool::new(false),
            refolded: BoundedMemory::new(MAX_REFOLDED, REFOLDED_AGE),
            backlog: Remembered::default(),
            backlog_throttle: RequestThrottle::default(),
            queue_busy: QueueBusy::default(),
            seen: SeenRooms::default(),
            alert_rules: SealedBreaches::default(),
        }
    }

    /// Folds a quarter. If the stored rollup was folded with newer settings than `rules`, reads `rules` again.
    pub(crate) async fn quarter(
        &self,
        session: Session<'_, S>,
        rules: &mut DeviceRules,
        quarter: QuarterHour,
    ) -> StoreResult<Folded> {
        for _ in 0..MAX_READS {
            match self.fold(session, rules).quarter(quarter, Assumed::Nothing).await? {
                Folded::Outdated => *rules = self.rules_of(session, &rules.id).await?,
                folded => return Ok(folded),
            }
        }
        Err(newer_than_the_device(&rules.id))
    }

    /// Folds a local day. If the day is not over at `until`, folds the part before `until`. Reads `rules` again if they
    /// are outdated.
    async fn day(
        &self,
        session: Session<'_, S>,
        rules: &mut DeviceRules,
        day: LocalDay,
        until: Timestamp,
        assumed: Assumed,
    ) -> StoreResult<Folded> {
        let LocalDay { zone, date } = day;
        for _ in 0..MAX_READS {
            match self.fold(session, rules).day(zone, date, until, assumed).await? {
                Folded::Outdated => *rules = self.rules_of(session, &rules.id).await?,
                folded => return Ok(folded),
            }
        }
        Err(newer_than_the_device(&rules.id))
    }

    /// Folds all quarters of a range, and returns the rollups that it stored. If the range fails permanently, folds
    /// quarter by quarter, so that only failing quarters go to the queue.
    pub(crate) async fn quarters(
        &self,
        session: Session<'_, S>,
        rules: &mut DeviceRules,
        range: TimeRange,
        assumed: Assumed,
        done: &mut Done,
    ) -> Result<BTreeMap<QuarterHour, Rollup>, NotDone> {
        let window = self.window(session, rules, QuarterSet::Of(range, assumed));
        if let FoldAttempt::Done(window) = attempt(window).await? {
            done.quarters += window.folded.len();
            return Ok(window.put);
        }

        let mut put = BTreeMap::new();
        for quarter in quarters_in(range) {
            let one = QuarterSet::Of(quarter.range(), assumed);
            match attempt(self.window(session, rules, one)).await? {
                FoldAttempt::Done(window) => {
                    done.quarters += window.folded.len();
                    put.extend(window.put);
                }
                FoldAttempt::Hopeless(why) => {
                    self.leave_to_queue(session, &rules.id, quarter, &why, done).await?;
                }
            }
        }

        Ok(put)
    }

    /// Folds a list of quarters; after a permanent failure one by one, as [`quarters`](Self::quarters) does.
    pub(crate) async fn these_quarters(
        &self,
        session: Session<'_, S>,
        rules: &mut DeviceRules,
        quarters: &BTreeSet<QuarterHour>,
        done: &mut Done,
    ) -> Result<(), NotDone> {
        if are_close(quarters) {
            let window = self.window(session, rules, QuarterSet::These(quarters));
            if let FoldAttempt::Done(window) = attempt(window).await? {
                done.quarters += window.folded.len();
                return Ok(());
            }
        }

        for quarter in quarters {
            match attempt(self.quarter(session, rules, *quarter)).await? {
                FoldAttempt::Done(_) => done.quarters += 1,
                FoldAttempt::Hopeless(why) => {
                    self.leave_to_queue(session, &rules.id, *quarter, &why, done).await?;
                }
            }
        }

        Ok(())
    }

    async fn window(
        &self,
        session: Session<'_, S>,
        rules: &mut DeviceRules,
        quarters: QuarterSet<'_>,
    ) -> StoreResult<FoldedWindow> {
        for _ in 0..MAX_READS {
            let fold = self.fold(session, rules);
            let window = match quarters {
                QuarterSet::Of(range, assumed) => fold.quarters_of(range, assumed).await?,
                QuarterSet::These(quarters) => fold.these_quarters(quarters).await?,
            };
            if !window.is_outdated {
                return Ok(window);
            }
            *rules = self.rules_of(session, &rules.id).await?;
        }
        Err(newer_than_the_device(&rules.id))
    }

    /// Folds the local day of quarters that were just folded, up to the time that is over. Does nothing if this time
    /// ends before the `first` quarter, because a later sweep reads the quarters. Time before `sealed` counts as over
    /// even if the clock shows an earlier time: sweeps are done with this time.
    pub(crate) async fn day_of(
        &self,
        session: Session<'_, S>,
        rules: &mut DeviceRules,
        day: LocalDay,
        first: QuarterHour,
        sealed: Timestamp,
    ) -> StoreResult<Folded> {
        let until = over_until(self.clock.now()).max(sealed);
        let part = day.zone.day(day.date).and_then(|day| part_of_day(day, until));
        if part.is_none_or(|part| part.to() <= first.start()) {
            return Ok(Folded::Skipped);
        }
        self.day(session, rules, day, until, Assumed::Nothing).await
    }

    /// Folds the local days that end in `range`, whose start is excluded here and whose end is included. Also folds the
    /// parts of a day that is not over. A day that fails permanently goes to the queue.
    pub(crate) async fn days_ended(
        &self,
        session: Session<'_, S>,
        rules: &mut DeviceRules,
        zone: Zone,
        range: TimeRange,
        assumed: Assumed,
        done: &mut Done,
    ) -> Result<(), NotDone> {
        let now_over = over_until(self.clock.now());
        let mut at = range.from();
        while let Some(day) = zone.day(zone.date(at)).filter(|_| at < range.to()) {
            at = day.to();
            let part = part_of_day(day, range.to()).filter(|part| part.to() > range.from());
            // A day that is over is not folded in parts, but as a whole, here or by a later call.
            let Some(part) = part.filter(|part| *part == day || day.to() > now_over) else {
                continue;
            };

            // A day without a rollup is assumed only for its first part: the fold of this part stores the rollup.
            let is_first = part_of_day(day, part.last()).is_none();
            let assumed = if is_first { assumed } else { Assumed::Nothing };

            let day = LocalDay { zone, date: zone.date(part.from()) };
            match attempt(self.day(session, rules, day, range.to(), assumed)).await? {
                FoldAttempt::Done(folded) => done.days += usize::from(folded != Folded::Skipped),
                FoldAttempt::Hopeless(why) => {
                    let last = QuarterHour::of(part.last());
                    self.leave_to_queue(session, &rules.id, last, &why, done).await?;
                }
            }
        }
        Ok(())
    }

    /// Leaves a quarter and its day to the queue.
    pub(crate) async fn leave_to_queue(
        &self,
        session: Session<'_, S>,
        device: &DeviceId,
        quarter: QuarterHour,
        reason: &str,
        done: &mut Done,
    ) -> Result<(), NotDone> {
        let request = FoldRequest { device: device.clone(), quarter };
        self.leave_all(session, std::slice::from_ref(&request), reason, done).await
    }

    /// Leaves quarters and their days to the queue.
    pub(crate) async fn leave_all(
        &self,
        session: Session<'_, S>,
        requests: &[FoldRequest],
        reason: &str,
        done: &mut Done,
    ) -> Result<(), NotDone> {
        self.queue.send(requests, session.invocation).await?;
        requests.iter().for_each(|request| done.left_to_queue(request, reason));
        Ok(())
    }

    fn fold<'a>(&'a self, session: Session<'a, S>, device: &'a DeviceRules) -> DeviceFolds<'a, S> {
        let Self { settings, seen, clock, .. } = self;
        let session = session.at(clock.now());
        DeviceFolds { session, device, seen, retention: &settings.retention }
    }
}

/// The result of a fold that no retry would change.
pub(crate) enum FoldAttempt<T> {
    Done(T),
    /// Each retry would fail, too, for this reason.
    Hopeless(String),
}

/// Runs a fold. An error is a failure that a retry may mend.
pub(crate) async fn attempt<T>(
    fold: impl Future<Output = StoreResult<T>>,
) -> StoreResult<FoldAttempt<T>> {
    match catching(Box::pin(fold)).await {
        Ok(Ok(done)) => Ok(FoldAttempt::Done(done)),
        Ok(Err(error)) if error.is_permanent() => Ok(FoldAttempt::Hopeless(chain(&error))),
        Ok(Err(error)) => Err(error),
        Err(panic) => Ok(FoldAttempt::Hopeless(panic.to_string())),
    }
}

/// Whether one query from the first to the last quarter reads less than a query for each quarter. This is assumed if
/// there are several quarters, and at most as many quarters between them are missing.
fn are_close(quarters: &BTreeSet<QuarterHour>) -> bool {
    let (Some(first), Some(last)) = (quarters.first(), quarters.last()) else { return false };
    let span = last.end().since(first.start()).num_minutes() / QuarterHour::LENGTH.num_minutes();
    quarters.len() > 1 && usize::try_from(span).is_ok_and(|span| span <= 2 * quarters.len())
}

/// The quarters that begin in a range.
pub(crate) fn quarters_in(range: TimeRange) -> impl Iterator<Item = QuarterHour> {
    let mut next = QuarterHour::of(range.from());
    if next.start() < range.from() {
        next = next.next();
    }
    std::iter::from_fn(move || {
        let quarter = next;
        next = quarter.next();
        Some(quarter)
    })
    .take_while(move |quarter| range.contains(quarter.start()))
}

/// The timestamp a day after `from`, or `limit` if that is earlier. The readings of a day fit into memory.
pub(crate) fn window_end(from: Timestamp, limit: Timestamp) -> Timestamp {
    from.saturating_add(TimeDelta::days(1)).min(limit)
}

/// The error for a rollup with newer settings than the device has: a person wrote the device's item anew.
fn newer_than_the_device(device: &DeviceId) -> StoreError {
    let what = format!("a rollup of {device} was folded with newer settings than the device has");
    StoreError::Inapplicable(what.into())
}
