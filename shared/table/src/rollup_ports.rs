//! The ports of rollups and of the state of the rollup function. Folds nothing.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use domain::{ConditionsSchema, Device, DeviceId, LocalDate, Order, TimeRange, Timestamp};

use crate::ports_macro::ports;
use crate::{
    Backlog, ConditionsQuery, Expected, IndexedQuarter, Indexing, InsertOutcome, LateChanges,
    LateMark, ListPage, Listing, MarksOutcome, Page, QueueDepth, Refold, RollupKey, RollupState,
    StoreResult, StoredReading, StoredRollup, StoredSchema,
};

ports! {
    /// Rollups of a device in a range.
    ReadRollups [(GetItem, Rollups), (Query, Rollups)] {
        /// One rollup, as it is this moment.
        fn rollup(key: &RollupKey) -> StoreResult<Option<StoredRollup>>;

        /// All rollups of the quarters that begin in a range, oldest first. A consistent read has all earlier puts, for
        /// twice the price.
        fn quarters(
            device: &DeviceId,
            range: TimeRange,
            consistent: bool,
        ) -> StoreResult<Vec<StoredRollup>>;

        /// The rollups of the days in `dates`, including both ends: at most `limit`.
        fn days(
            device: &DeviceId,
            dates: RangeInclusive<LocalDate>,
            order: Order,
            limit: usize,
        ) -> StoreResult<Vec<StoredRollup>>;
    }

    /// All readings of a device in a range, with their expiry, as they are this moment.
    ReadStoredReadings [(Query, Readings)] {
        /// All readings of the range, oldest first. They must fit into memory.
        fn stored_readings(device: &DeviceId, range: TimeRange) -> StoreResult<Vec<StoredReading>>;
    }

    /// Stores rollups.
    ///
    /// Each put expects the version that was read before the readings. So of two folds, the one that read older
    /// readings is refused.
    PutRollups [(PutItem, Rollups)] {
        /// Stores a rollup, if the stored one is as expected, and was folded with settings and a schema that are not
        /// newer. Returns whether it is stored.
        fn put_rollup(stored: &StoredRollup, expected: Expected) -> StoreResult<bool>;
    }

    /// Reads how far the rollups are complete.
    ReadRollupState [(GetItem, RollupState)] {
        /// The state, as it is this moment; `None` before the rollup function has run.
        fn rollup_state() -> StoreResult<Option<RollupState>>;
    }

    /// Reads the announcements of changes of past readings that rollups may not have yet.
    ReadLateChanges [(GetItem, LateChanges)] {
        /// The marks and the backlog, as they are this moment.
        fn late_changes() -> StoreResult<LateChanges>;
    }

    /// Announces changes of past readings before they are made.
    MarkLateChanges [(UpdateItem, LateChanges)] {
        /// Stores marks, if the stored ones have the expected version, which is 0 if there are none. If several
        /// processes store at once, one succeeds and the others get its marks.
        fn put_late_marks(marks: &[LateMark], expected: u64) -> StoreResult<MarksOutcome>;
    }

    /// Reads how far a device's rollups are folded with its new settings.
    ReadRefold [(GetItem, Rollups)] {
        /// The progress of folding a device's rollups again, as it is this moment. If nothing is stored, all are folded
        /// with settings 0.
        fn refold(device: &DeviceId) -> StoreResult<Refold>;
    }

    /// Writes the state of the rollups. A repeat has the same result, and so have several processes at once. A
    /// watermark moves back only if it is ahead of the clock. Of several backlogs, the one that is stored last stays.
    KeepRollupState [
        (PutItem, RollupState),
        (UpdateItem, RollupState),
        (UpdateItem, LateChanges),
        (UpdateItem, ConditionsSchema),
        (UpdateItem, Rollups),
    ] {
        /// Stores the first state, unless there is one.
        fn begin_rollups(state: &RollupState) -> StoreResult<InsertOutcome<RollupState>>;

        /// Moves the watermarks of groups of devices forward to `sealed`, except those that are as far already. Stores
        /// the length of the queue if it is known.
        fn advance_sealed(
            groups: &BTreeSet<usize>,
            sealed: Timestamp,
            queue: Option<QueueDepth>,
        ) -> StoreResult<()>;

        /// Moves the watermarks of groups of devices back to `sealed` if they are later, because an earlier sweep had a
        /// wrong clock.
        fn set_back_sealed(groups: &BTreeSet<usize>, sealed: Timestamp) -> StoreResult<()>;

        /// Stores since when late changes are waiting to be folded.
        fn note_backlog(backlog: Backlog) -> StoreResult<()>;

        /// If a schema is stored but the table has no conditions index now, records that the index is not complete.
        /// Otherwise an index that is made again later would count as complete.
        fn distrust_conditions() -> StoreResult<()>;

        /// Stores the time from which the rollups are complete, and the time zone of their days.
        fn set_rebuilt(since: Timestamp, zone: &str) -> StoreResult<()>;

        /// Stores the progress of folding a device's rollups again.
        fn set_refold(device: &DeviceId, refold: &Refold) -> StoreResult<()>;
    }

    /// Reads the schema of the conditions index.
    ReadConditionsSchema [(GetItem, ConditionsSchema)]
    knows {
        /// Whether the table has the conditions index.
        fn has_conditions_index() -> bool;
    } {
        /// The schema, as it is this moment. Without a conditions index, returns `None` and reads nothing.
        fn conditions_schema() -> StoreResult<Option<StoredSchema>>;

        /// Which values of rollups are put into the conditions index.
        fn indexing() -> StoreResult<Indexing>;
    }

    /// Stores the schema of the conditions index.
    PutConditionsSchema [(PutItem, ConditionsSchema)] {
        /// Stores a schema by which the index is not complete yet, if the stored schema is as expected. Returns whether
        /// it is stored. A repeat is refused.
        fn put_conditions_schema(
            schema: &ConditionsSchema,
            expected: Expected,
        ) -> StoreResult<bool>;
    }

    /// Records that the conditions index is complete.
    SetConditionsReady [(UpdateItem, ConditionsSchema)] {
        /// Records that the index has every rollup of 15 minutes by the schema of this version. Returns whether the
        /// stored schema has this version. A repeat has the same result.
        fn set_conditions_ready(version: u8) -> StoreResult<bool>;
    }

    /// Finds rollups of 15 minutes by the address of their means.
    QueryConditions [(Query, ConditionsIndex)] {
        /// At most `limit` rollups of a device in a month of UTC, sorted by address. The addresses are from `first` to
        /// `last`, both inclusive. Begins after `after`, if given.
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
