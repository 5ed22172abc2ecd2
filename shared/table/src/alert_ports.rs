//! The ports of alerts: rules, channels, states, messages, looks. Judges and sends nothing.

use std::future::Future;

use domain::{ChannelId, DeviceId, RuleId, Timestamp};

use crate::{
    Action, AlertKey, ChannelSecret, DueStates, Expected, Failing, Invocation, JudgementOutcome,
    ListPage, Listing, Look, Looked, NewJudgement, Permission, PutOutcome, RunningMark,
    StoreResult, StoredAlertState, StoredChannel, StoredRule, Target, ToldMessage, ToldQuery,
    WaitingKey, WaitingMessage,
};

/// Pattern 18a: the rules of alerts.
pub trait ReadAlertRules: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] =
        &[(Action::GetItem, Target::AlertRules), (Action::Query, Target::AlertRules)];

    /// All rules as they are this moment, sorted by id.
    fn alert_rules(
        &self,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<Listing<StoredRule>>> + Send;
    /// One rule, as it is this moment.
    fn alert_rule(
        &self,
        id: &RuleId,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<Option<StoredRule>>> + Send;
}

/// A person's edits of the rules of alerts.
pub trait EditAlertRules: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] =
        &[(Action::PutItem, Target::AlertRules), (Action::DeleteItem, Target::AlertRules)];

    /// Puts a rule in the place of the version before it, a first version where there is no rule; returns whether it
    /// was so. Done twice, the second is refused.
    fn put_alert_rule(
        &self,
        rule: &StoredRule,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<bool>> + Send;
    /// Deletes a rule, whatever it is; returns whether there was one. From then on no message of it is stored; its
    /// states are deleted after it ([`DeleteAlertStates`]).
    fn delete_alert_rule(
        &self,
        id: &RuleId,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<bool>> + Send;
}

/// Pattern 18b: the channels, without what is secret.
pub trait ReadChannels: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[(Action::Query, Target::AlertChannels)];

    /// All channels as they are this moment, sorted by id.
    fn channels(
        &self,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<Listing<StoredChannel>>> + Send;
}

/// A person's edits of the channels. It reads no secret.
pub trait EditChannels: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[
        (Action::PutItem, Target::AlertChannels),
        (Action::PutItem, Target::AlertSecrets),
        (Action::DeleteItem, Target::AlertChannels),
        (Action::DeleteItem, Target::AlertSecrets),
    ];

    /// Puts a channel in the place of the version before it, a first version where there is no channel; returns
    /// whether it was so. A secret is stored with it, both or neither; without one, the stored secret stays. Done
    /// twice, the second is refused.
    fn put_channel(
        &self,
        channel: &StoredChannel,
        secret: Option<&ChannelSecret>,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<bool>> + Send;
    /// Deletes a channel and its secret, both or neither. Done twice, it changes nothing. What waits for the channel
    /// expires.
    fn delete_channel(
        &self,
        id: &ChannelId,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<()>> + Send;
}

/// What is secret of a channel: for whoever sends, and nobody else.
pub trait ReadChannelSecrets: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[(Action::GetItem, Target::AlertSecrets)];

    /// The secret of a channel, as it is this moment.
    fn channel_secret(
        &self,
        id: &ChannelId,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<Option<ChannelSecret>>> + Send;
}

/// Notes whether a channel fails.
pub trait NoteChannels: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[(Action::UpdateItem, Target::AlertChannels)];

    /// Notes that a channel fails, or that it works, if it was not edited or deleted since `known` was read; returns
    /// whether it is noted. Done twice, it is the same; of several at once the last one stays.
    fn note_channel(
        &self,
        known: &StoredChannel,
        failing: Option<Failing>,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<bool>> + Send;
}

/// Patterns 19a to 19c: the states of rules.
pub trait ReadAlertStates: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] =
        &[(Action::BatchGetItem, Target::AlertStates), (Action::Query, Target::AlertStates)];

    /// Those of the states that there are, in any order, as they are this moment. No key is asked for twice.
    fn alert_states(
        &self,
        keys: &[AlertKey],
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<Listing<StoredAlertState>>> + Send;
    /// A page of states in the order of their keys, as they are this moment: those of a rule, or all.
    fn alert_state_page(
        &self,
        rule: Option<&RuleId>,
        after: Option<&AlertKey>,
        limit: usize,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<ListPage<StoredAlertState>>> + Send;
    /// Of the next `limit` states in the order of their keys those that are to be judged now, though no reading asks
    /// for it ([`AlertState::is_due`](crate::AlertState::is_due)). One request, so that a walk keeps its place where
    /// the table throttles it. What was put a moment ago may be missing or old.
    fn due_alert_states(
        &self,
        now: Timestamp,
        after: Option<&str>,
        limit: usize,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<DueStates>> + Send;
}

/// Patterns 19d and 19e: store a judgement.
pub trait PutJudgements: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[
        (Action::PutItem, Target::AlertStates),
        (Action::ConditionCheckItem, Target::AlertRules),
        (Action::PutItem, Target::AlertTold),
        (Action::PutItem, Target::AlertWaiting),
    ];

    /// Stores a state in the place of the version before it and all its messages, or nothing: the rule must still be
    /// the one that it was judged by. A judgement that tells nothing is the state alone, put without a look at the
    /// rule for a quarter of the price: such a state may outlive its rule, and whoever finds it due deletes it.
    ///
    /// Done twice, the second is refused: the state has moved on. So nothing is told twice.
    fn put_judgement(
        &self,
        judgement: &NewJudgement,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<JudgementOutcome>> + Send;
}

/// Puts a message by which a person sees that a channel works.
pub trait PutTestMessages: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[(Action::PutItem, Target::AlertWaiting)];

    /// Puts a message ([`WaitingMessage::test`]), if it is not there; returns whether it was so.
    fn put_test_message(
        &self,
        message: &WaitingMessage,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<bool>> + Send;
}

/// Edits states that there are, such as an acknowledgement.
pub trait EditAlertStates: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[(Action::PutItem, Target::AlertStates)];

    /// Puts a state in the place of the version before it; returns whether it was so. Done twice, the second is
    /// refused.
    fn put_alert_state(
        &self,
        state: &StoredAlertState,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<bool>> + Send;
}

/// Deletes states: of a rule that is deleted, or of a device or room that is gone.
pub trait DeleteAlertStates: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] =
        &[(Action::Query, Target::AlertStates), (Action::DeleteItem, Target::AlertStates)];

    /// Deletes the states of a rule, whatever they are; returns how many there were. Done twice, the second finds
    /// none.
    fn delete_alert_states(
        &self,
        rule: &RuleId,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<usize>> + Send;
    /// Deletes a state, if it still has this version; returns whether it had.
    fn delete_alert_state(
        &self,
        key: &AlertKey,
        version: u64,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<bool>> + Send;
}

/// Pattern 20a: the messages that were told.
pub trait ReadToldMessages: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[(Action::Query, Target::AlertTold)];

    /// A page of the messages of a range, newest first. Those of one rule are found among all of the range.
    fn told_messages(
        &self,
        query: &ToldQuery,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<ListPage<ToldMessage>>> + Send;
}

/// Pattern 20b: the messages that a channel is to send.
pub trait ReadWaitingMessages: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[(Action::Query, Target::AlertWaiting)];

    /// A page of the messages that a channel is to send now and that nobody is sending
    /// ([`WaitingMessage::is_free`]), as they are this moment, in the order of their keys.
    fn waiting_messages(
        &self,
        channel: &ChannelId,
        now: Timestamp,
        after: Option<&WaitingKey>,
        limit: usize,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<ListPage<WaitingMessage>>> + Send;
}

/// Patterns 20c and 20d: a message is leased, sent, and deleted or postponed.
///
/// Of several that send at the same time one has the lease. Who dies with it leaves the message to the next one, once
/// the lease is over.
pub trait SendWaitingMessages: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] =
        &[(Action::UpdateItem, Target::AlertWaiting), (Action::DeleteItem, Target::AlertWaiting)];

    /// Leases a message until a timestamp, if its lease is the one of `known`; counts an attempt. Returns the message
    /// as it is then, or `None` where somebody was faster or it is gone. Done twice, the second is refused.
    fn lease_waiting(
        &self,
        known: &WaitingMessage,
        until: Timestamp,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<Option<WaitingMessage>>> + Send;
    /// Deletes a message that was sent, if the lease is still the one of `leased`; returns whether it was.
    fn finish_waiting(
        &self,
        leased: &WaitingMessage,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<bool>> + Send;
    /// Gives a message back, to be sent from `next` on, if the lease is still the one of `leased`; returns whether it
    /// was. One that may have arrived keeps its lease: it is sent again once that is over too.
    fn postpone_waiting(
        &self,
        leased: &WaitingMessage,
        next: Timestamp,
        may_have_arrived: bool,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<bool>> + Send;
}

/// Pattern 21a: note that devices and rules are to be looked at again.
pub trait NoteLooks: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[(Action::UpdateItem, Target::AlertLooks)];

    /// Notes them, each with the earliest instant that was touched; an earlier one that is noted stays, and a rule
    /// begins anew. The outcome's positions are theirs. Done twice, they are looked at again, which is harmless.
    fn note_looks(
        &self,
        touched: &[(Looked, Timestamp)],
        invocation: &Invocation,
    ) -> impl Future<Output = PutOutcome> + Send;
}

/// Pattern 21b: the devices and rules that are to be looked at again.
pub trait ReadLooks: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[(Action::Query, Target::AlertLooks)];

    /// A page of them: rules, then devices. What was noted a moment ago may be missing.
    fn looks(
        &self,
        after: Option<&Looked>,
        limit: usize,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<ListPage<Look>>> + Send;
}

/// Patterns 21c and 21f: a device was looked at again, or a rule on some of its devices.
pub trait FinishLooks: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] =
        &[(Action::UpdateItem, Target::AlertLooks), (Action::DeleteItem, Target::AlertLooks)];

    /// Notes up to which device a rule was looked at, if nothing was touched since the look was read; returns whether
    /// it is noted. Done twice, the same is noted.
    fn move_look(
        &self,
        look: &Look,
        after: &DeviceId,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<bool>> + Send;

    /// Removes a look, if nothing was touched since it was read; returns whether it is removed. Done twice, the
    /// second is refused.
    fn remove_look(
        &self,
        look: &Look,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<bool>> + Send;
}

/// Pattern 21d: when the system last ran.
pub trait ReadRunning: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[(Action::GetItem, Target::AlertRunning)];

    /// The mark, as it is this moment; `None` before alerts were judged for the first time.
    fn running_mark(
        &self,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<Option<RunningMark>>> + Send;
}

/// Pattern 21e: note that the system runs.
pub trait MarkRunning: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[(Action::PutItem, Target::AlertRunning)];

    /// Puts the mark in the place of the expected one; returns whether it was so. Done twice, the second is refused,
    /// unless any mark is expected.
    fn put_running_mark(
        &self,
        mark: &RunningMark,
        expected: Expected,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<bool>> + Send;
}
