//! The mean of a room's values in each quarter of an hour, computed as for a series; for values that add up, the sum.
//! Judges nothing.

use std::collections::{BTreeMap, BTreeSet};

use alerts::{MAX_BACK, Observation, ReadingsBefore, Rule, Start};
use chrono::TimeDelta;
use domain::{
    Aggregate, Device, DeviceId, MetricName, MetricRule, QuarterHour, RoomId, TimeRange, Timestamp,
    meter_of, meters_above,
};
use series::{
    Combine, DeviceQuestion, DeviceRows, Grid, Horizon, Level, MAX_DEVICES, Presence, SeriesError,
    device_rows, value_of,
};

use crate::Result;
use crate::devices::ListedDevices;
use crate::judging::JudgingSession;
use crate::ports::Store;

/// The time without a new mean after which a room counts as silent. Many sensors send each hour, or a little less
/// often.
pub(crate) const ROOM_SILENCE: TimeDelta = TimeDelta::hours(3);
/// The longest time from a quarter's end until the next quarter's rollup is complete: that quarter's own length, eleven
/// minutes of waiting, a round through all groups of devices, and the time that making rollups takes.
const SEALED_WITHIN: TimeDelta = TimeDelta::minutes(44);

/// Means of a room, each at the end of its quarter.
pub(crate) struct RoomMeans {
    pub(crate) values: Vec<Observation>,
    /// The time up to which means are known; `None` if the mean has no devices.
    until: Option<Timestamp>,
}

impl RoomMeans {
    /// The range in which it is not known yet whether the room was silent: it begins when the next mean should have
    /// been known, and ends now. `None` if rollups do not lag, or the mean has no devices.
    pub(crate) fn overdue(&self, now: Timestamp) -> Option<TimeRange> {
        TimeRange::new(self.until?.saturating_add(SEALED_WITHIN), now).ok()
    }
}

/// The mean of a metric over the devices that are in a room now.
pub(crate) struct RoomMean<'a> {
    room: &'a RoomId,
    /// A set of only this room.
    rooms: BTreeSet<RoomId>,
    metric: &'a MetricName,
    /// The devices whose values count in the mean.
    members: Vec<&'a Device>,
    devices: &'a ListedDevices,
    horizon: &'a Horizon,
}

impl<'a> RoomMean<'a> {
    /// The mean over the devices that are registered in a room.
    pub(crate) fn of(
        room: &'a RoomId,
        metric: &'a MetricName,
        devices: &'a ListedDevices,
        horizon: &'a Horizon,
    ) -> Self {
        let is_member = |device: &&Device| {
            device.place().room() == Some(room)
                && device.metrics().contains_key(metric)
                && device.not_of_room(metric).is_none()
        };
        let members = devices.iter().filter(is_member).collect();
        let rooms = BTreeSet::from([room.clone()]);
        Self { room, rooms, metric, members, devices, horizon }
    }

    fn ask<'b>(&'b self, device: &'b Device, grid: &'b Grid, now: Timestamp) -> DeviceQuestion<'b> {
        let of_device = DeviceQuestion::of(device, grid, self.horizon, Level::QuarterHours, now);
        DeviceQuestion { rooms: Some(&self.rooms), ..of_device }
    }

    /// Combines the values of devices, each quarter by itself, so that a mean does not depend on where the fold begins.
    fn combine(
        &self,
        found: &[DeviceRows<'_>],
        presences: &BTreeMap<&DeviceId, Presence>,
        grid: &Grid,
    ) -> Vec<Observation> {
        let mut values = vec![Vec::new(); grid.rows().len()];
        let mut combine = Combine::Mean;
        for device in found {
            for metric in device.metrics.values() {
                combine = Combine::of(&metric.rule);
                for (index, row) in metric.rows.iter().enumerate() {
                    let is_there = |id: &DeviceId| {
                        let presence = presences.get(id);
                        presence.is_some_and(|presence| presence.is_mostly_in(grid.rows()[index]))
                    };
                    if meter_of(device.device.id(), |id| self.behind(id), is_there).is_none() {
                        values[index].extend(value_of(Aggregate::Mean, row));
                    }
                }
            }
        }

        let mean = |(range, values): (&TimeRange, Vec<_>)| {
            let value = combine.value(Aggregate::Mean, &values)?.rounded().to_decimal().ok()?;
            Some(Observation { at: range.to(), value: Some(value) })
        };
        grid.rows().iter().zip(values).filter_map(mean).collect()
    }

    fn behind(&self, id: &DeviceId) -> Option<&'a DeviceId> {
        self.devices.get(id)?.behind()
    }

    /// The time up to which the rollups of all members are complete; `None` without members.
    pub(crate) fn sealed_until(&self) -> Option<Timestamp> {
        let sealed = self.members.iter().map(|device| self.horizon.rolled_up(device.id()));
        sealed.map(|sealed| sealed.map_or(Timestamp::MIN, TimeRange::to)).min()
    }
}

impl<S: Store> JudgingSession<'_, S> {
    /// The means that a fold needs: all after its start, and before the start those of [`Start::before`].
    pub(crate) async fn means_since(
        &self,
        mean: &RoomMean<'_>,
        rule: &Rule,
        start: &Start,
    ) -> Result<RoomMeans> {
        let quarter = QuarterHour::of(start.from()).start();
        let means_from = |lead: TimeDelta| {
            let from = QuarterHour::of(quarter.saturating_add(-lead)).start();
            self.means_between(mean, from, Timestamp::MAX)
        };
        let is_decisive = |value: &Observation| {
            value.at <= start.from() && rule.is_decisive(value.value.as_ref())
        };
        let longest = start.from().since(start.looks_back_to());

        for lead in [QuarterHour::LENGTH, MAX_BACK] {
            let means = means_from(lead).await?;
            let needs_more = start.before() == ReadingsBefore::Decisive && lead < longest;
            if !needs_more || means.values.iter().any(is_decisive) {
                return Ok(means);
            }
        }

        means_from(longest).await
    }

    /// The means of a range. The last mean is before the first quarter for which some device of the room has no
    /// complete rollup.
    pub(crate) async fn means_between(
        &self,
        mean: &RoomMean<'_>,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<RoomMeans> {
        if mean.members.len() > MAX_DEVICES {
            let RoomMean { room, metric, members, .. } = mean;
            let number = members.len();
            return Err(SeriesError::OutOfReach(format!(
                "The mean of a room is of at most {MAX_DEVICES} devices; {room} has {number} with {metric}."
            )));
        }

        let sealed = mean.sealed_until();
        let Some(range) = sealed.and_then(|sealed| TimeRange::new(from, to.min(sealed)).ok())
        else {
            return Ok(RoomMeans { values: Vec::new(), until: sealed });
        };

        let grid = Grid::quarters(range);
        let (names, needs_neighbours) = (std::slice::from_ref(mean.metric), |_: &MetricRule| false);
        let mut found = Vec::new();
        for device in &mean.members {
            let ask = mean.ask(device, &grid, self.table.now);
            let values = device_rows(self.table, &ask, names, needs_neighbours);
            found.push(values.await?);
        }

        let mut until = range.to();
        if mean.horizon.waiting_quarters().is_some() {
            for values in &found {
                until = until.min(values.folded_until(self.table, range).await?);
            }
        }

        let presences = self.presences(mean, &found, &grid).await?;
        let mut values = mean.combine(&found, &presences, &grid);
        values.retain(|value| value.at <= until);
        Ok(RoomMeans { values, until: Some(until) })
    }

    /// For a sum, by device: when the meters that also measure other devices of the sum were in the room. Empty for a
    /// mean.
    async fn presences<'m>(
        &self,
        mean: &'m RoomMean<'_>,
        found: &[DeviceRows<'m>],
        grid: &'m Grid,
    ) -> Result<BTreeMap<&'m DeviceId, Presence>> {
        let mut metrics = found.iter().flat_map(|device| device.metrics.values());
        if !metrics.any(|metric| Combine::of(&metric.rule) == Combine::Sum) {
            return Ok(BTreeMap::new());
        }

        let having: BTreeSet<&DeviceId> = found.iter().map(|device| device.device.id()).collect();
        let above = having.iter().flat_map(|id| meters_above(id, |id| mean.behind(id)));
        let meters: BTreeSet<&DeviceId> = above.filter(|id| having.contains(id)).collect();
        let devices: Vec<&Device> = found.iter().map(|values| values.device).collect();
        let meters = found.iter().filter(|values| meters.contains(values.device.id()));
        let meters: Vec<_> = meters.collect();
        let question = |device| mean.ask(device, grid, self.table.now);
        series::presences(self.table, &meters, question, &devices, |id| mean.behind(id)).await
    }
}
