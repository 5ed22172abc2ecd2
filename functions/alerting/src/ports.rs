//! The ports of the table that the function uses.

use table::{
    DeleteAlertStates, FindRegistry, FinishRechecks, ListDevices, NoteChannels, NoteRechecks,
    NoteRunning, PutJudgements, QueryReadings, ReadAlertRules, ReadAlertStates, ReadChannelSecrets,
    ReadChannels, ReadRechecks, ReadRollupState, ReadRollups, ReadRunning, ReadToldMessages,
    ReadWaitingMessages, SendWaitingMessages,
};

/// The function's name in its log events.
pub(crate) const NAME: &str = "alerting";

table::store! {
    /// The ports of the table that the function uses: first for sending, then for judging.
    pub trait Store: ReadWaitingMessages + ReadToldMessages + SendWaitingMessages + ReadChannelSecrets + NoteChannels
        + ReadAlertRules + ReadChannels + ReadAlertStates + PutJudgements + DeleteAlertStates + ReadRechecks
        + NoteRechecks + FinishRechecks + ReadRunning + NoteRunning + FindRegistry + ListDevices + QueryReadings + ReadRollups
        + ReadRollupState
}
