//! Reads a state and stores a judgement in its place. Judges nothing.
//!
//! A fold makes a [`NextState`]. The table gets it as a [`NewJudgement`] and answers a [`JudgementOutcome`], which becomes a
//! [`JudgementResult`].

use std::fmt;

use alerts::Message;
use chrono::TimeDelta;
use series::SeriesError;
use table::{
    AlertKey, AlertState, JudgementOutcome, NewJudgement, StoreError, StoreResult,
    StoredAlertState, StoredRule,
};

use crate::judging::JudgingSession;
use crate::ports::Store;

/// The new state of a judgement, with the messages that it makes.
pub(crate) struct NextState {
    pub(crate) state: AlertState,
    pub(crate) messages: Vec<Message>,
}

/// The result of a judgement whose state was stored, or whose state is to be deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JudgementResult {
    /// Whether a state was stored.
    pub(crate) is_stored: bool,
    /// The number of messages that were stored.
    pub messages: usize,
    /// The number of messages that are not stored, because they do not fit into the transaction.
    pub lost_messages: usize,
    /// Whether to delete the state, because its rule is gone or no longer about the subject.
    pub(crate) is_obsolete: bool,
}

impl JudgementResult {
    /// The result if nothing was judged, because the state is to be deleted.
    pub(crate) fn obsolete() -> Self {
        Self { is_obsolete: true, ..Self::default() }
    }
}

/// The failure of a judgement.
#[derive(Debug)]
pub(crate) struct NotJudged {
    /// Why.
    pub(crate) failure: SeriesError,
    /// Whether its state could not be stored. Otherwise, something could not be read.
    pub(crate) is_unstored: bool,
}

impl NotJudged {
    /// A judgement whose state could not be stored.
    pub(crate) fn unstored(error: StoreError) -> Self {
        Self { failure: error.into(), is_unstored: true }
    }
}

impl<E: Into<SeriesError>> From<E> for NotJudged {
    fn from(failure: E) -> Self {
        Self { failure: failure.into(), is_unstored: false }
    }
}

/// The number of messages that go to nobody and into no history, because a transaction could not hold them.
#[derive(Debug)]
pub struct LostMessages(usize);

impl LostMessages {
    /// The error that names the number of lost messages; `None` if there are none.
    pub const fn of(count: usize) -> Option<Self> {
        if count == 0 { None } else { Some(Self(count)) }
    }
}

impl fmt::Display for LostMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} messages are sent to nobody: a judgement had too many, and its oldest are left out",
            self.0
        )
    }
}

impl std::error::Error for LostMessages {}

/// The age from which every process certainly knows a saved rule: [`MAX_UNKNOWN`](alerts::MAX_UNKNOWN) and a margin.
const MAX_STALE: TimeDelta = TimeDelta::minutes(5);

impl<S: Store> JudgingSession<'_, S> {
    /// The state of a rule on a subject, read now. An error if the state was judged by a later version of the rule,
    /// which was saved in the last five minutes: `rule` is out of date.
    pub(crate) async fn stored_state(
        &self,
        rule: &StoredRule,
        key: &AlertKey,
    ) -> StoreResult<Option<StoredAlertState>> {
        let keys = std::slice::from_ref(key);
        let mut listing = self.table.alert_states(keys).await?;
        if let Some(unreadable) = listing.unreadable.pop() {
            // An item whose version is unknown cannot be replaced.
            return Err(StoreError::Unreadable(unreadable));
        }

        let known = listing.found.pop();
        let judged_version = known.as_ref().and_then(|known| match &known.state {
            AlertState::Episodes(state) => Some(state.changed),
            AlertState::Figures(figures) => figures.changed,
        });
        // If the other version was saved over five minutes ago, `rule` is the newer version, saved by a slow clock.
        if judged_version
            .is_some_and(|at| at > rule.definition.changed && self.table.now.since(at) < MAX_STALE)
        {
            return Err(StoreError::Contended(format!("the rule {}", rule.id)));
        }
        Ok(known)
    }

    /// Stores a judgement. Returns `None` if somebody changed the state meanwhile, so that the rule has to be judged
    /// again. Fails if the rule was saved again since it was read. The next process that reads the rules judges by the
    /// saved rule.
    pub(crate) async fn put(
        &self,
        judgement: &NewJudgement,
    ) -> StoreResult<Option<JudgementResult>> {
        match self.table.put_judgement(judgement).await? {
            JudgementOutcome::Stored => {
                let (messages, lost_messages) = (judgement.logged().len(), judgement.left_out());
                Ok(Some(JudgementResult {
                    is_stored: true,
                    messages,
                    lost_messages,
                    is_obsolete: false,
                }))
            }
            JudgementOutcome::RuleChanged => {
                Err(StoreError::Contended(format!("the rule {}", judgement.rule().0)))
            }
            JudgementOutcome::StateMoved => Ok(None),
        }
    }
}
