//! The mean of a room by quarters of an hour, or the sum of what adds up, as a series has it. Judges nothing.

use std::collections::{BTreeMap, BTreeSet};

use alerts::{Observation, Start};
use chrono::TimeDelta;
use domain::{
    Device, DeviceId, MetricName, MetricRule, QuarterHour, RoomId, TimeRange, Timestamp, meter_of,
    meters_above,
};
use series::{
    Ask, Combine, Failure, Function, Grid, Horizon, Level, MAX_DEVICES, Presence, device_values,
    value_of,
};
use table::Invocation;

use crate::devices::Devices;
use crate::ports::Store;

/// After how long a mean of a room says nothing any more.
pub(crate) const ROOM_SILENCE: TimeDelta = TimeDelta::hours(1);
/// For how long a quarter is the newest sealed one, from its end on: a quarter of an hour, the eleven minutes before the
/// next one may be sealed, a round of all groups, and the sweep itself.
const SEALED_WITHIN: TimeDelta = TimeDelta::minutes(44);

/// The means that a fold needs: each at the end of its quarter, up to what is sealed of all the room's devices. The
/// devices are those that are in the room now.
pub(crate) async fn observations(
    store: &impl Store,
    (room, metric): (&RoomId, &MetricName),
    devices: &Devices,
    horizon: &Horizon,
    start: &Start,
    now: Timestamp,
    invocation: &Invocation,
) -> Result<Vec<Observation>, Failure> {
    let from =
        QuarterHour::of(QuarterHour::of(start.from()).start().saturating_add(-QuarterHour::LENGTH));
    let range = |to: Timestamp| TimeRange::new(from.start(), to).ok();
    means(store, (room, metric), devices, (range, horizon), now, invocation).await
}

/// The means of a room in a range that may depend on what is sealed.
pub(crate) async fn means(
    store: &impl Store,
    (room, metric): (&RoomId, &MetricName),
    devices: &Devices,
    (range, horizon): (impl Fn(Timestamp) -> Option<TimeRange>, &Horizon),
    now: Timestamp,
    invocation: &Invocation,
) -> Result<Vec<Observation>, Failure> {
    let members = members(devices, room, metric);
    if members.len() > MAX_DEVICES {
        let number = members.len();
        return Err(Failure::OutOfReach(format!(
            "The mean of a room is of at most {MAX_DEVICES} devices; {room} has {number} with {metric}."
        )));
    }
    let sealed = sealed_until(&members, horizon);
    let Some(range) = sealed.and_then(range) else { return Ok(Vec::new()) };
    let (grid, rooms) = (Grid::quarters(range), BTreeSet::from([room.clone()]));
    let ask = |device| {
        let ask = Ask::of(device, (&grid, horizon), Level::QuarterHours, now);
        Ask { rooms: Some(&rooms), ..ask }
    };
    let (names, spans) = (std::slice::from_ref(metric), |_: &MetricRule| false);
    let mut found = Vec::new();
    for device in members {
        found.push(device_values(store, &ask(device), names, spans, invocation).await?);
    }
    let adds_up = found.iter().flat_map(|device| device.metrics.values());
    let adds_up =
        adds_up.map(|rows| Combine::of(&rows.rule)).any(|combine| combine == Combine::Sum);
    let behind = |id: &DeviceId| devices.get(id)?.behind();

    let mut presences: BTreeMap<&DeviceId, Presence> = BTreeMap::new();
    let having: BTreeSet<&DeviceId> = found.iter().map(|device| device.device.id()).collect();
    let above = having.iter().filter(|_| adds_up).flat_map(|id| meters_above(id, behind));
    let meters: BTreeSet<&DeviceId> = above.filter(|id| having.contains(id)).collect();
    for meter in found.iter().filter(|device| meters.contains(device.device.id())) {
        let question = ask(meter.device);
        let presence = Presence::of(store, &question, meter, invocation).await?;
        presences.insert(meter.device.id(), presence);
    }

    let mut values = vec![Vec::new(); grid.rows().len()];
    let mut combine = Combine::Mean;
    for device in &found {
        for metric in device.metrics.values() {
            combine = Combine::of(&metric.rule);
            for (place, row) in metric.rows.iter().enumerate() {
                // Quarter by quarter: a mean depends on nothing but its quarter, however long the fold is.
                let is_there = |id: &DeviceId| {
                    presences.get(id).is_some_and(|it| it.is_mostly_in(grid.rows()[place]))
                };
                if meter_of(device.device.id(), behind, is_there).is_none() {
                    values[place].extend(value_of(Function::Mean, row));
                }
            }
        }
    }
    let rows = grid.rows().iter().zip(values);
    let mean = |(range, values): (&TimeRange, Vec<_>)| {
        let value = combine.value(Function::Mean, &values)?.rounded().to_decimal().ok()?;
        Some(Observation { at: range.to(), value: Some(value) })
    };
    Ok(rows.filter_map(mean).collect())
}

/// The time whose quarters should be sealed by now and are not, because the sweep is behind. Nobody can tell whether the
/// room was silent in it.
pub(crate) fn overdue(
    room: &RoomId,
    metric: &MetricName,
    devices: &Devices,
    horizon: &Horizon,
    now: Timestamp,
) -> Option<TimeRange> {
    let sealed = sealed_until(&members(devices, room, metric), horizon)?;
    TimeRange::new(sealed.saturating_add(SEALED_WITHIN), now).ok()
}

/// The end of the time that is sealed of all members; `None` without members.
fn sealed_until(members: &[&Device], horizon: &Horizon) -> Option<Timestamp> {
    let sealed = members.iter().map(|device| horizon.rolled_up(device.id()));
    sealed.map(|sealed| sealed.map_or(Timestamp::MIN, TimeRange::to)).min()
}

/// The devices whose values make the mean.
fn members<'a>(devices: &'a Devices, room: &RoomId, metric: &MetricName) -> Vec<&'a Device> {
    let is_there = |device: &&Device| {
        device.place().room() == Some(room)
            && device.metrics().contains_key(metric)
            && device.not_of_room(metric).is_none()
    };
    devices.iter().filter(is_there).collect()
}
