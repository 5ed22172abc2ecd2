//! What all channels are served with, in one round. Serves none.

use judging::Rules;
use table::Session;
use tokio::sync::OnceCell;

use crate::storm::RecentMessages;

/// What all channels are served with.
pub(crate) struct Round<'a, S> {
    pub(crate) rules: &'a Rules,
    /// The part of the time in which requests are chosen and begun.
    pub(crate) beginning: Session<'a, S>,
    /// All the time of the round, for noting what became of requests.
    pub(crate) noting: Session<'a, S>,
    /// The messages of the last ten minutes, by which storms are found: read once, when the first channel needs them.
    pub(crate) recent: OnceCell<RecentMessages>,
}
