//! Judges a budget, a demand or a counter on one device. A message about a figure is made once. Chooses no subjects.

use alerts::{AlertSubject, Figure, FigureState, Message, News, Watch, ended_by_edit};
use domain::{Device, Timestamp};
use table::{AlertState, StoredRule};

use crate::Result;
use crate::budget::EnergyBudget;
use crate::judging::JudgingSession;
use crate::ports::Store;
use crate::result::NextState;
use crate::rule_on_subject::RuleOnSubject;

impl<S: Store> JudgingSession<'_, S> {
    /// Judges a rule on a device; `None` if there is nothing to store. If an alert was firing when the rule was edited
    /// from a metric or silence to figures, the alert ends.
    pub(crate) async fn judge_figures(
        &self,
        on_subject: RuleOnSubject<'_>,
        before: Option<&AlertState>,
    ) -> Result<Option<NextState>> {
        let RuleOnSubject { rule, key, has_left, .. } = on_subject;
        let now = self.table.now;
        let (state, ended) = begin(before, now);
        // A rule that is off or paused sends nothing, so the alert ends when the rule sends again.
        if ended.is_some() && !rule.definition.may_send(now) {
            return Ok(None);
        }

        let device = match &key.subject {
            AlertSubject::Device(device) => self.device(device).await?,
            AlertSubject::Room(_) => None,
        };
        let figures = match &device {
            Some(device) if !has_left => self.figures_of(rule, device).await?,
            _ => Vec::new(),
        };

        let (next, news) = state.judge(&rule.definition, &figures, now);
        // Of an unregistered device nothing is judged. Its state keeps the old `changed`, so that the first judgement
        // of its figures sees whether the rule was edited.
        let is_as_before = match before {
            Some(AlertState::Figures(state)) => device.is_none() || *state == next,
            Some(AlertState::Episodes(_)) => false,
            None => next.told.is_empty(),
        };
        if news.is_empty() && is_as_before {
            return Ok(None);
        }

        let figures = news.into_iter().map(|(number, figure)| message(number, figure, now));
        let messages = ended.into_iter().chain(figures).collect();
        Ok(Some(NextState { state: AlertState::Figures(next), messages }))
    }

    /// The current figures of a rule on a device.
    async fn figures_of(&self, rule: &StoredRule, device: &Device) -> Result<Vec<Figure>> {
        let horizon = &self.horizon().await?;
        match &rule.definition.watch {
            Watch::Budget { kwh, per } => {
                let budget = EnergyBudget { kwh, per: *per, saved: rule.definition.changed };
                self.budget_figures(&budget, device, horizon).await
            }
            Watch::Demand { period, limit } => {
                self.demand_figures(*period, limit, device, horizon).await
            }
            Watch::Counter { metric, events } => {
                self.counter_figures(metric, events, device, horizon).await
            }
            Watch::Metric { .. } | Watch::Silence { .. } => Ok(Vec::new()),
        }
    }
}

/// The state to go on from. If an edit gave the rule figures while an alert was firing, also the message that ends it.
fn begin(before: Option<&AlertState>, now: Timestamp) -> (FigureState, Option<Message>) {
    match before {
        Some(AlertState::Figures(state)) => (state.clone(), None),
        Some(AlertState::Episodes(state)) => {
            let ended = state.told.is_firing.then(|| ended_by_edit(state, now));
            let number = ended.as_ref().map_or(state.number, |ended| ended.number);
            (FigureState { number, ..FigureState::default() }, ended)
        }
        None => (FigureState::default(), None),
    }
}

fn message(number: u64, figure: &Figure, now: Timestamp) -> Message {
    Message {
        number,
        news: News::Fired,
        since: figure.at,
        fired: now,
        ended: None,
        value: figure.value.rounded().to_decimal().ok(),
        seen: None,
        is_silent: false,
    }
}
