//! The judgement of a budget, a demand or a counter on one device: figures are told once. Chooses no subjects.

use alerts::{AlertSubject, Figure, FigureState, Message, News, Watch, ended_by_edit};
use domain::{Device, Timestamp};
use table::{AlertState, NewJudgement, StoreError, StoredAlertState, StoredRule};

use crate::Result;
use crate::budget::EnergyBudget;
use crate::counter::WatchedSteps;
use crate::demand::WatchedDemand;
use crate::judging::JudgingSession;
use crate::ports::Store;
use crate::result::{JudgementResult, MAX_ATTEMPTS};
use crate::task::RuleOnSubject;

impl<S: Store> JudgingSession<'_, S> {
    /// Judges a rule on a device. Where nothing is new, nothing is put: what was told once stays told. If the rule was one
    /// of episodes before, an alert that fires is over.
    pub(crate) async fn judge_figures(&self, judged: RuleOnSubject<'_>) -> Result<JudgementResult> {
        let RuleOnSubject { rule, key, rules, .. } = judged;
        let now = self.now;
        let device = match &key.subject {
            AlertSubject::Device(device) => self.device(device).await?,
            AlertSubject::Room(_) => None,
        };

        for _ in 0..MAX_ATTEMPTS {
            // The state before the figures: of two judgements the one that saw older readings is refused.
            let known = self.stored_state(rule, key).await?;
            let before = known.as_ref().map(|known| &known.state);
            if is_firing(before) && !rule.rule.tells(now) {
                return Ok(JudgementResult::default());
            }
            let (once, ended) = begin(before, now);
            let figures = match &device {
                Some(device) => self.figures_of(rule, device).await?,
                None => Vec::new(),
            };

            let (next, news) = once.judge(&rule.rule, &figures, now);
            let is_as_before = match before {
                Some(AlertState::Once(once)) => device.is_none() || *once == next,
                Some(AlertState::Episodes(_)) => false,
                None => next.told.is_empty(),
            };
            if news.is_empty() && is_as_before {
                return Ok(JudgementResult::default());
            }

            let figures = news.into_iter().map(|(number, figure)| message(number, figure, now));
            let messages = ended.into_iter().chain(figures).collect();
            let next = AlertState::Once(next);
            let next = StoredAlertState::next(known.as_ref(), key.clone(), next, now);
            let channels = rules.channels_of(&rule.rule, now);
            let judgement = NewJudgement::new(rule, next, messages, &channels, now);
            if let Some(result) = self.put(&judgement).await? {
                return Ok(result);
            }
        }
        Err(StoreError::Contended(format!("the alert {} on {}", key.rule, key.subject)).into())
    }

    /// The figures of a rule on a device, as the table has them now.
    async fn figures_of(&self, rule: &StoredRule, device: &Device) -> Result<Vec<Figure>> {
        let horizon = &self.horizon().await?;
        match &rule.rule.watch {
            Watch::Budget { kwh, per } => {
                let budget = EnergyBudget { kwh, per: *per, saved: rule.rule.changed };
                self.budget_figures(&budget, device, horizon).await
            }
            Watch::Demand { period, limit } => {
                let demand = WatchedDemand { period: *period, limit };
                self.demand_figures(&demand, device, horizon).await
            }
            Watch::Counter { metric, events } => {
                let steps = WatchedSteps { metric, events };
                self.counter_figures(&steps, device, horizon).await
            }
            Watch::Metric { .. } | Watch::Silence { .. } => Ok(Vec::new()),
        }
    }
}

/// Whether an alert fires of the time before the rule was one on figures.
fn is_firing(before: Option<&AlertState>) -> bool {
    matches!(before, Some(AlertState::Episodes(state)) if state.told.is_firing)
}

/// The state to go on from, and the end of an alert of the time before the rule was one on figures.
fn begin(before: Option<&AlertState>, now: Timestamp) -> (FigureState, Option<Message>) {
    match before {
        Some(AlertState::Once(once)) => (once.clone(), None),
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
