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
    Added, Edited, InsertOutcome, ListPage, Listing, Page, PutOutcome, RangeQuery, ReadingKey,
    Registration, SearchHit, SearchQuery, StayQuery, StoreResult, UpdateOutcome,
};

ports! {
    /// Store readings.
    ///
    /// Done twice, it changes nothing: each reading is put whole, under a key made of its device and timestamp.
    PutReadings [(BatchWriteItem, Readings)] {
        /// Stores readings; no two of them have the same device and timestamp. Each is deleted some days after its
        /// `retention` is over.
        fn put_readings(readings: &[Reading], retention: Option<TimeDelta>) -> PutOutcome;
    }

    /// Add metrics to readings that may be stored already.
    ///
    /// Done twice, it changes nothing: the update only sets attributes.
    MergeReadings [(PartiQLInsert, Readings), (UpdateItem, Readings)] {
        /// Sets the metrics of each reading, and leaves other metrics of the same device and timestamp as they are. A
        /// room that was filled in, not sent, replaces a stored room only if a person chose the room.
        fn merge_readings(readings: &[Reading], retention: Option<TimeDelta>) -> PutOutcome;
    }

    /// Store a reading that has no timestamp, at the timestamp of its arrival.
    AddArrival [(PutItem, Readings)] {
        /// Stores a reading at a free timestamp. Done twice, it changes nothing: a stored reading with the same
        /// `arrival` is the same reading.
        fn add_arrival(
            reading: &Reading,
            arrival: &str,
            retention: Option<TimeDelta>,
        ) -> StoreResult<Added>;
    }

    /// Deletes readings, by which a person removes wrong ones.
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
        /// A page of one room's readings, with the readings of all its devices in order of time.
        ///
        /// `devices` are all devices that are or were in the room. They are read one by one if the table has no index
        /// by room.
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
        /// All devices, sorted by id. Returns `MAX_CACHED_ENTRIES + 1` devices if there are more, so that the caller
        /// knows that the list is incomplete.
        fn devices() -> StoreResult<Listing<Device>>;

        /// All rooms, sorted by id, with the same limit as devices.
        fn rooms() -> StoreResult<Listing<Room>>;
    }

    /// Read the number of partitions of the registry's devices, once in a process.
    ReadShards [(Query, Devices)] {
        /// The number of partitions; `None` if the table has no devices.
        fn stored_shards() -> StoreResult<Option<Shards>>;

        /// Refuses a table whose devices are in another number of partitions than the settings say. Otherwise lists
        /// would be empty, and every device would be registered again.
        fn check_shards() -> StoreResult<()>;
    }

    /// Pages of rooms, and of a room's devices, for registries of any size.
    PageRegistry [(Query, Rooms), (Query, RoomIndex)] {
        /// The rooms after an id, sorted by id, as they are this moment.
        fn room_page(after: Option<&RoomId>, limit: usize) -> StoreResult<ListPage<Room>>;

        /// The devices of a room after an id, sorted by id; `None` if the table has no index by room. The index follows
        /// the table after a moment.
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

        /// The deletion of a device; `None` if the device is registered or unknown.
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

        /// The registered devices with these ids, and the ids that could not be looked up because the table's capacity
        /// did not suffice.
        fn find_some_devices(ids: &[DeviceId]) -> StoreResult<(Listing<Device>, Vec<DeviceId>)>;

        /// The registered rooms with these ids, in any order.
        fn find_rooms(ids: &[RoomId]) -> StoreResult<Listing<Room>>;
    }

    /// Find devices by the values of the index of attributes.
    SearchDevices [(Query, AttributeIndex), (GetItem, Attributes)] {
        /// Whether the index holds every device, apart from writes of the last moment.
        fn is_indexed() -> StoreResult<bool>;

        /// A page of entries of the index, in the order of the index. The index may lag behind the devices.
        fn search(query: &SearchQuery<'_>) -> StoreResult<Page<SearchHit>>;
    }

    /// Notes that the index of attributes is complete, if no device has a value for it.
    MarkIndexed [(GetItem, Attributes), (PutItem, Attributes), (Query, Devices)] {
        /// Notes that the index is complete, unless it has a note already, a device has a value for the index, or an
        /// edit without the index is made meanwhile. From then on, each edit of a device writes its values or removes
        /// the note. Returns whether the index is noted as complete. Does nothing for a table with more devices than
        /// memory holds.
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
        /// Notes that a run over all devices has begun. A complete index stays complete.
        fn begin_index(run: &str) -> StoreResult<()>;

        /// Corrects the stored values of a device in the index, and returns how many were wrong. Done twice, the second
        /// time returns 0.
        fn index_device(device: &Device) -> StoreResult<usize>;

        /// Notes that the index is complete, unless another run has begun since or an edit without the index was made.
        /// Returns whether this is noted.
        fn end_index(run: &str, at: Timestamp) -> StoreResult<bool>;
    }

    /// Looks up an access token.
    FindToken [(GetItem, Tokens)] {
        /// The token with this hash, revoked or not, as it is this moment.
        fn token(hash: &TokenHash) -> StoreResult<Option<Token>>;
    }

    /// Stores new access tokens.
    AddToken [(PutItem, Tokens)] {
        /// Stores a new token, which must not exist yet: done twice, the second time is refused.
        fn add_token(token: &Token) -> StoreResult<()>;
    }

    /// Lists and revokes access tokens: for the command line, not for functions.
    ManageTokens [(Query, Tokens), (UpdateItem, Tokens)] {
        /// All tokens, revoked ones too.
        fn tokens() -> StoreResult<Vec<Token>>;

        /// Revokes a token; returns whether it exists. Done twice, the first timestamp stays.
        fn revoke_token(hash: &TokenHash, at: Timestamp) -> StoreResult<bool>;
    }

    /// Counts the devices that a sender introduces, if memory does not hold the registry. Any function that may store
    /// readings may write this number.
    CountIntroduced [(UpdateItem, Readings)] {
        /// Adds `more` devices, at most `limit`, to the number that a sender has introduced. If the sum would exceed
        /// `limit`, adds nothing and returns the stored number; otherwise returns `None`. Done twice, it counts twice,
        /// so the number is never too small.
        fn count_introduced(sender: &str, more: usize, limit: usize) -> StoreResult<Option<usize>>;
    }

    /// Registers new devices and rooms.
    ///
    /// Done twice, or by several processes at once, the first item stays.
    RegisterDevices [
        (PutItem, Devices),
        (PutItem, Rooms),
        (Query, Devices),
    ] {
        /// Registers a device, unless it is registered or being deleted. A tombstone is replaced; the number of the
        /// device's fold settings then goes on from that of the tombstone.
        fn register_device(device: &Device) -> StoreResult<Registration>;

        /// Registers a room, unless it is registered.
        fn register_room(room: &Room) -> StoreResult<InsertOutcome<Room>>;
    }

    /// Applies to the registry what the readings of the stream say.
    ///
    /// Done twice, the second time is refused and changes nothing: each value is written only while it is newer,
    /// earlier or absent.
    UpdateRegistry [
        (UpdateItem, Devices),
        (UpdateItem, Rooms),
        (PutItem, Stays),
    ] {
        /// Adds facts that were learned of a device; never changes what a person set. A room is written only while the
        /// device still has the room of `known`. Facts of a sender are written only while the device has the version of
        /// `known`.
        fn update_device(
            known: &Device,
            learned: &DeviceUpdate,
        ) -> StoreResult<UpdateOutcome<Device>>;

        /// Notes that a device introduces a room, unless it has reached its limit of introduced rooms. Done twice, it
        /// is noted once.
        fn introduce_room(device: &DeviceId, room: &RoomId) -> StoreResult<UpdateOutcome<Device>>;

        /// Begins a learned stay of a device, and ends its current stay. Refused if the device's place differs from
        /// `known`, or an edit or stay has been written since.
        fn begin_stay(known: &Device, stay: &Stay) -> StoreResult<UpdateOutcome<Device>>;

        /// Notes that a room's first reading was earlier than known.
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
        /// [`MeterChange`](crate::MeterChange)), else says why not. Device and meters are checked as the table has them
        /// when the edit is written. All [`companions`](crate::companions) are written with the device, or nothing is.
        /// A room that a person names exists from then on, even before its first reading.
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

/// The largest number of stays that are restored at once. Together with the device they are one transaction, of at most
/// 100 items.
pub const MAX_RESTORED_STAYS: usize = 48;
