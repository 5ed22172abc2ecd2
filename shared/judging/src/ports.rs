//! The ports of the table that judging uses. Sends nothing.

use table::{
    FindRegistry, ListDevices, PutJudgements, QueryReadings, ReadAlertRules, ReadAlertStates,
    ReadChannels, ReadRollupState, ReadRollups, ReadRunning,
};

table::store! {
    /// The ports of the table that a judgement uses.
    pub trait Store: ReadAlertRules + ReadChannels + ReadAlertStates + PutJudgements + ReadRunning
        + FindRegistry + ListDevices + QueryReadings + ReadRollups + ReadRollupState
}
