//! Looks up the device, room, home or list of devices that a request names, or says why not. Writes no page.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use api::{Problem, ProblemKind};
use domain::{Device, DeviceId, HomeId, Room, RoomId, excerpt};
use runtime::registry::{FoundDevices, PageStart, RegistrySnapshot, RoomMembers};
use runtime::telemetry::chain;
use table::{Listing, MAX_CACHED_ENTRIES};

use crate::answer::pagination::{ListRequest, ensure_all_rooms};
use crate::ports::Store;
use crate::registry::search::FoundPage;
use crate::shared_state::Call;

/// The device that the request's path names.
pub(crate) async fn device(call: &mut Call<'_, impl Store>) -> Result<Device, Problem> {
    device_of(&path_id(call)?, call).await
}

/// A device by its id.
pub(crate) async fn device_of(
    id: &DeviceId,
    call: &mut Call<'_, impl Store>,
) -> Result<Device, Problem> {
    match call.shared.registry.device(id, call.session, call.log).await? {
        Some(device) => Ok(device),
        None => Err(device_not_found(id, call).await),
    }
}

/// Devices by their ids. Unknown devices are left out.
pub(crate) async fn devices_by_id(
    ids: BTreeSet<&DeviceId>,
    call: &mut Call<'_, impl Store>,
) -> Result<BTreeMap<DeviceId, Device>, Problem> {
    let mut devices = BTreeMap::new();
    for id in ids {
        if let Some(device) = call.shared.registry.device(id, call.session, call.log).await? {
            devices.insert(id.clone(), device);
        }
    }
    Ok(devices)
}

/// The room that the request's path names, and a snapshot of the registry with its devices.
pub(crate) async fn room(
    call: &mut Call<'_, impl Store>,
) -> Result<(Room, Arc<RegistrySnapshot>), Problem> {
    room_of(&path_id(call)?, call).await
}

/// A room by its id, and a snapshot of the registry with its devices.
pub(crate) async fn room_of(
    id: &RoomId,
    call: &mut Call<'_, impl Store>,
) -> Result<(Room, Arc<RegistrySnapshot>), Problem> {
    let found = call.shared.registry.room(id, call.session, call.log).await?;
    found.ok_or_else(|| not_found("room", id.as_str()))
}

/// The home that the request's path names, and a snapshot of the registry with its rooms and devices.
pub(crate) async fn home(
    call: &mut Call<'_, impl Store>,
) -> Result<(HomeId, Arc<RegistrySnapshot>), Problem> {
    let id = path_id(call)?;
    let known = rooms_of_home(&id, call).await?;
    Ok((id, known))
}

/// A snapshot of the registry with the rooms and devices of a home. For an unknown home the registry is read again,
/// because another instance may have just put a room into the home. No item of the table lists the homes, so the
/// whole registry is read, but not again for each question.
pub(crate) async fn rooms_of_home(
    id: &HomeId,
    call: &mut Call<'_, impl Store>,
) -> Result<Arc<RegistrySnapshot>, Problem> {
    let mut known = call.shared.registry.snapshot(call.session, call.log).await?;
    if known.rooms_of(id).next().is_none() {
        known = call.shared.registry.refresh_for_missing(call.session, call.log).await?;
    }
    ensure_all_rooms(&known)?;
    if known.rooms_of(id).next().is_none() {
        return Err(not_found("home", id.as_str()));
    }
    Ok(known)
}

/// The devices in the room that the request's path names, for a list. If a large registry is due to be read again, the
/// devices are read from the room index instead, if the table has this index.
pub(crate) async fn members_of_room(
    list: &ListRequest,
    call: &mut Call<'_, impl Store>,
) -> Result<FoundMembers, Problem> {
    let registry = &call.shared.registry;
    if let Some(old) = registry.current().filter(|_| registry.would_read_many()) {
        let id = path_id(call)?;
        if Box::pin(call.session.room(&id)).await?.is_none() {
            return Err(not_found("room", id.as_str()));
        }

        // A failure of the index is returned. To read the whole registry instead would cost most of all.
        let (rooms, mut found) = ([id].into(), FoundDevices::of(old));
        let after = list.after();
        let page = PageStart { after: after.as_ref(), limit: list.limit() };
        let members = found.read_in_rooms(&rooms, page, call.session, call.log).await?;
        if let Some(members) = members {
            return Ok(FoundMembers { found, members });
        }
    }

    registry.snapshot_for_list(call.session, call.log).await?;
    let (room, snapshot) = room(call).await?;
    FoundMembers::find(&[room.id].into(), snapshot, list, call).await
}

/// The devices in the home that the request's path names, for a list.
pub(crate) async fn members_of_home(
    list: &ListRequest,
    call: &mut Call<'_, impl Store>,
) -> Result<FoundMembers, Problem> {
    call.shared.registry.snapshot_for_list(call.session, call.log).await?;
    let (home, snapshot) = home(call).await?;
    let rooms = snapshot.rooms_of(&home).map(|room| room.id.clone()).collect();
    FoundMembers::find(&rooms, snapshot, list, call).await
}

/// The devices that are in some rooms now, as many as a page of a list needs.
pub(crate) struct FoundMembers {
    found: FoundDevices,
    members: RoomMembers,
}

impl FoundMembers {
    /// Finds the devices in memory or by the room index. 422 if memory does not hold all devices and the table has no
    /// room index.
    pub(crate) async fn find(
        rooms: &BTreeSet<RoomId>,
        snapshot: Arc<RegistrySnapshot>,
        list: &ListRequest,
        call: &mut Call<'_, impl Store>,
    ) -> Result<Self, Problem> {
        let (after, mut found) = (list.after(), FoundDevices::of(snapshot));
        let page = PageStart { after: after.as_ref(), limit: list.limit() };
        let members = members_of(&mut found, rooms, page, call).await?;
        Ok(Self { found, members })
    }

    pub(crate) fn into_page(self, list: &ListRequest) -> FoundPage<'static> {
        let RoomMembers { ids, has_more } = self.members;
        let has_more = has_more || ids.len() > list.limit();
        let devices = ids.iter().take(list.limit()).filter_map(|id| self.found.device(id));
        FoundPage::by_id(devices.cloned().collect(), has_more)
    }
}

/// The devices that are in some rooms now. 422 if neither memory nor an index can find them.
pub(crate) async fn members_of(
    found: &mut FoundDevices,
    rooms: &BTreeSet<RoomId>,
    page: PageStart<'_>,
    call: &mut Call<'_, impl Store>,
) -> Result<RoomMembers, Problem> {
    let members = found.now_in_rooms(rooms, page, call.session, call.log).await?;
    members.ok_or_else(|| without_room_index("those that are in a room now"))
}

/// 410 for a device that is being deleted, else 404.
pub(crate) async fn device_not_found(id: &DeviceId, call: &mut Call<'_, impl Store>) -> Problem {
    let is_being_deleted = match call.session.deletion(id).await {
        Ok(deletion) => deletion.is_some_and(|deletion| deletion.ended.is_none()),
        Err(error) => return error.into(),
    };
    if !is_being_deleted {
        return not_found("device", id.as_str());
    }

    let id = id.as_str();
    let detail =
        format!("The device {id:?} is being deleted; DELETE /devices/{{id}} shows what is left.");
    Problem::new(ProblemKind::Gone, detail)
}

/// 422: memory does not hold all devices, and the table has no room index.
pub(crate) fn without_room_index(which: &str) -> Problem {
    let detail = format!(
        "There are more than {MAX_CACHED_ENTRIES} devices, so {which} are found by the index by room, and this \
         table has none (RoomIndex is off). The series, energy and conditions of a room are answered without it, \
         and so are its readings of past time."
    );
    Problem::new(ProblemKind::Unanswerable, detail)
}

/// The readable entries of a list. The log names the unreadable ones as `field`.
pub(crate) fn readable<T>(
    listing: Listing<T>,
    field: &str,
    call: &mut Call<'_, impl Store>,
) -> Vec<T> {
    let unreadable: Vec<String> = listing.unreadable.iter().map(|item| chain(item)).collect();
    if !unreadable.is_empty() {
        call.log.set(field, unreadable);
    }
    listing.found
}

/// The id in the request's path.
pub(crate) fn path_id<I: FromStr<Err: Display>>(call: &Call<'_, impl Store>) -> Result<I, Problem> {
    let member = format!("{}_id", call.endpoint.subject());
    call.id.parse().map_err(|why| Problem::field(&member, why))
}

/// 404: no entry of the registry has that id.
pub(crate) fn not_found(kind: &str, id: &str) -> Problem {
    Problem::new(ProblemKind::NotFound, format!("There is no {kind} {:?}.", excerpt(id)))
}
