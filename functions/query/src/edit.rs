//! A person's edits of the registry: PATCH. Registers a room that a device is put into, nothing else.

use api::{Problem, Response};
use domain::{Device, Edit, Room, Timestamp};
use runtime::clock::Clock;
use runtime::http::Call;
use runtime::registry::CachedRegistry;
use table::{EditRegistry, Edited, InsertOutcome, ReadRegistry};

use crate::lookup::{self, not_found};
use crate::patch;
use crate::rows::{DeviceRow, RoomRow};

/// `PATCH /devices/{id}`
pub(crate) async fn device(
    registry: &CachedRegistry<impl Clock>,
    store: &(impl EditRegistry + ReadRegistry),
    now: Timestamp,
    call: &mut Call<'_>,
) -> Result<Response, Problem> {
    let id = lookup::device_id(call)?;
    let patch = patch::of_device(call.request)?;
    let edited = match &patch.room {
        Edit::Set(room)
            if !lookup::snapshot(registry, store, call).await?.rooms.contains_key(room) =>
        {
            // A room that a person names exists from then on, even before its first reading.
            let room = Room { id: room.clone(), name: None, first_seen: now };
            let moved = store.move_device(&id, &patch, &room, call.invocation).await;
            moved.map(|moved| keep_moved(registry, moved, room))
        }
        _ => store.edit_device(&id, &patch, call.invocation).await,
    };
    match edited.map_err(|error| call.failed(&error))? {
        Edited::Written(device) => {
            registry.keep_device(device.clone());
            Ok(Response::json(200, &DeviceRow::from(&device)))
        }
        Edited::Unknown => Err(not_found("device", id.as_str())),
        Edited::UnknownMetric(name) => {
            let message = "is no metric that the device has sent";
            Err(Problem::field(&format!("metrics.{name}"), message))
        }
    }
}

/// Takes over the room that a device was moved to.
fn keep_moved(
    registry: &CachedRegistry<impl Clock>,
    moved: Edited<(Device, InsertOutcome<Room>)>,
    new: Room,
) -> Edited<Device> {
    match moved {
        Edited::Written((device, inserted)) => {
            registry.keep_room(match inserted {
                InsertOutcome::Inserted => new,
                InsertOutcome::Exists(known) => known,
            });
            Edited::Written(device)
        }
        Edited::Unknown => Edited::Unknown,
        Edited::UnknownMetric(name) => Edited::UnknownMetric(name),
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
        Edited::Written(room) => {
            registry.keep_room(room.clone());
            Ok(Response::json(200, &RoomRow::from(&room)))
        }
        Edited::Unknown | Edited::UnknownMetric(_) => Err(not_found("room", id.as_str())),
    }
}
