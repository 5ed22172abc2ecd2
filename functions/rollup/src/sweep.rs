//! Sweeps groups of devices: folds each quarter once it is over, and each day. Chooses no groups.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::TimeDelta;
use domain::{DeviceId, QuarterHour, Rollup, TimeRange, Timestamp, Zone, sweep_group};
use rollups::{Assumed, DeviceRules, GRACE, SKEW};
use runtime::clock::Clock;
use runtime::telemetry::chain;
use runtime::work_queue::WorkQueue;
use table::{Invocation, QueueDepth, StoreError, StoreResult, UnreadableItem};

use crate::bucket_folding::{BucketFolding, NotFolded, quarters_in};
use crate::memory::ListedDevices;
use crate::ports::Store;
use crate::run::Run;

/// The most rollups of a window, where the table bears more.
const MAX_WINDOW_ROLLUPS: usize = 10_000;
/// The quarters of the longest window, which has to fit into memory.
const QUARTERS_OF_DAY: usize = 96;

impl<S: Store, W: WorkQueue, C: Clock> BucketFolding<S, W, C> {
    /// Folds the quarters and days of the groups' devices that end after `sealed_until`, up to `target` or until the turn
    /// is over. Returns up to where they are sealed then.
    ///
    /// `sealed_until` moves by a window, when all devices are done or left to the queue: a sweep that is far behind and
    /// stops continues there. So a window has to fit into an invocation, however many devices there are.
    pub(crate) async fn sweep(
        &self,
        groups: &BTreeSet<usize>,
        (mut sealed_until, target): (Timestamp, Timestamp),
        zone: Zone,
        run: &mut Run<'_>,
    ) -> Result<Timestamp, NotFolded> {
        let indexing = &self.store.indexing(run.invocation).await?;
        let listed = self.listed_for(target, run.invocation).await?;
        let of_group = |id: &DeviceId| groups.contains(&sweep_group(id));
        let devices: Vec<_> = listed.devices.iter().filter(|device| of_group(&device.id)).collect();
        let length = window_length(devices.len(), run.pace.write_units_of_turn());
        let end = |from: Timestamp| from.saturating_add(length).min(target);

        while let Ok(range) = TimeRange::new(sealed_until, end(sealed_until)) {
            let mut looks = self.looks_of(range, run).await?;
            for device in &devices {
                if run.invocation.remaining().is_zero() {
                    return Err(StoreError::TimedOut.into());
                }
                let put = self.sweep_device(device.rules(indexing), range, zone, run).await?;
                looks.add(&device.id, put);
                run.pace.keep(run.invocation).await;
            }
            for item in &listed.unreadable {
                let id: Option<DeviceId> = item.sk.parse().ok();
                if let Some(id) = id.filter(of_group) {
                    self.leave_unreadable(&id, item, range, run).await?;
                }
            }

            // Before the mark moves: who comes after a crash leaves them again.
            self.note_looks(looks, run).await?;
            let queue = self.queue_depth(run).await;
            self.store.advance_sealed(groups, range.to(), queue, run.invocation).await?;
            sealed_until = range.to();
            if run.pace.is_turn_over() {
                break;
            }
        }
        Ok(sealed_until)
    }

    /// What waits in the queue now; `None` where the queue does not tell, which holds up no sweep.
    async fn queue_depth(&self, run: &Run<'_>) -> Option<QueueDepth> {
        let messages = self.queue.depth(run.invocation).await.ok()?;
        Some(QueueDepth { messages, at: self.clock.now() })
    }

    /// The devices that may have left quarters up to `target` to the sweep: one that is registered later than
    /// this has left none.
    pub(crate) async fn listed_for(
        &self,
        target: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<Arc<ListedDevices>> {
        self.listed_since(target.saturating_add(GRACE + SKEW), invocation).await
    }

    async fn sweep_device(
        &self,
        mut rules: DeviceRules,
        range: TimeRange,
        zone: Zone,
        run: &mut Run<'_>,
    ) -> Result<BTreeMap<QuarterHour, Rollup>, NotFolded> {
        let Run { invocation, done, .. } = run;
        done.devices += 1;
        let put = self.quarters(&mut rules, range, Assumed::Absent, invocation, done).await?;
        self.days_ended(&mut rules, zone, (range, Assumed::Absent), invocation, done).await?;
        Ok(put)
    }

    /// Leaves a device whose item is damaged to the queue, where somebody finds it.
    async fn leave_unreadable(
        &self,
        device: &DeviceId,
        item: &UnreadableItem,
        range: TimeRange,
        run: &mut Run<'_>,
    ) -> Result<(), NotFolded> {
        let why = chain(item);
        for quarter in quarters_in(range) {
            self.leave_to_queue(device, quarter, &why, run.invocation, &mut run.done).await?;
        }
        Ok(())
    }
}

/// The time that is swept at once: a day at most, and no more quarters of all devices together than a turn has write units
/// for. An invocation may take six turns, so it is done with the window although reading takes its time too.
fn window_length(devices: usize, write_units_of_turn: u64) -> TimeDelta {
    let rollups =
        usize::try_from(write_units_of_turn).unwrap_or(usize::MAX).min(MAX_WINDOW_ROLLUPS);
    let quarters = (rollups / devices.max(1)).clamp(1, QUARTERS_OF_DAY);
    QuarterHour::LENGTH * i32::try_from(quarters).unwrap_or(1)
}
