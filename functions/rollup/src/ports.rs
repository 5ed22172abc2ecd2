//! The ports of the table that the function uses, and its name. Does nothing.

use table::{
    FindRegistry, KeepRollupState, ListDevices, NoteRechecks, NoteSeen, PutRollups, QueryReadings,
    ReadAlertRules, ReadConditionsSchema, ReadLateChanges, ReadRefold, ReadRollupState,
    ReadRollups, ReadStoredReadings,
};

table::store! {
    /// The ports of the table that the function uses.
    pub trait Store: ReadStoredReadings + QueryReadings + ReadRollups + PutRollups + NoteSeen
        + ReadRefold + ReadRollupState + ReadLateChanges + KeepRollupState + ReadConditionsSchema
        + FindRegistry + ListDevices + ReadAlertRules + NoteRechecks
}

/// The name of the function in its log.
pub(crate) const NAME: &str = "rollup";
