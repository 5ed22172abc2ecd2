//! What one round shares between all channels. Serves none itself.

use judging::Rules;
use table::Session;
use tokio::sync::OnceCell;

use crate::storm::RecentMessages;

/// What one round shares between all channels.
pub(crate) struct Round<'a, S> {
    pub(crate) rules: &'a Rules,
    /// The part of the time in which requests are chosen and begun.
    pub(crate) beginning: Session<'a, S>,
    /// The whole time of the round, for noting the results of requests.
    pub(crate) noting: Session<'a, S>,
    /// The messages of the last ten minutes, by which storms are found. Read once, when the first channel needs them.
    pub(crate) recent: OnceCell<RecentMessages>,
}
