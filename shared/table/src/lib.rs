//! The table in terms of the domain: its ports, and the keys and items that implement the ports. Uses no SDK.
//!
//! A function names the ports that it uses ([`store!`]). A port is a block of access patterns. They use the operations
//! of a `Db`, which `dynamodb` implements for the deployed table and `memory_db` for tests. `given` has test data.

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
mod annotations;
mod at_once;
mod belonging;
mod companion;
mod deadline;
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
mod range_query;
mod remembered;
mod rollup;
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
pub use annotations::AnnotationQuery;
pub use at_once::{AtOnce, at_once};
pub use belonging::{Belonging, Belongings};
pub use companion::{Companion, companions, entry_companions, search_companions};
pub use deadline::Deadline;
pub use error::{Cause, StoreError, StoreResult};
pub use expected::Expected;
pub use invocation::{Invocation, MAX_OPERATION};
pub use item::UnreadableItem;
pub use keys::ItemKey;
pub use late::{Backlog, DeviceGroups, LateChanges, LateMark};
pub use listing::{DueStates, ListPage, Listing, MAX_CACHED_ENTRIES};
pub use meter_change::MeterChange;
pub use nearest::NearestReading;
pub use outcome::{
    Added, BegunDeletion, Counting, Edited, InsertOutcome, MarksOutcome, PutOutcome, Registration,
    UpdateOutcome,
};
pub use patterns::*;
pub use pause::{Pauses, out_of_patience, while_throttled};
pub use permission::{Action, Permission, Target};
pub use range_query::{Page, RangeQuery, ReadingKey};
pub use remembered::{BoundedMemory, Remembered};
pub use rollup::{
    ConditionsQuery, Indexed, IndexedQuarter, Indexing, QueueDepth, Refold, RollupKey, RollupState,
    StoredReading, StoredRollup, StoredSchema,
};
pub use search::{SearchHit, SearchQuery};
pub use seen::RoomVisit;
pub use session::Session;
pub use source::{SourceSecrets, StoredSource};
pub use stay_query::{StayKey, StayQuery};
pub use tariff::StoredTariff;
