//! Judges a rule about a metric or silence on one device or room: reads readings and folds them. Stores nothing.

use std::time::Duration;

use alerts::{
    AlertSubject, EpisodeState, JudgedReadings, LEAST_SILENCE, LONGEST_SILENCE, Start,
    begins_in_breach, fold_episodes,
};
use chrono::TimeDelta;
use series::SeriesError;
use table::AlertState;

use crate::Result;
use crate::judging::JudgingSession;
use crate::ports::Store;
use crate::report::is_throttled;
use crate::result::NextState;
use crate::rule_on_subject::RuleOnSubject;

impl<S: Store> JudgingSession<'_, S> {
    /// Judges a rule on a device or a room by its readings. If the silence limit cannot be read at once, the read is
    /// repeated only if the result depends on the limit. If the limit's item is damaged, the longest limit is used.
    pub(crate) async fn judge_episodes(
        &self,
        on_subject: RuleOnSubject<'_>,
        before: Option<&AlertState>,
    ) -> Result<NextState> {
        let rule = on_subject.rule;
        let (rule, state) = (&rule.definition, before.and_then(episodes_of));

        // The first read of the limit is not repeated. If the read fails, the longest limit is assumed.
        let at_once = self.table.invocation.with_patience(Duration::ZERO);
        let limit = self.within(&at_once).subject_silent_after(on_subject).await;
        let silent_after = *limit.as_ref().unwrap_or(&LONGEST_SILENCE);

        let (start, readings) = match self.unseen_past(on_subject, state, silent_after).await? {
            Some(found) => found,
            None => self.start_and_readings(on_subject, state, silent_after).await?,
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

    /// Where the fold begins, and the readings that it needs. If these are too many, the fold begins at
    /// [`Start::near`].
    async fn start_and_readings(
        &self,
        on_subject: RuleOnSubject<'_>,
        state: Option<&EpisodeState>,
        silent_after: TimeDelta,
    ) -> Result<(Start, JudgedReadings)> {
        let RuleOnSubject { rule, touched, .. } = on_subject;
        let start = Start::of(&rule.definition, state, touched, self.table.now);
        let start = self.with_doubt_settled(on_subject, start).await?;
        match self.readings(on_subject, &start, silent_after).await {
            Err(SeriesError::OutOfReach(_)) => {
                let start = Start::near(&rule.definition, state, touched, self.table.now);
                let start = self.with_doubt_settled(on_subject, start).await?;
                let readings = self.readings(on_subject, &start, silent_after).await?;
                Ok((start, readings))
            }
            readings => Ok((start, readings?)),
        }
    }

    /// If the start doubts the episode that fires, reads the first readings of the episode. If they are still in breach,
    /// the episode goes on; otherwise the start stays as it is.
    async fn with_doubt_settled(
        &self,
        on_subject: RuleOnSubject<'_>,
        start: Start,
    ) -> Result<Start> {
        let (Some(begin), AlertSubject::Device(device)) =
            (start.begin_to_check(), &on_subject.key.subject)
        else {
            return Ok(start);
        };
        let rule = &on_subject.rule.definition;
        let first = self.first_observations(device, rule, begin).await?;
        Ok(if begins_in_breach(rule, &first) { start.keeping_phase() } else { start })
    }

    /// Where the fold begins, and its readings, for the mean of a room whose past may have changed unseen. Once an hour
    /// such a mean is folded again from a day back, because late readings of its devices store no recheck. `None` means
    /// the usual fold: for other subjects, and if the table throttles the reads, so that the past is judged an hour
    /// later.
    async fn unseen_past(
        &self,
        on_subject: RuleOnSubject<'_>,
        state: Option<&EpisodeState>,
        silent_after: TimeDelta,
    ) -> Result<Option<(Start, JudgedReadings)>> {
        let changed = on_subject.rule.definition.changed;
        let Some(state) = state.filter(|state| state.changed == changed) else { return Ok(None) };
        if !self.is_past_unseen(on_subject, state).await? {
            return Ok(None);
        }

        let part = self.table.invocation.with_half_patience();
        let start = Start::of_unseen_past(state, self.table.now);
        match self.within(&part).readings(on_subject, &start, silent_after).await {
            Err(error) if is_throttled(&error) => Ok(None),
            readings => Ok(Some((start, readings?))),
        }
    }
}

/// The state of a rule about a metric or silence. `None` for a state with figures, as after an edit of the rule.
pub(crate) fn episodes_of(state: &AlertState) -> Option<&EpisodeState> {
    match state {
        AlertState::Episodes(state) => Some(state),
        AlertState::Figures(_) => None,
    }
}
