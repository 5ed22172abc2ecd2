//! Registers new devices, and the rooms that devices introduce. Changes no description.

use domain::{Device, DeviceId, DeviceObservation, MAX_INTRODUCED_ROOMS, Room, RoomId};
use table::{
    InsertOutcome, RegisterDevices, Registration, Session, StoreResult, UpdateOutcome,
    UpdateRegistry,
};

use crate::current::Current;

/// Registers the device of an observation if it is new, then the rooms that the device introduces. Returns the current
/// device; `None` if the device is being deleted.
///
/// If several instances register the same items, the first items stay.
pub(crate) async fn register(
    session: Session<'_, impl RegisterDevices + UpdateRegistry>,
    id: &DeviceId,
    observation: &DeviceObservation,
    current: &mut Current,
) -> StoreResult<Option<Device>> {
    // The device is taken out of `current`: the caller goes on with the device that this function returns.
    let known = current.devices.remove(id);
    let mut device = match known {
        Some(device) => device,
        None => {
            let is_known = |room: &RoomId| {
                current.rooms.contains_key(room) && !observation.introduced_rooms.contains(room)
            };
            let new = observation.new_device(id.clone(), is_known);
            match session.register_device(&new).await? {
                Registration::Inserted => new,
                Registration::Exists(device) => *device,
                Registration::Deleted(_) => return Ok(None),
            }
        }
    };

    for (room, span) in &observation.rooms {
        let is_registered = current.rooms.contains_key(room);
        if is_registered && !observation.introduced_rooms.contains(room) {
            continue;
        }

        // The room is noted in the device before it is registered: otherwise two functions together could exceed the
        // number of rooms that a device may introduce.
        match introduce(session, device, room).await? {
            Introduction::Noted(now) => device = now,
            Introduction::TooMany(now) => {
                device = now;
                continue;
            }
            // The device was deleted just now. Its next reading registers it again.
            Introduction::Deleted(was) => return Ok(Some(was)),
        }

        if !is_registered {
            let name = observation.room_names.get(room).cloned();
            let new = Room { name, ..Room::new(room.clone(), span.first) };
            let room = match session.register_room(&new).await? {
                InsertOutcome::Inserted => new,
                InsertOutcome::Exists(room) => room,
            };
            current.rooms.insert(room.id.clone(), room);
        }
    }

    Ok(Some(device))
}

/// The outcome of noting a room in a device, with the device as it is afterwards.
enum Introduction {
    Noted(Device),
    TooMany(Device),
    Deleted(Device),
}

async fn introduce(
    session: Session<'_, impl UpdateRegistry>,
    device: Device,
    room: &RoomId,
) -> StoreResult<Introduction> {
    if device.introduced_rooms().contains(room) {
        return Ok(Introduction::Noted(device));
    }
    if device.introduced_rooms().len() >= MAX_INTRODUCED_ROOMS {
        return Ok(Introduction::TooMany(device));
    }
    Ok(match session.introduce_room(device.id(), room).await? {
        UpdateOutcome::Updated(now) => Introduction::Noted(now),
        UpdateOutcome::ConditionFailed(Some(now)) => Introduction::TooMany(now),
        UpdateOutcome::ConditionFailed(None) => Introduction::Deleted(device),
    })
}
