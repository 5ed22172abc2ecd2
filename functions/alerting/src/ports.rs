//! The ports of the table that the function uses.

use table::{
    FindRegistry, NoteChannels, ReadAlertRules, ReadAlertStates, ReadChannelSecrets, ReadChannels,
    ReadRollupState, ReadWaitingMessages, SendWaitingMessages,
};

/// The function's name in its log events.
pub(crate) const NAME: &str = "alerting";

table::store! {
    /// The ports of the table that the function uses.
    pub trait Store: ReadAlertRules + ReadChannels + ReadChannelSecrets + NoteChannels + ReadAlertStates
        + ReadWaitingMessages + SendWaitingMessages + FindRegistry + ReadRollupState
}
