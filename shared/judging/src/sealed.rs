//! Judges what waits for whole quarters of an hour: budgets, counters and means of rooms. Seals none.

use alerts::{Scope, Watch};
use domain::Timestamp;
use series::Failure;
use table::{AlertKey, Invocation, StoredRule};

use crate::case::Case;
use crate::judged::{Judged, check_time};
use crate::judging::Judging;
use crate::ports::Store;
use crate::rules::subjects_of;

impl Judging {
    /// Judges the rules that wait for sealed quarters, once for each quarter that is sealed. What fails is judged again
    /// when it is next called.
    pub async fn judge_sealed(
        &self,
        store: &impl Store,
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<Judged, Failure> {
        let mut judged = Judged::default();
        let rules = self.rules(store, now, invocation).await?;
        let waiting: Vec<_> = rules.rules.iter().filter(|it| waits(it)).collect();
        if waiting.is_empty() {
            return Ok(judged);
        }
        let horizon = self.rollups.read(store, now, invocation).await?;
        let Some(edge) = horizon.state().map(|state| horizon.believed(state.sealed())) else {
            return Ok(judged);
        };
        if self.sealed.get() == Some(edge) {
            return Ok(judged);
        }
        let devices = self.devices(store, now, invocation).await?;
        for rule in waiting {
            for subject in subjects_of(&rule.rule, devices.iter()) {
                let case = Case { rule, subject: &subject, touched: None };
                let result = match check_time(invocation) {
                    Ok(()) => self.judge(store, &rules, case, now, invocation).await,
                    Err(failure) => Err(failure),
                };
                judged.add(AlertKey { rule: rule.id.clone(), subject }, result);
            }
        }
        if judged.is_done() {
            self.sealed.set(edge);
        }
        Ok(judged)
    }
}

/// Whether a rule waits for whole quarters.
fn waits(it: &StoredRule) -> bool {
    let waits = match it.rule.watch {
        Watch::Budget { .. } | Watch::Counter { .. } => true,
        Watch::Metric { .. } => matches!(it.rule.scope, Scope::RoomMean(_)),
        Watch::Silence { .. } | Watch::Demand { .. } => false,
    };
    it.rule.is_on && waits
}
