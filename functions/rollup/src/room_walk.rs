//! Notes the rooms of rollups that were folded before rooms were noted: once in a table's life, device by
//! device. Folds nothing.

use std::sync::atomic::Ordering;

use chrono::TimeDelta;
use domain::{DeviceId, MAX_ROLLUP_ROOMS, Order, TimeRange, Timestamp, Zone};
use rollups::{NamedRooms, Registered, named_by_readings, named_by_rollup};
use runtime::clock::Clock;
use runtime::work_queue::WorkQueue;
use table::{Invocation, RoomWalk, StoreResult, StoredRollup};

use crate::bucket_folding::{BucketFolding, NotFolded};
use crate::memory::ListedDevice;
use crate::ports::Store;
use crate::run::Run;

/// The time before the walk: an instance of a version that notes no rooms may fold until its invocation is over,
/// at most 5 minutes after the new version is deployed.
const WAIT: TimeDelta = TimeDelta::minutes(10);
/// The number of devices after which it is stored how far the walk is.
const CHUNK: usize = 50;
/// More days than are stored of any device.
const ALL_DAYS: usize = 100_000;

impl<S: Store, W: WorkQueue, C: Clock> BucketFolding<S, W, C> {
    /// Notes that there is nothing to walk: the table was empty when the function first ran.
    pub(crate) async fn skip_room_walk(&self, invocation: &Invocation) -> StoreResult<()> {
        let walk = RoomWalk { begun: self.clock.now(), after: None, is_done: true };
        self.store.set_room_walk(&walk, invocation).await
    }

    /// Goes on with the walk, if it is not over. What the turn does not suffice for is left to the next
    /// invocation.
    pub(crate) async fn walk_rooms(
        &self,
        (zone, now): (Zone, Timestamp),
        run: &mut Run<'_>,
    ) -> Result<(), NotFolded> {
        if self.walked.0.load(Ordering::Relaxed) {
            return Ok(());
        }
        let Some(mut walk) = self.store.room_walk(run.invocation).await? else {
            let walk = RoomWalk { begun: now, after: None, is_done: false };
            return Ok(self.store.set_room_walk(&walk, run.invocation).await?);
        };
        if !walk.is_done && now < walk.begun.saturating_add(WAIT) {
            return Ok(());
        }
        if !walk.is_done {
            // A device that is registered later has no older rollups.
            let listed = self.listed_since(walk.begun, run.invocation).await?;
            let left = listed.devices.partition_point(|it| Some(&it.id) <= walk.after.as_ref());
            for devices in listed.devices[left..].chunks(CHUNK) {
                for device in devices {
                    if run.pace.is_turn_over() {
                        return Ok(());
                    }
                    self.walk_device(device, (zone, now), run.invocation).await?;
                    run.pace.keep(run.invocation).await;
                }
                walk.after = devices.last().map(|device| device.id.clone());
                self.store.set_room_walk(&walk, run.invocation).await?;
            }
            walk.is_done = true;
            self.store.set_room_walk(&walk, run.invocation).await?;
        }
        self.walked.0.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Notes the rooms of all rollups of a device: those of its days, and of quarters where a day has none.
    async fn walk_device(
        &self,
        device: &ListedDevice,
        (zone, now): (Zone, Timestamp),
        invocation: &Invocation,
    ) -> StoreResult<()> {
        let dates = zone.date(Timestamp::MIN)..=zone.date(now);
        let order = Order::Ascending;
        let days = self.store.days(&device.id, dates, order, ALL_DAYS, invocation).await?;
        let mut named = NamedRooms::new();
        let mut covered_until = Timestamp::MIN;
        for day in &days {
            let before = TimeRange::new(covered_until, day.range.from());
            let whole = may_lack_rooms(day).then_some(day.range);
            for gap in before.ok().into_iter().chain(whole) {
                named.append(&mut self.named_in(&device.id, gap, invocation).await?);
            }
            named.append(&mut named_by_rollup(day));
            covered_until = day.range.to().max(covered_until);
        }
        if let Ok(rest) = TimeRange::new(covered_until, now) {
            named.append(&mut self.named_in(&device.id, rest, invocation).await?);
        }
        let device = Registered { device: &device.id, settings: device.fold_settings.number };
        self.seen.note(&self.store, device, &named, now, invocation).await
    }

    /// The rooms of the quarters in a range. One that names as many as a rollup may is looked up in its readings.
    async fn named_in(
        &self,
        device: &DeviceId,
        range: TimeRange,
        invocation: &Invocation,
    ) -> StoreResult<NamedRooms> {
        let mut named = NamedRooms::new();
        for quarter in self.store.quarters(device, range, true, invocation).await? {
            if may_lack_rooms(&quarter) {
                let readings = self.store.stored_readings(device, quarter.range, invocation);
                named.append(&mut named_by_readings(&readings.await?));
            }
            named.append(&mut named_by_rollup(&quarter));
        }
        Ok(named)
    }
}

fn may_lack_rooms(stored: &StoredRollup) -> bool {
    stored.rollup.rooms.len() >= MAX_ROLLUP_ROOMS
}
