//! Folds the buckets that a batch of the stream touches, or leaves them to the scheduled sweep. Takes only keys and
//! rooms from the stream, and reads values from the table.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;

use domain::{DeviceId, LocalDate, Month, QuarterHour, RoomId, Timestamp, Zone};
use futures_util::{StreamExt as _, stream as futures};
use rollups::{DeviceRules, Folded, NamedRooms, Registered, is_late, is_over};
use runtime::clock::Clock;
use runtime::stream::{BatchResult, Consumer, Recorded, TouchedReading};
use runtime::telemetry::{WideEvent, chain};
use runtime::work_queue::{FoldRequest, WorkQueue};
use table::{Backlog, Invocation, RollupState, Session, StoreError, StoreResult};

use crate::bucket_folding::{BucketFolding, FoldAttempt, LocalDay, NotDone, attempt};
use crate::log::Done;
use crate::ports::Store;
use crate::registry::RulesByDevice;
use crate::state::ZonedRollupState;

/// The number of devices whose rooms are stored concurrently.
const NOTE_CONCURRENCY: usize = 8;
/// The time that is reserved for leaving failures to the queue.
const LEAVING: Duration = Duration::from_secs(10);
/// The pause between two checks for a backlog while a batch is folded.
const BACKLOG_CHECK: Duration = Duration::from_secs(1);

/// The time at which the oldest unfolded change was written; `None` if the stream does not say.
type Oldest = Mutex<Option<Timestamp>>;

/// One device and local day of a batch: the quarters that changes touch, and the first record that touches the day.
#[derive(Debug, Clone)]
struct DayOfDevice {
    device: DeviceId,
    date: LocalDate,
    quarters: BTreeSet<QuarterHour>,
    first_record: usize,
    /// The time at which the day's oldest change was written; `None` if the stream does not say.
    written: Option<Timestamp>,
}

/// The first record that has to be delivered again, and why.
struct Unfinished {
    record: usize,
    error: NotDone,
}

/// The result of a batch so far.
struct FoldedBatch<'a> {
    oldest: &'a Oldest,
    done: Done,
    /// The failed devices, each with its error. Further days of these devices are not tried in this invocation.
    errors: BTreeMap<DeviceId, NotDone>,
    /// The days of failed devices that are not folded.
    failed: Vec<DayOfDevice>,
    /// Whether something succeeded: a day was folded, or a reading was left to the sweep with its room stored.
    is_any_done: bool,
}

impl<'a> FoldedBatch<'a> {
    fn new(oldest: &'a Oldest) -> Self {
        let (errors, failed) = (BTreeMap::new(), Vec::new());
        Self { oldest, done: Done::default(), errors, failed, is_any_done: false }
    }

    /// Leaves days to the sweep. If the rooms of a device's readings could not be stored, its days count as failed.
    fn leave_to_sweep(&mut self, days: Vec<DayOfDevice>) {
        for day in days {
            if self.errors.contains_key(&day.device) {
                self.failed.push(day);
            } else {
                self.is_any_done = true;
            }
        }
    }

    fn fail(&mut self, device: DeviceId, error: NotDone) {
        self.done.failed(&device, error.cause());
        self.errors.insert(device, error);
    }
}

impl<S: Store, W: WorkQueue, C: Clock> Consumer<TouchedReading> for BucketFolding<S, W, C> {
    async fn apply(
        &self,
        changes: &[Recorded<TouchedReading>],
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> BatchResult {
        // Folding ends some seconds early, so that there is time to leave failures to the queue.
        let leaving = Session::new(&self.store, invocation, self.clock.now());
        let working = invocation.shortened_to(invocation.remaining().saturating_sub(LEAVING));
        let session = leaving.within(&working);

        let oldest = Oldest::new(oldest_late(changes, self.clock.now()));
        let mut batch = FoldedBatch::new(&oldest);
        let folding = Box::pin(self.apply_batch(session, changes, &mut batch, log));
        let folded = self.while_noting_backlog(session, folding, &oldest).await;
        let left = self.leave_failures(leaving, &mut batch).await;

        let mut result = BatchResult::default();
        for Unfinished { record, error } in folded.err().into_iter().chain(left.err()) {
            if matches!(error, NotDone::Store(StoreError::TimedOut))
                && working.remaining().is_zero()
            {
                log.set("rollup.out_of_time", true);
            } else {
                log.error("rollup.error", error.cause());
            }
            result.retry_from(record);
        }

        batch.done.note(log);
        result
    }
}

impl<S: Store, W: WorkQueue, C: Clock> BucketFolding<S, W, C> {
    /// Stores the rooms of readings that the sweep will fold, and folds the days of the other readings.
    async fn apply_batch(
        &self,
        session: Session<'_, S>,
        changes: &[Recorded<TouchedReading>],
        batch: &mut FoldedBatch<'_>,
        log: &mut WideEvent,
    ) -> Result<(), Unfinished> {
        let Some(record) = changes.iter().map(|recorded| recorded.record).min() else {
            return Ok(());
        };
        let failed = |error: StoreError| Unfinished { record, error: error.into() };
        let state = self.state(session, log).await.map_err(failed)?;

        // The rules of known devices are read later, and only if there is something to fold.
        let devices = changes.iter().map(|recorded| &recorded.change.key.device);
        let unknown = self.registered.unknown(devices);
        let mut rules = self.rules(session, &unknown).await.map_err(failed)?;

        // The clock is read after the state and the devices are known to exist. A later sweep folds the quarters that
        // are open by this clock, so the sweep finds both.
        let now = self.clock.now();
        let (left, to_fold): (Vec<_>, Vec<_>) = changes
            .iter()
            .partition(|recorded| self.is_left_to_sweep(&recorded.change, &state.stored, now));
        log.set("rollup.left_to_sweep", left.len());
        self.note_rooms(session, &left, now, batch).await.map_err(failed)?;
        batch.leave_to_sweep(by_day(&left, state.zone));

        let devices: BTreeSet<&DeviceId> =
            to_fold.iter().map(|recorded| &recorded.change.key.device).collect();
        let is_known = |device: &&DeviceId| unknown.binary_search(device).is_err();
        let known: Vec<DeviceId> = devices.into_iter().filter(is_known).cloned().collect();
        rules.extend(self.rules(session, &known).await.map_err(failed)?);
        self.fold_days(session, &by_day(&to_fold, state.zone), &rules, &state, batch).await
    }

    /// Folds days until the time is over, and checks for a backlog before each day. After one day of a device has
    /// failed, no further day of the device is tried: a throttled device would take the time of all others.
    async fn fold_days(
        &self,
        session: Session<'_, S>,
        days: &[DayOfDevice],
        rules: &RulesByDevice,
        state: &ZonedRollupState,
        batch: &mut FoldedBatch<'_>,
    ) -> Result<(), Unfinished> {
        for (position, day) in days.iter().enumerate() {
            let failed = |error: NotDone| Unfinished { record: day.first_record, error };

            // The days that are not folded yet: this day, the following days, and the failed days.
            let not_folded = days[position..].iter().chain(&batch.failed);
            let oldest = not_folded.filter_map(|day| day.written).min();
            *batch.oldest.lock().expect("nothing panics while it is held") = oldest;
            // After a failure, answers do not say that rollups are incomplete. Folding goes on, because that ends the
            // backlog soonest.
            if let Err(error) = self.note_backlog(session, oldest).await {
                batch.done.backlog_error.get_or_insert(error);
            }
            if session.invocation.remaining().is_zero() {
                return Err(failed(StoreError::TimedOut.into()));
            }

            // A deleted device has no rules.
            let Some(rules) = rules.get(&day.device) else { continue };
            if batch.errors.contains_key(&day.device) {
                batch.failed.push(day.clone());
                continue;
            }

            match self.fold_day(session, rules, day, state, &mut batch.done).await {
                Ok(()) => batch.is_any_done = true,
                // The time is over, which is not a failure of the device.
                Err(error) if session.invocation.remaining().is_zero() => {
                    return Err(failed(error));
                }
                Err(error) => {
                    batch.fail(day.device.clone(), error);
                    batch.failed.push(day.clone());
                }
            }
        }
        Ok(())
    }

    /// Leaves the days of failed devices to the queue, if any other part of the batch succeeded. Otherwise the whole
    /// table seems to fail, and the batch is repeated.
    async fn leave_failures(
        &self,
        session: Session<'_, S>,
        batch: &mut FoldedBatch<'_>,
    ) -> Result<(), Unfinished> {
        let Some(first) = batch.failed.iter().min_by_key(|day| day.first_record) else {
            return Ok(());
        };

        let requests: Vec<_> = batch.failed.iter().flat_map(DayOfDevice::requests).collect();
        if batch.is_any_done && self.queue.send(&requests, session.invocation).await.is_ok() {
            for request in &requests {
                batch.done.left_to_queue(request, &chain(batch.errors[&request.device].cause()));
            }
            return Ok(());
        }

        let error = batch.errors.remove(&first.device).expect("each of these days has an error");
        Err(Unfinished { record: first.first_record, error })
    }

    /// Stores the rooms of readings that are not folded yet, so that answers about a room find the room's devices. The
    /// registry has one room for a device, but a quarter's readings may name two. If this fails for a device, only this
    /// device fails.
    ///
    /// A room that was stored before the device's deletion counts as stored, so that batches do not read each device.
    /// If the device was registered again, the sweep stores its rooms with the rollup.
    async fn note_rooms(
        &self,
        session: Session<'_, S>,
        left: &[&Recorded<TouchedReading>],
        now: Timestamp,
        batch: &mut FoldedBatch<'_>,
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
        // A deleted device has no rules, so its rooms are not noted.
        let rules = self.rules(session, &devices).await?;
        let noting = unknown.iter().filter_map(|(device, named)| {
            let registered = rules.get(*device)?.as_ref().ok()?.registered();
            Some(Box::pin(self.note_rooms_of(session, registered, named)))
        });
        let noting: Vec<_> = noting.collect();
        let mut noting = futures::iter(noting).buffer_unordered(NOTE_CONCURRENCY);

        while let Some((device, noted)) = noting.next().await {
            if let Err(error) = noted {
                batch.fail(device.clone(), error.into());
            }
        }
        Ok(())
    }

    async fn note_rooms_of<'a>(
        &self,
        session: Session<'_, S>,
        registered: Registered<'a>,
        named: &NamedRooms,
    ) -> (&'a DeviceId, StoreResult<()>) {
        let part = session.invocation.with_quarter_patience();
        (registered.device, self.seen.note(session.within(&part), registered, named).await)
    }

    /// Runs `folding`, and stores a backlog meanwhile: one fold may take longer than a stored backlog is valid.
    async fn while_noting_backlog<T>(
        &self,
        session: Session<'_, S>,
        folding: impl Future<Output = T>,
        oldest: &Oldest,
    ) -> T {
        let mut folding = pin!(folding);
        loop {
            if let Ok(folded) = tokio::time::timeout(BACKLOG_CHECK, folding.as_mut()).await {
                return folded;
            }
            let oldest = *oldest.lock().expect("nothing panics while it is held");
            // After a failure, the backlog is stored at the next check, or before the next day is folded.
            drop(self.note_backlog(session, oldest).await);
        }
    }

    /// Stores that there is a backlog if `oldest`, the time of the oldest unfolded change, is long ago. Answers then
    /// say that rollups are incomplete.
    async fn note_backlog(
        &self,
        session: Session<'_, S>,
        oldest: Option<Timestamp>,
    ) -> StoreResult<()> {
        let (now, rollup_delay) = (self.clock.now(), self.settings.rollup_delay);
        let Some(since) = oldest.filter(|since| rollup_delay.has_backlog(*since, now)) else {
            return Ok(());
        };
        if self.backlog.get(now, |()| rollup_delay.note_interval()).is_some() {
            return Ok(());
        }
        let backlog = Backlog { since, at: now };
        let note = async |table: Session<'_, S>| table.note_backlog(backlog).await;
        self.backlog_throttle.unless_throttled(session.at(now), note).await?;
        self.backlog.keep((), now);
        Ok(())
    }

    /// Whether the sweep will fold the quarter of a reading.
    ///
    /// A deletion is folded at once, because the sweep skips quarters without readings. The new rollup then prevents
    /// that a slower fold, which still saw the reading, is stored. A quarter is also folded at once if a sweep has
    /// passed it already, because the sweep's clock was ahead. The same holds for a device that is not known to be
    /// registered: the sweep would not find the device.
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

    /// Folds the quarters of a day, then the part of the day that is over. If the device has no rules, its quarters go
    /// to the queue.
    async fn fold_day(
        &self,
        session: Session<'_, S>,
        rules: &Result<DeviceRules, String>,
        day: &DayOfDevice,
        state: &ZonedRollupState,
        done: &mut Done,
    ) -> Result<(), NotDone> {
        let part = session.invocation.with_quarter_patience();
        let session = session.within(&part);
        let mut rules = match rules {
            Ok(rules) => rules.clone(),
            Err(why) => {
                let requests: Vec<_> = day.requests().collect();
                return self.leave_all(session, &requests, why, done).await;
            }
        };
        self.these_quarters(session, &mut rules, &day.quarters, done).await?;

        let Some(first) = day.quarters.first() else { return Ok(()) };
        let (zone, sealed) = (state.zone, state.stored.sealed_of(&day.device));
        let local_day = LocalDay { zone, date: day.date };
        match attempt(self.day_of(session, &mut rules, local_day, *first, sealed)).await? {
            FoldAttempt::Done(folded) => done.days += usize::from(folded != Folded::Skipped),
            FoldAttempt::Hopeless(why) => {
                self.leave_to_queue(session, &rules.id, *first, &why, done).await?;
            }
        }
        Ok(())
    }
}

impl DayOfDevice {
    fn requests(&self) -> impl Iterator<Item = FoldRequest> {
        let quarters = self.quarters.iter();
        quarters.map(|quarter| FoldRequest { device: self.device.clone(), quarter: *quarter })
    }
}

/// The time at which the oldest change of past time was written. The sweep does not fold such changes.
fn oldest_late(changes: &[Recorded<TouchedReading>], now: Timestamp) -> Option<Timestamp> {
    let changes = changes
        .iter()
        .map(|recorded| &recorded.change)
        .filter(|change| is_late(change.key.at, now));
    changes.filter_map(|change| change.touched).min()
}

/// The days that changes touch, in the order of their first records. If the time runs out on a day, the stream delivers
/// its first record and all later records again.
fn by_day(changes: &[&Recorded<TouchedReading>], zone: Zone) -> Vec<DayOfDevice> {
    let mut days: BTreeMap<(&DeviceId, LocalDate), DayOfDevice> = BTreeMap::new();
    for Recorded { record, change } in changes {
        let (device, quarter) = (&change.key.device, QuarterHour::of(change.key.at));
        let date = zone.date(quarter.start());
        let new = || DayOfDevice {
            device: device.clone(),
            date,
            quarters: BTreeSet::new(),
            first_record: *record,
            written: None,
        };
        let day = days.entry((device, date)).or_insert_with(new);
        day.quarters.insert(quarter);
        day.written = day.written.into_iter().chain(change.touched).min();
    }

    let mut days: Vec<_> = days.into_values().collect();
    days.sort_by_key(|day| day.first_record);
    days
}
