//! The ports of the table that the function uses.

use table::{
    DeleteAlertStates, FindRegistry, FinishLooks, ListDevices, MarkRunning, NoteChannels,
    NoteLooks, PutJudgements, QueryReadings, ReadAlertRules, ReadAlertStates, ReadChannelSecrets,
    ReadChannels, ReadLooks, ReadRollupState, ReadRollups, ReadRunning, ReadToldMessages,
    ReadWaitingMessages, SendWaitingMessages,
};

/// The function's name in its log events.
pub(crate) const NAME: &str = "alerting";

table::store! {
    /// The ports of the table that the function uses: those of sending, then those of judging.
    pub trait Store: ReadWaitingMessages + ReadToldMessages + SendWaitingMessages + ReadChannelSecrets + NoteChannels
        + ReadAlertRules + ReadChannels + ReadAlertStates + PutJudgements + DeleteAlertStates + ReadLooks
        + NoteLooks + FinishLooks + ReadRunning + MarkRunning + FindRegistry + ListDevices + QueryReadings + ReadRollups
        + ReadRollupState
}
