//! A snapshot of the registry: its devices and rooms at one time. Reads no table.

use std::sync::Arc;

use domain::{Deletion, Device, DeviceId, HomeId, Room, RoomId, Timestamp};
use table::Listing;

use super::{Devices, SharedMap};
use crate::telemetry::chain;

/// The devices and rooms when the registry was last read, with the changes that this process has made since. A copy
/// costs nothing; one is made whenever a device gets a new metric or moves.
#[derive(Debug, Clone)]
pub struct RegistrySnapshot {
    /// Devices by id; empty if there are too many for memory.
    pub devices: Devices,
    /// Rooms by id; empty if there are too many for memory.
    pub rooms: SharedMap<RoomId, Room>,
    /// The devices whose deletion is under way, or has ended and is still remembered.
    pub deleted: SharedMap<DeviceId, Deletion>,
    /// Whether `devices` has all devices of the table. A registry may be too large for a function's memory; each device
    /// is then read from the table.
    pub(super) has_all_devices: bool,
    /// Whether `rooms` has all rooms of the table.
    pub has_all_rooms: bool,
    /// The items that could not be read, each with its key and the reason.
    pub unreadable: Arc<[String]>,
    /// When the registry was read.
    pub read_at: Timestamp,
}

impl RegistrySnapshot {
    /// The registry as it was read. `None` stands for too many devices, or rooms, for memory.
    pub fn of(
        devices: Option<Listing<Device>>,
        rooms: Option<Listing<Room>>,
        read_at: Timestamp,
    ) -> Self {
        let (has_all_devices, has_all_rooms) = (devices.is_some(), rooms.is_some());
        let (devices, rooms) = (devices.unwrap_or_default(), rooms.unwrap_or_default());
        let unreadable = devices.unreadable.iter().chain(&rooms.unreadable);
        let unreadable = unreadable.map(|item| chain(item)).collect();

        let deleted = devices.deleted.into_iter().map(|device| (device.id, device.deletion));
        let rooms = rooms.found.into_iter().map(|room| (room.id.clone(), room));
        Self {
            deleted: deleted.collect(),
            devices: devices.found.into_iter().collect(),
            rooms: rooms.collect(),
            has_all_devices,
            has_all_rooms,
            unreadable,
            read_at,
        }
    }

    /// Whether nothing is registered yet.
    pub fn is_empty(&self) -> bool {
        self.has_all_devices
            && self.has_all_rooms
            && self.devices.is_empty()
            && self.rooms.is_empty()
    }

    /// All devices by id; `None` if there are too many for memory.
    pub fn all_devices(&self) -> Option<&Devices> {
        self.has_all_devices.then_some(&self.devices)
    }

    /// Whether a device is being deleted.
    pub fn is_being_deleted(&self, id: &DeviceId) -> bool {
        self.deleted.get(id).is_some_and(|deletion| deletion.ended.is_none())
    }

    /// The rooms of a home, by id.
    pub fn rooms_of<'a>(&'a self, home: &'a HomeId) -> impl Iterator<Item = &'a Room> {
        self.rooms.values().filter(move |room| room.home.as_ref() == Some(home))
    }
}
