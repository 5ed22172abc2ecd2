//! Folds rollups of a device again after a change of its settings. Does not touch time that no sweep has folded yet.

use domain::{Extent, Order, QuarterHour, SWEEP_GROUPS, TimeRange, Timestamp, Zone, sweep_group};
use rollups::{Assumed, SKEW, newest_sealable_end};
use runtime::clock::Clock;
use runtime::work_queue::WorkQueue;
use table::{NearestReading, Refold, Session, StoreResult};

use crate::bucket_folding::{BucketFolding, NotDone, window_end};
use crate::memory::ListedDevice;
use crate::ports::Store;
use crate::run::{MAX_HOME, ScheduledRun};

impl<S: Store, W: WorkQueue, C: Clock> BucketFolding<S, W, C> {
    /// After a change of devices' settings, folds the affected rollups again, as far as each device's group is swept.
    /// Leaves the rest to the next invocation when the time is over. A device that fails does not delay others.
    pub(crate) async fn refold(
        &self,
        sealed_until: &[Timestamp; SWEEP_GROUPS],
        zone: Zone,
        now: Timestamp,
        run: &mut ScheduledRun<'_, S>,
    ) -> Result<(), NotDone> {
        // A remembered list is enough, because a change that is missing in it is in the next list. But a person waits
        // for the effect of new settings, and reading a home's list costs next to nothing, so this list is read again.
        let mut listed = self.listed_since(run.session, Timestamp::MIN).await?;
        if listed.devices.len() <= MAX_HOME {
            listed = self.listed_since(run.session, now).await?;
        }

        // A sweep whose clock was ahead may have folded quarters up to this time with a list from before the change, so
        // without the new settings.
        let last_target = newest_sealable_end(listed.read_at.saturating_add(SKEW));

        let changed = listed.devices.iter().filter(|device| {
            let refolded = self.refolded.get(&device.id, now).unwrap_or(0);
            refolded < device.fold_settings.number
        });
        let mut changed: Vec<_> = changed.collect();
        // The order is random: in a fixed order, some devices would always wait behind throttled devices.
        fastrand::shuffle(&mut changed);

        let mut refolded = Ok(());
        for device in changed {
            if refolded.is_err() && run.pace.is_time_over() {
                break;
            }
            let sealed_until = sealed_until[sweep_group(&device.id)];
            let is_last = sealed_until >= last_target;
            let folded = self.refold_device(device, sealed_until, is_last, zone, run).await;
            refolded = refolded.and(folded);
        }

        refolded
    }

    /// Folds the rollups before `sealed_until` again that the device's newest settings affect. Stores that this is
    /// done, unless later quarters may need the same.
    async fn refold_device(
        &self,
        device: &ListedDevice,
        sealed_until: Timestamp,
        is_last: bool,
        zone: Zone,
        run: &mut ScheduledRun<'_, S>,
    ) -> Result<(), NotDone> {
        let (id, number) = (&device.id, device.fold_settings.number);
        let part = run.session.invocation.with_quarter_of(run.pace.remaining());
        let session = run.session.within(&part);
        let known = session.refold(id).await?;
        let Some(changed) = device.fold_settings.changed_since(known.settings) else {
            self.refolded.keep(id.clone(), number, session.now);
            return Ok(());
        };

        let mut from = match known.under_way {
            Some((under_way, until)) if under_way == number => until,
            _ => self.first_quarter(session, device, changed).await?,
        };
        let last_day = zone.day(zone.date(changed.last));
        let to = last_day.map_or(sealed_until, |day| day.to().min(sealed_until));

        let indexing = session.indexing().await?;
        let mut rules = device.rules(&indexing);
        while let Ok(range) = TimeRange::new(from, window_end(from, to)) {
            if run.pace.is_time_over() {
                return Ok(());
            }

            let part = run.session.invocation.with_quarter_of(run.pace.remaining());
            let (session, done) = (run.session.within(&part), &mut run.done);
            self.quarters(session, &mut rules, range, Assumed::Nothing, done).await?;
            self.days_ended(session, &mut rules, zone, range, Assumed::Nothing, done).await?;

            from = range.to();
            let under_way = Some((number, from));
            let refold = Refold { under_way, ..known };
            session.set_refold(id, &refold).await?;
            run.pace.wait(run.session.invocation).await;
        }

        if is_last || to < sealed_until {
            let done = Refold { settings: number, under_way: None };
            session.set_refold(id, &done).await?;
            self.refolded.keep(id.clone(), number, run.session.now);
        }
        Ok(())
    }

    /// The first quarter that a change affects, but not before the device's first reading. This reading is looked up in
    /// the table, because the registry may not have its time yet.
    async fn first_quarter(
        &self,
        session: Session<'_, S>,
        device: &ListedDevice,
        changed: Extent,
    ) -> StoreResult<Timestamp> {
        let range =
            TimeRange::new(Timestamp::MIN, Timestamp::MAX).expect("one is before the other");
        let (id, order) = (&device.id, Order::Ascending);
        let oldest = NearestReading { device: id, range, order, consistent: true };
        let oldest = oldest.find(session).await?;
        let first = oldest.map_or(device.first_seen, |reading| reading.at);
        Ok(QuarterHour::of(changed.first.max(first.min(device.first_seen))).start())
    }
}
