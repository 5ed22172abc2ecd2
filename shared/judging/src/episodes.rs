//! The judgement of a rule about a metric or silence on one subject: reads and folds. Stores nothing.

use alerts::{EpisodeState, Start, fold_episodes};
use series::SeriesError;
use table::AlertState;

use crate::Result;
use crate::judging::JudgingSession;
use crate::ports::Store;
use crate::result::NextState;
use crate::task::RuleOnSubject;

impl<S: Store> JudgingSession<'_, S> {
    /// Judges a rule on a device or a room by its readings.
    pub(crate) async fn judge_episodes(
        &self,
        on_subject: RuleOnSubject<'_>,
        before: Option<&AlertState>,
    ) -> Result<NextState> {
        let RuleOnSubject { rule, touched, .. } = on_subject;
        let (rule, state) = (&rule.rule, before.and_then(episodes_of));
        let mut start = Start::of(rule, state, touched, self.table.now);
        let readings = match self.readings(on_subject, &start).await {
            Err(SeriesError::OutOfReach(_)) => {
                start = Start::near(rule, state, touched, self.table.now);
                self.readings(on_subject, &start).await?
            }
            readings => readings?,
        };

        let judgement = fold_episodes(rule, state, &start, &readings, self.table.now);
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
