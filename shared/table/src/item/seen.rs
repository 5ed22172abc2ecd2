//! The two items that note that a device was seen in a room.

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

/// The item among the device's rollups, by which a deletion of the device finds the item of the room.
pub fn seen_of(device: &DeviceId, room: &RoomId) -> Item {
    key(&Key::SeenOf(device.clone(), room.clone()))
}
