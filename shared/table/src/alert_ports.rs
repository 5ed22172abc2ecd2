//! The ports of alerts: rules, channels, states, messages, rechecks. Judges and sends nothing.

use domain::{ChannelId, DeviceId, RuleId, Timestamp};

use crate::ports_macro::ports;
use crate::{
    AlertKey, ChannelSecret, DueStates, Expected, Failing, JudgementOutcome, ListPage, Listing,
    NewJudgement, PutOutcome, Recheck, Rechecked, RunningNote, StoreResult, StoredAlertState,
    StoredChannel, StoredRule, ToldMessage, ToldQuery, WaitingKey, WaitingMessage,
};

ports! {
    /// The rules of alerts.
    ReadAlertRules [(GetItem, AlertRules), (Query, AlertRules)] {
        /// All rules as they are this moment, sorted by id.
        fn alert_rules() -> StoreResult<Listing<StoredRule>>;

        /// One rule, as it is this moment.
        fn alert_rule(id: &RuleId) -> StoreResult<Option<StoredRule>>;
    }

    /// A person's edits of the rules of alerts.
    EditAlertRules [(PutItem, AlertRules), (DeleteItem, AlertRules)] {
        /// Stores a rule in place of its previous version; a first version needs that there is no rule. Returns whether
        /// this was so. Done twice, the second time is refused.
        fn put_alert_rule(rule: &StoredRule) -> StoreResult<bool>;

        /// Deletes a rule of any version; returns whether there was one. From then on, no message of the rule is
        /// stored. Its states are deleted afterwards ([`DeleteAlertStates`]).
        fn delete_alert_rule(id: &RuleId) -> StoreResult<bool>;
    }

    /// The channels, without their secrets.
    ReadChannels [(Query, AlertChannels)] {
        /// All channels as they are this moment, sorted by id.
        fn channels() -> StoreResult<Listing<StoredChannel>>;
    }

    /// A person's edits of the channels. Reads no secret.
    EditChannels [(PutItem, AlertChannels), (PutItem, AlertSecrets), (DeleteItem, AlertChannels), (DeleteItem, AlertSecrets)] {
        /// Stores a channel in place of its previous version; a first version needs that there is no channel. Returns
        /// whether this was so. A given secret is stored with the channel, both or neither; otherwise the stored secret
        /// stays. Done twice, the second time is refused.
        fn put_channel(
            channel: &StoredChannel,
            secret: Option<&ChannelSecret>,
        ) -> StoreResult<bool>;

        /// Deletes a channel and its secret, both or neither. Done twice, it changes nothing. Messages that wait for
        /// the channel expire.
        fn delete_channel(id: &ChannelId) -> StoreResult<()>;
    }

    /// The secrets of channels, for the function that sends and for no other.
    ReadChannelSecrets [(GetItem, AlertSecrets)] {
        /// The secret of a channel, as it is this moment.
        fn channel_secret(id: &ChannelId) -> StoreResult<Option<ChannelSecret>>;
    }

    /// Notes whether a channel fails.
    NoteChannels [(UpdateItem, AlertChannels)] {
        /// Notes that a channel fails or works, unless it was edited or deleted since `known` was read; returns whether
        /// this is noted. Done twice, the result is the same; of several writers at once, the last one's note stays.
        fn note_channel(known: &StoredChannel, failing: Option<Failing>) -> StoreResult<bool>;
    }

    /// The states of rules.
    ReadAlertStates [(BatchGetItem, AlertStates), (Query, AlertStates)] {
        /// The stored states with these keys, in any order, as they are this moment. No key may be given twice.
        fn alert_states(keys: &[AlertKey]) -> StoreResult<Listing<StoredAlertState>>;

        /// A page of the states of a rule, or of all states, in the order of their keys, as they are this moment.
        fn alert_state_page(
            rule: Option<&RuleId>,
            after: Option<&AlertKey>,
            limit: usize,
        ) -> StoreResult<ListPage<StoredAlertState>>;

        /// Reads the next `limit` states in the order of their keys, and returns those that are due
        /// ([`AlertState::is_due`](crate::AlertState::is_due)). Makes a single request, so that a walk keeps its
        /// position if the table throttles. States of the last moment may be missing or old.
        fn due_alert_states(
            now: Timestamp,
            after: Option<&str>,
            limit: usize,
        ) -> StoreResult<DueStates>;
    }

    /// Store a judgement.
    PutJudgements [(PutItem, AlertStates), (ConditionCheckItem, AlertRules), (PutItem, AlertTold), (PutItem, AlertWaiting)] {
        /// Stores a state in place of its previous version together with all its messages, or nothing. The rule must
        /// still have the version by which the state was judged. A judgement without messages is stored as the state
        /// alone, without a check of the rule, for a quarter of the price. Such a state may outlive its rule, and is
        /// deleted when it is found due.
        ///
        /// Done twice, the second time is refused, because the state has a newer version. So no message is stored
        /// twice.
        fn put_judgement(judgement: &NewJudgement) -> StoreResult<JudgementOutcome>;
    }

    /// Stores a test message, by which a person sees that a channel works.
    PutTestMessages [(PutItem, AlertWaiting)] {
        /// Stores a message ([`WaitingMessage::test`]), unless it is there already; returns whether it was stored.
        fn put_test_message(message: &WaitingMessage) -> StoreResult<bool>;
    }

    /// Edits stored states, such as by an acknowledgement.
    EditAlertStates [(PutItem, AlertStates)] {
        /// Stores a state in place of its previous version; returns whether this was the stored version. Done twice,
        /// the second time is refused.
        fn put_alert_state(state: &StoredAlertState) -> StoreResult<bool>;
    }

    /// Deletes the states of a deleted rule, or of a device or room that is gone.
    DeleteAlertStates [(Query, AlertStates), (DeleteItem, AlertStates)] {
        /// Deletes all states of a rule; returns their number. Done twice, the second time returns 0.
        fn delete_alert_states(rule: &RuleId) -> StoreResult<usize>;

        /// Deletes a state, if it still has this version; returns whether it was deleted.
        fn delete_alert_state(key: &AlertKey, version: u64) -> StoreResult<bool>;
    }

    /// The log of messages.
    ReadToldMessages [(Query, AlertTold)] {
        /// A page of the messages of a range, newest first. Messages of one rule are filtered from all messages of the
        /// range.
        fn told_messages(query: &ToldQuery) -> StoreResult<ListPage<ToldMessage>>;
    }

    /// The messages that wait for a channel.
    ReadWaitingMessages [(Query, AlertWaiting)] {
        /// A page of the messages that wait for a channel, in the order of their keys, as they are this moment.
        /// Messages that may not be sent now, or that another process is sending, are included
        /// ([`WaitingMessage::is_free`]).
        fn waiting_messages(
            channel: &ChannelId,
            after: Option<&WaitingKey>,
            limit: usize,
        ) -> StoreResult<ListPage<WaitingMessage>>;
    }

    /// Sending a message: it is leased, sent, and then deleted or postponed.
    ///
    /// Of several senders at the same time, only one gets the lease. If this sender dies, the next one takes the
    /// message once the lease is over.
    SendWaitingMessages [(UpdateItem, AlertWaiting), (DeleteItem, AlertWaiting)] {
        /// Leases `known` until a timestamp, stores its storm and counts an attempt, unless its lease has changed since
        /// the read. Returns the leased message, or `None` if another sender was faster or the message is gone. Done
        /// twice, the second time is refused.
        fn lease_waiting(
            known: &WaitingMessage,
            until: Timestamp,
        ) -> StoreResult<Option<WaitingMessage>>;

        /// Deletes a sent message, if its lease is still that of `leased`; returns whether it was deleted.
        fn finish_waiting(leased: &WaitingMessage) -> StoreResult<bool>;

        /// Gives a message back, to be sent from `next` on, if its lease is still that of `leased`; returns whether
        /// this was so. A message that may have arrived keeps its lease, and is not sent again before the lease is
        /// over.
        fn postpone_waiting(
            leased: &WaitingMessage,
            next: Timestamp,
            may_have_arrived: bool,
        ) -> StoreResult<bool>;
    }

    /// Note that devices and rules must be rechecked.
    NoteRechecks [(UpdateItem, AlertRechecks)] {
        /// Stores a recheck of each device or rule, from the given instant on. A stored recheck from an earlier instant
        /// stays. The recheck of a rule begins again at its first device. Positions in the outcome are indices into
        /// `touched`. Done twice, it does no harm.
        fn note_rechecks(touched: &[(Rechecked, Timestamp)]) -> PutOutcome;
    }

    /// The rechecks of devices and rules.
    ReadRechecks [(Query, AlertRechecks)] {
        /// A page of rechecks: rules first, then devices. Rechecks of the last moment may be missing.
        fn rechecks(after: Option<&Rechecked>, limit: usize) -> StoreResult<ListPage<Recheck>>;
    }

    /// Finish the recheck of a device, or of a rule on some of its devices.
    FinishRechecks [(UpdateItem, AlertRechecks), (DeleteItem, AlertRechecks)] {
        /// Notes up to which device a rule was rechecked, unless something was touched since the recheck was read;
        /// returns whether this is noted. Done twice, the result is the same.
        fn move_recheck(recheck: &Recheck, after: &DeviceId) -> StoreResult<bool>;

        /// Removes a recheck, unless something was touched since it was read; returns whether it was removed. Done
        /// twice, the second time is refused.
        fn remove_recheck(recheck: &Recheck) -> StoreResult<bool>;
    }

    /// The note that says when the system last ran.
    ReadRunning [(GetItem, AlertRunning)] {
        /// The note, as it is this moment; `None` before alerts are judged for the first time.
        fn running_note() -> StoreResult<Option<RunningNote>>;
    }

    /// Note that the system runs.
    NoteRunning [(PutItem, AlertRunning)] {
        /// Stores the note in place of the expected one; returns whether the stored note was as expected. Done twice,
        /// the second time is refused, unless any note is expected.
        fn put_running_note(note: &RunningNote, expected: Expected) -> StoreResult<bool>;
    }
}
