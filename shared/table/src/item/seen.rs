//! The two items that say that a device was seen in a room.

use super::attribute::{FIRST_MONTH, LAST_MONTH, VERSION};
use super::form::{Text, Whole};
use super::kind::kind;
use super::{Item, key};
use crate::RoomVisit;
use crate::keys::Key;
use domain::{DeviceId, RoomId};

// The item in the partition of the room.
kind! { RoomVisit = SeenIn(room, device) {
    first: Text = FIRST_MONTH,
    last: Text = LAST_MONTH,
    version: Whole = VERSION,
} }

/// The item among the device's rollups. When the device is deleted, this item leads to the one in the room's partition.
pub fn seen_of(device: &DeviceId, room: &RoomId) -> Item {
    key(&Key::SeenOf(device.clone(), room.clone()))
}
