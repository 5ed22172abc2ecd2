//! Which devices a series is about. Reads only what tells where a device has been.

use chrono::TimeDelta;
use domain::{Device, DeviceId, Order, Place, RoomId, TimeRange, Timestamp};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use runtime::registry::Snapshot;
use serde::Serialize;
use table::{Invocation, ReadRollups};

use super::failure::Failure;
use super::gather::MAX_ROLLUPS;
use super::horizon::Horizon;

/// The largest number of devices of one answer.
const MAX_DEVICES: usize = 200;
/// The number of devices that are asked at once.
pub(crate) const DEVICE_CONCURRENCY: usize = 4;
/// A stay that ended this shortly before the seal may not be in a day's rollup yet.
const UNSURE: TimeDelta = TimeDelta::days(2);

/// A device whose values are a part of another's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LeftOut<'a> {
    device_id: &'a DeviceId,
    behind: &'a DeviceId,
}

/// The devices that may have readings of a room in a range: those that the registry says are in it, and
/// those of which their rollups say so.
///
/// A device that a reading has moved elsewhere was in this room at the most before that reading, so only
/// that time is asked about.
pub(crate) async fn of_room<'a>(
    store: &impl ReadRollups,
    snapshot: &'a Snapshot,
    room: &RoomId,
    range: TimeRange,
    horizon: &Horizon,
    invocation: &Invocation,
) -> Result<Vec<&'a Device>, Failure> {
    let asked = snapshot.devices.values().map(|device| async move {
        let is_in = device.place.room() == Some(room)
            || match earlier(device, range) {
                Some(range) => was_in(store, device, room, range, horizon, invocation).await?,
                None => false,
            };
        Ok::<_, Failure>(is_in.then_some(device))
    });
    let asked: Vec<_> = asked.collect();
    let found = stream::iter(asked).buffered(DEVICE_CONCURRENCY).try_collect::<Vec<_>>().await?;
    limited(found.into_iter().flatten().collect())
}

/// All devices of the home.
pub(crate) fn of_home(snapshot: &Snapshot) -> Result<Vec<&Device>, Failure> {
    limited(snapshot.devices.values().collect())
}

fn limited(devices: Vec<&Device>) -> Result<Vec<&Device>, Failure> {
    if devices.len() <= MAX_DEVICES {
        return Ok(devices);
    }
    Err(Failure::OutOfReach(format!(
        "This is about {} devices; one request answers for at most {MAX_DEVICES}. Ask room by room, or \
         device by device.",
        devices.len()
    )))
}

/// The part of a range in which a device may have been elsewhere than it is.
fn earlier(device: &Device, range: TimeRange) -> Option<TimeRange> {
    let to = match &device.place {
        Place::Learned(_, since) => range.to().min(*since),
        Place::Chosen(_) | Place::Unknown => range.to(),
    };
    TimeRange::new(range.from().max(device.first_seen), to).ok()
}

async fn was_in(
    store: &impl ReadRollups,
    device: &Device,
    room: &RoomId,
    range: TimeRange,
    horizon: &Horizon,
    invocation: &Invocation,
) -> Result<bool, Failure> {
    let sealed = horizon.rolled_up(&device.id).map_or(Timestamp::MIN, TimeRange::to);
    if range.to() > sealed.saturating_add(-UNSURE) {
        return Ok(true);
    }
    let zone = horizon.zone();
    let dates = (zone.date(range.from()), zone.date(range.last()));
    let days = store.days(&device.id, dates, Order::Ascending, MAX_ROLLUPS, invocation).await?;
    let names = |it: &Option<RoomId>| it.as_ref() == Some(room);
    Ok(days.iter().any(|day| day.rollup.rooms.iter().any(names)))
}

/// The meter of a device among `counted`, directly or by way of others: then its sum holds the device's.
pub(crate) fn meter_of<'a>(
    device: &'a Device,
    snapshot: &'a Snapshot,
    counted: impl Fn(&DeviceId) -> bool,
) -> Option<&'a DeviceId> {
    let mut next = device.behind.as_ref();
    for _ in 0..snapshot.devices.len() {
        let meter = next?;
        if counted(meter) && *meter != device.id {
            return Some(meter);
        }
        next = snapshot.devices.get(meter)?.behind.as_ref();
    }
    None
}

impl<'a> LeftOut<'a> {
    /// That a device is left out of a sum.
    pub(crate) const fn new(device: &'a Device, behind: &'a DeviceId) -> Self {
        Self { device_id: &device.id, behind }
    }

    /// The device.
    pub(crate) const fn id(&self) -> &'a DeviceId {
        self.device_id
    }
}
