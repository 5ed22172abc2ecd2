//! The judgement of a rule about a metric or silence on one subject: reads, folds, and stores by compare-and-swap.

use alerts::{Sight, Start, State, judge};
use domain::{TimeRange, Timestamp};
use series::Failure;
use table::{
    AlertKey, AlertState, Invocation, NewJudgement, StoreError, StoredAlertState, StoredRule,
};

use crate::judging::Judging;
use crate::outcome::{MAX_ATTEMPTS, Outcome, put, stored_state};
use crate::ports::Store;
use crate::rules::Rules;
use crate::seen::Seen;

impl Judging {
    /// Judges a rule on a subject. The state is read before the readings: of two judgements the one that saw older
    /// readings is refused and begins again.
    pub(crate) async fn judge_episodes(
        &self,
        store: &impl Store,
        rules: &Rules,
        (rule, key): (&StoredRule, &AlertKey),
        touched: Option<Timestamp>,
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<Outcome, Failure> {
        let pauses = rules.pauses(store, now, invocation).await?;
        for _ in 0..MAX_ATTEMPTS {
            let known = stored_state(store, rule, key, now, invocation).await?;
            let state = known.as_ref().and_then(episodes_of);
            let mut start = Start::of(&rule.rule, state, touched, now);
            let seen = match self.see(store, (rule, &key.subject), &start, now, invocation).await {
                Err(Failure::OutOfReach(_)) => {
                    start = Start::near(&rule.rule, state, touched, now);
                    self.see(store, (rule, &key.subject), &start, now, invocation).await?
                }
                seen => seen?,
            };
            let pauses: Vec<TimeRange> = pauses.iter().copied().chain(seen.overdue).collect();
            let Seen { readings, silent_after, .. } = &seen;
            let sight = Sight { readings, silent_after: *silent_after, pauses: &pauses };
            let judged = judge(&rule.rule, state, &start, &sight, now);
            let next = AlertState::Episodes(Box::new(judged.state));
            let next = StoredAlertState::next(known.as_ref(), key.clone(), next, now);
            let channels = rules.channels_of(&rule.rule, now);
            let judgement = NewJudgement::new(rule, next, judged.messages, &channels, now);
            if let Some(outcome) = put(store, &judgement, invocation).await? {
                return Ok(outcome);
            }
        }
        Err(StoreError::Contended(format!("the alert {} on {}", key.rule, key.subject)).into())
    }
}

/// The state, if it is one of episodes: the rule may have been of another kind.
pub(crate) fn episodes_of(stored: &StoredAlertState) -> Option<&State> {
    match &stored.state {
        AlertState::Episodes(state) => Some(state),
        AlertState::Once(_) => None,
    }
}
