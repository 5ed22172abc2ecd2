//! The ports of readings and the registry: one trait per access pattern, in words of the domain, with the permissions
//! that it needs. Says nothing of keys, items or the SDK.

use chrono::TimeDelta;
use domain::{
    Deletion, Device, DeviceId, DevicePatch, DevicePatchError, DeviceStay, DeviceUpdate, Label,
    Reading, Room, RoomId, RoomPatch, Stay, Timestamp, Token, TokenHash,
};

use crate::ports_macro::ports;
use crate::shards::Shards;
use crate::{
    Added, Counting, Edited, InsertOutcome, ListPage, Listing, Page, PutOutcome, RangeQuery,
    ReadingKey, Registration, SearchHit, SearchQuery, StayQuery, StoreResult, UpdateOutcome,
};

ports! {
    /// Store readings.
    ///
    /// A repeat changes nothing: each reading is put as a whole, and its key is made of its device and timestamp.
    PutReadings [(BatchWriteItem, Readings)] {
        /// Stores readings. No two of them may have the same device and timestamp. Each is deleted some days after its
        /// `retention` has ended.
        fn put_readings(readings: &[Reading], retention: Option<TimeDelta>) -> PutOutcome;
    }

    /// Add metrics to readings that may be stored already.
    ///
    /// A repeat changes nothing, because the update only sets attributes.
    MergeReadings [(PartiQLInsert, Readings), (UpdateItem, Readings)] {
        /// Sets the metrics of each reading, and keeps other metrics of the same device and timestamp. If the sender
        /// named no room, a stored room stays.
        fn merge_readings(readings: &[Reading], retention: Option<TimeDelta>) -> PutOutcome;
    }

    /// Store a reading that was sent without a timestamp.
    AddArrival [(PutItem, Readings)] {
        /// Stores a reading, unless its timestamp is taken. A repeat changes nothing: a stored reading with the same
        /// `arrival` is the same reading.
        fn add_arrival(
            reading: &Reading,
            arrival: &str,
            retention: Option<TimeDelta>,
        ) -> StoreResult<Added>;
    }

    /// Deletes the readings that a person wants to remove.
    DeleteReadings [(DeleteItem, Readings)] {
        /// Deletes readings. A repeat changes nothing.
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
        /// Whether the table has the room index.
        fn has_room_index() -> bool;
    } {
        /// A page of one room's readings: those of all its devices, sorted by time.
        ///
        /// `devices` are all devices that are or were in the room. If the table has no room index, these devices are
        /// read instead.
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
        /// All devices, sorted by id. If there are too many, returns `MAX_CACHED_ENTRIES + 1` of them, so that the
        /// caller knows that the list is not complete.
        fn devices() -> StoreResult<Listing<Device>>;

        /// All rooms, sorted by id, with the same limit as for devices.
        fn rooms() -> StoreResult<Listing<Room>>;
    }

    /// Read how many partitions the registry's devices are in. Done once in a process.
    ReadShards [(Query, Devices)] {
        /// The number of partitions; `None` if the table has no devices.
        fn stored_shards() -> StoreResult<Option<Shards>>;

        /// Refuses a table whose devices are in more or fewer partitions than the settings say. Otherwise lists would
        /// not show them, and they would be registered again.
        fn check_shards() -> StoreResult<()>;
    }

    /// Pages of rooms, and of a room's devices, for registries of any size.
    PageRegistry [(Query, Rooms), (Query, RoomIndex)] {
        /// The rooms after an id, sorted by id, as they are this moment.
        fn room_page(after: Option<&RoomId>, limit: usize) -> StoreResult<ListPage<Room>>;

        /// The devices of a room after an id, sorted by id; `None` if the table has no room index. The index may lag
        /// for a moment.
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

        /// The deletion of a device; `None` if the device is registered or if there is no such device.
        fn deletion(id: &DeviceId) -> StoreResult<Option<Deletion>>;

        /// One room, as it is this moment.
        fn room(id: &RoomId) -> StoreResult<Option<Room>>;
    }
}

ports! {
    /// Look up several devices and rooms, as they are this moment. No id may be given twice.
    FindRegistry [(BatchGetItem, Devices), (BatchGetItem, Rooms), (Query, Devices)] {
        /// The registered devices with these ids, in any order.
        fn find_devices(ids: &[DeviceId]) -> StoreResult<Listing<Device>>;

        /// The registered devices with these ids, and the ids that could not be read because the table throttled.
        fn find_some_devices(ids: &[DeviceId]) -> StoreResult<(Listing<Device>, Vec<DeviceId>)>;

        /// The registered rooms with these ids, in any order.
        fn find_rooms(ids: &[RoomId]) -> StoreResult<Listing<Room>>;
    }

    /// Find devices by the values in the attribute index.
    SearchDevices [(Query, AttributeIndex), (GetItem, Attributes)] {
        /// Whether the index has every device, except for writes of the last moment.
        fn is_indexed() -> StoreResult<bool>;

        /// A page of entries of the index, in the order of the index. The index may lag behind the devices.
        fn search(query: &SearchQuery<'_>) -> StoreResult<Page<SearchHit>>;
    }

    /// Records that the attribute index is complete, if no device has a value for it.
    MarkIndexed [(GetItem, Attributes), (PutItem, Attributes), (Query, Devices)] {
        /// Records that the index is complete, unless a device has a value for it, another run has begun, or an edit
        /// without the index is made meanwhile. After this, each edit of a device writes its values to the index or
        /// removes the record. Returns whether the index is complete. Not done for a table with more devices than
        /// memory holds.
        fn mark_indexed(now: Timestamp) -> StoreResult<bool>;
    }

    /// Completes the attribute index: for the command line, not for functions.
    IndexDevices [
        (GetItem, Devices),
        (Query, Devices),
        (ConditionCheckItem, Devices),
        (Query, Attributes),
        (PutItem, Attributes),
        (DeleteItem, Attributes),
        (UpdateItem, Attributes),
    ] {
        /// Records that a run over all devices has begun. An index that was complete counts as complete during the run.
        fn begin_index(run: &str) -> StoreResult<()>;

        /// Corrects the entries of a device in the index; returns how many were wrong. A repeat returns 0.
        fn index_device(device: &Device) -> StoreResult<usize>;

        /// Records that the index is complete, unless another run has begun since, or an edit without the index was
        /// made. Returns whether this is recorded.
        fn end_index(run: &str, at: Timestamp) -> StoreResult<bool>;
    }

    /// Looks up an access token.
    FindToken [(GetItem, Tokens)] {
        /// The token with this hash, revoked or not, as it is this moment.
        fn token(hash: &TokenHash) -> StoreResult<Option<Token>>;
    }

    /// Stores new access tokens.
    AddToken [(PutItem, Tokens)] {
        /// Stores a new token. Refused if the token exists, so a repeat is refused.
        fn add_token(token: &Token) -> StoreResult<()>;
    }

    /// Lists and revokes access tokens: for the command line, not for functions.
    ManageTokens [(Query, Tokens), (UpdateItem, Tokens)] {
        /// All tokens, including revoked ones.
        fn tokens() -> StoreResult<Vec<Token>>;

        /// Revokes a token; returns whether it exists. A repeat does not change the timestamp.
        fn revoke_token(hash: &TokenHash, at: Timestamp) -> StoreResult<bool>;
    }

    /// Counts the devices that a sender introduces, if the registry is too large for memory. Any function that may
    /// store readings may write this count.
    CountIntroduced [(UpdateItem, Readings)] {
        /// Adds `more` devices, at most `limit`, to the number that a sender has introduced, unless the sum would exceed
        /// `limit`. A repeat counts twice, so the number is never too small.
        fn count_introduced(sender: &str, more: usize, limit: usize) -> StoreResult<Counting>;
    }

    /// Registers new devices and rooms. A registered item is not replaced, by a repeat or by another process.
    RegisterDevices [
        (PutItem, Devices),
        (PutItem, Rooms),
        (Query, Devices),
    ] {
        /// Registers a device, unless it is registered or being deleted. If it replaces a tombstone, the number of its
        /// fold settings counts on from that in the tombstone.
        fn register_device(device: &Device) -> StoreResult<Registration>;

        /// Registers a room, unless it is registered.
        fn register_room(room: &Room) -> StoreResult<InsertOutcome<Room>>;
    }

    /// Adds to the registry what the readings of the stream say.
    ///
    /// A repeat changes nothing: a value is written only if it is newer, if it is earlier, or if none is stored.
    UpdateRegistry [
        (UpdateItem, Devices),
        (UpdateItem, Rooms),
        (PutItem, Stays),
    ] {
        /// Adds facts that were learned of a device; never changes what a person set. A room is written only if the
        /// device still has the room of `known`. Facts of a sender are written only if the device still has the version
        /// of `known`.
        fn update_device(
            known: &Device,
            learned: &DeviceUpdate,
        ) -> StoreResult<UpdateOutcome<Device>>;

        /// Adds a room to those that a device introduced, unless the device has reached its limit. A repeat changes
        /// nothing.
        fn introduce_room(device: &DeviceId, room: &RoomId) -> StoreResult<UpdateOutcome<Device>>;

        /// Begins a learned stay of a device, and ends its current stay. Refused if the device has another place or
        /// version than `known`.
        fn begin_stay(known: &Device, stay: &Stay) -> StoreResult<UpdateOutcome<Device>>;

        /// Stores the time of a room's first reading, if it is earlier than the stored one.
        fn update_room(id: &RoomId, first_seen: Timestamp) -> StoreResult<UpdateOutcome<Room>>;

        /// Gives a registered room a name, if it has none.
        fn name_room(id: &RoomId, name: &Label) -> StoreResult<UpdateOutcome<Room>>;
    }

    /// A person's edits of the registry. A repeat leaves the same values.
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
        /// [`MeterChange`](crate::MeterChange)); otherwise says why not. The patch is checked against the device and
        /// the meters as they are stored when the edit is written. The device and all [`companions`](crate::companions)
        /// are written together, or nothing is written. A room that a person names is registered at once, without a
        /// reading.
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
        /// A page of a device's stays, sorted by when they began.
        fn stays_of(device: &DeviceId, query: &StayQuery) -> StoreResult<Page<DeviceStay>>;

        /// A page of the stays in a room, sorted by when they began.
        fn stays_in(room: &RoomId, query: &StayQuery) -> StoreResult<Page<DeviceStay>>;
    }

    /// Restores the stays of a backup.
    RestoreStays [(UpdateItem, Devices), (PutItem, Stays)] {
        /// Stores at most [`MAX_RESTORED_STAYS`] stays of a device, in their order, all or none. They must have ended
        /// before the device's first stay. If the device has no stays, the last of them becomes its newest stay.
        /// Refused if the device has changed since it was read, so a repeat is refused.
        fn restore_stays(known: &Device, stays: &[Stay]) -> StoreResult<UpdateOutcome<Device>>;
    }
}

/// The largest number of stays that are restored at once. One transaction writes them and the device, and has at most
/// 100 items.
pub const MAX_RESTORED_STAYS: usize = 48;
