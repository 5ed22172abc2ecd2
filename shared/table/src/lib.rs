//! The one table, in words of the domain: its ports, and behind them its keys and items. No SDK.
//!
//! A function names the ports that it uses ([`store!`]); `dynamodb` implements them for the deployed table,
//! `memory` for tests.

pub mod item;
pub mod keys;
pub mod layout;
#[cfg(any(test, feature = "fake"))]
pub mod memory;
pub mod shards;

mod companion;
mod deadline;
mod error;
mod expected;
mod invocation;
mod listing;
mod outcome;
mod permission;
mod ports;
mod range_query;
mod rollup;
mod rollup_ports;
mod stay_query;

pub use companion::{Companion, companions};
pub use deadline::Deadline;
pub use error::{Cause, StoreError, StoreResult};
pub use expected::Expected;
pub use invocation::Invocation;
pub use item::UnreadableItem;
pub use listing::{ListPage, Listing, MAX_CACHED_ENTRIES};
pub use outcome::{Added, Edited, InsertOutcome, PutOutcome, UpdateOutcome};
pub use permission::{Action, Permission, Target};
pub use ports::{
    AddArrival, DeleteReadings, EditRegistry, FindRegistry, FindToken, LookUpRegistry,
    ManageTokens, MergeReadings, PageRegistry, PutReadings, QueryReadings, QueryRoomReadings,
    ReadRegistry, ReadStays, RegisterDevices, UpdateRegistry,
};
pub use range_query::{Page, RangeQuery, ReadingKey};
pub use rollup::{
    ConditionsPage, Indexed, IndexedQuarter, Indexing, QueueDepth, Refold, RollupKey, RollupState,
    StoredReading, StoredRollup, StoredSchema,
};
pub use rollup_ports::{
    KeepRollupState, ListDevices, PutConditionsSchema, PutRollups, QueryConditions,
    ReadConditionsSchema, ReadRollupState, ReadRollups, ReadStoredReadings, SetConditionsReady,
};
pub use stay_query::{StayKey, StayPage, StayQuery};
