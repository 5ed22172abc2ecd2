//! Looks up a device, a room or a home by the id in a path, with failures as problems. Makes no list.

use std::sync::Arc;

use api::{Problem, ProblemKind};
use domain::{Device, DeviceId, HomeId, Room, RoomId, excerpt};
use runtime::clock::Clock;
use runtime::http::Call;
use runtime::registry::{CachedRegistry, Snapshot};
use table::{LookUpRegistry, ReadRegistry};

use crate::pagination::ensure_complete;

/// The registry, at most as old as allowed.
pub(crate) async fn snapshot(
    registry: &CachedRegistry<impl Clock>,
    store: &impl ReadRegistry,
    call: &mut Call<'_>,
) -> Result<Arc<Snapshot>, Problem> {
    let read = registry.snapshot(store, call.invocation, call.log).await;
    read.map_err(|error| call.failed(&error))
}

/// The registry for a list. An empty one is read again each time, at the price of one or two read units:
/// whoever has just sent a first reading looks for its device.
pub(crate) async fn snapshot_for_list(
    registry: &CachedRegistry<impl Clock>,
    store: &impl ReadRegistry,
    call: &mut Call<'_>,
) -> Result<Arc<Snapshot>, Problem> {
    let snapshot = snapshot(registry, store, call).await?;
    if !snapshot.is_empty() {
        return Ok(snapshot);
    }
    let read = registry.refresh(store, call.invocation, call.log).await;
    read.map_err(|error| call.failed(&error))
}

/// The device of the path.
pub(crate) async fn device(
    registry: &CachedRegistry<impl Clock>,
    store: &(impl ReadRegistry + LookUpRegistry),
    call: &mut Call<'_>,
) -> Result<Device, Problem> {
    let id = device_id(call)?;
    let found = registry.device(&id, store, call.invocation, call.log).await;
    let found = found.map_err(|error| call.failed(&error))?;
    found.ok_or_else(|| device_not_found(registry, &id))
}

/// 410 of a device that is being deleted, else 404.
pub(crate) fn device_not_found(registry: &CachedRegistry<impl Clock>, id: &DeviceId) -> Problem {
    if !registry.current().is_some_and(|known| known.is_being_deleted(id)) {
        return not_found("device", id.as_str());
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
    store: &(impl ReadRegistry + LookUpRegistry),
    call: &mut Call<'_>,
) -> Result<(Room, Arc<Snapshot>), Problem> {
    let id = room_id(call)?;
    let found = registry.room(&id, store, call.invocation, call.log).await;
    let found = found.map_err(|error| call.failed(&error))?;
    found.ok_or_else(|| not_found("room", id.as_str()))
}

/// The home of the path, and a registry that knows its rooms and devices. One that is unknown is looked for
/// in a registry that is read anew: whoever has just put a room into it may have asked another instance.
pub(crate) async fn home(
    registry: &CachedRegistry<impl Clock>,
    store: &impl ReadRegistry,
    call: &mut Call<'_>,
) -> Result<(HomeId, Arc<Snapshot>), Problem> {
    let id: HomeId = call.id.parse().map_err(|why| Problem::field("home_id", format!("{why}")))?;
    let mut known = snapshot(registry, store, call).await?;
    if known.rooms_of(&id).next().is_none() {
        let read = registry.refresh(store, call.invocation, call.log).await;
        known = read.map_err(|error| call.failed(&error))?;
    }
    ensure_complete(known.has_all_rooms, "rooms")?;
    if known.rooms_of(&id).next().is_none() {
        return Err(not_found("home", id.as_str()));
    }
    Ok((id, known))
}

/// The id of a device's path.
pub(crate) fn device_id(call: &Call<'_>) -> Result<DeviceId, Problem> {
    call.id.parse().map_err(|why| Problem::field("device_id", format!("{why}")))
}

/// The id of a room's path.
pub(crate) fn room_id(call: &Call<'_>) -> Result<RoomId, Problem> {
    call.id.parse().map_err(|why| Problem::field("room_id", format!("{why}")))
}

/// 404: nothing of that id is registered.
pub(crate) fn not_found(kind: &str, id: &str) -> Problem {
    Problem::new(ProblemKind::NotFound, format!("There is no {kind} {:?}.", excerpt(id)))
}
