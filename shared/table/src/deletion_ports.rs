//! The ports of deletion: marking, finding and removing what belongs to a device, and removing rooms and homes.
//! Decides no order.

use domain::{Deletion, DeviceId, HomeId, Room, RoomId, Timestamp};

use crate::keys::Key;
use crate::ports_macro::ports;
use crate::{BegunDeletion, PutOutcome, StoreResult};

/// The key of an item, as it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[must_use]
pub struct ItemKey {
    /// The partition key.
    pub pk: String,
    /// The sort key.
    pub sk: String,
}

/// Something of a device, by the keys of its items. Several items are removed together or not at all. A fold that
/// is still at work writes its two items together too, so no item is left alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[must_use]
pub struct Belonging(pub Vec<ItemKey>);

impl ItemKey {
    /// The key of an item by its partition and its sort key.
    pub fn new(pk: impl Into<String>, sk: impl Into<String>) -> Self {
        Self { pk: pk.into(), sk: sk.into() }
    }

    /// The key of an item that is what it should be.
    pub fn of(key: &Key) -> Self {
        Self { pk: key.pk(), sk: key.sk() }
    }
}

impl Belonging {
    /// A stay, with its side among those in the room.
    pub fn of_stay(device: &DeviceId, room: &RoomId, since: Timestamp) -> Self {
        let in_room = Key::StayIn(room.clone(), since, device.clone());
        let of_device = Key::StayOf(device.clone(), since);
        Self(vec![ItemKey::of(&in_room), ItemKey::of(&of_device)])
    }

    /// That the device was seen in a room.
    pub fn of_seen(device: &DeviceId, room: &RoomId) -> Self {
        let in_room = Key::SeenIn(room.clone(), device.clone());
        let of_device = Key::SeenOf(device.clone(), room.clone());
        Self(vec![ItemKey::of(&in_room), ItemKey::of(&of_device)])
    }
}

/// What belongs to a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Belongings {
    /// At most as many as were asked for.
    pub found: Vec<Belonging>,
    /// Whether there is more.
    pub has_more: bool,
}

ports! {
    /// Puts deletion marks, each in the device's own item, so that nothing registers the device while it is there. Done
    /// twice, each method leaves what the first time left.
    MarkDeletions [
        (BatchGetItem, Devices),
        (GetItem, Devices),
        (UpdateItem, Devices),
        (Query, Devices),
    ] {
        /// Begins to delete a device, which from then on is in no list, no room and behind no meter. A meter with
        /// devices behind it, as the table has them this moment, is not deleted.
        fn begin_deletion(id: &DeviceId, at: Timestamp) -> StoreResult<BegunDeletion>;

        /// Notes that something of the device is found now. Returns the deletion, `None` where none is under way.
        fn note_found(id: &DeviceId, at: Timestamp) -> StoreResult<Option<Deletion>>;

        /// Ends a deletion, if nothing has been found since `known`; returns whether it is ended. What is left is
        /// a tombstone that expires, and that the next reading replaces.
        fn end_deletion(id: &DeviceId, known: &Deletion, at: Timestamp) -> StoreResult<bool>;
    }

    /// Removes what belongs to a device beside its own item.
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
        /// What belongs to a device, as it is this moment: at most `limit`.
        fn belongings(id: &DeviceId, limit: usize) -> StoreResult<Belongings>;

        /// Removes belongings. Done twice, it changes nothing. The outcome's positions are theirs.
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

        /// Puts a room back that was removed, unless it is registered again.
        fn put_back_room(room: &Room) -> StoreResult<()>;

        /// Takes a room out of a home; returns whether it was in it.
        fn leave_home(room: &RoomId, home: &HomeId) -> StoreResult<bool>;
    }
}
