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
use domain::{Device, DeviceId, Month, RoomId, TimeRange, Timestamp};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use runtime::http::Call;
use runtime::registry::Snapshot;
use serde::Serialize;
use series::{
    DEVICE_CONCURRENCY, Estimating, Failure, Horizon, KnownState, MAX_DEVICES, may_have_been_in,
    too_many,
};
use table::sizes::{read_halves, units_of};
use table::{Invocation, RollupState, StoreResult};

use crate::failure::problem;
use crate::ports::Store;
use crate::registry::lookup;
use crate::registry::lookup::ROOM_CONCURRENCY;

/// The largest number of devices that are asked one by one whether they were in a room, where it is not noted.
const MAX_ASKED: usize = 500;
/// The time for which the value before a range may reach into it, if it is that of a power.
const MAX_HOLD: TimeDelta = TimeDelta::days(1);
/// The bytes of an item that notes a device, about.
const SEEN_BYTES: usize = 80;
/// How far what is rolled up may be behind: what is noted of the time since may lack rooms.
const MAX_BEHIND: TimeDelta = TimeDelta::hours(2);

/// How it is known which devices were in rooms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Knowledge {
    /// It is noted of each room.
    #[serde(rename = "the devices that were seen in the rooms")]
    Noted,
    /// It is not noted yet of all rollups, so each device was asked.
    #[serde(rename = "all devices, because it is not noted yet who was in which room")]
    AllAsked,
    /// It is not noted yet of all rollups, and there are too many devices to ask each.
    #[serde(
        rename = "the devices that are in the rooms now and those noted so far; others that were there may be missing"
    )]
    NotedInPart,
    /// It is noted of each room, but not of the newest time, and nothing tells who is there now: there are more
    /// devices than memory holds, and no index by room.
    #[serde(
        rename = "the devices that were seen in the rooms; others that have been there for less than an hour or so, or have sent nothing there, may be missing"
    )]
    NotedAlone,
}

impl Knowledge {
    /// Whether devices that belong to an answer may be missing from it.
    pub(crate) const fn lacks_devices(self) -> bool {
        matches!(self, Self::NotedInPart | Self::NotedAlone)
    }
}

/// The devices that may have readings of rooms in a range, or a share of what spans it.
#[derive(Debug)]
pub(crate) struct Occupants {
    pub(crate) ids: BTreeSet<DeviceId>,
    /// Those that memory does not hold.
    pub(crate) read: BTreeMap<DeviceId, Device>,
    pub(crate) knowledge: Knowledge,
    /// The read units of what is noted and asked, about; without those of the registry.
    pub(crate) units: f64,
}

/// How it is known of a range who was in which room.
pub(crate) async fn knowledge(
    store: &impl Store,
    (known_state, horizon): (&KnownState, &Horizon),
    snapshot: &Snapshot,
    range: TimeRange,
    now: Timestamp,
    invocation: &Invocation,
) -> StoreResult<Knowledge> {
    let is_behind = |sealed: Timestamp| range.to().min(now).since(sealed) > MAX_BEHIND;
    let is_told = horizon
        .state()
        .is_some_and(|state| state.since <= range.from() && !is_behind(state.sealed()));
    Ok(if is_told && known_state.has_noted_rooms(store, invocation).await? {
        Knowledge::Noted
    } else if snapshot.has_all_devices && snapshot.devices.len() <= MAX_ASKED {
        Knowledge::AllAsked
    } else {
        Knowledge::NotedInPart
    })
}

/// The devices that were seen in each of some rooms in the months of a range.
pub(crate) async fn seen(
    store: &impl Store,
    rooms: impl IntoIterator<Item = &RoomId>,
    range: TimeRange,
    invocation: &Invocation,
) -> StoreResult<BTreeMap<RoomId, BTreeSet<DeviceId>>> {
    let first = Month::of(range.from().saturating_add(-MAX_HOLD));
    let months = first..=Month::of(range.last());
    let asked = rooms.into_iter().map(|room| {
        let months = months.clone();
        async move {
            // One more than an answer may be about tells that there are more.
            let seen = store.seen_in(room, months, MAX_DEVICES + 1, invocation).await?;
            Ok((room.clone(), seen.into_iter().map(|seen| seen.device).collect()))
        }
    });
    let asked: Vec<_> = asked.collect();
    stream::iter(asked).buffered(ROOM_CONCURRENCY).try_collect().await
}

/// The devices that may have something of some rooms in a range.
pub(crate) async fn in_rooms(
    store: &impl Store,
    (known_state, horizon): (&KnownState, &Horizon),
    snapshot: &Snapshot,
    (rooms, range): (&BTreeSet<RoomId>, TimeRange),
    now: Timestamp,
    call: &mut Call<'_>,
) -> Result<Occupants, Problem> {
    let invocation = call.invocation;
    let known = (known_state, horizon);
    let knowledge = knowledge(store, known, snapshot, range, now, invocation).await;
    let mut knowledge = knowledge.map_err(|error| call.failed(&error))?;
    let (mut ids, mut read) = (BTreeSet::new(), BTreeMap::new());
    if snapshot.has_all_devices {
        let is_there = |it: &&Device| it.place().room().is_some_and(|room| rooms.contains(room));
        ids.extend(snapshot.devices.values().filter(is_there).map(|it| it.id().clone()));
    } else {
        let limit = MAX_DEVICES + 1;
        let page = lookup::indexed_devices_of_rooms(store, rooms, None, limit, call).await?;
        let is_past = |state: &RollupState| range.to() <= horizon.believed(state.sealed());
        match page {
            Some(page) => {
                read.extend(page.listing.found.into_iter().map(|it| (it.id().clone(), it)));
                ids.extend(read.keys().cloned());
            }
            // Who was there in past time is noted, whoever is there now.
            None if knowledge == Knowledge::Noted && horizon.state().is_some_and(is_past) => {}
            None => knowledge = Knowledge::NotedAlone,
        }
    }
    let noted = seen(store, rooms, range, invocation).await;
    let noted = noted.map_err(|error| call.failed(&error))?;
    let mut units = noted.values().map(|there| units_of_seen(there.len())).sum::<f64>();
    ids.extend(noted.into_values().flatten());
    if knowledge == Knowledge::AllAsked {
        // A device that is silent in the range is noted, if it is, and not found.
        let store = Estimating::of(store);
        let found = asked(&store, snapshot, (rooms, range), horizon, invocation).await;
        units += store.units();
        ids.extend(found.map_err(|failure| problem(failure, call))?);
    }
    if ids.len() > MAX_DEVICES {
        return Err(problem(too_many(format_args!("more than {MAX_DEVICES}")), call));
    }
    if snapshot.has_all_devices {
        // What is noted of a device stays a moment longer than the device.
        ids.retain(|id| snapshot.devices.contains_key(id));
    } else {
        let unread: Vec<_> = ids.iter().filter(|id| !read.contains_key(*id)).cloned().collect();
        if !unread.is_empty() {
            let found = store.find_devices(&unread, invocation).await;
            let found = found.map_err(|error| call.failed(&error))?.found;
            read.extend(found.into_iter().map(|it| (it.id().clone(), it)));
        }
        ids.retain(|id| read.contains_key(id));
    }
    Ok(Occupants { ids, read, knowledge, units })
}

/// The read units of what is noted of so many devices, about.
fn units_of_seen(devices: usize) -> f64 {
    units_of(read_halves(devices * SEEN_BYTES))
}

/// Those of all devices whose rollups or readings say that they were in one of the rooms.
async fn asked(
    store: &impl series::Store,
    snapshot: &Snapshot,
    (rooms, range): (&BTreeSet<RoomId>, TimeRange),
    horizon: &Horizon,
    invocation: &Invocation,
) -> Result<BTreeSet<DeviceId>, Failure> {
    let asked = snapshot.devices.values().map(|device| async move {
        let is_in = may_have_been_in(store, device, rooms, range, horizon, invocation).await?;
        Ok::<_, Failure>(is_in.then(|| device.id().clone()))
    });
    let asked: Vec<_> = asked.collect();
    let found: Vec<_> = stream::iter(asked).buffered(DEVICE_CONCURRENCY).try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}
