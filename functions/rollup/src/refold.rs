//! Folds rollups of a device again after a change of its settings. Does not touch what is not sealed yet.

use domain::{Extent, Order, QuarterHour, SWEEP_GROUPS, TimeRange, Timestamp, Zone, sweep_group};
use rollups::{Assumed, SKEW, newest_sealable_edge};
use runtime::clock::Clock;
use runtime::work_queue::WorkQueue;
use table::{Invocation, NearestReading, Refold, StoreResult};

use crate::bucket_folding::{BucketFolding, NotFolded, for_one_device, window_end};
use crate::memory::ListedDevice;
use crate::ports::Store;
use crate::run::{MAX_HOME, Run};

impl<S: Store, W: WorkQueue, C: Clock> BucketFolding<S, W, C> {
    /// Folds again what new settings of devices concern, each as far as its group is sealed. What the
    /// turn does not suffice for is left to the next invocation. A device that fails holds up no other.
    pub(crate) async fn refold(
        &self,
        sealed_until: &[Timestamp; SWEEP_GROUPS],
        zone: Zone,
        now: Timestamp,
        run: &mut Run<'_>,
    ) -> Result<(), NotFolded> {
        // Any list serves: a change that it does not have yet is found in the next one. A home's list costs
        // next to nothing, and a person waits for what the new settings say.
        let mut listed = self.listed_since(Timestamp::MIN, run.invocation).await?;
        if listed.devices.len() <= MAX_HOME {
            listed = self.listed_since(now, run.invocation).await?;
        }

        // A list without the settings was read before this one, by a clock that may be ahead: its reader
        // may have sealed quarters up to here.
        let last_target = newest_sealable_edge(listed.read_at.saturating_add(SKEW));

        let changed = listed.devices.iter().filter(|device| !self.refolded.is_done(device));
        let mut changed: Vec<_> = changed.collect();
        // In a fixed order some would wait for ever behind others that the table throttles.
        fastrand::shuffle(&mut changed);

        let mut refolded = Ok(());
        for device in changed {
            if refolded.is_err() && run.pace.is_turn_over() {
                break;
            }
            let sealed_until = sealed_until[sweep_group(&device.id)];
            let is_last = sealed_until >= last_target;
            let folded = self.refold_device(device, sealed_until, is_last, zone, run).await;
            refolded = refolded.and(folded);
        }
        refolded
    }

    /// Folds again up to `sealed_until` what the device's newest settings concern. Notes that all is done, unless quarters
    /// that are sealed later need the settings too.
    async fn refold_device(
        &self,
        device: &ListedDevice,
        sealed_until: Timestamp,
        is_last: bool,
        zone: Zone,
        run: &mut Run<'_>,
    ) -> Result<(), NotFolded> {
        let (id, number) = (&device.id, device.fold_settings.number);
        let invocation = &for_one_device(run.invocation);
        let known = self.store.refold(id, invocation).await?;
        let Some(changed) = device.fold_settings.changed_since(known.settings) else {
            self.refolded.note(device);
            return Ok(());
        };

        let mut from = match known.under_way {
            Some((under_way, until)) if under_way == number => until,
            _ => self.first_quarter(device, changed, invocation).await?,
        };
        let last_day = zone.day(zone.date(changed.last));
        let to = last_day.map_or(sealed_until, |day| day.to().min(sealed_until));

        let indexing = self.store.indexing(invocation).await?;
        let mut rules = device.rules(&indexing);
        while let Ok(range) = TimeRange::new(from, window_end(from, to)) {
            if run.pace.is_turn_over() {
                return Ok(());
            }
            let Run { invocation, done, .. } = &mut *run;
            let invocation = &for_one_device(invocation);
            self.quarters(&mut rules, range, Assumed::Nothing, invocation, done).await?;
            self.days_ended(&mut rules, zone, range, Assumed::Nothing, invocation, done).await?;

            from = range.to();
            let under_way = Some((number, from));
            let refold = Refold { under_way, ..known };
            self.store.set_refold(id, &refold, invocation).await?;
            run.pace.keep(run.invocation).await;
        }

        if is_last || to < sealed_until {
            let done = Refold { settings: number, under_way: None };
            self.store.set_refold(id, &done, run.invocation).await?;
            self.refolded.note(device);
        }
        Ok(())
    }

    /// The first quarter that a change concerns: not before the first reading, which the registry may not
    /// have noted yet.
    async fn first_quarter(
        &self,
        device: &ListedDevice,
        changed: Extent,
        invocation: &Invocation,
    ) -> StoreResult<Timestamp> {
        let range =
            TimeRange::new(Timestamp::MIN, Timestamp::MAX).expect("one is before the other");
        let (id, order) = (&device.id, Order::Ascending);
        let oldest = NearestReading { device: id, range, order, consistent: true };
        let oldest = oldest.find(&self.store, invocation).await?;
        let first = oldest.map_or(device.first_seen, |reading| reading.at);
        Ok(QuarterHour::of(changed.first.max(first.min(device.first_seen))).start())
    }
}
