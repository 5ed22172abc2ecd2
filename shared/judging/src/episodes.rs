//! The judgement of a rule about a metric or silence on one subject: reads and folds. Stores nothing.

use std::time::Duration;

use alerts::{EpisodeState, JudgedReadings, LEAST_SILENCE, LONGEST_SILENCE, Start, fold_episodes};
use series::SeriesError;
use table::AlertState;

use crate::Result;
use crate::judging::JudgingSession;
use crate::ports::Store;
use crate::result::NextState;
use crate::task::RuleOnSubject;

impl<S: Store> JudgingSession<'_, S> {
    /// Judges a rule on a device or a room by its readings. Most values say the same after however long the subject counts as
    /// silent: they do not wait for a limit that the table throttles. Where the limit cannot be read until an item is mended,
    /// the values alone say what is new.
    pub(crate) async fn judge_episodes(
        &self,
        on_subject: RuleOnSubject<'_>,
        before: Option<&AlertState>,
    ) -> Result<NextState> {
        let RuleOnSubject { rule, touched, .. } = on_subject;
        let (rule, state) = (&rule.rule, before.and_then(episodes_of));
        let at_once = self.table.invocation.patient_for(Duration::ZERO);
        let limit = self.within(&at_once).subject_silent_after(on_subject).await;
        let longest = *limit.as_ref().unwrap_or(&LONGEST_SILENCE);

        let mut start = Start::of(rule, state, touched, self.table.now);
        let readings = match self.readings(on_subject, &start, longest).await {
            Err(SeriesError::OutOfReach(_)) => {
                start = Start::near(rule, state, touched, self.table.now);
                self.readings(on_subject, &start, longest).await?
            }
            readings => readings?,
        };

        let mut judgement = fold_episodes(rule, state, &start, &readings, self.table.now);
        if limit.is_err() {
            let judged_by = |silent_after| {
                let readings = JudgedReadings { silent_after, ..readings.clone() };
                fold_episodes(rule, state, &start, &readings, self.table.now)
            };
            if !judgement.says_the_same_as(&judged_by(LEAST_SILENCE)) {
                match self.subject_silent_after(on_subject).await {
                    Ok(limit) => judgement = judged_by(limit),
                    // By the longest limit it is told what the values say. Left, it would be lost.
                    Err(error) if error.is_permanent() => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }

        let state = AlertState::Episodes(Box::new(judgement.state));
        Ok(NextState { state, messages: judgement.messages })
    }
}

/// The state, if it is one of episodes: the rule may have been of another kind.
pub(crate) fn episodes_of(state: &AlertState) -> Option<&EpisodeState> {
    match state {
        AlertState::Episodes(state) => Some(state),
        AlertState::Figures(_) => None,
    }
}
