//! The ports of alerts in memory. Judges and sends nothing.

use domain::{ChannelId, DeviceId, RuleId, Timestamp};

use super::{MemoryStore, page::list_page};
use crate::keys::Key;
use crate::{
    AlertKey, ChannelSecret, DeleteAlertStates, DueStates, EditAlertRules, EditAlertStates,
    EditChannels, Expected, Failing, FinishLooks, Invocation, JudgementOutcome, ListPage, Listing,
    Look, Looked, MarkRunning, NewJudgement, NoteChannels, NoteLooks, PutJudgements, PutOutcome,
    PutTestMessages, ReadAlertRules, ReadAlertStates, ReadChannelSecrets, ReadChannels, ReadLooks,
    ReadRunning, ReadToldMessages, ReadWaitingMessages, RunningMark, SendWaitingMessages,
    StoreResult, StoredAlertState, StoredChannel, StoredRule, ToldMessage, ToldQuery, WaitingKey,
    WaitingMessage,
};

impl MemoryStore {
    /// All messages that were told, oldest first.
    #[must_use]
    pub fn all_told(&self) -> Vec<ToldMessage> {
        self.state().alerts.told.values().cloned().collect()
    }

    /// All messages that wait, whether or not they are to be sent now.
    #[must_use]
    pub fn all_waiting(&self) -> Vec<WaitingMessage> {
        self.state().alerts.waiting.values().cloned().collect()
    }

    /// All states.
    #[must_use]
    pub fn all_alert_states(&self) -> Vec<StoredAlertState> {
        self.state().alerts.states.values().cloned().collect()
    }

    /// Deletes the items of alerts that have expired, as `DynamoDB` does some time after.
    pub fn delete_expired_alerts(&self, now: Timestamp) {
        let alerts = &mut self.state().alerts;
        alerts.states.retain(|_, it| it.expires.is_none_or(|expires| expires > now));
        alerts.told.retain(|_, it| it.at.saturating_add(crate::TOLD_KEPT) > now);
        alerts.waiting.retain(|_, it| it.told.at.saturating_add(crate::WAITING_KEPT) > now);
    }
}

/// Whether the stored version is the expected one.
fn is_expected(expected: Expected, stored: Option<u64>) -> bool {
    match expected {
        Expected::Absent => stored.is_none(),
        Expected::Present => stored.is_some(),
        Expected::Version(version) => stored == Some(version),
    }
}

impl ReadAlertRules for MemoryStore {
    async fn alert_rules(&self, _invocation: &Invocation) -> StoreResult<Listing<StoredRule>> {
        let found = self.read()?.alerts.rules.values().cloned().collect();
        Ok(Listing { found, ..Listing::default() })
    }

    async fn alert_rule(
        &self,
        id: &RuleId,
        _invocation: &Invocation,
    ) -> StoreResult<Option<StoredRule>> {
        Ok(self.read()?.alerts.rules.get(id).cloned())
    }
}

impl EditAlertRules for MemoryStore {
    async fn put_alert_rule(
        &self,
        rule: &StoredRule,
        _invocation: &Invocation,
    ) -> StoreResult<bool> {
        let rules = &mut self.write()?.alerts.rules;
        let is_expected = is_expected(rule.expected(), rules.get(&rule.id).map(|it| it.version));
        if is_expected {
            rules.insert(rule.id.clone(), rule.clone());
        }
        Ok(is_expected)
    }

    async fn delete_alert_rule(&self, id: &RuleId, _invocation: &Invocation) -> StoreResult<bool> {
        Ok(self.write()?.alerts.rules.remove(id).is_some())
    }
}

impl ReadChannels for MemoryStore {
    async fn channels(&self, _invocation: &Invocation) -> StoreResult<Listing<StoredChannel>> {
        let found = self.read()?.alerts.channels.values().cloned().collect();
        Ok(Listing { found, ..Listing::default() })
    }
}

impl EditChannels for MemoryStore {
    async fn put_channel(
        &self,
        channel: &StoredChannel,
        secret: Option<&ChannelSecret>,
        _invocation: &Invocation,
    ) -> StoreResult<bool> {
        let alerts = &mut self.write()?.alerts;
        let known = alerts.channels.get(&channel.id).map(|it| it.version);
        let is_expected = is_expected(channel.expected(), known);
        if is_expected {
            alerts.channels.insert(channel.id.clone(), channel.clone());
            let secret = secret.map(|secret| (channel.id.clone(), secret.clone()));
            alerts.secrets.extend(secret);
        }
        Ok(is_expected)
    }

    async fn delete_channel(&self, id: &ChannelId, _invocation: &Invocation) -> StoreResult<()> {
        let alerts = &mut self.write()?.alerts;
        alerts.channels.remove(id);
        alerts.secrets.remove(id);
        Ok(())
    }
}

impl ReadChannelSecrets for MemoryStore {
    async fn channel_secret(
        &self,
        id: &ChannelId,
        _invocation: &Invocation,
    ) -> StoreResult<Option<ChannelSecret>> {
        Ok(self.read()?.alerts.secrets.get(id).cloned())
    }
}

impl NoteChannels for MemoryStore {
    async fn note_channel(
        &self,
        known: &StoredChannel,
        failing: Option<Failing>,
        _invocation: &Invocation,
    ) -> StoreResult<bool> {
        let channels = &mut self.write()?.alerts.channels;
        let channel = channels.get_mut(&known.id).filter(|it| it.version == known.version);
        Ok(channel.map(|channel| channel.failing = failing).is_some())
    }
}

impl ReadAlertStates for MemoryStore {
    async fn alert_states(
        &self,
        keys: &[AlertKey],
        _invocation: &Invocation,
    ) -> StoreResult<Listing<StoredAlertState>> {
        let states = &self.read()?.alerts.states;
        let found = keys.iter().filter_map(|key| states.get(key).cloned()).collect();
        Ok(Listing { found, ..Listing::default() })
    }

    async fn alert_state_page(
        &self,
        rule: Option<&RuleId>,
        after: Option<&AlertKey>,
        limit: usize,
        _invocation: &Invocation,
    ) -> StoreResult<ListPage<StoredAlertState>> {
        let is_asked = |it: &StoredAlertState| {
            rule.is_none_or(|rule| it.key.rule == *rule) && Some(&it.key) > after
        };
        Ok(list_page(self.read()?.alerts.states.values(), is_asked, limit))
    }

    async fn due_alert_states(
        &self,
        now: Timestamp,
        after: Option<&str>,
        limit: usize,
        _invocation: &Invocation,
    ) -> StoreResult<DueStates> {
        let sk = |state: &StoredAlertState| Key::AlertState(state.key.clone()).sk();
        let is_asked =
            |state: &StoredAlertState| after.is_none_or(|after| sk(state).as_str() > after);
        let ListPage { mut listing, has_more } =
            list_page(self.read()?.alerts.states.values(), is_asked, limit);
        let next = listing.found.last().filter(|_| has_more).map(sk);
        listing.found.retain(|state| state.state.is_due(now));
        Ok(DueStates { listing, next })
    }
}

impl PutJudgements for MemoryStore {
    async fn put_judgement(
        &self,
        judgement: &NewJudgement,
        _invocation: &Invocation,
    ) -> StoreResult<JudgementOutcome> {
        let alerts = &mut self.write()?.alerts;
        let (rule, changed) = judgement.rule();
        let is_told = !judgement.told().is_empty();
        if is_told && alerts.rules.get(rule).is_none_or(|it| it.rule.changed != changed) {
            return Ok(JudgementOutcome::RuleChanged);
        }
        let state = judgement.state();
        let known = alerts.states.get(&state.key).map(|it| it.version);
        if !is_expected(state.expected(), known) {
            return Ok(JudgementOutcome::StateMoved);
        }
        alerts.states.insert(state.key.clone(), state.clone());
        alerts.told.extend(judgement.told().iter().map(|it| (it.key(), it.clone())));
        alerts.waiting.extend(judgement.waiting().iter().map(|it| (it.key(), it.clone())));
        Ok(JudgementOutcome::Stored)
    }
}

impl PutTestMessages for MemoryStore {
    async fn put_test_message(
        &self,
        message: &WaitingMessage,
        _invocation: &Invocation,
    ) -> StoreResult<bool> {
        let waiting = &mut self.write()?.alerts.waiting;
        let is_new = !waiting.contains_key(&message.key());
        waiting.entry(message.key()).or_insert_with(|| message.clone());
        Ok(is_new)
    }
}

impl EditAlertStates for MemoryStore {
    async fn put_alert_state(
        &self,
        state: &StoredAlertState,
        _invocation: &Invocation,
    ) -> StoreResult<bool> {
        let states = &mut self.write()?.alerts.states;
        let is_expected =
            is_expected(state.expected(), states.get(&state.key).map(|it| it.version));
        if is_expected {
            states.insert(state.key.clone(), state.clone());
        }
        Ok(is_expected)
    }
}

impl DeleteAlertStates for MemoryStore {
    async fn delete_alert_states(
        &self,
        rule: &RuleId,
        _invocation: &Invocation,
    ) -> StoreResult<usize> {
        let states = &mut self.write()?.alerts.states;
        let before = states.len();
        states.retain(|key, _| key.rule != *rule);
        Ok(before - states.len())
    }

    async fn delete_alert_state(
        &self,
        key: &AlertKey,
        version: u64,
        _invocation: &Invocation,
    ) -> StoreResult<bool> {
        let states = &mut self.write()?.alerts.states;
        let is_known = states.get(key).is_some_and(|it| it.version == version);
        if is_known {
            states.remove(key);
        }
        Ok(is_known)
    }
}

impl ReadToldMessages for MemoryStore {
    async fn told_messages(
        &self,
        query: &ToldQuery,
        _invocation: &Invocation,
    ) -> StoreResult<ListPage<ToldMessage>> {
        let is_asked = |it: &ToldMessage| {
            query.range.contains(it.at)
                && query.rule.as_ref().is_none_or(|rule| it.alert.rule == *rule)
                && query.after.as_ref().is_none_or(|after| it.key() < *after)
        };
        Ok(list_page(self.read()?.alerts.told.values().rev(), is_asked, query.limit))
    }
}

impl ReadWaitingMessages for MemoryStore {
    async fn waiting_messages(
        &self,
        channel: &ChannelId,
        now: Timestamp,
        after: Option<&WaitingKey>,
        limit: usize,
        _invocation: &Invocation,
    ) -> StoreResult<ListPage<WaitingMessage>> {
        let is_asked = |it: &WaitingMessage| {
            it.channel == *channel && it.is_free(now) && Some(&it.key()) > after
        };
        Ok(list_page(self.read()?.alerts.waiting.values(), is_asked, limit))
    }
}

impl SendWaitingMessages for MemoryStore {
    async fn lease_waiting(
        &self,
        known: &WaitingMessage,
        until: Timestamp,
        _invocation: &Invocation,
    ) -> StoreResult<Option<WaitingMessage>> {
        let waiting = &mut self.write()?.alerts.waiting;
        let stored = waiting.get_mut(&known.key()).filter(|it| it.lease == known.lease);
        Ok(stored.map(|stored| {
            stored.lease = Some(until);
            stored.attempts += 1;
            stored.clone()
        }))
    }

    async fn finish_waiting(
        &self,
        leased: &WaitingMessage,
        _invocation: &Invocation,
    ) -> StoreResult<bool> {
        let waiting = &mut self.write()?.alerts.waiting;
        let is_own = waiting.get(&leased.key()).is_some_and(|it| it.lease == leased.lease);
        if is_own {
            waiting.remove(&leased.key());
        }
        Ok(is_own)
    }

    async fn postpone_waiting(
        &self,
        leased: &WaitingMessage,
        next: Timestamp,
        may_have_arrived: bool,
        _invocation: &Invocation,
    ) -> StoreResult<bool> {
        let waiting = &mut self.write()?.alerts.waiting;
        let stored = waiting.get_mut(&leased.key()).filter(|it| it.lease == leased.lease);
        Ok(stored
            .map(|stored| {
                stored.lease = stored.lease.filter(|_| may_have_arrived);
                stored.next = next;
            })
            .is_some())
    }
}

impl NoteLooks for MemoryStore {
    async fn note_looks(
        &self,
        touched: &[(Looked, Timestamp)],
        _invocation: &Invocation,
    ) -> PutOutcome {
        let mut state = match self.write() {
            Ok(state) => state,
            Err(cause) => {
                return PutOutcome { not_stored: (0..touched.len()).collect(), cause: Some(cause) };
            }
        };
        let alerts = &mut state.alerts;
        for (what, since) in touched {
            alerts.touches += 1;
            let since = alerts.looks.get(what).map_or(*since, |look| look.since.min(*since));
            let look = Look { what: what.clone(), since, after: None, touch: alerts.touches };
            alerts.looks.insert(what.clone(), look);
        }
        PutOutcome::default()
    }
}

impl ReadLooks for MemoryStore {
    async fn looks(
        &self,
        after: Option<&Looked>,
        limit: usize,
        _invocation: &Invocation,
    ) -> StoreResult<ListPage<Look>> {
        let is_asked = |look: &Look| Some(&look.what) > after;
        Ok(list_page(self.read()?.alerts.looks.values(), is_asked, limit))
    }
}

impl FinishLooks for MemoryStore {
    async fn move_look(
        &self,
        look: &Look,
        after: &DeviceId,
        _invocation: &Invocation,
    ) -> StoreResult<bool> {
        let looks = &mut self.write()?.alerts.looks;
        let known = looks.get_mut(&look.what).filter(|known| known.is_untouched_since(look));
        Ok(known.map(|known| known.after = Some(after.clone())).is_some())
    }

    async fn remove_look(&self, look: &Look, _invocation: &Invocation) -> StoreResult<bool> {
        let looks = &mut self.write()?.alerts.looks;
        let is_known = looks.get(&look.what).is_some_and(|known| known.is_untouched_since(look));
        if is_known {
            looks.remove(&look.what);
        }
        Ok(is_known)
    }
}

impl ReadRunning for MemoryStore {
    async fn running_mark(&self, _invocation: &Invocation) -> StoreResult<Option<RunningMark>> {
        Ok(self.read()?.alerts.running.clone())
    }
}

impl MarkRunning for MemoryStore {
    async fn put_running_mark(
        &self,
        mark: &RunningMark,
        expected: Expected,
        _invocation: &Invocation,
    ) -> StoreResult<bool> {
        let running = &mut self.write()?.alerts.running;
        let is_expected = is_expected(expected, running.as_ref().map(|it| it.version));
        if is_expected {
            *running = Some(mark.clone());
        }
        Ok(is_expected)
    }
}
