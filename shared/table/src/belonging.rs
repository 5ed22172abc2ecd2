//! The belongings of a device, by the keys of their items. Finds and removes none.

use domain::{DeviceId, RoomId, Timestamp};

use crate::keys::{ItemKey, Key};

/// A belonging of a device: the keys of one item, or of several items that are removed together or not at all. A fold
/// that is still running also writes such items together, so that no item is left without the others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[must_use]
pub struct Belonging(pub Vec<ItemKey>);

impl Belonging {
    /// The two items of a stay, in the partitions of the device and of the room.
    pub fn of_stay(device: &DeviceId, room: &RoomId, since: Timestamp) -> Self {
        let in_room = Key::StayIn(room.clone(), since, device.clone());
        let of_device = Key::StayOf(device.clone(), since);
        Self(vec![ItemKey::of(&in_room), ItemKey::of(&of_device)])
    }

    /// The two items that say that the device was seen in a room. One is among the device's rollups, one in the room's
    /// partition.
    pub fn of_seen(device: &DeviceId, room: &RoomId) -> Self {
        let in_room = Key::SeenIn(room.clone(), device.clone());
        let of_device = Key::SeenOf(device.clone(), room.clone());
        Self(vec![ItemKey::of(&in_room), ItemKey::of(&of_device)])
    }
}

/// A page of the belongings of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Belongings {
    /// The belongings, up to the requested limit.
    pub found: Vec<Belonging>,
    /// Whether there are more belongings.
    pub has_more: bool,
}
