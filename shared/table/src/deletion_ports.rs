//! The ports of deletion: marking a device as deleted, finding and removing its items, and removing rooms and homes.
//! Does not decide the order of these steps.

use domain::{Deletion, DeviceId, HomeId, Room, RoomId, Timestamp};

use crate::keys::Key;
use crate::ports_macro::ports;
use crate::{BegunDeletion, PutOutcome, StoreResult};

/// The key of a stored item, whether or not it can be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[must_use]
pub struct ItemKey {
    /// The partition key.
    pub pk: String,
    /// The sort key.
    pub sk: String,
}

/// A belonging of a device: the keys of one item, or of several items that are removed together or not at all. A fold
/// that is still running also writes such items together, so that no item is left without the others.
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

ports! {
    /// Puts deletion marks into devices' own items, so that a device is not registered again while it is being deleted.
    /// A repeat changes nothing.
    MarkDeletions [
        (BatchGetItem, Devices),
        (GetItem, Devices),
        (UpdateItem, Devices),
        (Query, Devices),
    ] {
        /// Begins to delete a device. After this, the device is in no list, in no room and behind no meter. A meter is
        /// not deleted while devices are behind it.
        fn begin_deletion(id: &DeviceId, at: Timestamp) -> StoreResult<BegunDeletion>;

        /// Stores that belongings of the device were found at the time `at`. Returns the deletion; `None` if the device
        /// is not being deleted.
        fn note_found(id: &DeviceId, at: Timestamp) -> StoreResult<Option<Deletion>>;

        /// Ends a deletion, unless a belonging was found after `known` was read. Returns whether it is ended. The item
        /// stays as a tombstone until it expires or until the next reading replaces it.
        fn end_deletion(id: &DeviceId, known: &Deletion, at: Timestamp) -> StoreResult<bool>;
    }

    /// Removes the items of a device, except its own item in the registry.
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

        /// Removes belongings. A repeat changes nothing. Positions in the outcome are indices into `belongings`.
        fn remove_belongings(belongings: &[Belonging]) -> PutOutcome;
    }

    /// Removes rooms, and homes from rooms.
    RemoveRooms [
        (DeleteItem, Rooms),
        (PutItem, Rooms),
        (UpdateItem, Rooms),
    ] {
        /// Removes a room of the registry. A repeat changes nothing.
        fn remove_room(id: &RoomId) -> StoreResult<()>;

        /// Restores a removed room, unless it was registered again.
        fn put_back_room(room: &Room) -> StoreResult<()>;

        /// Takes a room out of a home; returns whether the room was in the home.
        fn leave_home(room: &RoomId, home: &HomeId) -> StoreResult<bool>;
    }
}
