//! The ports of the table that the function uses.

use table::{
    FindRegistry, ListDevices, NoteRechecks, PutJudgements, QueryReadings, ReadAlertRules,
    ReadAlertStates, ReadChannels, ReadRollupState, ReadRollups, ReadRunning, RegisterDevices,
    UpdateRegistry,
};

table::store! {
    /// The ports of the table by which the registry is kept.
    pub trait RegistryStore: FindRegistry + RegisterDevices + UpdateRegistry + QueryReadings
}

table::store! {
    /// The ports of the table that the function uses: to keep the registry, and to judge alerts.
    pub trait Store: FindRegistry + RegisterDevices + UpdateRegistry + QueryReadings
        + ReadAlertRules + ReadChannels + ReadAlertStates + PutJudgements + ReadRunning + NoteRechecks
        + ListDevices + ReadRollups + ReadRollupState
}
