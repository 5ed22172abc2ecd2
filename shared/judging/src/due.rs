//! Judges states whose time has come, and deletes those whose rule is gone. Finds none.

use alerts::{AlertSubject, Scope};
use table::{AlertState, DeleteAlertStates, StoreResult, StoredAlertState, StoredRule};

use crate::Result;
use crate::judging::JudgingSession;
use crate::ports::Store;
use crate::progress::Trigger;
use crate::report::JudgingReport;
use crate::result::JudgementResult;
use crate::rules::{Rules, is_about};
use crate::task::{JudgingTask, RuleOnSubject, Tasks};

impl<S: Store + DeleteAlertStates> JudgingSession<'_, S> {
    /// Judges states that are due. A failed one stays due, and the others are tried before it is tried again.
    pub async fn judge_due(&self, rules: &Rules, due: &[StoredAlertState]) -> JudgingReport {
        let tasks = due.iter().map(|state| (state.key.clone(), JudgingTask::Due(state)));
        let mut report = self.judge_all(Tasks::of(Trigger::Due, rules, tasks)).await;

        let obsolete = std::mem::take(&mut report.obsolete);
        for state in due.iter().filter(|state| obsolete.contains(&state.key)) {
            if let Err(error) = self.table.delete_alert_state(&state.key, state.version).await {
                report.add(state.key.clone(), Err(error.into()));
            }
        }
        report
    }
}

impl<S: Store> JudgingSession<'_, S> {
    /// Judges a state that is due. It is obsolete if its rule is deleted. If the subject left the rule, judging goes on
    /// until the alert has ended, without repetitions; then the state is obsolete too.
    pub(crate) async fn judge_state(
        &self,
        due: &StoredAlertState,
        rules: &Rules,
    ) -> Result<JudgementResult> {
        let key = &due.key;
        let mut rule = match rules.get(&key.rule) {
            Some(rule) => Some(rule.clone()),
            None => self.table.alert_rule(&key.rule).await?,
        };
        if let Some(left) = &mut rule
            && !self.is_of_rule(left, &key.subject).await?
        {
            left.rule.repeat = None;
            let is_firing =
                matches!(&due.state, AlertState::Episodes(state) if state.told.is_firing);
            rule = rule.filter(|_| is_firing);
        }

        let Some(rule) = rule else {
            return Ok(JudgementResult { is_obsolete: true, ..JudgementResult::default() });
        };
        self.judge(RuleOnSubject { rule: &rule, key, touched: None, rules }).await
    }

    /// Whether a rule is about a device or a room, as it is now.
    async fn is_of_rule(&self, rule: &StoredRule, subject: &AlertSubject) -> StoreResult<bool> {
        Ok(match (&rule.rule.scope, subject) {
            (Scope::Device(named), AlertSubject::Device(id)) => named == id,
            (Scope::RoomMean(named), AlertSubject::Room(id)) => named == id,
            (scope @ Scope::Each(_), AlertSubject::Device(id)) => {
                let device = self.device(id).await?;
                is_about(scope, id, device.as_ref())
            }
            _ => false,
        })
    }
}
