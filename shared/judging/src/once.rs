//! The judgement of a budget, a demand or a counter on one device: figures are told once. Chooses no subjects.

use alerts::{Figure, Message, News, Once, Subject, Watch, ended_by_edit};
use domain::{Device, Timestamp};
use series::Failure;
use table::{
    AlertKey, AlertState, Invocation, NewJudgement, StoreError, StoredAlertState, StoredRule,
};

use crate::budget::EnergyBudget;
use crate::judging::Judging;
use crate::outcome::{MAX_ATTEMPTS, Outcome, put, stored_state};
use crate::ports::Store;
use crate::rules::Rules;
use crate::{budget, counter, demand};

impl Judging {
    /// Judges a rule on a device. Where nothing is new, nothing is put: what was told once stays told. The state is read
    /// before the figures, as for episodes. If the rule was one of episodes before, an alert that fires is over.
    pub(crate) async fn judge_once(
        &self,
        store: &impl Store,
        rules: &Rules,
        (rule, key): (&StoredRule, &AlertKey),
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<Outcome, Failure> {
        let device = match &key.subject {
            Subject::Device(device) => self.device(store, device, now, invocation).await?,
            Subject::Room(_) => None,
        };
        for _ in 0..MAX_ATTEMPTS {
            // The state before the figures: of two judgements the one that saw older readings is refused.
            let known = stored_state(store, rule, key, now, invocation).await?;
            let before = known.as_ref().map(|known| &known.state);
            let (once, ended) = match before {
                Some(AlertState::Once(once)) => (once.clone(), None),
                Some(AlertState::Episodes(state)) if state.told.is_firing => {
                    if !rule.rule.tells(now) {
                        return Ok(Outcome::default());
                    }
                    let ended = ended_by_edit(state, now);
                    (Once { number: ended.number, ..Once::default() }, Some(ended))
                }
                Some(AlertState::Episodes(state)) => {
                    (Once { number: state.number, ..Once::default() }, None)
                }
                None => (Once::default(), None),
            };
            let figures = match &device {
                Some(device) => self.figures(store, rule, device, now, invocation).await?,
                None => Vec::new(),
            };

            let (next, news) = once.judge(&rule.rule, &figures, now);
            let is_as_before = match before {
                Some(AlertState::Once(once)) => device.is_none() || *once == next,
                Some(AlertState::Episodes(_)) => false,
                None => next.told.is_empty(),
            };
            if news.is_empty() && is_as_before {
                return Ok(Outcome::default());
            }
            let figures = news.into_iter().map(|(number, figure)| message(number, figure, now));
            let messages = ended.into_iter().chain(figures).collect();
            let next = AlertState::Once(next);
            let next = StoredAlertState::next(known.as_ref(), key.clone(), next, now);
            let channels = rules.channels_of(&rule.rule, now);
            let judgement = NewJudgement::new(rule, next, messages, &channels, now);
            if let Some(outcome) = put(store, &judgement, invocation).await? {
                return Ok(outcome);
            }
        }
        Err(StoreError::Contended(format!("the alert {} on {}", key.rule, key.subject)).into())
    }

    /// The figures of a rule on a device, as the table has them now.
    async fn figures(
        &self,
        store: &impl Store,
        rule: &StoredRule,
        device: &Device,
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<Vec<Figure>, Failure> {
        let horizon = &self.rollups.horizon(store, now, invocation).await?;
        match &rule.rule.watch {
            Watch::Budget { kwh, per } => {
                let budget = EnergyBudget { kwh, per: *per, saved: rule.rule.changed };
                budget::figures(store, device, budget, horizon, now, invocation).await
            }
            Watch::Demand { period, limit } => {
                let known = (&self.peaks, horizon);
                demand::figures(store, device, (*period, limit), known, now, invocation).await
            }
            Watch::Counter { metric, events } => {
                counter::figures(store, device, (metric, events), horizon, now, invocation).await
            }
            Watch::Metric { .. } | Watch::Silence { .. } => Ok(Vec::new()),
        }
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
