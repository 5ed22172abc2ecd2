//! Reads a state and stores a judgement in its place. Judges nothing.

use table::{
    AlertKey, Invocation, JudgementOutcome, NewJudgement, PutJudgements, ReadAlertStates,
    StoreError, StoreResult, StoredAlertState,
};

/// The number of attempts at a judgement whose state keeps being judged by others.
pub(crate) const MAX_ATTEMPTS: usize = 5;

/// What became of a judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Its state is stored, with so many messages.
    Stored {
        /// The messages that were told.
        messages: usize,
    },
    /// The rule was saved again or deleted since it was read: nothing is stored.
    RuleChanged,
}

impl Outcome {
    /// The number of messages that were told.
    #[must_use]
    pub const fn messages(self) -> usize {
        match self {
            Self::Stored { messages } => messages,
            Self::RuleChanged => 0,
        }
    }
}

/// The state of a key, as it is this moment.
pub(crate) async fn stored_state(
    store: &impl ReadAlertStates,
    key: &AlertKey,
    invocation: &Invocation,
) -> StoreResult<Option<StoredAlertState>> {
    let mut listing = store.alert_states(std::slice::from_ref(key), invocation).await?;
    match listing.unreadable.pop() {
        // Nothing can be put in the place of an item whose version is not known.
        Some(unreadable) => Err(StoreError::Unreadable(unreadable)),
        None => Ok(listing.found.pop()),
    }
}

/// Stores a judgement; `None` where the state has moved on, so that it has to be judged again.
pub(crate) async fn put(
    store: &impl PutJudgements,
    judgement: &NewJudgement,
    invocation: &Invocation,
) -> StoreResult<Option<Outcome>> {
    Ok(match store.put_judgement(judgement, invocation).await? {
        JudgementOutcome::Stored => Some(Outcome::Stored { messages: judgement.told().len() }),
        JudgementOutcome::RuleChanged => Some(Outcome::RuleChanged),
        JudgementOutcome::StateMoved => None,
    })
}
