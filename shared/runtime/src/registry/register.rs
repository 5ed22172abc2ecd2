//! Registers what readings name for the first time: a device, and the rooms that it introduces. Reads no list.

use domain::{
    DeletedDevice, Device, DeviceId, DeviceObservation, MAX_INTRODUCED_ROOMS, Room, RoomId,
};
use table::{InsertOutcome, Invocation, RegisterDevices, Registration, StoreResult, UpdateOutcome};

/// The result of [`register`].
#[derive(Debug)]
pub enum Registered {
    /// The device is registered.
    Device(RegisteredDevice),
    /// The device is being deleted; neither it nor a room is registered.
    Deleted(DeletedDevice),
}

/// A device that is registered, with the rooms that it introduced.
#[derive(Debug)]
pub struct RegisteredDevice {
    /// The device as it is now.
    pub device: Box<Device>,
    /// The rooms that it has introduced, as they are now.
    pub rooms: Vec<Room>,
}

/// Registers the device of an observation unless it is `known`, then every room that the observation names
/// and `is_known` does not know, as long as the device may introduce another.
///
/// Done twice, or by many at once, the first items stay. The device notes a room
/// before the room is registered, so that no two functions together register more than it may introduce.
pub async fn register(
    store: &impl RegisterDevices,
    id: &DeviceId,
    observation: &DeviceObservation,
    known: Option<Device>,
    is_known: impl Fn(&RoomId) -> bool,
    invocation: &Invocation,
) -> StoreResult<Registered> {
    let mut device = match known {
        Some(device) => device,
        None => {
            let new = observation.new_device(id.clone(), &is_known);
            match store.register_device(&new, invocation).await? {
                Registration::Inserted => new,
                Registration::Exists(device) => *device,
                Registration::Deleted(deletion) => {
                    return Ok(Registered::Deleted(DeletedDevice { id: id.clone(), deletion }));
                }
            }
        }
    };
    let mut rooms = Vec::new();
    for (room, span) in observation.rooms.iter().filter(|(room, _)| !is_known(room)) {
        if !device.introduced_rooms().contains(room) {
            if device.introduced_rooms().len() >= MAX_INTRODUCED_ROOMS {
                continue;
            }
            match store.introduce_room(id, room, invocation).await? {
                UpdateOutcome::Updated(now) => device = now,
                UpdateOutcome::ConditionFailed(Some(now)) => {
                    device = now;
                    continue;
                }
                // Somebody has just deleted the device: its next reading registers it anew.
                UpdateOutcome::ConditionFailed(None) => break,
            }
        }
        let name = observation.hints.room_names.get(room).cloned();
        let new = Room { name, ..Room::new(room.clone(), span.first) };
        rooms.push(match store.register_room(&new, invocation).await? {
            InsertOutcome::Inserted => new,
            InsertOutcome::Exists(room) => room,
        });
    }
    Ok(Registered::Device(RegisteredDevice { device: Box::new(device), rooms }))
}
