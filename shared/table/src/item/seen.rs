//! The two items of a device that was seen in a room, and how far this is noted of older rollups.

use super::attribute::{AFTER, DONE, FIRST_MONTH, LAST_MONTH, SINCE, VERSION};
use super::form::{At, Mark, Maybe, Text, Whole};
use super::kind::kind;
use super::{Item, key};
use crate::keys::Key;
use crate::{RoomWalk, Seen};
use domain::{DeviceId, RoomId};

// Among the devices that were seen in the room.
kind! { Seen = SeenIn(room, device) {
    first: Text = FIRST_MONTH,
    last: Text = LAST_MONTH,
    version: Whole = VERSION,
} }

/// The item among the device's rollups, by which a deletion of the device finds the other.
#[must_use]
pub fn seen_of(device: &DeviceId, room: &RoomId) -> Item {
    key(&Key::SeenOf(device.clone(), room.clone()))
}

kind! { RoomWalk = RoomWalk {
    begun: At = SINCE,
    after: Maybe<Text> = AFTER,
    is_done: Mark = DONE,
} }
