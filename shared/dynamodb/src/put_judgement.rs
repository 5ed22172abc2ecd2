//! `TransactWriteItems` of a state, the check of its rule and what is told of it, or the `PutItem` of a state that
//! tells nothing. Judges nothing.

use aws_sdk_dynamodb::types::{AttributeValue, ConditionCheck, TransactWriteItem};
use domain::{RuleId, Timestamp};

use crate::DynamoStore;
use crate::attribute::to_sdk;
use crate::put::Put;
use crate::write_device::failed;
use table::item::{self, attribute::RULE_CHANGED};
use table::keys::Key;
use table::{
    Invocation, JudgementOutcome, NewJudgement, PutJudgements, StoreResult, UpdateOutcome,
};

impl PutJudgements for DynamoStore {
    /// Judgements of one rule at the same time all check its item, so their transactions conflict and are repeated.
    async fn put_judgement(
        &self,
        judgement: &NewJudgement,
        invocation: &Invocation,
    ) -> StoreResult<JudgementOutcome> {
        let state = judgement.state();
        let put = Put::new(item::from_alert_state(state), state.expected());
        if judgement.told().is_empty() {
            return Ok(match put.send(self, invocation).await? {
                UpdateOutcome::Updated(()) => JudgementOutcome::Stored,
                UpdateOutcome::ConditionFailed(_) => JudgementOutcome::StateMoved,
            });
        }
        let (rule, changed) = judgement.rule();
        // The condition of the state holds for the messages too.
        let told = judgement.told().iter().map(|it| self.put_part(item::from_told(it)));
        let waiting = judgement.waiting().iter().map(|it| self.put_part(item::from_waiting(it)));
        let parts = [self.rule_check(rule, changed), self.conditional_part(put)]
            .into_iter()
            .chain(told)
            .chain(waiting)
            .collect();
        Ok(match self.transact_parts(parts, invocation).await? {
            Ok(()) => JudgementOutcome::Stored,
            Err(reasons) if reasons.first().is_some_and(failed) => JudgementOutcome::RuleChanged,
            Err(_) => JudgementOutcome::StateMoved,
        })
    }
}

impl DynamoStore {
    /// A check that a rule is there and was not saved again.
    fn rule_check(&self, rule: &RuleId, changed: Timestamp) -> TransactWriteItem {
        let check = ConditionCheck::builder()
            .table_name(&self.table)
            .set_key(Some(to_sdk(item::key(&Key::AlertRule(rule.clone())))))
            .condition_expression("#c = :c")
            .expression_attribute_names("#c", RULE_CHANGED)
            .expression_attribute_values(":c", AttributeValue::S(changed.to_string()))
            .build()
            .expect("key, table and condition are set");
        TransactWriteItem::builder().condition_check(check).build()
    }
}
