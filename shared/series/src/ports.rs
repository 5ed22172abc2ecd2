//! The ports of the table that series read. Nothing is written.

use table::{
    QueryConditions, QueryReadings, ReadConditionsSchema, ReadLateChanges, ReadRefold,
    ReadRollupState, ReadRollups,
};

table::store! {
    /// The ports of the table that series read.
    pub trait Store: QueryReadings + ReadRollups + ReadRefold + ReadRollupState + ReadLateChanges + ReadConditionsSchema + QueryConditions
}
