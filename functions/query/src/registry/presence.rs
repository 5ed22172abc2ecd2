//! Finds the devices that are or were in rooms, for lists, ranges, series, energy, conditions and InfluxQL. Reads no
//! value.
//!
//! The registry says where a device is now. A device may have readings of a room in a range if it is there now, or if
//! the table notes that it was there in the range's months. The rollup function writes these notes (`SEEN_IN#`): from
//! the stream for a reading that is left to the sweep, else before the rollup. A note spans the months from a device's
//! first reading in the room to its last, so a device that is silent in the range is found too.

use std::collections::{BTreeMap, BTreeSet};

use api::Problem;
use chrono::TimeDelta;
use domain::{DeviceId, Month, RoomId, TimeRange, Timestamp};
use runtime::registry::{FoundDevices, PageStart};
use serde::Serialize;
use serde_json::json;
use series::{Horizon, MAX_DEVICES, too_many};
use table::sizes::{read_halves, units_of};
use table::{Session, StoreResult, at_once};

use crate::failure::problem;
use crate::ports::Store;
use crate::shared_state::Call;

/// The number of rooms that are read at once.
const ROOM_CONCURRENCY: usize = 8;
/// The longest time for which a power reading before a range can count into the range.
const MAX_HOLD: TimeDelta = TimeDelta::days(1);
/// The approximate size of an item that notes a device in a room, in bytes.
const SEEN_BYTES: usize = 80;
/// If rollups lag more than this, recent notes about devices in rooms may be missing.
const MAX_LAG: TimeDelta = TimeDelta::hours(2);

/// Why devices that belong to an answer about rooms may be missing from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) enum RoomsLack {
    /// There are more devices than memory holds, and the table has no room index. So it is not known which devices are
    /// in the room now.
    #[serde(
        rename = "the devices that were seen in the rooms; others that have been there for less than an hour or so, or have sent nothing there, may be missing"
    )]
    NoRoomIndex,
    /// The rollup function, which notes the devices of each room, is hours behind.
    #[serde(
        rename = "rollups are hours behind; devices that have been in the rooms since, and are elsewhere now, may be missing"
    )]
    RollupsBehind,
}

/// The devices that may have readings of rooms in a range, or a share of a counter's rise or a power over the range.
#[derive(Debug, Default)]
pub(crate) struct RoomDevices {
    pub(crate) ids: BTreeSet<DeviceId>,
    /// By room, the devices that were seen there in the months of the range.
    pub(crate) seen: BTreeMap<RoomId, BTreeSet<DeviceId>>,
    pub(crate) lack: Option<RoomsLack>,
    /// The estimated read units of the notes about devices in rooms, without the read units of the registry.
    pub(crate) units: f64,
}

/// The devices that were seen in each of some rooms in the months of a range.
pub(crate) async fn seen_in_each(
    session: Session<'_, impl Store>,
    rooms: impl IntoIterator<Item = &RoomId>,
    range: TimeRange,
) -> StoreResult<BTreeMap<RoomId, BTreeSet<DeviceId>>> {
    let first = Month::of(range.from().saturating_add(-MAX_HOLD));
    let months = first..=Month::of(range.last());
    let requests = rooms.into_iter().map(|room| {
        let months = months.clone();
        async move {
            // One device more than the limit is read, which shows that there are too many.
            let seen = session.seen_in(room, months, MAX_DEVICES + 1).await?;
            Ok((room.clone(), seen.into_iter().map(|seen| seen.device).collect()))
        }
    });

    Ok(at_once(ROOM_CONCURRENCY, requests).await?.into_iter().collect())
}

/// Whether a device may have been seen in a room. If more than [`MAX_DEVICES`] devices were seen there, not all of them
/// were read.
pub(crate) fn may_have_seen(seen: Option<&BTreeSet<DeviceId>>, device: &DeviceId) -> bool {
    seen.is_some_and(|seen| seen.len() > MAX_DEVICES || seen.contains(device))
}

impl RoomsLack {
    pub(crate) fn text(self) -> String {
        json!(self).as_str().expect("a text").to_owned()
    }
}

/// The devices that may have readings of some rooms in a range. Reads the devices that memory does not hold into
/// `registry`.
pub(crate) async fn now_or_seen_in_rooms(
    horizon: &Horizon,
    registry: &mut FoundDevices,
    rooms: &BTreeSet<RoomId>,
    range: TimeRange,
    call: &mut Call<'_, impl Store>,
) -> Result<RoomDevices, Problem> {
    let mut lack = lack_of_notes(horizon, range, call.session.now);
    let page = PageStart { after: None, limit: MAX_DEVICES + 1 };
    let mut ids = BTreeSet::new();
    match registry.now_in_rooms(rooms, page, call.session, call.log).await? {
        Some(members) => ids.extend(members.ids),
        // If the whole range has rollups, the notes name all devices of the rooms, wherever these are now.
        None if sealed_until(horizon).is_some_and(|sealed| range.to() <= sealed) => {}
        None => lack = Some(RoomsLack::NoRoomIndex),
    }

    let seen = seen_in_each(call.session, rooms, range).await?;
    let units = seen.values().map(|there| units_of(read_halves(there.len() * SEEN_BYTES))).sum();
    ids.extend(seen.values().flatten().cloned());
    if ids.len() > MAX_DEVICES {
        return Err(problem(too_many(format_args!("more than {MAX_DEVICES}"))));
    }

    // Drops devices that were just deleted, whose notes about rooms stay for a moment, and devices that the registry in
    // memory does not know yet.
    registry.look_up(&ids, call.session).await?;
    ids.retain(|id| registry.device(id).is_some());
    Ok(RoomDevices { ids, seen, lack, units })
}

/// What answers about rooms lack if the rollup function, which notes the devices of each room, is hours behind.
pub(crate) fn lack_of_notes(
    horizon: &Horizon,
    range: TimeRange,
    now: Timestamp,
) -> Option<RoomsLack> {
    let end = range.to().min(now);
    let has_lag = sealed_until(horizon).is_some_and(|sealed| end.since(sealed) > MAX_LAG);
    has_lag.then_some(RoomsLack::RollupsBehind)
}

/// The time until which all devices' quarters are folded.
fn sealed_until(horizon: &Horizon) -> Option<Timestamp> {
    horizon.state().map(|state| horizon.believed(state.sealed()))
}

#[cfg(test)]
mod tests {
    use domain::given;

    use super::*;

    #[test]
    fn in_a_room_with_more_devices_than_are_read_each_device_may_have_been() {
        let devices = |count: usize| (0..count).map(|n| given::device(&format!("d{n}"))).collect();
        let (all, cut): (BTreeSet<_>, BTreeSet<_>) =
            (devices(MAX_DEVICES), devices(MAX_DEVICES + 1));
        let [known, other] = ["d0", "other"].map(given::device);
        let found =
            [(Some(&all), &known), (Some(&all), &other), (Some(&cut), &other), (None, &known)]
                .map(|(seen, device)| may_have_seen(seen, device));
        assert_eq!(found, [true, false, true, false]);
    }
}
