//! A person's edits of the registry: PATCH. Registers a room that a device is put into, nothing else.

use api::{Problem, Response};
use domain::{Device, DeviceId, DevicePatch, Edit, Room, Timestamp};
use runtime::clock::Clock;
use runtime::http::Call;
use runtime::registry::CachedRegistry;
use table::{EditRegistry, InsertOutcome, LookUpRegistry, ReadRegistry, UpdateOutcome};

use crate::lookup::{self, not_found};
use crate::meaning;
use crate::patch;
use crate::rows::{DeviceRow, RoomRow};

/// `PATCH /devices/{id}`
pub(crate) async fn device(
    registry: &CachedRegistry<impl Clock>,
    store: &(impl EditRegistry + ReadRegistry + LookUpRegistry),
    now: Timestamp,
    call: &mut Call<'_>,
) -> Result<Response, Problem> {
    let id = lookup::device_id(call)?;
    let patch = patch::of_device(call.request)?;
    check(registry, store, &id, &patch, call).await?;
    let edited = match &patch.room {
        Edit::Set(room)
            if !lookup::snapshot(registry, store, call).await?.rooms.contains_key(room) =>
        {
            // A room that a person names exists from then on, even before its first reading.
            let room = Room::new(room.clone(), now);
            let moved = store.move_device(&id, &patch, &room, call.invocation).await;
            moved.map(|moved| keep_moved(registry, moved, room))
        }
        _ => store.edit_device(&id, &patch, call.invocation).await,
    };
    match edited.map_err(|error| call.failed(&error))? {
        UpdateOutcome::Updated(device) => {
            registry.keep_device(device.clone());
            Ok(Response::json(200, &DeviceRow::from(&device)))
        }
        UpdateOutcome::ConditionFailed(was) => {
            Err(match was.as_ref().and_then(|was| patch.unknown_metric(was)) {
                Some(name) => {
                    let message = "is no metric that the device has sent";
                    Problem::field(&format!("metrics.{name}"), message)
                }
                None => lookup::device_not_found(registry, &id),
            })
        }
    }
}

/// Refuses what means nothing for the device. One that is not registered is refused by the edit itself.
async fn check(
    registry: &CachedRegistry<impl Clock>,
    store: &(impl ReadRegistry + LookUpRegistry),
    id: &DeviceId,
    patch: &DevicePatch,
    call: &mut Call<'_>,
) -> Result<(), Problem> {
    if let Edit::Set(meter) = &patch.behind {
        let known = registry.device(meter, store, call.invocation, call.log).await;
        if known.map_err(|error| call.failed(&error))?.is_none() {
            return Err(Problem::field("behind", format!("there is no device {meter}")));
        }
        let snapshot = lookup::snapshot(registry, store, call).await?;
        meaning::check_behind(id, meter, &snapshot.devices)?;
    }
    if patch.metrics.is_empty() {
        return Ok(());
    }
    let device = registry.device(id, store, call.invocation, call.log).await;
    match device.map_err(|error| call.failed(&error))? {
        Some(device) => meaning::check_metrics(&device, patch),
        None => Ok(()),
    }
}

/// Takes over the room that a device was moved to.
fn keep_moved(
    registry: &CachedRegistry<impl Clock>,
    moved: UpdateOutcome<(Device, InsertOutcome<Room>), Device>,
    new: Room,
) -> UpdateOutcome<Device> {
    match moved {
        UpdateOutcome::Updated((device, inserted)) => {
            registry.keep_room(match inserted {
                InsertOutcome::Inserted => new,
                InsertOutcome::Exists(known) => known,
            });
            UpdateOutcome::Updated(device)
        }
        UpdateOutcome::ConditionFailed(was) => UpdateOutcome::ConditionFailed(was),
    }
}

/// `PATCH /rooms/{id}`
pub(crate) async fn room(
    registry: &CachedRegistry<impl Clock>,
    store: &impl EditRegistry,
    call: &mut Call<'_>,
) -> Result<Response, Problem> {
    let id = lookup::room_id(call)?;
    let patch = patch::of_room(call.request)?;
    let edited = store.edit_room(&id, &patch, call.invocation).await;
    match edited.map_err(|error| call.failed(&error))? {
        UpdateOutcome::Updated(room) => {
            registry.keep_room(room.clone());
            Ok(Response::json(200, &RoomRow::from(&room)))
        }
        UpdateOutcome::ConditionFailed(_) => Err(not_found("room", id.as_str())),
    }
}
