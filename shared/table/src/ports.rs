//! The ports: one trait per access pattern, in words of the domain, with the permissions that it needs.
//! Says nothing of keys, items or the SDK.

use chrono::TimeDelta;
use domain::{
    Deletion, Device, DeviceId, DevicePatch, DevicePatchError, DeviceStay, DeviceUpdate, Label,
    Reading, Room, RoomId, RoomPatch, Stay, Timestamp, Token, TokenHash,
};

use crate::ports_macro::ports;
use crate::shards::Shards;
use crate::{
    Added, Edited, InsertOutcome, ListPage, Listing, Page, PutOutcome, RangeQuery, ReadingKey,
    Registration, SearchHit, SearchQuery, StayQuery, StoreResult, UpdateOutcome,
};

ports! {
    /// Store readings.
    ///
    /// Done twice, it changes nothing: a reading is a full put under a key made of its device and timestamp.
    PutReadings [(BatchWriteItem, Readings)] {
        /// Stores readings; no two of them have the same device and timestamp. Each is deleted some days after its
        /// `retention` is over.
        fn put_readings(readings: &[Reading], retention: Option<TimeDelta>) -> PutOutcome;
    }

    /// Add metrics to readings that may be stored already.
    ///
    /// Done twice, it changes nothing: it only sets.
    MergeReadings [(PartiQLInsert, Readings), (UpdateItem, Readings)] {
        /// Sets the metrics of each reading, and leaves the others of that device and timestamp as they are. A room that
        /// was filled in, and not sent, replaces no stored room, unless a person chose it.
        fn merge_readings(readings: &[Reading], retention: Option<TimeDelta>) -> PutOutcome;
    }

    /// Store a reading that has no timestamp, at the timestamp of its arrival.
    AddArrival [(PutItem, Readings)] {
        /// Stores a reading at a free timestamp. A stored reading with the same `arrival` is this one: done twice,
        /// it changes nothing.
        fn add_arrival(
            reading: &Reading,
            arrival: &str,
            retention: Option<TimeDelta>,
        ) -> StoreResult<Added>;
    }

    /// Deletes readings: a person's repair of a wrong one.
    DeleteReadings [(DeleteItem, Readings)] {
        /// Deletes readings. Done twice, it changes nothing.
        fn delete_readings(readings: &[ReadingKey]) -> PutOutcome;
    }

    /// Readings of a device in a range.
    QueryReadings [(Query, Readings)] {
        /// A page of one device's readings.
        fn device_readings(device: &DeviceId, query: &RangeQuery) -> StoreResult<Page<Reading>>;
    }

    /// Readings of a room in a range.
    QueryRoomReadings [(Query, RoomIndex), (Query, Readings)]
    knows {
        /// Whether the table has the index by room.
        fn has_room_index() -> bool;
    } {
        /// A page of one room's readings, all its devices merged in time order.
        ///
        /// `devices` are or were in the room; a table without the index by room is asked device by device.
        fn room_readings(
            room: &RoomId,
            devices: &[DeviceId],
            query: &RangeQuery,
        ) -> StoreResult<Page<Reading>>;
    }
}

ports! {
    /// List devices and rooms.
    ReadRegistry [(Query, Devices), (Query, Rooms)] {
        /// All devices, sorted by id. Returns `MAX_CACHED_ENTRIES + 1` where there are more, so that the
        /// caller knows that the list is incomplete.
        fn devices() -> StoreResult<Listing<Device>>;

        /// All rooms, sorted by id, in the same way as devices.
        fn rooms() -> StoreResult<Listing<Room>>;
    }

    /// In how many partitions the registry's devices are: asked once in a process.
    ReadShards [(Query, Devices)] {
        /// The number of partitions; `None` for a table without devices.
        fn stored_shards() -> StoreResult<Option<Shards>>;

        /// Refuses a table whose devices are in another number of partitions than the settings say: a list would be
        /// empty, and every device would be registered again.
        fn check_shards() -> StoreResult<()>;
    }

    /// A page of rooms, and of a room's devices, however many there are.
    PageRegistry [(Query, Rooms), (Query, RoomIndex)] {
        /// The rooms after an id, sorted by id, as they are this moment.
        fn room_page(after: Option<&RoomId>, limit: usize) -> StoreResult<ListPage<Room>>;

        /// The devices of a room after an id, sorted by id; `None` where the table has no index by room. The
        /// index follows the table after a moment.
        fn room_device_page(
            room: &RoomId,
            after: Option<&DeviceId>,
            limit: usize,
        ) -> StoreResult<Option<ListPage<Device>>>;
    }

    /// Look up one device or room.
    LookUpRegistry [(GetItem, Devices), (GetItem, Rooms), (Query, Devices)] {
        /// One device, as it is this moment.
        fn device(id: &DeviceId) -> StoreResult<Option<Device>>;

        /// The deletion of a device; `None` where the device is there, and where nothing is known of it.
        fn deletion(id: &DeviceId) -> StoreResult<Option<Deletion>>;

        /// One room, as it is this moment.
        fn room(id: &RoomId) -> StoreResult<Option<Room>>;
    }
}

ports! {
    /// Look up several devices and rooms, as they are this moment. No id is asked for twice.
    FindRegistry [(BatchGetItem, Devices), (BatchGetItem, Rooms), (Query, Devices)] {
        /// The registered devices of some ids, in any order.
        fn find_devices(ids: &[DeviceId]) -> StoreResult<Listing<Device>>;

        /// The registered devices, and the ids that could not be looked up, because the table's capacity did not suffice.
        fn find_some_devices(ids: &[DeviceId]) -> StoreResult<(Listing<Device>, Vec<DeviceId>)>;

        /// The registered rooms of some ids, in any order.
        fn find_rooms(ids: &[RoomId]) -> StoreResult<Listing<Room>>;
    }

    /// Find devices by the values of the index of attributes.
    SearchDevices [(Query, AttributeIndex), (GetItem, Attributes)] {
        /// Tells whether the index holds every device, apart from what was written a moment ago.
        fn is_indexed() -> StoreResult<bool>;

        /// Some entries of the index, in its order. It may lag behind the devices.
        fn search(query: &SearchQuery<'_>) -> StoreResult<Page<SearchHit>>;
    }

    /// Notes that the index of attributes is complete where there is nothing to put into it.
    MarkIndexed [(GetItem, Attributes), (PutItem, Attributes), (Query, Devices)] {
        /// Notes that the index is complete if nothing is noted of it, no device has a value that belongs into it, and
        /// no edit without the index is made meanwhile. Then whoever edits a device writes its values, or takes the
        /// note away. Returns whether it is noted. A table of more devices than memory holds is left as it is.
        fn mark_indexed(now: Timestamp) -> StoreResult<bool>;
    }

    /// Keeps the index of attributes complete: for the command line, not for functions.
    IndexDevices [
        (GetItem, Devices),
        (Query, Devices),
        (ConditionCheckItem, Devices),
        (Query, Attributes),
        (PutItem, Attributes),
        (DeleteItem, Attributes),
        (UpdateItem, Attributes),
    ] {
        /// Notes that a run has begun. A complete index stays complete.
        fn begin_index(run: &str) -> StoreResult<()>;

        /// Makes the stored values of a device those that it has, and returns how many were wrong. Done twice, the
        /// second time none is.
        fn index_device(device: &Device) -> StoreResult<usize>;

        /// Notes that the index is complete, unless another run has begun since, or an edit without the index was
        /// made. Returns whether it is noted.
        fn end_index(run: &str, at: Timestamp) -> StoreResult<bool>;
    }

    /// Looks up an access token.
    FindToken [(GetItem, Tokens)] {
        /// The token of that hash, revoked or not, as it is this moment.
        fn token(hash: &TokenHash) -> StoreResult<Option<Token>>;
    }

    /// Keeps new access tokens.
    AddToken [(PutItem, Tokens)] {
        /// Keeps a new token. It replaces none: done twice, the second time is refused.
        fn add_token(token: &Token) -> StoreResult<()>;
    }

    /// Lists and revokes access tokens: for the command line, not for functions.
    ManageTokens [(Query, Tokens), (UpdateItem, Tokens)] {
        /// All tokens, revoked ones too.
        fn tokens() -> StoreResult<Vec<Token>>;

        /// Revokes a token; returns whether it exists. Done twice, the first timestamp stays.
        fn revoke_token(hash: &TokenHash, at: Timestamp) -> StoreResult<bool>;
    }

    /// Counts the devices that a sender introduces, where memory does not hold the registry. Whoever may store readings
    /// may write this number.
    CountIntroduced [(UpdateItem, Readings)] {
        /// Counts that a sender introduces `more` devices, at most `limit`, unless it would then have introduced more
        /// than `limit`. Returns `None` where it is counted, else how many it has introduced. Done twice, it counts
        /// twice: the number is never too small.
        fn count_introduced(sender: &str, more: usize, limit: usize) -> StoreResult<Option<usize>>;
    }

    /// Registers devices and rooms that are new.
    ///
    /// Done twice, or by many at once, the first item stays.
    RegisterDevices [
        (PutItem, Devices),
        (PutItem, Rooms),
        (Query, Devices),
    ] {
        /// Registers a device, unless it is registered or being deleted. A tombstone is replaced; the device then
        /// counts its fold settings on from it.
        fn register_device(device: &Device) -> StoreResult<Registration>;

        /// Registers a room, unless it is registered.
        fn register_room(room: &Room) -> StoreResult<InsertOutcome<Room>>;
    }

    /// Applies to the registry what the stream's readings say.
    ///
    /// Done twice, the second time is refused and changes nothing: each part is written only while it is
    /// newer, earlier or absent.
    UpdateRegistry [
        (UpdateItem, Devices),
        (UpdateItem, Rooms),
        (PutItem, Stays),
    ] {
        /// Adds what was learned of a device; never touches what a person set. A room is written only
        /// while the device's room is the one of `known`, and facts of a sender while it has the version of `known`.
        fn update_device(
            known: &Device,
            learned: &DeviceUpdate,
        ) -> StoreResult<UpdateOutcome<Device>>;

        /// Notes that a device introduces a room, unless it has introduced as many as it may. Done twice,
        /// it is noted once.
        fn introduce_room(device: &DeviceId, room: &RoomId) -> StoreResult<UpdateOutcome<Device>>;

        /// Begins a stay that was learned, and ends the stay that lasts. Refused if the device's place is another
        /// than that of `known`, or an edit or stay has been written since.
        fn begin_stay(known: &Device, stay: &Stay) -> StoreResult<UpdateOutcome<Device>>;

        /// Notes an earlier first reading of a room.
        fn update_room(id: &RoomId, first_seen: Timestamp) -> StoreResult<UpdateOutcome<Room>>;

        /// Names a registered room that has no name.
        fn name_room(id: &RoomId, name: &Label) -> StoreResult<UpdateOutcome<Room>>;
    }

    /// A person's edits of the registry. Done twice, they leave what was set.
    EditRegistry [
        (GetItem, Devices),
        (GetItem, Rooms),
        (UpdateItem, Devices),
        (ConditionCheckItem, Devices),
        (UpdateItem, Rooms),
        (PutItem, Rooms),
        (Query, Devices),
        (PutItem, Stays),
        (PutItem, Attributes),
        (DeleteItem, Attributes),
    ] {
        /// Edits a registered device if the patch may be applied ([`DevicePatch::check`],
        /// [`MeterChange`](crate::MeterChange)), else says why not. Device and meters are judged as the table has
        /// them when the edit is written. [`companions`](crate::companions) are written with the device, all or
        /// nothing: a room that a person names exists from then on, even before its first reading.
        fn edit_device(
            id: &DeviceId,
            patch: &DevicePatch,
            now: Timestamp,
        ) -> StoreResult<UpdateOutcome<Edited, DevicePatchError>>;

        /// Edits a room.
        fn edit_room(id: &RoomId, patch: &RoomPatch) -> StoreResult<UpdateOutcome<Room>>;
    }

    /// The rooms in which a device has been, and the devices that have been in a room.
    ReadStays [(Query, Stays)] {
        /// A page of a device's stays, in the order in which they began.
        fn stays_of(device: &DeviceId, query: &StayQuery) -> StoreResult<Page<DeviceStay>>;

        /// A page of the stays in a room, in the order in which they began.
        fn stays_in(room: &RoomId, query: &StayQuery) -> StoreResult<Page<DeviceStay>>;
    }

    /// Restores the stays of a backup.
    RestoreStays [(UpdateItem, Devices), (PutItem, Stays)] {
        /// Stores at most [`MAX_RESTORED_STAYS`] stays of a device, in their order, all or none. All ended before the
        /// device's first stay. For a device without stays, the last becomes the newest. Refused if the device has
        /// changed since it was read, so a repeat is refused.
        fn restore_stays(known: &Device, stays: &[Stay]) -> StoreResult<UpdateOutcome<Device>>;
    }
}

/// The number of stays that are restored at once: with the device they are one transaction, of at most 100 items.
pub const MAX_RESTORED_STAYS: usize = 48;
