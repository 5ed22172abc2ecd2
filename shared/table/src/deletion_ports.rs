//! The ports of deletion: marking a device as deleted, finding and removing its items, and removing rooms and homes.
//! Decides no order.

use domain::{Deletion, DeviceId, HomeId, Room, RoomId, Timestamp};

use crate::keys::Key;
use crate::ports_macro::ports;
use crate::{BegunDeletion, PutOutcome, StoreResult};

/// The key of an item as stored, even if it is no valid key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[must_use]
pub struct ItemKey {
    /// The partition key.
    pub pk: String,
    /// The sort key.
    pub sk: String,
}

/// A belonging of a device, by the keys of its items. Several items are removed together or not at all. A fold that is
/// still running also writes its two items together, so no item is left alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[must_use]
pub struct Belonging(pub Vec<ItemKey>);

impl ItemKey {
    /// The key of an item by its partition and its sort key.
    pub fn new(pk: impl Into<String>, sk: impl Into<String>) -> Self {
        Self { pk: pk.into(), sk: sk.into() }
    }

    /// The stored form of a valid key.
    pub fn of(key: &Key) -> Self {
        Self { pk: key.pk(), sk: key.sk() }
    }
}

impl Belonging {
    /// The two items of a stay, in the partitions of the device and of the room.
    pub fn of_stay(device: &DeviceId, room: &RoomId, since: Timestamp) -> Self {
        let in_room = Key::StayIn(room.clone(), since, device.clone());
        let of_device = Key::StayOf(device.clone(), since);
        Self(vec![ItemKey::of(&in_room), ItemKey::of(&of_device)])
    }

    /// The two items that note that the device was seen in a room, in the partitions of the device's rollups and of the
    /// room.
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

ports! {
    /// Puts deletion marks into devices' own items, so that a device is not registered again while it is being deleted.
    /// Done twice, each method leaves the result of the first time.
    MarkDeletions [
        (BatchGetItem, Devices),
        (GetItem, Devices),
        (UpdateItem, Devices),
        (Query, Devices),
    ] {
        /// Begins to delete a device. From then on, the device is in no list, in no room and behind no meter. A meter
        /// that has devices behind it in the table now is not deleted.
        fn begin_deletion(id: &DeviceId, at: Timestamp) -> StoreResult<BegunDeletion>;

        /// Notes that belongings of the device are found now. Returns the deletion; `None` if the device is not being
        /// deleted.
        fn note_found(id: &DeviceId, at: Timestamp) -> StoreResult<Option<Deletion>>;

        /// Ends a deletion, if nothing has been found since `known`; returns whether it is ended. A tombstone stays,
        /// which expires and is replaced by the next reading.
        fn end_deletion(id: &DeviceId, known: &Deletion, at: Timestamp) -> StoreResult<bool>;
    }

    /// Removes the belongings of a device, except its own item.
    RemoveBelongings [
        (Query, Readings),
        (Query, Rollups),
        (Query, Stays),
        (Query, Attributes),
        (Query, Annotations),
        (DeleteItem, Readings),
        (DeleteItem, Rollups),
        (DeleteItem, Stays),
        (DeleteItem, SeenIn),
        (DeleteItem, Attributes),
        (DeleteItem, Annotations),
    ] {
        /// The belongings of a device, as they are this moment: at most `limit`.
        fn belongings(id: &DeviceId, limit: usize) -> StoreResult<Belongings>;

        /// Removes belongings. Done twice, it changes nothing. Positions in the outcome are indices into `belongings`.
        fn remove_belongings(belongings: &[Belonging]) -> PutOutcome;
    }

    /// Removes rooms, and homes from rooms.
    RemoveRooms [
        (DeleteItem, Rooms),
        (PutItem, Rooms),
        (UpdateItem, Rooms),
    ] {
        /// Removes a room of the registry. Done twice, it changes nothing.
        fn remove_room(id: &RoomId) -> StoreResult<()>;

        /// Restores a removed room, unless it is registered again.
        fn put_back_room(room: &Room) -> StoreResult<()>;

        /// Takes a room out of a home; returns whether the room was in the home.
        fn leave_home(room: &RoomId, home: &HomeId) -> StoreResult<bool>;
    }
}
