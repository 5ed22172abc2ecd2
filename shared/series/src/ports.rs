//! The ports (traits of single table operations) that series need. All of them read.

use table::{
    QueryConditions, QueryReadings, ReadConditionsSchema, ReadRefold, ReadRollupState, ReadRollups,
};

table::store! {
    /// The ports of the table that series read.
    pub trait Store: QueryReadings + ReadRollups + ReadRollupState
}

table::store! {
    /// The ports of the table that the search for conditions reads.
    pub trait ConditionsStore: QueryReadings + ReadRollups + ReadRollupState + ReadRefold + ReadConditionsSchema + QueryConditions
}
