//! The calls of alerts, which are no step: no model has a rule. Judges nothing.

use std::ops::Deref;

use domain::{RuleId, Timestamp};
use table::memory::MemoryStore;
use table::{
    AlertKey, DeleteAlertStates, DueStates, Invocation, JudgementOutcome, ListPage, Listing,
    Looked, NewJudgement, NoteLooks, PutJudgements, PutOutcome, ReadAlertRules, ReadAlertStates,
    ReadChannels, ReadRunning, RunningMark, StoreResult, StoredAlertState, StoredChannel,
    StoredRule,
};

use super::Gated;

impl<T: Deref<Target = MemoryStore> + Send + Sync> ReadAlertRules for Gated<T> {
    async fn alert_rules(&self, invocation: &Invocation) -> StoreResult<Listing<StoredRule>> {
        self.table.alert_rules(invocation).await
    }

    async fn alert_rule(
        &self,
        id: &RuleId,
        invocation: &Invocation,
    ) -> StoreResult<Option<StoredRule>> {
        self.table.alert_rule(id, invocation).await
    }
}

impl<T: Deref<Target = MemoryStore> + Send + Sync> ReadChannels for Gated<T> {
    async fn channels(&self, invocation: &Invocation) -> StoreResult<Listing<StoredChannel>> {
        self.table.channels(invocation).await
    }
}

impl<T: Deref<Target = MemoryStore> + Send + Sync> ReadAlertStates for Gated<T> {
    async fn alert_states(
        &self,
        keys: &[AlertKey],
        invocation: &Invocation,
    ) -> StoreResult<Listing<StoredAlertState>> {
        self.table.alert_states(keys, invocation).await
    }

    async fn alert_state_page(
        &self,
        rule: Option<&RuleId>,
        after: Option<&AlertKey>,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<ListPage<StoredAlertState>> {
        self.table.alert_state_page(rule, after, limit, invocation).await
    }

    async fn due_alert_states(
        &self,
        now: Timestamp,
        after: Option<&str>,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<DueStates> {
        self.table.due_alert_states(now, after, limit, invocation).await
    }
}

impl<T: Deref<Target = MemoryStore> + Send + Sync> DeleteAlertStates for Gated<T> {
    async fn delete_alert_states(
        &self,
        rule: &RuleId,
        invocation: &Invocation,
    ) -> StoreResult<usize> {
        self.table.delete_alert_states(rule, invocation).await
    }

    async fn delete_alert_state(
        &self,
        key: &AlertKey,
        version: u64,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        self.table.delete_alert_state(key, version, invocation).await
    }
}

impl<T: Deref<Target = MemoryStore> + Send + Sync> PutJudgements for Gated<T> {
    async fn put_judgement(
        &self,
        judgement: &NewJudgement,
        invocation: &Invocation,
    ) -> StoreResult<JudgementOutcome> {
        self.table.put_judgement(judgement, invocation).await
    }
}

impl<T: Deref<Target = MemoryStore> + Send + Sync> ReadRunning for Gated<T> {
    async fn running_mark(&self, invocation: &Invocation) -> StoreResult<Option<RunningMark>> {
        self.table.running_mark(invocation).await
    }
}

impl<T: Deref<Target = MemoryStore> + Send + Sync> NoteLooks for Gated<T> {
    async fn note_looks(
        &self,
        touched: &[(Looked, Timestamp)],
        invocation: &Invocation,
    ) -> PutOutcome {
        self.table.note_looks(touched, invocation).await
    }
}
