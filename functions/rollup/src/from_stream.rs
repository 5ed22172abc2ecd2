//! Folds the buckets that a batch of the stream touches, or leaves them to the sweep. Reads keys and rooms only:
//! what a reading says is read from the table.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;

use domain::{DeviceId, LocalDate, Month, QuarterHour, RoomId, Timestamp, Zone};
use futures_util::{StreamExt as _, TryStreamExt as _, stream as futures};
use rollups::{DeviceRules, Folded, NamedRooms, is_late, is_over};
use runtime::clock::Clock;
use runtime::panic::catching;
use runtime::stream::{BatchResult, Consumer, Recorded, TouchedReading};
use runtime::telemetry::{WideEvent, chain};
use runtime::work_queue::{FoldRequest, WorkQueue};
use table::{Backlog, Invocation, RollupState, Session, StoreError, StoreResult};

use crate::bucket_folding::{BucketFolding, LocalDay, NotFolded, for_one_device, reason};
use crate::log::Done;
use crate::ports::Store;
use crate::state::State;

/// The number of devices whose rooms are noted at once.
const NOTE_CONCURRENCY: usize = 8;
/// The pause between two looks at whether a batch that is being folded is behind.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// When the oldest change of a batch that is not folded yet was written, where the stream says so.
type Oldest = Mutex<Option<Timestamp>>;

/// The quarters of one device and local day that a batch touches, and the first record that does.
#[derive(Debug)]
struct DayOfDevice {
    quarters: BTreeSet<QuarterHour>,
    first_record: usize,
    /// When the oldest of its changes was written, where the stream says so.
    written: Option<Timestamp>,
}

/// A day that the table did not let fold.
struct FailedDay<'a> {
    device: &'a DeviceId,
    day: &'a DayOfDevice,
    error: NotFolded,
}

impl<S: Store, W: WorkQueue, C: Clock> Consumer<TouchedReading> for BucketFolding<S, W, C> {
    async fn apply(
        &self,
        changes: &[Recorded<TouchedReading>],
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> BatchResult {
        let session = Session::new(&self.store, invocation, self.clock.now());

        let mut result = BatchResult::default();
        let mut done = Done::default();
        let oldest = Oldest::new(oldest_late(changes, self.clock.now()));
        let folding = Box::pin(self.apply_batch(session, changes, &oldest, log, &mut done));
        let folded = self.while_noting_backlog(session, folding, &oldest).await;
        if let Err((record, error)) = folded {
            if invocation.remaining().is_zero() {
                log.set("rollup.out_of_time", true);
            } else {
                log.error("rollup.error", error.cause());
            }
            result.retry_from(record);
        }
        done.note(log);
        result
    }
}

impl<S: Store, W: WorkQueue, C: Clock> BucketFolding<S, W, C> {
    /// An error comes with the first record that is not done. Days that fail go to the queue if
    /// others are folded, so that a throttled device holds up no stream.
    async fn apply_batch(
        &self,
        session: Session<'_, S>,
        changes: &[Recorded<TouchedReading>],
        oldest: &Oldest,
        log: &mut WideEvent,
        done: &mut Done,
    ) -> Result<(), (usize, NotFolded)> {
        let Some(first) = changes.iter().map(|recorded| recorded.record).min() else {
            return Ok(());
        };
        let failed = |error: StoreError| (first, NotFolded::from(error));
        let State { stored, zone } = self.state(session, log).await.map_err(failed)?;

        let unknown =
            self.registered.unknown(changes.iter().map(|recorded| &recorded.change.key.device));
        let mut rules = self.rules(session, &unknown).await.map_err(failed)?;
        // Only now the clock: the state and the devices were there before, so a sweep that folds a quarter
        // which is not over by this clock finds both.
        let now = self.clock.now();

        let (left, changes): (Vec<_>, Vec<_>) = changes
            .iter()
            .partition(|recorded| self.is_left_to_sweep(&recorded.change, &stored, now));
        log.set("rollup.left_to_sweep", left.len());
        self.note_rooms(session, &left, now).await.map_err(failed)?;
        if changes.is_empty() {
            return Ok(());
        }

        let mut devices: BTreeSet<_> =
            changes.iter().map(|recorded| &recorded.change.key.device).collect();
        devices.retain(|device| unknown.binary_search(device).is_err());
        let devices: Vec<_> = devices.into_iter().cloned().collect();
        rules.extend(self.rules(session, &devices).await.map_err(failed)?);

        let days = in_order(by_day(&changes, zone));
        let (mut failures, mut is_any_done) = (Vec::new(), false);
        for (position, ((device, date), day)) in days.iter().enumerate() {
            let left = days[position..].iter().filter_map(|(_, day)| day.written).min();
            *oldest.lock().expect("nothing panics while it is held") = left;
            self.note_backlog(session, left).await.map_err(failed)?;
            if session.invocation.remaining().is_zero() {
                let first = failures.first().map_or(day, |failure: &FailedDay<'_>| failure.day);
                return Err((first.first_record, StoreError::TimedOut.into()));
            }

            let folding = match rules.get(device) {
                None => continue,
                Some(Ok(rules)) => {
                    let (day_of, sealed) =
                        (LocalDay { zone, date: *date }, stored.sealed_of(device));
                    let quarters = &day.quarters;
                    let part = for_one_device(session.invocation);
                    let session = session.within(&part);
                    self.fold_day(session, rules.clone(), day_of, sealed, quarters, done).await
                }
                Some(Err(why)) => self.leave_all(session, device, &day.quarters, why, done).await,
            };
            match folding {
                Ok(()) => is_any_done = true,
                Err(error) => failures.push(FailedDay { device, day, error }),
            }
        }
        self.leave_failures(session, failures, is_any_done, done).await
    }

    /// Leaves days that failed to the queue, if any other day was folded: else the table fails, and not a device.
    async fn leave_failures(
        &self,
        session: Session<'_, S>,
        failures: Vec<FailedDay<'_>>,
        is_any_done: bool,
        done: &mut Done,
    ) -> Result<(), (usize, NotFolded)> {
        for FailedDay { device, day, error } in failures {
            let why = chain(error.cause());
            let is_left = is_any_done
                && self.leave_all(session, device, &day.quarters, &why, done).await.is_ok();
            if !is_left {
                return Err((day.first_record, error));
            }
        }
        Ok(())
    }

    /// Notes the rooms of readings that are not folded yet. An answer about a room finds its devices by these notes:
    /// the registry has one room of a device, also where readings of a quarter name two.
    ///
    /// Notes from before a device's deletion count here, so that no device is read for each batch. If the device has
    /// come again, the sweep knows so and notes its rooms with the rollup.
    async fn note_rooms(
        &self,
        session: Session<'_, S>,
        left: &[&Recorded<TouchedReading>],
        now: Timestamp,
    ) -> StoreResult<()> {
        let mut unknown: BTreeMap<&DeviceId, NamedRooms> = BTreeMap::new();
        for TouchedReading { key, room, .. } in left.iter().map(|recorded| &recorded.change) {
            let month = Month::of(key.at);
            let is_unknown = |room: &&RoomId| !self.seen.has_noted(&key.device, room, month, now);
            if let Some(room) = room.as_ref().filter(is_unknown) {
                unknown.entry(&key.device).or_default().insert((room.clone(), month));
            }
        }
        let devices: Vec<DeviceId> = unknown.keys().copied().cloned().collect();
        // Of a device that is gone nothing is noted.
        let rules = self.rules(session, &devices).await?;
        let noting = unknown.iter().filter_map(|(device, named)| {
            let device = rules.get(*device)?.as_ref().ok()?.registered();
            Some(Box::pin(self.seen.note(session, device, named)))
        });
        let noting: Vec<_> = noting.collect();
        futures::iter(noting).buffer_unordered(NOTE_CONCURRENCY).try_collect().await
    }

    /// Folds, and looks meanwhile whether the function is behind: one fold may take longer than a note holds.
    async fn while_noting_backlog<T>(
        &self,
        session: Session<'_, S>,
        folding: impl Future<Output = T>,
        oldest: &Oldest,
    ) -> T {
        let mut folding = pin!(folding);
        loop {
            if let Ok(folded) = tokio::time::timeout(LOOK_INTERVAL, folding.as_mut()).await {
                return folded;
            }
            let oldest = *oldest.lock().expect("nothing panics while it is held");
            // What fails is tried again at the next look, and before the next day is folded.
            drop(self.note_backlog(session, oldest).await);
        }
    }

    /// Notes that the function is behind, if a change of that time is still to be folded: then answers say that
    /// rollups lack some.
    async fn note_backlog(
        &self,
        session: Session<'_, S>,
        oldest: Option<Timestamp>,
    ) -> StoreResult<()> {
        let (now, following) = (self.clock.now(), self.settings.following);
        let Some(since) = oldest.filter(|since| following.is_behind(*since, now)) else {
            return Ok(());
        };
        if !self.backlog.is_due(now, following.note_interval()) {
            return Ok(());
        }
        session.note_backlog(Backlog { since, at: now }).await?;
        self.backlog.noted(now);
        Ok(())
    }

    /// Whether the sweep folds the quarter of a reading, some time after this reading was written.
    ///
    /// It passes over a quarter without readings. So a deletion is always folded at once: then a rollup is
    /// there that refuses a late fold which still saw the reading. And it has passed already where a clock that
    /// was ahead has swept.
    fn is_left_to_sweep(
        &self,
        touched: &TouchedReading,
        state: &RollupState,
        now: Timestamp,
    ) -> bool {
        let end = QuarterHour::of(touched.key.at).end();
        let is_open = !is_over(end, now) && state.sealed_of(&touched.key.device) < end;
        is_open && !touched.is_deleted && self.registered.is_known(&touched.key.device)
    }

    /// Folds the quarters, and then their day, as far as it is over.
    async fn fold_day(
        &self,
        session: Session<'_, S>,
        mut rules: DeviceRules,
        day: LocalDay,
        sealed: Timestamp,
        quarters: &BTreeSet<QuarterHour>,
        done: &mut Done,
    ) -> Result<(), NotFolded> {
        self.these_quarters(session, &mut rules, quarters, done).await?;
        let Some(first) = quarters.first() else { return Ok(()) };
        let folding = Box::pin(self.day_of(session, &mut rules, day, *first, sealed));
        let folded = catching(folding).await;
        let count = |folded| done.days += usize::from(folded != Folded::Skipped);
        if let Some(why) = reason(folded, count)? {
            self.leave_to_queue(session, &rules.id, *first, &why, done).await?;
        }
        Ok(())
    }

    async fn leave_all(
        &self,
        session: Session<'_, S>,
        device: &DeviceId,
        quarters: &BTreeSet<QuarterHour>,
        why: &str,
        done: &mut Done,
    ) -> Result<(), NotFolded> {
        let quarters = quarters.iter().copied();
        let requests: Vec<_> =
            quarters.map(|quarter| FoldRequest { device: device.clone(), quarter }).collect();
        self.queue.send(&requests, session.invocation).await?;
        for request in &requests {
            done.left_to_queue(request, why);
        }
        Ok(())
    }
}

/// When the oldest change of past time was written: no sweep folds it.
fn oldest_late(changes: &[Recorded<TouchedReading>], now: Timestamp) -> Option<Timestamp> {
    let changes = changes
        .iter()
        .map(|recorded| &recorded.change)
        .filter(|change| is_late(change.key.at, now));
    changes.filter_map(|change| change.touched).min()
}

type Days = BTreeMap<(DeviceId, LocalDate), DayOfDevice>;

fn by_day(changes: &[&Recorded<TouchedReading>], zone: Zone) -> Days {
    let mut days = Days::new();
    for Recorded { record, change } in changes {
        let quarter = QuarterHour::of(change.key.at);
        let key = (change.key.device.clone(), zone.date(quarter.start()));
        let new = DayOfDevice { quarters: BTreeSet::new(), first_record: *record, written: None };
        let day = days.entry(key).or_insert(new);
        day.quarters.insert(quarter);
        day.written = day.written.into_iter().chain(change.touched).min();
    }
    days
}

/// In the order of the first records: when the time is over, all records before the reported one are done.
fn in_order(days: Days) -> Vec<((DeviceId, LocalDate), DayOfDevice)> {
    let mut days: Vec<_> = days.into_iter().collect();
    days.sort_by_key(|(_, day)| day.first_record);
    days
}
