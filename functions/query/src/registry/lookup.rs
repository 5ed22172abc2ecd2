//! Looks up what a request names, with failures as problems: a device, a room, a home, or the devices of a list
//! that memory does not hold. Writes no page.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::{Problem, ProblemKind};
use domain::{Device, DeviceId, HomeId, Room, RoomId, excerpt};
use runtime::clock::Clock;
use runtime::http::Call;
use runtime::registry::{CachedRegistry, Snapshot};
use runtime::telemetry::chain;
use table::{ListPage, Listing, MAX_CACHED_ENTRIES, at_once};

use crate::answer::pagination::{ListRequest, ensure_all_rooms};
use crate::ports::Store;

/// The number of rooms that are asked at once.
pub(crate) const ROOM_CONCURRENCY: usize = 8;

/// The registry, at most as old as allowed.
pub(crate) async fn snapshot(
    registry: &CachedRegistry<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Arc<Snapshot>, Problem> {
    Ok(registry.snapshot(call.session, call.log).await?)
}

/// The registry for a list; see [`CachedRegistry::snapshot_for_list`].
pub(crate) async fn snapshot_for_list(
    registry: &CachedRegistry<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Arc<Snapshot>, Problem> {
    Ok(registry.snapshot_for_list(call.session, call.log).await?)
}

/// Reads the registry again for a question about something that it lacks; see
/// [`CachedRegistry::refresh_for_missing`]. Returns whether its devices have changed. Where memory does not hold all
/// devices, those that are asked about have been read from the table.
pub(crate) async fn has_news(
    before: &Snapshot,
    registry: &CachedRegistry<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<bool, Problem> {
    if !before.has_all_devices {
        return Ok(false);
    }
    let read = registry.refresh_for_missing(call.session, call.log).await;
    let now = read?;
    Ok(!now.devices.values().eq(before.devices.values()))
}

/// The device of the path.
pub(crate) async fn device(
    registry: &CachedRegistry<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Device, Problem> {
    let id = device_id(call)?;
    device_of(&id, registry, call).await
}

/// A device by its id.
pub(crate) async fn device_of(
    id: &DeviceId,
    registry: &CachedRegistry<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Device, Problem> {
    let found = registry.device(id, call.session, call.log).await?;
    match found {
        Some(device) => Ok(device),
        None => Err(device_not_found(id, call).await),
    }
}

/// 410 of a device that is being deleted, else 404.
pub(crate) async fn device_not_found(id: &DeviceId, call: &mut Call<'_, impl Store>) -> Problem {
    match call.session.deletion(id).await {
        Ok(Some(deletion)) if deletion.ended.is_none() => {}
        Ok(_) => return not_found("device", id.as_str()),
        Err(error) => return error.into(),
    }
    let detail = format!(
        "The device {:?} is being deleted; DELETE /devices/{{id}} tells what is left of it.",
        id.as_str()
    );
    Problem::new(ProblemKind::Gone, detail)
}

/// The room of the path, and a registry that knows its devices.
pub(crate) async fn room(
    registry: &CachedRegistry<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<(Room, Arc<Snapshot>), Problem> {
    let id = room_id(call)?;
    room_of(&id, registry, call).await
}

/// A room by its id, and a registry that knows its devices.
pub(crate) async fn room_of(
    id: &RoomId,
    registry: &CachedRegistry<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<(Room, Arc<Snapshot>), Problem> {
    let found = registry.room(id, call.session, call.log).await?;
    found.ok_or_else(|| not_found("room", id.as_str()))
}

/// The page of devices that a list asks for, of some rooms or of all, from the table: for lists that memory does
/// not hold.
pub(crate) async fn device_page(
    list: &ListRequest,
    rooms: Option<&BTreeSet<RoomId>>,
    call: &mut Call<'_, impl Store>,
) -> Result<ListPage<Device>, Problem> {
    let after: Option<DeviceId> = list.after();
    let Some(rooms) = rooms else {
        let page = call.session.device_page(after.as_ref(), list.limit()).await;
        return Ok(readable(page?, call));
    };
    devices_of_rooms(rooms, after.as_ref(), list.limit(), call).await
}

/// The devices of some rooms, for a list: those of memory, or a page of the table.
pub(crate) enum Members {
    Known { rooms: BTreeSet<RoomId>, snapshot: Arc<Snapshot> },
    Read(ListPage<Device>),
}

impl Members {
    /// The devices of the room of the path. Where a large registry would have to be read again only for them,
    /// they come from the index by room, if there is one.
    pub(crate) async fn of_room(
        registry: &CachedRegistry<impl Clock>,
        list: &ListRequest,
        call: &mut Call<'_, impl Store>,
    ) -> Result<Self, Problem> {
        if registry.would_read_many() {
            let id = room_id(call)?;
            let room = Box::pin(call.session.room(&id)).await;
            if room?.is_none() {
                return Err(not_found("room", id.as_str()));
            }
            // A failure is the answer: the whole registry in its place would be the most of all to read.
            let (rooms, after) = ([id].into(), list.after());
            let page = indexed_devices_of_rooms(&rooms, after.as_ref(), list.limit(), call);
            if let Some(page) = page.await? {
                return Ok(Self::Read(page));
            }
        }
        snapshot_for_list(registry, call).await?;
        let (room, snapshot) = room(registry, call).await?;
        Self::of([room.id].into(), snapshot, list, call).await
    }

    /// The devices of the home of the path.
    pub(crate) async fn of_home(
        registry: &CachedRegistry<impl Clock>,
        list: &ListRequest,
        call: &mut Call<'_, impl Store>,
    ) -> Result<Self, Problem> {
        snapshot_for_list(registry, call).await?;
        let (home, snapshot) = home(registry, call).await?;
        let rooms = snapshot.rooms_of(&home).map(|room| room.id.clone()).collect();
        Self::of(rooms, snapshot, list, call).await
    }

    async fn of(
        rooms: BTreeSet<RoomId>,
        snapshot: Arc<Snapshot>,
        list: &ListRequest,
        call: &mut Call<'_, impl Store>,
    ) -> Result<Self, Problem> {
        if snapshot.has_all_devices {
            return Ok(Self::Known { rooms, snapshot });
        }
        device_page(list, Some(&rooms), call).await.map(Self::Read)
    }

    /// The devices by id, and whether the table has more.
    pub(crate) fn devices(&self) -> (Vec<&Device>, bool) {
        match self {
            Self::Read(page) => (page.listing.found.iter().collect(), page.has_more),
            Self::Known { rooms, snapshot } => {
                let is_member = |device: &&Device| {
                    device.place().room().is_some_and(|room| rooms.contains(room))
                };
                (snapshot.devices.values().filter(is_member).collect(), false)
            }
        }
    }
}

/// Devices of rooms behind an id, by the index by room: for a registry that memory does not hold. 422 of a table
/// without that index: only the registry says where a device is, and it is too large to be read.
pub(crate) async fn devices_of_rooms(
    rooms: &BTreeSet<RoomId>,
    after: Option<&DeviceId>,
    limit: usize,
    call: &mut Call<'_, impl Store>,
) -> Result<ListPage<Device>, Problem> {
    let page = indexed_devices_of_rooms(rooms, after, limit, call).await?;
    page.ok_or_else(|| without_room_index("those that are in a room now"))
}

/// 422: only the index by room tells some devices of a registry that memory does not hold.
pub(crate) fn without_room_index(which: &str) -> Problem {
    let detail = format!(
        "There are more than {MAX_CACHED_ENTRIES} devices, so {which} are found by the index by room, and this \
         table has none (RoomIndex is off). The series, energy and conditions of a room are answered without it, \
         and so are its readings of past time."
    );
    Problem::new(ProblemKind::Unanswerable, detail)
}

/// The same; returns `None` if the table lacks the index by room.
pub(crate) async fn indexed_devices_of_rooms(
    rooms: &BTreeSet<RoomId>,
    after: Option<&DeviceId>,
    limit: usize,
    call: &mut Call<'_, impl Store>,
) -> Result<Option<ListPage<Device>>, Problem> {
    let session = call.session;
    let asked = rooms.iter().map(|room| session.room_device_page(room, after, limit));
    let pages: Result<Vec<_>, _> = at_once(ROOM_CONCURRENCY, asked).await;
    let mut all = ListPage { listing: Listing::default(), has_more: false };
    for page in pages? {
        let Some(page) = page else { return Ok(None) };
        all.listing.found.extend(page.listing.found);
        all.listing.unreadable.extend(page.listing.unreadable);
        all.has_more |= page.has_more;
    }
    let found = &mut all.listing.found;
    found.sort_by(|a, b| a.id().cmp(b.id()));
    // The index follows a move after a moment, so a device may have been found in both rooms.
    found.dedup_by(|a, b| a.id() == b.id());
    all.has_more |= found.len() > limit;
    found.truncate(limit);
    Ok(Some(readable(all, call)))
}

/// Logs the items of a page that cannot be read.
pub(crate) fn readable<T>(page: ListPage<T>, call: &mut Call<'_, impl Store>) -> ListPage<T> {
    let unreadable: Vec<String> = page.listing.unreadable.iter().map(|item| chain(item)).collect();
    if !unreadable.is_empty() {
        call.log.set("registry.unreadable", unreadable);
    }
    page
}

/// The most devices that are looked up one by one.
const MAX_METERS: usize = 1_000;

/// Adds the devices behind which these are, directly or by way of others, where memory holds not all.
pub(crate) async fn add_meters(
    devices: &mut BTreeMap<DeviceId, Device>,
    snapshot: &Snapshot,
    call: &mut Call<'_, impl Store>,
) -> Result<(), Problem> {
    if snapshot.has_all_devices {
        return Ok(());
    }
    let mut waiting: Vec<DeviceId> =
        devices.values().filter_map(|device| device.behind().cloned()).collect();
    while let Some(id) = waiting.pop() {
        if devices.contains_key(&id) {
            continue;
        }
        if devices.len() >= MAX_METERS {
            let detail = format!("More than {MAX_METERS} devices are behind one another.");
            return Err(Problem::new(ProblemKind::Unanswerable, detail));
        }
        let found = Box::pin(call.session.device(&id)).await;
        if let Some(device) = found? {
            waiting.extend(device.behind().cloned());
            devices.insert(id, device);
        }
    }
    Ok(())
}

/// The home of the path, and a registry that knows its rooms and devices.
pub(crate) async fn home(
    registry: &CachedRegistry<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<(HomeId, Arc<Snapshot>), Problem> {
    let id: HomeId = call.id.parse().map_err(|why| Problem::field("home_id", format!("{why}")))?;
    let known = rooms_of_home(&id, registry, call).await?;
    Ok((id, known))
}

/// A registry that knows the rooms and devices of a home. One that is unknown is looked for again: whoever has just
/// put a room into it may have asked another instance. No item says which homes there are, so that is a read of the
/// registry, which is not repeated for each question.
pub(crate) async fn rooms_of_home(
    id: &HomeId,
    registry: &CachedRegistry<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Arc<Snapshot>, Problem> {
    let mut known = snapshot(registry, call).await?;
    if known.rooms_of(id).next().is_none() {
        let read = registry.refresh_for_missing(call.session, call.log).await;
        known = read?;
    }
    ensure_all_rooms(&known)?;
    if known.rooms_of(id).next().is_none() {
        return Err(not_found("home", id.as_str()));
    }
    Ok(known)
}

/// The id of a device's path.
pub(crate) fn device_id(call: &Call<'_, impl Store>) -> Result<DeviceId, Problem> {
    call.id.parse().map_err(|why| Problem::field("device_id", format!("{why}")))
}

/// The id of a room's path.
pub(crate) fn room_id(call: &Call<'_, impl Store>) -> Result<RoomId, Problem> {
    call.id.parse().map_err(|why| Problem::field("room_id", format!("{why}")))
}

/// 404: nothing of that id is registered.
pub(crate) fn not_found(kind: &str, id: &str) -> Problem {
    Problem::new(ProblemKind::NotFound, format!("There is no {kind} {:?}.", excerpt(id)))
}
