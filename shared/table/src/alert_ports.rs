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
        /// Puts a rule in the place of the version before it, a first version where there is no rule; returns whether it
        /// was so. Done twice, the second is refused.
        fn put_alert_rule(rule: &StoredRule) -> StoreResult<bool>;

        /// Deletes a rule, whatever it is; returns whether there was one. From then on no message of it is stored; its
        /// states are deleted after it ([`DeleteAlertStates`]).
        fn delete_alert_rule(id: &RuleId) -> StoreResult<bool>;
    }

    /// The channels, without what is secret.
    ReadChannels [(Query, AlertChannels)] {
        /// All channels as they are this moment, sorted by id.
        fn channels() -> StoreResult<Listing<StoredChannel>>;
    }

    /// A person's edits of the channels. It reads no secret.
    EditChannels [(PutItem, AlertChannels), (PutItem, AlertSecrets), (DeleteItem, AlertChannels), (DeleteItem, AlertSecrets)] {
        /// Puts a channel in the place of the version before it, a first version where there is no channel; returns
        /// whether it was so. A secret is stored with it, both or neither; without one, the stored secret stays. Done
        /// twice, the second is refused.
        fn put_channel(
            channel: &StoredChannel,
            secret: Option<&ChannelSecret>,
        ) -> StoreResult<bool>;

        /// Deletes a channel and its secret, both or neither. Done twice, it changes nothing. What waits for the channel
        /// expires.
        fn delete_channel(id: &ChannelId) -> StoreResult<()>;
    }

    /// What is secret of a channel: for whoever sends, and nobody else.
    ReadChannelSecrets [(GetItem, AlertSecrets)] {
        /// The secret of a channel, as it is this moment.
        fn channel_secret(id: &ChannelId) -> StoreResult<Option<ChannelSecret>>;
    }

    /// Notes whether a channel fails.
    NoteChannels [(UpdateItem, AlertChannels)] {
        /// Notes that a channel fails, or that it works, if it was not edited or deleted since `known` was read; returns
        /// whether it is noted. Done twice, it is the same; of several at once the last one stays.
        fn note_channel(known: &StoredChannel, failing: Option<Failing>) -> StoreResult<bool>;
    }

    /// The states of rules.
    ReadAlertStates [(BatchGetItem, AlertStates), (Query, AlertStates)] {
        /// The stored states among some, in any order, as they are this moment. No key is asked for twice.
        fn alert_states(keys: &[AlertKey]) -> StoreResult<Listing<StoredAlertState>>;

        /// A page of states in the order of their keys, as they are this moment: those of a rule, or all.
        fn alert_state_page(
            rule: Option<&RuleId>,
            after: Option<&AlertKey>,
            limit: usize,
        ) -> StoreResult<ListPage<StoredAlertState>>;

        /// Those of the next `limit` states, in the order of their keys, that are due
        /// ([`AlertState::is_due`](crate::AlertState::is_due)). One request, so that a walk keeps its place where
        /// the table throttles it. What was put a moment ago may be missing or old.
        fn due_alert_states(
            now: Timestamp,
            after: Option<&str>,
            limit: usize,
        ) -> StoreResult<DueStates>;
    }

    /// Store a judgement.
    PutJudgements [(PutItem, AlertStates), (ConditionCheckItem, AlertRules), (PutItem, AlertTold), (PutItem, AlertWaiting)] {
        /// Stores a state in the place of the version before it and all its messages, or nothing: the rule must still be
        /// the one that it was judged by. A judgement that tells nothing is the state alone, put without a check of the
        /// rule for a quarter of the price: such a state may outlive its rule, and whoever finds it due deletes it.
        ///
        /// Done twice, the second is refused: the state has moved on. So nothing is told twice.
        fn put_judgement(judgement: &NewJudgement) -> StoreResult<JudgementOutcome>;
    }

    /// Puts a message by which a person sees that a channel works.
    PutTestMessages [(PutItem, AlertWaiting)] {
        /// Puts a message ([`WaitingMessage::test`]), if it is not there; returns whether it was so.
        fn put_test_message(message: &WaitingMessage) -> StoreResult<bool>;
    }

    /// Edits states that there are, such as an acknowledgement.
    EditAlertStates [(PutItem, AlertStates)] {
        /// Puts a state in the place of the version before it; returns whether it was so. Done twice, the second is
        /// refused.
        fn put_alert_state(state: &StoredAlertState) -> StoreResult<bool>;
    }

    /// Deletes states: of a rule that is deleted, or of a device or room that is gone.
    DeleteAlertStates [(Query, AlertStates), (DeleteItem, AlertStates)] {
        /// Deletes the states of a rule, whatever they are; returns how many there were. Done twice, the second finds
        /// none.
        fn delete_alert_states(rule: &RuleId) -> StoreResult<usize>;

        /// Deletes a state, if it still has this version; returns whether it had.
        fn delete_alert_state(key: &AlertKey, version: u64) -> StoreResult<bool>;
    }

    /// The messages that were told.
    ReadToldMessages [(Query, AlertTold)] {
        /// A page of the messages of a range, newest first. Those of one rule are found among all of the range.
        fn told_messages(query: &ToldQuery) -> StoreResult<ListPage<ToldMessage>>;
    }

    /// The messages that wait for a channel.
    ReadWaitingMessages [(Query, AlertWaiting)] {
        /// A page of the messages that wait for a channel, as they are this moment, in the order of their keys: also
        /// those that are not to be sent now, or that somebody is sending ([`WaitingMessage::is_free`]).
        fn waiting_messages(
            channel: &ChannelId,
            after: Option<&WaitingKey>,
            limit: usize,
        ) -> StoreResult<ListPage<WaitingMessage>>;
    }

    /// A message is leased, sent, and deleted or postponed.
    ///
    /// One of several senders at the same time has the lease. Who dies with it leaves the message to the next one, once
    /// the lease is over.
    SendWaitingMessages [(UpdateItem, AlertWaiting), (DeleteItem, AlertWaiting)] {
        /// Leases `known` until a timestamp and stores its storm, if its lease is still the one that was read; counts an
        /// attempt. Returns the message as it is then, or `None` where somebody was faster or it is gone. Done twice, the
        /// second is refused.
        fn lease_waiting(
            known: &WaitingMessage,
            until: Timestamp,
        ) -> StoreResult<Option<WaitingMessage>>;

        /// Deletes a message that was sent, if the lease is still the one of `leased`; returns whether it was.
        fn finish_waiting(leased: &WaitingMessage) -> StoreResult<bool>;

        /// Gives a message back, to be sent from `next` on, if the lease is still the one of `leased`; returns whether it
        /// was. One that may have arrived keeps its lease: it is sent again once that is over too.
        fn postpone_waiting(
            leased: &WaitingMessage,
            next: Timestamp,
            may_have_arrived: bool,
        ) -> StoreResult<bool>;
    }

    /// Note that devices and rules are to be rechecked.
    NoteRechecks [(UpdateItem, AlertRechecks)] {
        /// Stores a recheck of each device or rule, from the given instant on. An earlier instant that is stored
        /// already stays; the recheck of a rule begins again at its first device. The positions of the outcome are
        /// indices into `touched`. Done twice, it does no harm.
        fn note_rechecks(touched: &[(Rechecked, Timestamp)]) -> PutOutcome;
    }

    /// The devices and rules that are to be rechecked.
    ReadRechecks [(Query, AlertRechecks)] {
        /// A page of them: rules, then devices. What was noted a moment ago may be missing.
        fn rechecks(after: Option<&Rechecked>, limit: usize) -> StoreResult<ListPage<Recheck>>;
    }

    /// A device was rechecked, or a rule on some of its devices.
    FinishRechecks [(UpdateItem, AlertRechecks), (DeleteItem, AlertRechecks)] {
        /// Notes up to which device a rule was rechecked, if nothing was touched since the recheck was read; returns whether
        /// it is noted. Done twice, the same is noted.
        fn move_recheck(recheck: &Recheck, after: &DeviceId) -> StoreResult<bool>;

        /// Removes a recheck, if nothing was touched since it was read; returns whether it is removed. Done twice, the
        /// second is refused.
        fn remove_recheck(recheck: &Recheck) -> StoreResult<bool>;
    }

    /// When the system last ran.
    ReadRunning [(GetItem, AlertRunning)] {
        /// The note, as it is this moment; `None` before alerts were judged for the first time.
        fn running_note() -> StoreResult<Option<RunningNote>>;
    }

    /// Note that the system runs.
    NoteRunning [(PutItem, AlertRunning)] {
        /// Puts the note in the place of the expected one; returns whether it was so. Done twice, the second is refused,
        /// unless any note is expected.
        fn put_running_note(note: &RunningNote, expected: Expected) -> StoreResult<bool>;
    }
}
