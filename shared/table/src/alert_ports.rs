//! The ports of alerts: rules, channels, states, messages, rechecks. Judges and sends nothing.

use domain::{ChannelId, DeviceId, RuleId, Timestamp};

use crate::ports_macro::ports;
use crate::{
    AlertKey, ChannelSecret, DueStates, Expected, Failing, JudgementOutcome, ListPage, Listing,
    LoggedMessage, MessageQuery, NewJudgement, PutOutcome, Recheck, Rechecked, RunningNote,
    StoreResult, StoredAlertState, StoredChannel, StoredRule, WaitingKey, WaitingMessage,
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
        /// Stores a rule in place of its previous version. A first version is stored only if there is no rule of this
        /// id. Returns whether the rule is stored. A repeat is refused.
        fn put_alert_rule(rule: &StoredRule) -> StoreResult<bool>;

        /// Deletes a rule of any version; returns whether there was one. No message of the rule is stored after this.
        /// The states of the rule are deleted separately ([`DeleteAlertStates`]).
        fn delete_alert_rule(id: &RuleId) -> StoreResult<bool>;
    }

    /// The channels, without their secrets.
    ReadChannels [(Query, AlertChannels)] {
        /// All channels as they are this moment, sorted by id.
        fn channels() -> StoreResult<Listing<StoredChannel>>;
    }

    /// A person's edits of the channels. Reads no secret.
    EditChannels [(PutItem, AlertChannels), (PutItem, AlertSecrets), (DeleteItem, AlertChannels), (DeleteItem, AlertSecrets)] {
        /// Stores a channel in place of its previous version. A first version is stored only if there is no channel of
        /// this id. Returns whether the channel is stored. A given secret is stored in the same transaction; without
        /// one, the stored secret stays. A repeat is refused.
        fn put_channel(
            channel: &StoredChannel,
            secret: Option<&ChannelSecret>,
        ) -> StoreResult<bool>;

        /// Deletes a channel and its secret in one transaction. A repeat changes nothing. Messages that wait for the
        /// channel expire.
        fn delete_channel(id: &ChannelId) -> StoreResult<()>;
    }

    /// The secrets of channels, for the function that sends and for no other.
    ReadChannelSecrets [(GetItem, AlertSecrets)] {
        /// The secret of a channel, as it is this moment.
        fn channel_secret(id: &ChannelId) -> StoreResult<Option<ChannelSecret>>;
    }

    /// Records whether a channel fails.
    NoteChannels [(UpdateItem, AlertChannels)] {
        /// Records that a channel fails or works, unless it was edited or deleted since `known` was read. Returns
        /// whether this is recorded. A repeat changes nothing; of several writers at once, the last one wins.
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
        /// ([`AlertState::is_due`](crate::AlertState::is_due)). Makes a single request, so that a caller that reads all
        /// states keeps its position when the table throttles. New states may be missing, and changed states old.
        fn due_alert_states(
            now: Timestamp,
            after: Option<&str>,
            limit: usize,
        ) -> StoreResult<DueStates>;
    }

    /// Store a judgement.
    PutJudgements [(PutItem, AlertStates), (ConditionCheckItem, AlertRules), (PutItem, AlertTold), (PutItem, AlertWaiting)] {
        /// Stores a state in place of its previous version together with all its messages, or nothing. The rule must
        /// still have the version by which the state was judged.
        ///
        /// A judgement without messages is stored as the state alone. This takes a quarter of the units, but does not
        /// check the rule. So the state may outlive its rule; it is then deleted when it is due.
        ///
        /// A repeat is refused, because the state has a newer version. So no message is stored twice.
        fn put_judgement(judgement: &NewJudgement) -> StoreResult<JudgementOutcome>;
    }

    /// Stores a test message, by which a person sees that a channel works.
    PutTestMessages [(PutItem, AlertWaiting)] {
        /// Stores a message ([`WaitingMessage::test`]), unless it is there already; returns whether it was stored.
        fn put_test_message(message: &WaitingMessage) -> StoreResult<bool>;
    }

    /// Edits stored states, such as by an acknowledgement.
    EditAlertStates [(PutItem, AlertStates)] {
        /// Stores a state in place of its previous version; returns whether it is stored. A repeat is refused.
        fn put_alert_state(state: &StoredAlertState) -> StoreResult<bool>;
    }

    /// Deletes the states of a deleted rule, or of a device or room that is gone.
    DeleteAlertStates [(Query, AlertStates), (DeleteItem, AlertStates)] {
        /// Deletes all states of a rule; returns their number. A repeat returns 0.
        fn delete_alert_states(rule: &RuleId) -> StoreResult<usize>;

        /// Deletes a state, if it still has this version; returns whether it was deleted.
        fn delete_alert_state(key: &AlertKey, version: u64) -> StoreResult<bool>;
    }

    /// The log of messages.
    ReadToldMessages [(Query, AlertTold)] {
        /// A page of the messages of a range, newest first. To find the messages of one rule, all messages of the range
        /// are read.
        fn told_messages(query: &MessageQuery) -> StoreResult<ListPage<LoggedMessage>>;
    }

    /// The messages that wait for a channel.
    ReadWaitingMessages [(Query, AlertWaiting)] {
        /// A page of the messages that wait for a channel, in the order of their keys, as they are this moment.
        /// Includes messages that may not be sent yet, and messages that another process is sending
        /// ([`WaitingMessage::is_free`]).
        fn waiting_messages(
            channel: &ChannelId,
            after: Option<&WaitingKey>,
            limit: usize,
        ) -> StoreResult<ListPage<WaitingMessage>>;
    }

    /// Sending a message: it is leased, sent, and then deleted or postponed.
    ///
    /// Only one of several senders at the same time gets the lease. If this sender dies, another one may take the
    /// message after the end of the lease.
    SendWaitingMessages [(UpdateItem, AlertWaiting), (DeleteItem, AlertWaiting)] {
        /// Leases `known` until a timestamp, stores its `storm` and counts an attempt, unless its lease has changed
        /// since the read. Returns the leased message, or `None` if another sender was faster or the message is gone. A
        /// repeat is refused.
        fn lease_waiting(
            known: &WaitingMessage,
            until: Timestamp,
        ) -> StoreResult<Option<WaitingMessage>>;

        /// Deletes a sent message, if its lease is still that of `leased`; returns whether it was deleted.
        fn finish_waiting(leased: &WaitingMessage) -> StoreResult<bool>;

        /// Postpones a message until `next`, if its lease is still that of `leased`; returns whether it is postponed. A
        /// message that may have arrived keeps its lease, and is not sent again before the end of the lease.
        fn postpone_waiting(
            leased: &WaitingMessage,
            next: Timestamp,
            may_have_arrived: bool,
        ) -> StoreResult<bool>;
    }

    /// Requests that devices and rules are rechecked.
    NoteRechecks [(UpdateItem, AlertRechecks)] {
        /// Stores a recheck of each device or rule, from the given time on. If the stored recheck begins earlier, it
        /// keeps its time. The recheck of a rule begins again at the rule's first device. Positions in the outcome are
        /// indices into `touched`. A repeat does no harm.
        fn note_rechecks(touched: &[(Rechecked, Timestamp)]) -> PutOutcome;
    }

    /// The rechecks of devices and rules.
    ReadRechecks [(Query, AlertRechecks)] {
        /// A page of rechecks: rules first, then devices. Rechecks that were stored a moment ago may be missing.
        fn rechecks(after: Option<&Rechecked>, limit: usize) -> StoreResult<ListPage<Recheck>>;
    }

    /// Removes a recheck, or stores how far the recheck of a rule has come.
    FinishRechecks [(UpdateItem, AlertRechecks), (DeleteItem, AlertRechecks)] {
        /// Stores the last device on which a rule was rechecked, unless data were touched since the recheck was read.
        /// Returns whether this is stored. A repeat changes nothing.
        fn move_recheck(recheck: &Recheck, after: &DeviceId) -> StoreResult<bool>;

        /// Removes a recheck, unless data were touched since it was read; returns whether it was removed. A repeat is
        /// refused.
        fn remove_recheck(recheck: &Recheck) -> StoreResult<bool>;
    }

    /// The note that says when the system last ran.
    ReadRunning [(GetItem, AlertRunning)] {
        /// The time when the system last ran, as it is stored this moment; `None` if alerts were never judged.
        fn running_note() -> StoreResult<Option<RunningNote>>;
    }

    /// Records that the system runs.
    NoteRunning [(PutItem, AlertRunning)] {
        /// Stores when the system last ran, if the stored note is as expected; returns whether it is stored. A repeat
        /// is refused, except with [`Expected::Present`].
        fn put_running_note(note: &RunningNote, expected: Expected) -> StoreResult<bool>;
    }
}
