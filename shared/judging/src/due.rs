//! Judges a state whose time has come, and deletes one whose rule is gone. Finds none.

use domain::Timestamp;
use series::Failure;
use table::{DeleteAlertStates, Invocation, StoredAlertState, StoredRule};

use crate::case::Case;
use crate::judging::Judging;
use crate::outcome::Outcome;
use crate::ports::Store;
use crate::rules::Rules;

impl Judging {
    /// Judges a state that is due. A device that is no longer one of the rule's is judged on until it is at rest: what
    /// fires ends as it would have. Of a rule that is deleted, the state is deleted.
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
        let case = Case { rule, subject: &due.key.subject, touched: None };
        self.judge(store, rules, case, now, invocation).await
    }
}
