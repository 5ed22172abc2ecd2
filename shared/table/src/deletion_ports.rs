//! The ports of deletion: marking, finding and removing what belongs to a device, and removing rooms and homes.
//! Decides no order.

use std::future::Future;

use domain::{Deletion, DeviceId, HomeId, Room, RoomId, Timestamp};

use crate::keys::Key;
use crate::{Action, BegunDeletion, Invocation, Permission, PutOutcome, StoreResult, Target};

/// The key of an item, as it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemKey {
    /// The partition key.
    pub pk: String,
    /// The sort key.
    pub sk: String,
}

/// Something of a device, by the keys of its items. Several are removed together, or none of them: a fold that
/// is still at work writes both of its own together too, so nobody leaves one alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Belonging(pub Vec<ItemKey>);

impl ItemKey {
    /// The key of an item that is what it should be.
    #[must_use]
    pub fn of(key: &Key) -> Self {
        Self { pk: key.pk(), sk: key.sk() }
    }
}

impl Belonging {
    /// A stay, with its side among those in the room.
    #[must_use]
    pub fn of_stay(device: &DeviceId, room: &RoomId, since: Timestamp) -> Self {
        let in_room = Key::StayIn(room.clone(), since, device.clone());
        let of_device = Key::StayOf(device.clone(), since);
        Self(vec![ItemKey::of(&in_room), ItemKey::of(&of_device)])
    }

    /// That the device was seen in a room.
    #[must_use]
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

/// Marks devices as deleted. The mark is in the device's own item, so that nothing registers the device while
/// it is there. Done twice, each method leaves what the first time left.
pub trait MarkDeletions: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[
        (Action::BatchGetItem, Target::Devices),
        (Action::GetItem, Target::Devices),
        (Action::UpdateItem, Target::Devices),
        (Action::Query, Target::Devices),
    ];

    /// Begins to delete a device, which from then on is in no list, no room and behind no meter. Refused
    /// where others are noted to be behind it, as they are this moment.
    fn begin_deletion(
        &self,
        id: &DeviceId,
        at: Timestamp,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<BegunDeletion>> + Send;
    /// Notes that something of the device is found now. Returns the deletion, `None` where none is under way.
    fn note_found(
        &self,
        id: &DeviceId,
        at: Timestamp,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<Option<Deletion>>> + Send;
    /// Ends a deletion, if nothing has been found since `known`; returns whether it is ended. What is left is
    /// a tombstone that expires, and that the next reading replaces.
    fn end_deletion(
        &self,
        id: &DeviceId,
        known: &Deletion,
        at: Timestamp,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<bool>> + Send;
}

/// Removes what belongs to a device beside its own item.
pub trait RemoveBelongings: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[
        (Action::Query, Target::Readings),
        (Action::Query, Target::Rollups),
        (Action::Query, Target::Stays),
        (Action::Query, Target::Attributes),
        (Action::Query, Target::Annotations),
        (Action::DeleteItem, Target::Readings),
        (Action::DeleteItem, Target::Rollups),
        (Action::DeleteItem, Target::Stays),
        (Action::DeleteItem, Target::SeenIn),
        (Action::DeleteItem, Target::Attributes),
        (Action::DeleteItem, Target::Annotations),
    ];

    /// What belongs to a device, as it is this moment: at most `limit`.
    fn belongings(
        &self,
        id: &DeviceId,
        limit: usize,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<Belongings>> + Send;
    /// Removes belongings. Done twice, it changes nothing. The outcome's positions are theirs.
    fn remove_belongings(
        &self,
        belongings: &[Belonging],
        invocation: &Invocation,
    ) -> impl Future<Output = PutOutcome> + Send;
}

/// Removes rooms, and homes from rooms.
pub trait RemoveRooms: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[
        (Action::DeleteItem, Target::Rooms),
        (Action::PutItem, Target::Rooms),
        (Action::UpdateItem, Target::Rooms),
    ];

    /// Removes a room of the registry. Done twice, it changes nothing.
    fn remove_room(
        &self,
        id: &RoomId,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<()>> + Send;
    /// Puts a room back that was removed, unless it is registered again.
    fn put_back_room(
        &self,
        room: &Room,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<()>> + Send;
    /// Takes a room out of a home; returns whether it was in it.
    fn leave_home(
        &self,
        room: &RoomId,
        home: &HomeId,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<bool>> + Send;
}
