//! The stored forms of alerts: rules, channels, states, messages, rechecks. Judges and sends nothing.

mod channel;
mod judgement;
mod message;
mod recheck;
mod rule;
mod running;
mod state;

pub use channel::{ChannelSecret, Failing, StoredChannel};
pub use judgement::{JudgementOutcome, MAX_JUDGEMENT_PARTS, NewJudgement};
pub use message::{
    LOG_KEPT, LoggedMessage, MAX_LEASE, MAX_POSTPONED, MessageKey, MessageQuery, WAITING_KEPT,
    WaitingKey, WaitingMessage,
};
pub use recheck::{Recheck, Rechecked};
pub use rule::StoredRule;
pub use running::{LEAST_PAUSE, RunningNote};
pub use state::{AlertKey, AlertState, FIGURES_KEPT, STATE_KEPT, StoredAlertState};
