//! The table, in words of the domain: its ports, and the keys and items by which they are implemented. No SDK.
//!
//! A function names the ports that it uses ([`store!`]). Ports are implemented by the operations of a `Db`: `dynamodb`
//! has these for the deployed table, `memory_db` for tests. `given` has test data.

pub mod db;
#[cfg(any(test, feature = "fake"))]
pub mod given;
pub mod item;
pub mod keys;
pub mod layout;
#[cfg(any(test, feature = "fake"))]
pub mod memory_db;
pub mod panic;
pub mod shards;
pub mod sizes;

mod alert;
mod alert_ports;
mod annotations;
mod at_once;
mod companion;
mod deadline;
mod deletion_ports;
mod error;
mod expected;
mod invocation;
mod late;
mod listing;
mod meter_change;
mod nearest;
mod outcome;
mod patterns;
mod pause;
mod permission;
mod ports;
mod ports_macro;
mod range_query;
mod remembered;
mod rollup;
mod rollup_ports;
mod search;
mod seen;
mod session;
mod source;
mod stay_query;
mod tariff;

pub use alert::{
    AlertKey, AlertState, ChannelSecret, FIGURES_KEPT, Failing, JudgementOutcome, LEAST_PAUSE,
    LOG_KEPT, LoggedMessage, MAX_JUDGEMENT_PARTS, MAX_LEASE, MAX_POSTPONED, MessageKey,
    MessageQuery, NewJudgement, Recheck, Rechecked, RunningNote, STATE_KEPT, StoredAlertState,
    StoredChannel, StoredRule, WAITING_KEPT, WaitingKey, WaitingMessage,
};
pub use alert_ports::{
    DeleteAlertStates, EditAlertRules, EditAlertStates, EditChannels, FinishRechecks, NoteChannels,
    NoteRechecks, NoteRunning, PutJudgements, PutTestMessages, ReadAlertRules, ReadAlertStates,
    ReadChannelSecrets, ReadChannels, ReadRechecks, ReadRunning, ReadToldMessages,
    ReadWaitingMessages, SendWaitingMessages,
};
pub use annotations::{AnnotationQuery, EditAnnotations, ReadAnnotations};
pub use at_once::{AtOnce, at_once};
pub use companion::{Companion, companions, entry_companions, search_companions};
pub use deadline::Deadline;
pub use deletion_ports::{
    Belonging, Belongings, ItemKey, MarkDeletions, RemoveBelongings, RemoveRooms,
};
pub use error::{Cause, StoreError, StoreResult};
pub use expected::Expected;
pub use invocation::{Invocation, MAX_OPERATION};
pub use item::UnreadableItem;
pub use late::{Backlog, DeviceGroups, LateChanges, LateMark};
pub use listing::{DueStates, ListPage, Listing, MAX_CACHED_ENTRIES};
pub use meter_change::MeterChange;
pub use nearest::NearestReading;
pub use outcome::{
    Added, BegunDeletion, Counting, Edited, InsertOutcome, MarksOutcome, PutOutcome, Registration,
    UpdateOutcome,
};
use patterns::Patterns;
pub use pause::{Pauses, out_of_patience, while_throttled};
pub use permission::{Action, Permission, Target};
pub use ports::{
    AddArrival, AddToken, CountIntroduced, DeleteReadings, EditRegistry, FindRegistry, FindToken,
    IndexDevices, LookUpRegistry, MAX_RESTORED_STAYS, ManageTokens, MarkIndexed, MergeReadings,
    PageRegistry, PutReadings, QueryReadings, QueryRoomReadings, ReadRegistry, ReadShards,
    ReadStays, RegisterDevices, RestoreStays, SearchDevices, UpdateRegistry,
};
pub use range_query::{Page, RangeQuery, ReadingKey};
pub use remembered::{BoundedMemory, Remembered};
pub use rollup::{
    ConditionsQuery, Indexed, IndexedQuarter, Indexing, QueueDepth, Refold, RollupKey, RollupState,
    StoredReading, StoredRollup, StoredSchema,
};
pub use rollup_ports::{
    KeepRollupState, ListDevices, MarkLateChanges, PutConditionsSchema, PutRollups,
    QueryConditions, ReadConditionsSchema, ReadLateChanges, ReadRefold, ReadRollupState,
    ReadRollups, ReadStoredReadings, SetConditionsReady,
};
pub use search::{SearchHit, SearchQuery};
pub use seen::{NoteSeen, ReadSeen, RoomVisit};
pub use session::Session;
pub use source::{
    EditSources, ReadSourceSecrets, ReadSources, RunSources, SourceSecrets, StoredSource,
};
pub use stay_query::{StayKey, StayQuery};
pub use tariff::{EditTariffs, ReadTariffs, StoredTariff};
