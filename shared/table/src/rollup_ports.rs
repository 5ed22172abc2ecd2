//! The ports of rollups: reading, putting, and the state of the function that keeps them. Folds nothing.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use domain::{ConditionsSchema, Device, DeviceId, LocalDate, Order, TimeRange, Timestamp};

use crate::ports_macro::ports;
use crate::{
    Backlog, ConditionsQuery, Expected, IndexedQuarter, Indexing, InsertOutcome, LateChanges,
    LateMark, ListPage, Listing, Page, QueueDepth, Refold, RollupKey, RollupState, StoreResult,
    StoredReading, StoredRollup, StoredSchema,
};

ports! {
    /// Rollups of a device in a range.
    ReadRollups [(GetItem, Rollups), (Query, Rollups)] {
        /// One rollup, as it is this moment.
        fn rollup(key: &RollupKey) -> StoreResult<Option<StoredRollup>>;

        /// All rollups of the quarters that begin in a range, oldest first. A consistent read sees all that was
        /// put before, at twice the price.
        fn quarters(
            device: &DeviceId,
            range: TimeRange,
            consistent: bool,
        ) -> StoreResult<Vec<StoredRollup>>;

        /// The rollups of the days from `first` to `last`, both inside: at most `limit`.
        fn days(
            device: &DeviceId,
            dates: RangeInclusive<LocalDate>,
            order: Order,
            limit: usize,
        ) -> StoreResult<Vec<StoredRollup>>;
    }

    /// All readings of a device in a range, with their expiry, as they are this moment.
    ReadStoredReadings [(Query, Readings)] {
        /// All of them, oldest first: for ranges that fit into memory.
        fn stored_readings(device: &DeviceId, range: TimeRange) -> StoreResult<Vec<StoredReading>>;
    }

    /// Stores rollups.
    ///
    /// Each put expects what was read before the readings were: so of two folds the one that read older
    /// readings is refused.
    PutRollups [(PutItem, Rollups)] {
        /// Puts a rollup; returns whether the item was as expected. A rollup that was folded with newer
        /// settings is never replaced.
        fn put_rollup(stored: &StoredRollup, expected: Expected) -> StoreResult<bool>;
    }

    /// Reads the state of the rollups.
    ReadRollupState [(GetItem, RollupState)] {
        /// The state, as it is this moment; `None` before the rollup function has run.
        fn rollup_state() -> StoreResult<Option<RollupState>>;
    }

    /// Reads what is known of changes of past readings that rollups may lack.
    ReadLateChanges [(GetItem, LateChanges)] {
        /// The marks and the backlog, as they are this moment.
        fn late_changes() -> StoreResult<LateChanges>;
    }

    /// Marks changes of past readings before they are made.
    MarkLateChanges [(UpdateItem, LateChanges)] {
        /// Stores marks, if those that are stored have the expected version, 0 where there are none; returns what
        /// is stored if they have another. By many at once, one is stored and the others hear of it.
        fn put_late_marks(marks: &[LateMark], expected: u64) -> StoreResult<Option<LateChanges>>;
    }

    /// Reads how far rollups follow new settings of their device.
    ReadRefold [(GetItem, Rollups)] {
        /// How far the rollups of a device are folded again, as it is this moment; nothing is folded with newer
        /// settings than 0 where nothing is stored.
        fn refold(device: &DeviceId) -> StoreResult<Refold>;
    }

    /// Keeps the state of the rollups. Done twice, or by many at once, it is the same: a watermark moves forward, and
    /// back only where it is ahead of the clock; of backlogs the one that is noted last stays.
    KeepRollupState [
        (PutItem, RollupState),
        (UpdateItem, RollupState),
        (UpdateItem, LateChanges),
        (UpdateItem, ConditionsSchema),
        (UpdateItem, Rollups),
    ] {
        /// Stores the first state, unless there is one.
        fn begin_rollups(state: &RollupState) -> StoreResult<InsertOutcome<RollupState>>;

        /// Moves the watermarks of groups of devices forward, each unless it is ahead already, and notes the depth
        /// of the queue where it is known.
        fn advance_sealed(
            groups: &BTreeSet<usize>,
            sealed: Timestamp,
            queue: Option<QueueDepth>,
        ) -> StoreResult<()>;

        /// Moves the watermarks of groups of devices back, each if it is ahead of `sealed`: an earlier sweep had a
        /// clock that was wrong.
        fn set_back_sealed(groups: &BTreeSet<usize>, sealed: Timestamp) -> StoreResult<()>;

        /// Notes changes that came late.
        fn note_backlog(backlog: Backlog) -> StoreResult<()>;

        /// Notes that the index by conditions lacks rollups, where a schema is stored and the table has no such
        /// index now: whoever makes it again must not find it complete.
        fn distrust_conditions() -> StoreResult<()>;

        /// Notes that the rollups are complete from `since` on, and the time zone of their days.
        fn set_rebuilt(since: Timestamp, zone: &str) -> StoreResult<()>;

        /// Stores how far the rollups of a device are folded again.
        fn set_refold(device: &DeviceId, refold: &Refold) -> StoreResult<()>;
    }

    /// Reads the schema of the index by conditions.
    ReadConditionsSchema [(GetItem, ConditionsSchema)]
    knows {
        /// Whether the table has the index by conditions.
        fn has_conditions_index() -> bool;
    } {
        /// The schema, as it is this moment. Reads nothing and returns `None` where the table has no index by
        /// conditions.
        fn conditions_schema() -> StoreResult<Option<StoredSchema>>;

        /// What the index by conditions is to have of rollups.
        fn indexing() -> StoreResult<Indexing>;
    }

    /// Stores the schema of the index by conditions.
    PutConditionsSchema [(PutItem, ConditionsSchema)] {
        /// Stores a schema that is not ready; returns whether the stored one was as expected. Done twice, the
        /// second is refused.
        fn put_conditions_schema(
            schema: &ConditionsSchema,
            expected: Expected,
        ) -> StoreResult<bool>;
    }

    /// Notes that the index by conditions is complete.
    SetConditionsReady [(UpdateItem, ConditionsSchema)] {
        /// Notes that every rollup of 15 minutes is in the index by the schema of this version; returns whether
        /// that is the stored one. Done twice, it is the same.
        fn set_conditions_ready(version: u8) -> StoreResult<bool>;
    }

    /// Rollups of 15 minutes by the address of their means.
    QueryConditions [(Query, ConditionsIndex)] {
        /// At most `limit` rollups of a device in the month of a timestamp, in the order of their addresses, between two addresses, both inside;
        /// behind `after`, if there is one.
        fn indexed_quarters(
            query: &ConditionsQuery<'_>,
        ) -> StoreResult<Page<IndexedQuarter>>;
    }

    /// Every device, at once or page by page, however many there are.
    ListDevices [(Query, Devices)] {
        /// The devices after an id, sorted by id, as they are this moment.
        fn device_page(after: Option<&DeviceId>, limit: usize) -> StoreResult<ListPage<Device>>;

        /// All devices, sorted by id, as they are this moment.
        fn all_devices() -> StoreResult<Listing<Device>>;
    }
}
