//! Reads a state and stores a judgement in its place. Judges nothing.

use std::fmt;

use alerts::Message;
use chrono::TimeDelta;
use table::{
    AlertKey, AlertState, JudgementOutcome, NewJudgement, StoreError, StoreResult,
    StoredAlertState, StoredRule,
};

use crate::judging::JudgingSession;
use crate::ports::Store;

/// What a judgement puts in the place of a state.
pub(crate) struct NextState {
    pub(crate) state: AlertState,
    pub(crate) messages: Vec<Message>,
}

/// What became of a judgement whose state is stored, or deleted with its rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JudgementResult {
    /// The number of messages that were told.
    pub messages: usize,
    /// The number of messages that are stored nowhere, because a transaction holds no more.
    pub left_out: usize,
    /// Whether the state is to be deleted: its rule is gone, or no longer about the subject.
    pub(crate) is_obsolete: bool,
}

impl JudgementResult {
    /// The result if nothing was judged; `is_obsolete` says whether the state is to be deleted.
    pub(crate) fn of_obsolete(is_obsolete: bool) -> Self {
        Self { is_obsolete, ..Self::default() }
    }
}

/// So many messages are told to nobody, and in no history: their judgements had more than a transaction holds.
#[derive(Debug)]
pub struct LostMessages(usize);

impl LostMessages {
    /// What is to be said of so many messages, if there are some.
    pub const fn of(count: usize) -> Option<Self> {
        if count == 0 { None } else { Some(Self(count)) }
    }
}

impl fmt::Display for LostMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} messages, the oldest of judgements that had too many, are told to nobody",
            self.0
        )
    }
}

impl std::error::Error for LostMessages {}

/// The longest time for which a process may not know a rule that was saved.
const MAX_STALE: TimeDelta = TimeDelta::minutes(5);

impl<S: Store> JudgingSession<'_, S> {
    /// The state of a rule on a subject, as it is this moment. An error if a version of the rule that was saved later, in
    /// the last five minutes, judged it: `rule` is out of date.
    pub(crate) async fn stored_state(
        &self,
        rule: &StoredRule,
        key: &AlertKey,
    ) -> StoreResult<Option<StoredAlertState>> {
        let keys = std::slice::from_ref(key);
        let mut listing = self.table.alert_states(keys).await?;
        if let Some(unreadable) = listing.unreadable.pop() {
            // Nothing can be put in the place of an item whose version is not known.
            return Err(StoreError::Unreadable(unreadable));
        }

        let known = listing.found.pop();
        let judged_by = known.as_ref().and_then(|known| match &known.state {
            AlertState::Episodes(state) => Some(state.changed),
            AlertState::Figures(once) => once.changed,
        });
        // After that, the later time means that a slow clock saved `rule`.
        if judged_by
            .is_some_and(|at| at > rule.rule.changed && self.table.now.since(at) < MAX_STALE)
        {
            return Err(StoreError::Contended(format!("the rule {}", rule.id)));
        }
        Ok(known)
    }

    /// Stores a judgement; `None` where the state has moved on, so that it has to be judged again. It fails if the rule
    /// was saved again since it was read: the next process that reads the rules judges anew.
    pub(crate) async fn put(
        &self,
        judgement: &NewJudgement,
    ) -> StoreResult<Option<JudgementResult>> {
        match self.table.put_judgement(judgement).await? {
            JudgementOutcome::Stored => {
                let (messages, left_out) = (judgement.told().len(), judgement.left_out());
                Ok(Some(JudgementResult { messages, left_out, is_obsolete: false }))
            }
            JudgementOutcome::RuleChanged => {
                Err(StoreError::Contended(format!("the rule {}", judgement.rule().0)))
            }
            JudgementOutcome::StateMoved => Ok(None),
        }
    }
}
