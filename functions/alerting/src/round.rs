//! What the channels share in one round of sending, and the round of one channel. Sends nothing.

use judging::AlertRules;
use table::{Session, StoredChannel};
use tokio::sync::OnceCell;

use crate::sent::ChannelResult;
use crate::storm::RecentMessages;

/// What the channels share in one round of sending.
pub(crate) struct SendingRound<'a, S> {
    pub(crate) rules: &'a AlertRules,
    /// The part of the time in which requests are chosen and begun.
    pub(crate) for_sending: Session<'a, S>,
    /// The whole time of the round, for noting the results of requests.
    pub(crate) for_noting: Session<'a, S>,
    /// The messages of the last ten minutes, by which storms are found. The first channel that needs them reads them.
    pub(crate) recent: OnceCell<RecentMessages>,
}

/// The round of one channel.
pub(crate) struct ChannelRound<'a, S> {
    pub(crate) channel: &'a StoredChannel,
    pub(crate) round: &'a SendingRound<'a, S>,
    pub(crate) result: ChannelResult,
}
