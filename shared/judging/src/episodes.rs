//! The judgement of a rule about a metric or silence on one subject: reads, folds, and stores by compare-and-swap.

use alerts::{EpisodeState, Start, fold_episodes};
use series::Failure;
use table::{AlertState, NewJudgement, StoreError, StoredAlertState};

use crate::Result;
use crate::judging::JudgingSession;
use crate::ports::Store;
use crate::result::{JudgementResult, MAX_ATTEMPTS};
use crate::task::RuleOnSubject;

impl<S: Store> JudgingSession<'_, S> {
    /// Judges a rule on a subject. The state is read before the readings: of two judgements the one that saw older
    /// readings is refused and begins again.
    pub(crate) async fn judge_episodes(
        &self,
        judged: RuleOnSubject<'_>,
    ) -> Result<JudgementResult> {
        let RuleOnSubject { rule, key, touched, rules } = judged;
        let now = self.now;
        for _ in 0..MAX_ATTEMPTS {
            let known = self.stored_state(rule, key).await?;
            let state = known.as_ref().and_then(episodes_of);
            let mut start = Start::of(&rule.rule, state, touched, now);
            let readings = match self.readings(judged, &start).await {
                Err(Failure::OutOfReach(_)) => {
                    start = Start::near(&rule.rule, state, touched, now);
                    self.readings(judged, &start).await?
                }
                readings => readings?,
            };

            let judgement = fold_episodes(&rule.rule, state, &start, &readings, now);
            let next = AlertState::Episodes(Box::new(judgement.state));
            let next = StoredAlertState::next(known.as_ref(), key.clone(), next, now);
            let channels = rules.channels_of(&rule.rule, now);
            let judgement = NewJudgement::new(rule, next, judgement.messages, &channels, now);
            if let Some(result) = self.put(&judgement).await? {
                return Ok(result);
            }
        }
        Err(StoreError::Contended(format!("the alert {} on {}", key.rule, key.subject)).into())
    }
}

/// The state, if it is one of episodes: the rule may have been of another kind.
pub(crate) fn episodes_of(stored: &StoredAlertState) -> Option<&EpisodeState> {
    match &stored.state {
        AlertState::Episodes(state) => Some(state),
        AlertState::Once(_) => None,
    }
}
