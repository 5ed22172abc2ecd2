//! The devices that are or were in rooms: the one answer for lists, ranges, series, energy, conditions and InfluxQL.
//! Reads no value.
//!
//! Now, a device is where the registry says. In a range, those devices may have something of a room that were
//! noted there in its months (`SEEN_IN#`, which the rollup function writes before each rollup), and those that are
//! there now. A device that is silent in the range is among them, because what is noted spans the months from its
//! first reading in the room to its last.

use std::collections::{BTreeMap, BTreeSet};

use api::Problem;
use chrono::TimeDelta;
use domain::{Device, DeviceId, Month, RoomId, TimeRange};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use runtime::http::Call;
use runtime::registry::Snapshot;
use serde::Serialize;
use series::{Horizon, MAX_DEVICES, too_many};
use table::sizes::{read_halves, units_of};
use table::{Session, StoreResult};

use crate::failure::problem;
use crate::ports::Store;
use crate::registry::lookup;
use crate::registry::lookup::ROOM_CONCURRENCY;

/// How long a power before a range may be held into the range.
const MAX_HOLD: TimeDelta = TimeDelta::days(1);
/// The bytes of an item that notes a device, about.
const SEEN_BYTES: usize = 80;
/// How far what is rolled up may be behind: what is noted of the time since may lack rooms.
const MAX_BEHIND: TimeDelta = TimeDelta::hours(2);

/// Why devices that belong to an answer about rooms may be missing from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) enum RoomsLack {
    /// There are more devices than memory holds, and the table has no index by room, so the devices that are in the
    /// room now are not known.
    #[serde(
        rename = "the devices that were seen in the rooms; others that have been there for less than an hour or so, or have sent nothing there, may be missing"
    )]
    NoRoomIndex,
    /// The rollup function, which notes who was where, is hours behind.
    #[serde(
        rename = "rollups are hours behind; devices that have been in the rooms since, and are elsewhere now, may be missing"
    )]
    RollupsBehind,
}

/// The devices that may have readings of rooms in a range, or a share of what spans it.
#[derive(Debug, Default)]
pub(crate) struct RoomDevices {
    pub(crate) ids: BTreeSet<DeviceId>,
    /// Those that memory does not hold.
    pub(crate) read: BTreeMap<DeviceId, Device>,
    /// By room, the devices that were seen there in the months of the range.
    pub(crate) seen: BTreeMap<RoomId, BTreeSet<DeviceId>>,
    pub(crate) lack: Option<RoomsLack>,
    /// The estimated read units of the notes that tell which devices were in which rooms. The registry's own
    /// read units are not in it.
    pub(crate) units: f64,
}

/// The devices that were seen in each of some rooms in the months of a range.
pub(crate) async fn seen(
    session: Session<'_, impl Store>,
    rooms: impl IntoIterator<Item = &RoomId>,
    range: TimeRange,
) -> StoreResult<BTreeMap<RoomId, BTreeSet<DeviceId>>> {
    let first = Month::of(range.from().saturating_add(-MAX_HOLD));
    let months = first..=Month::of(range.last());
    let asked = rooms.into_iter().map(|room| {
        let months = months.clone();
        async move {
            // One more than an answer may be about tells that there are more.
            let seen = session.seen_in(room, months, MAX_DEVICES + 1).await?;
            Ok((room.clone(), seen.into_iter().map(|seen| seen.device).collect()))
        }
    });
    let asked: Vec<_> = asked.collect();
    stream::iter(asked).buffered(ROOM_CONCURRENCY).try_collect().await
}

/// The devices that may have something of some rooms in a range.
pub(crate) async fn in_rooms(
    horizon: &Horizon,
    snapshot: &Snapshot,
    rooms: &BTreeSet<RoomId>,
    range: TimeRange,
    call: &mut Call<'_, impl Store>,
) -> Result<RoomDevices, Problem> {
    let now = call.session.now;
    let sealed = horizon.state().map(|state| horizon.believed(state.sealed()));
    let is_behind = sealed.is_some_and(|sealed| range.to().min(now).since(sealed) > MAX_BEHIND);
    let mut lack = is_behind.then_some(RoomsLack::RollupsBehind);

    let (mut ids, mut read) = (BTreeSet::new(), BTreeMap::new());
    if snapshot.has_all_devices {
        let is_there =
            |device: &&Device| device.place().room().is_some_and(|room| rooms.contains(room));
        let there = snapshot.devices.values().filter(is_there);
        ids.extend(there.map(|device| device.id().clone()));
    } else {
        let limit = MAX_DEVICES + 1;
        let page = lookup::indexed_devices_of_rooms(rooms, None, limit, call).await?;
        match page {
            Some(page) => read.extend(by_id(page.listing.found)),
            // Who was there in past time is noted, whoever is there now.
            None if sealed.is_some_and(|sealed| range.to() <= sealed) => {}
            None => lack = Some(RoomsLack::NoRoomIndex),
        }
        ids.extend(read.keys().cloned());
    }

    let seen = seen(call.session, rooms, range).await?;
    let units = seen.values().map(|there| units_of_seen(there.len())).sum();
    ids.extend(seen.values().flatten().cloned());
    if ids.len() > MAX_DEVICES {
        return Err(problem(too_many(format_args!("more than {MAX_DEVICES}"))));
    }

    // What is noted of a device stays a moment longer than the device.
    if snapshot.has_all_devices {
        ids.retain(|id| snapshot.devices.contains_key(id));
    } else {
        let unread: Vec<_> = ids.iter().filter(|id| !read.contains_key(*id)).cloned().collect();
        if !unread.is_empty() {
            let found = call.session.find_devices(&unread).await;
            read.extend(by_id(found?.found));
        }
        ids.retain(|id| read.contains_key(id));
    }
    Ok(RoomDevices { ids, read, seen, lack, units })
}

fn by_id(devices: Vec<Device>) -> impl Iterator<Item = (DeviceId, Device)> {
    devices.into_iter().map(|device| (device.id().clone(), device))
}

/// The read units of what is noted of so many devices, about.
fn units_of_seen(devices: usize) -> f64 {
    units_of(read_halves(devices * SEEN_BYTES))
}
