//! Judges a state whose time has come, and deletes one whose rule is gone. Finds none.

use alerts::{Scope, Subject};
use domain::Timestamp;
use series::Failure;
use table::{AlertState, DeleteAlertStates, Invocation, StoreResult, StoredAlertState, StoredRule};

use crate::case::Case;
use crate::judging::Judging;
use crate::outcome::Outcome;
use crate::ports::Store;
use crate::rules::{Rules, is_about};

impl Judging {
    /// Judges a state that is due. Of a rule that is deleted, the state is deleted. If the subject left the rule, an alert
    /// ends as it would have, is not repeated, and no other follows: the state is deleted as soon as it does not fire.
    pub async fn judge_due(
        &self,
        store: &(impl Store + DeleteAlertStates),
        rules: &Rules,
        due: &StoredAlertState,
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<Outcome, Failure> {
        let mut new: Option<StoredRule> = None;
        let known = rules.get(&due.key.rule);
        if known.is_none() {
            new = store.alert_rule(&due.key.rule, invocation).await?;
        }
        let Some(rule) = known.or(new.as_ref()) else {
            store.delete_alert_state(&due.key, due.version, invocation).await?;
            return Ok(Outcome::default());
        };

        if self.is_of_rule(store, rule, &due.key.subject, now, invocation).await? {
            return self.judge_case(store, rules, rule, due, now, invocation).await;
        }
        if matches!(&due.state, AlertState::Episodes(state) if state.told.is_firing) {
            let mut ending = rule.clone();
            ending.rule.repeat = None;
            return self.judge_case(store, rules, &ending, due, now, invocation).await;
        }
        store.delete_alert_state(&due.key, due.version, invocation).await?;
        Ok(Outcome::default())
    }

    async fn judge_case(
        &self,
        store: &impl Store,
        rules: &Rules,
        rule: &StoredRule,
        due: &StoredAlertState,
        now: Timestamp,
        invocation: &Invocation,
    ) -> Result<Outcome, Failure> {
        let case = Case { rule, subject: &due.key.subject, touched: None };
        self.judge(store, rules, case, now, invocation).await
    }

    /// Whether a rule is about a device or a room, as it is now.
    async fn is_of_rule(
        &self,
        store: &impl Store,
        rule: &StoredRule,
        subject: &Subject,
        now: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        Ok(match (&rule.rule.scope, subject) {
            (Scope::Device(named), Subject::Device(id)) => named == id,
            (Scope::RoomMean(named), Subject::Room(id)) => named == id,
            (scope @ Scope::Each(_), Subject::Device(id)) => {
                let device = self.device(store, id, now, invocation).await?;
                is_about(scope, id, device.as_ref())
            }
            _ => false,
        })
    }
}
