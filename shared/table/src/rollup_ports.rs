//! The ports of rollups and of the state of the rollup function. Folds nothing.

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

        /// All rollups of the quarters that begin in a range, oldest first. A consistent read sees all earlier puts, at
        /// twice the price.
        fn quarters(
            device: &DeviceId,
            range: TimeRange,
            consistent: bool,
        ) -> StoreResult<Vec<StoredRollup>>;

        /// The rollups of the days in `dates`, both ends inclusive: at most `limit`.
        fn days(
            device: &DeviceId,
            dates: RangeInclusive<LocalDate>,
            order: Order,
            limit: usize,
        ) -> StoreResult<Vec<StoredRollup>>;
    }

    /// All readings of a device in a range, with their expiry, as they are this moment.
    ReadStoredReadings [(Query, Readings)] {
        /// All readings of the range, oldest first. The range must fit into memory.
        fn stored_readings(device: &DeviceId, range: TimeRange) -> StoreResult<Vec<StoredReading>>;
    }

    /// Stores rollups.
    ///
    /// Each put expects the version that was read before the readings. So of two folds, the fold that read older
    /// readings is refused.
    PutRollups [(PutItem, Rollups)] {
        /// Puts a rollup; returns whether the stored item was as expected. A rollup that was folded with newer settings
        /// is never replaced.
        fn put_rollup(stored: &StoredRollup, expected: Expected) -> StoreResult<bool>;
    }

    /// Reads the state of the rollups.
    ReadRollupState [(GetItem, RollupState)] {
        /// The state, as it is this moment; `None` before the rollup function has run.
        fn rollup_state() -> StoreResult<Option<RollupState>>;
    }

    /// Reads the announced changes of past readings that rollups may lack.
    ReadLateChanges [(GetItem, LateChanges)] {
        /// The marks and the backlog, as they are this moment.
        fn late_changes() -> StoreResult<LateChanges>;
    }

    /// Marks changes of past readings before they are made.
    MarkLateChanges [(UpdateItem, LateChanges)] {
        /// Stores marks if the stored marks have the expected version, 0 if there are no marks. Otherwise returns the
        /// stored marks. If several processes store at once, one succeeds and the others get its marks.
        fn put_late_marks(marks: &[LateMark], expected: u64) -> StoreResult<Option<LateChanges>>;
    }

    /// Reads how far a device's rollups follow its new settings.
    ReadRefold [(GetItem, Rollups)] {
        /// How far the rollups of a device are folded again, as it is this moment. If nothing is stored, all are folded
        /// with settings 0.
        fn refold(device: &DeviceId) -> StoreResult<Refold>;
    }

    /// Writes the state of the rollups. Done twice, or by several processes at once, the result is the same. A
    /// watermark moves back only if it is ahead of the clock. The last noted backlog stays.
    KeepRollupState [
        (PutItem, RollupState),
        (UpdateItem, RollupState),
        (UpdateItem, LateChanges),
        (UpdateItem, ConditionsSchema),
        (UpdateItem, Rollups),
    ] {
        /// Stores the first state, unless there is one.
        fn begin_rollups(state: &RollupState) -> StoreResult<InsertOutcome<RollupState>>;

        /// Moves the watermarks of groups of devices forward, except those that are ahead already, and notes the depth
        /// of the queue if it is known.
        fn advance_sealed(
            groups: &BTreeSet<usize>,
            sealed: Timestamp,
            queue: Option<QueueDepth>,
        ) -> StoreResult<()>;

        /// Moves the watermarks of groups of devices back to `sealed` if they are ahead of it, because an earlier sweep
        /// had a wrong clock.
        fn set_back_sealed(groups: &BTreeSet<usize>, sealed: Timestamp) -> StoreResult<()>;

        /// Notes late changes that are not folded yet.
        fn note_backlog(backlog: Backlog) -> StoreResult<()>;

        /// Notes that the index by conditions lacks rollups, if a schema is stored and the table has no such index now.
        /// So an index that is made again later is not taken for complete.
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
        /// The schema, as it is this moment. Without an index by conditions, returns `None` and reads nothing.
        fn conditions_schema() -> StoreResult<Option<StoredSchema>>;

        /// Which values of rollups the index by conditions is to have.
        fn indexing() -> StoreResult<Indexing>;
    }

    /// Stores the schema of the index by conditions.
    PutConditionsSchema [(PutItem, ConditionsSchema)] {
        /// Stores a schema that is not ready; returns whether the stored schema was as expected. Done twice, the second
        /// time is refused.
        fn put_conditions_schema(
            schema: &ConditionsSchema,
            expected: Expected,
        ) -> StoreResult<bool>;
    }

    /// Notes that the index by conditions is complete.
    SetConditionsReady [(UpdateItem, ConditionsSchema)] {
        /// Notes that every rollup of 15 minutes is in the index by the schema of this version; returns whether the
        /// stored schema has this version. Done twice, the result is the same.
        fn set_conditions_ready(version: u8) -> StoreResult<bool>;
    }

    /// Rollups of 15 minutes by the address of their means.
    QueryConditions [(Query, ConditionsIndex)] {
        /// At most `limit` rollups of a device in the month of a timestamp, in the order of their addresses. They lie
        /// between two addresses, both inclusive, and after `after`, if given.
        fn indexed_quarters(
            query: &ConditionsQuery<'_>,
        ) -> StoreResult<Page<IndexedQuarter>>;
    }

    /// Lists all devices, at once or page by page, for registries of any size.
    ListDevices [(Query, Devices)] {
        /// The devices after an id, sorted by id, as they are this moment.
        fn device_page(after: Option<&DeviceId>, limit: usize) -> StoreResult<ListPage<Device>>;

        /// All devices, sorted by id, as they are this moment.
        fn all_devices() -> StoreResult<Listing<Device>>;
    }
}
