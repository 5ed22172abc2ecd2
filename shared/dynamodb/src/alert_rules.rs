//! `Query`, `GetItem`, the conditional `PutItem` and `DeleteItem` on the rules of alerts. Judges nothing.

use domain::RuleId;

use crate::DynamoStore;
use crate::put::Put;
use table::item;
use table::keys::{ALERT_RULES, Key};
use table::{
    EditAlertRules, Invocation, Listing, ReadAlertRules, StoreResult, StoredRule, UpdateOutcome,
};

impl ReadAlertRules for DynamoStore {
    async fn alert_rules(&self, invocation: &Invocation) -> StoreResult<Listing<StoredRule>> {
        self.list(ALERT_RULES, invocation).await
    }

    async fn alert_rule(
        &self,
        id: &RuleId,
        invocation: &Invocation,
    ) -> StoreResult<Option<StoredRule>> {
        self.find(&Key::AlertRule(id.clone()), invocation).await
    }
}

impl EditAlertRules for DynamoStore {
    async fn put_alert_rule(
        &self,
        rule: &StoredRule,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let put = Put::new(item::from_alert_rule(rule), rule.expected());
        Ok(matches!(put.send(self, invocation).await?, UpdateOutcome::Updated(())))
    }

    async fn delete_alert_rule(&self, id: &RuleId, invocation: &Invocation) -> StoreResult<bool> {
        self.delete_found(&Key::AlertRule(id.clone()), invocation).await
    }
}
