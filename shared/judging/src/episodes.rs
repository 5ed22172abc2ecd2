//! Judges a rule about a metric or silence on one device or room: reads readings and folds them. Stores nothing.

use std::time::Duration;

use alerts::{EpisodeState, JudgedReadings, LEAST_SILENCE, LONGEST_SILENCE, Start, fold_episodes};
use series::SeriesError;
use table::AlertState;

use crate::Result;
use crate::judging::JudgingSession;
use crate::ports::Store;
use crate::result::NextState;
use crate::rule_on_subject::RuleOnSubject;

impl<S: Store> JudgingSession<'_, S> {
    /// Judges a rule on a device or a room by its readings. If the table throttles the request for the silence limit,
    /// it is repeated only if the result depends on the limit. If the limit's item is damaged, the longest limit is
    /// used.
    pub(crate) async fn judge_episodes(
        &self,
        on_subject: RuleOnSubject<'_>,
        before: Option<&AlertState>,
    ) -> Result<NextState> {
        let RuleOnSubject { rule, touched, .. } = on_subject;
        let (rule, state) = (&rule.definition, before.and_then(episodes_of));

        // The first read of the limit is not repeated. If it fails, the longest limit is assumed.
        let at_once = self.table.invocation.with_patience(Duration::ZERO);
        let limit = self.within(&at_once).subject_silent_after(on_subject).await;
        let silent_after = *limit.as_ref().unwrap_or(&LONGEST_SILENCE);

        let mut start = Start::of(rule, state, touched, self.table.now);
        let readings = match self.readings(on_subject, &start, silent_after).await {
            Err(SeriesError::OutOfReach(_)) => {
                start = Start::near(rule, state, touched, self.table.now);
                self.readings(on_subject, &start, silent_after).await?
            }
            readings => readings?,
        };

        let mut judgement = fold_episodes(rule, state, &start, &readings, self.table.now);
        if limit.is_err() {
            let judged_by = |silent_after| {
                let readings = JudgedReadings { silent_after, ..readings.clone() };
                fold_episodes(rule, state, &start, &readings, self.table.now)
            };
            // If the longest and the least limit say the same, the true one does too.
            let is_same_by_any_limit = judgement.says_the_same_as(&judged_by(LEAST_SILENCE));
            if !is_same_by_any_limit {
                match self.subject_silent_after(on_subject).await {
                    Ok(limit) => judgement = judged_by(limit),
                    // No later read will succeed, so the judgement with the longest limit is kept.
                    Err(error) if error.is_permanent() => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }

        let state = AlertState::Episodes(Box::new(judgement.state));
        Ok(NextState { state, messages: judgement.messages })
    }
}

/// The state of a rule about a metric or silence. `None` for a state with figures, as after an edit of the rule.
pub(crate) fn episodes_of(state: &AlertState) -> Option<&EpisodeState> {
    match state {
        AlertState::Episodes(state) => Some(state),
        AlertState::Figures(_) => None,
    }
}
