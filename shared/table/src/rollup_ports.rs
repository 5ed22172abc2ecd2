//! The ports of rollups: reading, putting, and the state of the function that keeps them. Folds nothing.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use domain::{ConditionsSchema, Device, DeviceId, LocalDate, Order, TimeRange, Timestamp};

use crate::{
    Action, Backlog, ConditionsPage, Expected, IndexedQuarter, Indexing, InsertOutcome, Invocation,
    LateChanges, LateMark, ListPage, Listing, Permission, QueueDepth, Refold, RollupKey,
    RollupState, RoomWalk, StoreResult, StoredReading, StoredRollup, StoredSchema, Target,
};

/// Patterns 8 and 9: rollups of a device in a range.
pub trait ReadRollups: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] =
        &[(Action::GetItem, Target::Rollups), (Action::Query, Target::Rollups)];

    /// One rollup, as it is this moment.
    fn rollup(
        &self,
        key: &RollupKey,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<Option<StoredRollup>>> + Send;

    /// All rollups of the quarters that begin in a range, oldest first. A consistent read sees all that was
    /// put before, at twice the price.
    fn quarters(
        &self,
        device: &DeviceId,
        range: TimeRange,
        consistent: bool,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<Vec<StoredRollup>>> + Send;

    /// The rollups of the days from `first` to `last`, both inside: at most `limit`.
    fn days(
        &self,
        device: &DeviceId,
        dates: (LocalDate, LocalDate),
        order: Order,
        limit: usize,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<Vec<StoredRollup>>> + Send;
}

/// Pattern 3b: all readings of a device in a range, with their expiry, as they are this moment.
pub trait ReadStoredReadings: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[(Action::Query, Target::Readings)];

    /// All of them, oldest first: for ranges that fit into memory.
    fn stored_readings(
        &self,
        device: &DeviceId,
        range: TimeRange,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<Vec<StoredReading>>> + Send;
}

/// Stores rollups.
///
/// Each put expects what was read before the readings were: so of two folds the one that read older
/// readings is refused.
pub trait PutRollups: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[(Action::PutItem, Target::Rollups)];

    /// Puts a rollup; returns whether the item was as expected. A rollup that was folded with newer
    /// settings is never replaced.
    fn put_rollup(
        &self,
        stored: &StoredRollup,
        expected: Expected,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<bool>> + Send;
}

/// Reads the state of the rollups.
pub trait ReadRollupState: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[(Action::GetItem, Target::RollupState)];

    /// The state, as it is this moment; `None` before the rollup function has run.
    fn rollup_state(
        &self,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<Option<RollupState>>> + Send;

    /// How far it is noted which rooms older rollups name; `None` before rooms are noted at all.
    fn room_walk(
        &self,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<Option<RoomWalk>>> + Send;
}

/// Reads what is known of changes of past readings that rollups may lack.
pub trait ReadLateChanges: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[(Action::GetItem, Target::LateChanges)];

    /// The marks and the backlog, as they are this moment.
    fn late_changes(
        &self,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<LateChanges>> + Send;
}

/// Marks changes of past readings before they are made.
pub trait MarkLateChanges: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[(Action::UpdateItem, Target::LateChanges)];

    /// Stores marks, if those that are stored have the expected version, 0 where there are none; returns what
    /// is stored if they have another. By many at once, one is stored and the others hear of it.
    fn put_late_marks(
        &self,
        marks: &[LateMark],
        expected: u64,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<Option<LateChanges>>> + Send;
}

/// Reads how far rollups follow new settings of their device.
pub trait ReadRefold: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[(Action::GetItem, Target::Rollups)];

    /// How far the rollups of a device are folded again, as it is this moment; nothing is folded with newer
    /// settings than 0 where nothing is stored.
    fn refold(
        &self,
        device: &DeviceId,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<Refold>> + Send;
}

/// Keeps the state of the rollups. Done twice, or by many at once, it is the same: a mark moves forward, and
/// back only where it is ahead of the clock; of backlogs the one that is noted last stays.
pub trait KeepRollupState: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[
        (Action::PutItem, Target::RollupState),
        (Action::UpdateItem, Target::RollupState),
        (Action::UpdateItem, Target::LateChanges),
        (Action::UpdateItem, Target::ConditionsSchema),
        (Action::UpdateItem, Target::Rollups),
    ];

    /// Stores the first state, unless there is one.
    fn begin_rollups(
        &self,
        state: &RollupState,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<InsertOutcome<RollupState>>> + Send;
    /// Moves the marks of groups of devices forward, each unless it is ahead already, and notes the depth
    /// of the queue where it is known.
    fn advance_sealed(
        &self,
        groups: &BTreeSet<usize>,
        sealed: Timestamp,
        queue: Option<QueueDepth>,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<()>> + Send;
    /// Moves the marks of groups of devices back, each if it is ahead of `sealed`: an earlier sweep had a
    /// clock that was wrong.
    fn set_back_sealed(
        &self,
        groups: &BTreeSet<usize>,
        sealed: Timestamp,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<()>> + Send;
    /// Notes changes that came late.
    fn note_backlog(
        &self,
        backlog: Backlog,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<()>> + Send;
    /// Notes that the index by conditions lacks rollups, where a schema is stored and the table has no such
    /// index now: whoever makes it again must not find it complete.
    fn distrust_conditions(
        &self,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<()>> + Send;
    /// Notes that the rollups are complete from `since` on, and the time zone of their days.
    fn set_rebuilt(
        &self,
        since: Timestamp,
        zone: &str,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<()>> + Send;
    /// Stores how far rooms of older rollups are noted. A walk that is done stays done.
    fn set_room_walk(
        &self,
        walk: &RoomWalk,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<()>> + Send;
    /// Stores how far the rollups of a device are folded again.
    fn set_refold(
        &self,
        device: &DeviceId,
        refold: &Refold,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<()>> + Send;
}

/// Reads the schema of the index by conditions.
pub trait ReadConditionsSchema: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[(Action::GetItem, Target::ConditionsSchema)];

    /// The schema, as it is this moment. Reads nothing and returns `None` where the table has no index by
    /// conditions.
    fn conditions_schema(
        &self,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<Option<StoredSchema>>> + Send;

    /// Whether the table has the index by conditions.
    fn has_conditions_index(&self) -> bool;

    /// What the index by conditions is to have of rollups.
    fn indexing(
        &self,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<Indexing>> + Send {
        async {
            Ok(match self.conditions_schema(invocation).await? {
                _ if !self.has_conditions_index() => Indexing::Off,
                None => Indexing::Unset,
                Some(stored) => Indexing::By(Arc::new(stored.schema)),
            })
        }
    }
}

/// Stores the schema of the index by conditions.
pub trait PutConditionsSchema: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[(Action::PutItem, Target::ConditionsSchema)];

    /// Stores a schema that is not ready; returns whether the stored one was as expected. Done twice, the
    /// second is refused.
    fn put_conditions_schema(
        &self,
        schema: &ConditionsSchema,
        expected: Expected,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<bool>> + Send;
}

/// Notes that the index by conditions is complete.
pub trait SetConditionsReady: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[(Action::UpdateItem, Target::ConditionsSchema)];

    /// Notes that every rollup of 15 minutes is in the index by the schema of this version; returns whether
    /// that is the stored one. Done twice, it is the same.
    fn set_conditions_ready(
        &self,
        version: u8,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<bool>> + Send;
}

/// Pattern 11: rollups of 15 minutes by the address of their means.
pub trait QueryConditions: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[(Action::Query, Target::ConditionsIndex)];

    /// At most `limit` rollups of a device in the month of a timestamp, between two addresses, both inside;
    /// behind `after`, if there is one.
    fn indexed_quarters(
        &self,
        device_and_month: (&DeviceId, Timestamp),
        addresses: (&[u8], &[u8]),
        after: Option<&IndexedQuarter>,
        limit: usize,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<ConditionsPage>> + Send;
}

/// Patterns 2e and 2f: every device, at once or page by page, however many there are.
pub trait ListDevices: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[(Action::Query, Target::Devices)];

    /// The devices behind an id, sorted by id, as they are this moment.
    fn device_page(
        &self,
        after: Option<&DeviceId>,
        limit: usize,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<ListPage<Device>>> + Send;
    /// All devices, sorted by id, as they are this moment.
    fn all_devices(
        &self,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<Listing<Device>>> + Send;
}
