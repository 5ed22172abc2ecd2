//! Sweeps groups of devices: folds each quarter and each day once it is over. Chooses no groups.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use domain::{DeviceId, QuarterHour, Rollup, TimeRange, Timestamp, Zone, sweep_group};
use rollups::{Assumed, GRACE, SKEW};
use runtime::clock::Clock;
use runtime::telemetry::chain;
use runtime::work_queue::{FoldRequest, WorkQueue};
use table::{Indexing, QueueDepth, Session, StoreError, StoreResult, out_of_patience};

use crate::bucket_folding::{BucketFolding, NotDone, quarters_in};
use crate::memory::{ListedDevice, ListedDevices};
use crate::ports::Store;
use crate::rechecks::{Rechecks, UnnotedRechecks};
use crate::run::ScheduledRun;

/// The largest number of rollups of a window, even if the table could take more.
const MAX_WINDOW_ROLLUPS: usize = 10_000;
/// The number of quarters in the longest window, a day. The window must fit into memory.
const QUARTERS_OF_DAY: usize = 96;
/// The longest time for storing the progress of a sweep while the table throttles this.
const MAX_NOTE: Duration = Duration::from_secs(15);

/// A time range that is swept at once, with the data for its sweep.
struct SweepWindow<'a> {
    range: TimeRange,
    zone: Zone,
    listed: &'a ListedDevices,
    indexing: &'a Indexing,
}

/// The result of folding a window.
struct SweptWindow {
    /// The groups that are done.
    groups: BTreeSet<usize>,
    /// Why the first of the other groups failed; `Ok` if the time was over before any of them failed.
    result: Result<(), NotDone>,
}

/// A device that could not be swept.
struct FailedDevice {
    id: DeviceId,
    error: NotDone,
}

impl<S: Store, W: WorkQueue, C: Clock> BucketFolding<S, W, C> {
    /// Folds the quarters and days of the groups' devices that end after `sealed_until`, up to `target` or until the
    /// invocation's time is over.
    ///
    /// The progress is stored after each window, so that a sweep which is late by days can stop and continue. If the
    /// table throttles this write, the next windows are folded all the same, and the next progress that is stored
    /// covers them. A group that fails is left to the next invocation. The first window is a quarter, and each further
    /// window is twice as long. The amount of data is known only after a read, and a window that is too long for an
    /// invocation would be begun again for ever.
    pub(crate) async fn sweep(
        &self,
        groups: &BTreeSet<usize>,
        mut sealed_until: Timestamp,
        target: Timestamp,
        zone: Zone,
        run: &mut ScheduledRun<'_, S>,
    ) -> Result<(), NotDone> {
        let indexing = &run.session.indexing().await?;
        let listed = self.listed_for(run.session, target).await?;
        let devices = listed.devices.iter();
        let devices = devices.filter(|device| groups.contains(&sweep_group(&device.id))).count();
        let most = most_quarters(devices, run.pace.write_units_of_invocation());
        let end = |from: Timestamp, quarters| {
            from.saturating_add(QuarterHour::LENGTH * quarters).min(target)
        };

        let mut groups = groups.clone();
        let (mut quarters, mut swept, mut noted) = (1, Ok(()), Ok(()));
        while let Ok(range) = TimeRange::new(sealed_until, end(sealed_until, quarters)) {
            let window = SweepWindow { range, zone, listed: &listed, indexing };
            let done = self.sweep_window(&groups, &window, run).await;

            // If the last write of the progress failed, the next write is tried only once.
            let patience = if noted.is_ok() { MAX_NOTE } else { Duration::ZERO };
            if !done.groups.is_empty() {
                noted = self.note_progress(&done.groups, range.to(), patience, run).await;
            }

            let is_over = done.result.is_ok() && done.groups != groups;
            swept = swept.and(done.result);
            groups = done.groups;
            if is_over || groups.is_empty() {
                break;
            }

            sealed_until = range.to();
            if noted.as_ref().is_err_and(|error| !error.is_retryable()) || run.pace.is_time_over() {
                break;
            }
            quarters = most.min(quarters * 2);
        }
        swept.and(noted.map_err(NotDone::from))
    }

    /// Stores up to which time groups are swept.
    async fn note_progress(
        &self,
        groups: &BTreeSet<usize>,
        sealed_until: Timestamp,
        patience: Duration,
        run: &mut ScheduledRun<'_, S>,
    ) -> StoreResult<()> {
        let queue = self.queue_depth(run).await;
        let part = run.noting.invocation.with_patience(patience);
        run.noting.within(&part).advance_sealed(groups, sealed_until, Some(queue)).await?;
        run.advance_sealed(groups, sealed_until);
        Ok(())
    }

    /// Folds a window, one group after the other, until the time is over. A group that fails does not delay others.
    async fn sweep_window(
        &self,
        groups: &BTreeSet<usize>,
        window: &SweepWindow<'_>,
        run: &mut ScheduledRun<'_, S>,
    ) -> SweptWindow {
        let mut rechecks = match self.rechecks_of(window.range, run).await {
            Ok(rechecks) => rechecks,
            Err(error) => return SweptWindow { groups: BTreeSet::new(), result: Err(error) },
        };

        let mut order: Vec<usize> = groups.iter().copied().collect();
        // The order is random: in a fixed order, some groups would always wait behind throttled groups.
        fastrand::shuffle(&mut order);
        let mut tried = Vec::new();

        for group in order {
            if !tried.is_empty() && run.pace.is_time_over() {
                break;
            }
            tried.push((group, self.sweep_group(group, window, &mut rechecks, run).await));
        }

        let (mut done, mut swept) = (BTreeSet::new(), Ok(()));
        for (group, failed) in tried {
            let left = match failed {
                Ok(failed) => self.leave_throttled(failed, window, &mut rechecks, run).await,
                Err(error) => Err(error),
            };
            match left {
                Ok(()) => drop(done.insert(group)),
                Err(error) => swept = swept.and(Err(error)),
            }
        }

        // Rechecks are stored before the progress, so that after a crash the next sweep stores them again.
        let UnnotedRechecks { groups: unnoted, cause } = self.note_rechecks(rechecks, run).await;
        done.retain(|group| !unnoted.contains(group));
        if let Some(error) = cause {
            swept = swept.and(Err(error.into()));
        }

        SweptWindow { groups: done, result: swept }
    }

    /// Sweeps the devices of a group, and returns the failed devices. An error means that some devices were not tried.
    async fn sweep_group(
        &self,
        group: usize,
        window: &SweepWindow<'_>,
        rechecks: &mut Rechecks,
        run: &mut ScheduledRun<'_, S>,
    ) -> Result<Vec<FailedDevice>, NotDone> {
        let is_of_group = |id: &DeviceId| sweep_group(id) == group;
        let devices = window.listed.devices.iter().filter(|device| is_of_group(&device.id));
        let mut devices: Vec<_> = devices.collect();
        // The order is random: in a fixed order, some devices would always wait behind throttled devices.
        fastrand::shuffle(&mut devices);

        let mut failed = Vec::new();
        for device in devices {
            if run.session.invocation.remaining().is_zero() {
                return Err(StoreError::TimedOut.into());
            }
            match self.sweep_device(device, window, run).await {
                Ok(put) => {
                    rechecks.add(&device.id, put);
                    run.swept.insert(device.id.clone());
                }
                Err(error) => {
                    run.fail(&device.id, &error);
                    // The whole table fails, not this device alone.
                    if run.nobody_reached(window.range.to()) && run.pace.is_time_over() {
                        return Err(error);
                    }
                    failed.push(FailedDevice { id: device.id.clone(), error });
                }
            }
            run.pace.wait(run.session.invocation).await;
        }

        for item in &window.listed.unreadable {
            let id: Option<DeviceId> = item.sk.parse().ok();
            if let Some(id) = id.filter(is_of_group) {
                self.leave_device(&id, &chain(item), window.range, run).await?;
            }
        }
        Ok(failed)
    }

    /// Leaves throttled devices to the queue. If no device was reached, the whole table counts as throttled. Then, and
    /// after any other failure, returns the error, and the next sweep tries again.
    async fn leave_throttled(
        &self,
        failed: Vec<FailedDevice>,
        window: &SweepWindow<'_>,
        rechecks: &mut Rechecks,
        run: &mut ScheduledRun<'_, S>,
    ) -> Result<(), NotDone> {
        for FailedDevice { id, error } in failed {
            if run.nobody_reached(window.range.to()) || !run.throttled.contains(&id) {
                return Err(error);
            }
            self.leave_device(&id, &chain(error.cause()), window.range, run).await?;
            rechecks.add_unfolded(id, window.range.from());
        }
        Ok(())
    }

    /// The number of messages in the queue, but not fewer than this invocation has sent. If the queue gives no number,
    /// the last number counts, but at least 1. The stream may have sent messages since, and answers must not take
    /// their quarters for folded. SQS counts a new message within a minute:
    /// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_GetQueueAttributes.html>.
    async fn queue_depth(&self, run: &mut ScheduledRun<'_, S>) -> QueueDepth {
        let waiting = match self.queue.depth(run.noting.invocation).await {
            Ok(counted) => counted,
            Err(error) => {
                run.done.queue_error = Some(error);
                let last = run.state.as_ref().and_then(|state| state.queue);
                last.map_or(1, |last| last.messages.max(1))
            }
        };
        QueueDepth { messages: waiting.max(run.done.queued), at: self.clock.now() }
    }

    /// The devices that may have quarters before `target` which no stream batch has folded. Devices that were
    /// registered after the list was read have no such quarters.
    pub(crate) async fn listed_for(
        &self,
        session: Session<'_, S>,
        target: Timestamp,
    ) -> StoreResult<Arc<ListedDevices>> {
        self.listed_since(session, target.saturating_add(GRACE + SKEW)).await
    }

    /// Sweeps a device, unless the table has throttled the device in this invocation.
    async fn sweep_device(
        &self,
        device: &ListedDevice,
        window: &SweepWindow<'_>,
        run: &mut ScheduledRun<'_, S>,
    ) -> Result<BTreeMap<QuarterHour, Rollup>, NotDone> {
        if run.throttled.contains(&device.id) {
            return Err(out_of_patience().into());
        }

        let part = run.session.invocation.with_quarter_of(run.pace.remaining());
        let (session, done) = (run.session.within(&part), &mut run.done);
        let mut rules = device.rules(window.indexing);
        done.devices += 1;

        let SweepWindow { range, zone, .. } = *window;
        let put = self.quarters(session, &mut rules, range, Assumed::Absent, done).await?;
        self.days_ended(session, &mut rules, zone, range, Assumed::Absent, done).await?;
        Ok(put)
    }

    /// Leaves the quarters of a device to the queue, where a person also finds a device whose item is damaged.
    async fn leave_device(
        &self,
        device: &DeviceId,
        why: &str,
        range: TimeRange,
        run: &mut ScheduledRun<'_, S>,
    ) -> Result<(), NotDone> {
        let of_device = |quarter| FoldRequest { device: device.clone(), quarter };
        let requests: Vec<_> = quarters_in(range).map(of_device).collect();
        self.leave_all(run.noting, &requests, why, &mut run.done).await
    }
}

/// The largest number of quarters of a window, at most a day's. The rollups of all devices in a window must cost no
/// more write units than an invocation has.
fn most_quarters(devices: usize, write_units_of_invocation: u64) -> i32 {
    let rollups =
        usize::try_from(write_units_of_invocation).unwrap_or(usize::MAX).min(MAX_WINDOW_ROLLUPS);
    let quarters = (rollups / devices.max(1)).clamp(1, QUARTERS_OF_DAY);
    i32::try_from(quarters).unwrap_or(1)
}
