//! Judges states whose next judgement is due. Deletes states whose rule is gone or no longer about their subject.

use alerts::{AlertSubject, Scope};
use table::{DeleteAlertStates, Session, StoreResult, StoredAlertState, StoredRule};

use crate::episodes::episodes_of;
use crate::judging::JudgingSession;
use crate::ports::Store;
use crate::progress::Trigger;
use crate::report::JudgingReport;
use crate::result::{JudgementResult, NotJudged};
use crate::rule_on_subject::RuleOnSubject;
use crate::rules::{AlertRules, is_about};
use crate::task::{JudgingTask, Tasks};

impl<S: Store + DeleteAlertStates> JudgingSession<'_, S> {
    /// Judges states that are due. If a judgement fails, the state stays due, and the next call tries the others first.
    pub async fn judge_due(&self, rules: &AlertRules, due: &[StoredAlertState]) -> JudgingReport {
        let tasks = due.iter().map(|state| (state.key.clone(), JudgingTask::Due(state)));
        let mut report = self.judge_all(Tasks::of(Trigger::Due, rules, tasks)).await;

        let obsolete = std::mem::take(&mut report.obsolete);
        let throttle = &self.judging.throttles.deletion;
        for StoredAlertState { key, version, .. } in
            due.iter().filter(|state| obsolete.contains(&state.key))
        {
            let delete =
                async |table: Session<'_, S>| table.delete_alert_state(key, *version).await;
            if let Err(error) = throttle.unless_throttled(self.table, delete).await {
                report.add(key.clone(), Err(error.into()));
            }
        }

        report
    }
}

impl<S: Store> JudgingSession<'_, S> {
    /// Judges a state that is due. The state is obsolete if its rule is deleted. If the rule is no longer about the
    /// subject, the state is judged until its alert has ended, and makes no other message. The state is kept for an
    /// hour after the last message: if the subject comes back in this hour, no message is repeated.
    pub(crate) async fn judge_state(
        &self,
        due: &StoredAlertState,
        rules: &AlertRules,
    ) -> Result<JudgementResult, NotJudged> {
        let key = &due.key;
        let rule = match rules.get(&key.rule) {
            Some(rule) => Some(rule.clone()),
            None => self.stored_rule(&key.rule).await?,
        };
        let Some(rule) = rule else { return Ok(JudgementResult::obsolete()) };

        let has_left = !self.is_of_rule(&rule, &key.subject).await?;
        let episodes = episodes_of(&due.state);
        if has_left && !episodes.is_some_and(|state| state.told.is_firing) {
            let is_obsolete =
                episodes.is_none_or(|state| state.repeats_nothing_if_deleted(self.table.now));
            return Ok(JudgementResult { is_obsolete, ..JudgementResult::default() });
        }

        self.judge_and_store(RuleOnSubject { rule: &rule, key, touched: None, rules, has_left })
            .await
    }

    /// Whether a rule still applies to a subject. The rule may have been edited since the state was stored, or the
    /// device may have changed.
    async fn is_of_rule(&self, rule: &StoredRule, subject: &AlertSubject) -> StoreResult<bool> {
        Ok(match (&rule.definition.scope, subject) {
            (Scope::Device(named), AlertSubject::Device(id)) => named == id,
            (Scope::RoomMean(named), AlertSubject::Room(id)) => named == id,
            (scope @ Scope::Each(_), AlertSubject::Device(id)) => {
                let listed = self.device(id).await?;
                // The process that stored the state may have had a newer list of devices.
                is_about(scope, id, listed.as_ref())
                    || is_about(scope, id, self.stored_device(id).await?.as_ref())
            }
            _ => false,
        })
    }
}
