//! A judgement to be stored: a state, its messages for the log, and the same messages for each channel. Judges nothing.

use alerts::{LinkKey, Message};
use domain::{ChannelId, RuleId, Timestamp};

use crate::{AlertState, LoggedMessage, StoredAlertState, StoredRule, WaitingMessage};

/// The largest number of messages that are stored with a state, in the log and for channels. A transaction has at most
/// 100 actions; the other two put the state and check its rule.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html>
pub const MAX_JUDGEMENT_PARTS: usize = 98;

/// A state and its messages, which are stored together or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJudgement {
    state: StoredAlertState,
    changed: Timestamp,
    logged: Vec<LoggedMessage>,
    waiting: Vec<WaitingMessage>,
    left_out: usize,
}

impl NewJudgement {
    /// A judgement by `rule`. `state` replaces the state that was read ([`StoredAlertState::next`]). `messages` are
    /// sorted, oldest first. Each of the `channels` comes with the time from which it may send.
    ///
    /// One transaction holds only as many messages as [`MAX_JUDGEMENT_PARTS`] allows. If there are more, the newest are
    /// stored, and the others are [`left_out`](Self::left_out).
    ///
    /// A message of a firing episode gets a link, which acknowledges the episode. Figures have no link: nothing lasts
    /// that could be acknowledged.
    pub fn new(
        rule: &StoredRule,
        mut state: StoredAlertState,
        messages: Vec<Message>,
        channels: &[(ChannelId, Timestamp)],
        now: Timestamp,
    ) -> Self {
        let left_out = messages.len().saturating_sub(MAX_JUDGEMENT_PARTS / (1 + channels.len()));
        let logged = |message| LoggedMessage {
            alert: state.key.clone(),
            at: now,
            rule: rule.definition.clone(),
            message,
        };
        let logged: Vec<_> = messages.into_iter().skip(left_out).map(logged).collect();

        let mut waiting = Vec::new();
        for logged in &logged {
            let has_link = logged.message.news.is_firing() && !channels.is_empty();
            let mut key = None;
            if has_link && let AlertState::Episodes(state) = &mut state.state {
                state.add_link(key.insert(LinkKey::new(random())));
            }
            waiting.extend(channels.iter().map(|(id, next)| WaitingMessage {
                key: key.clone(),
                ..WaitingMessage::new(id.clone(), logged.clone(), *next)
            }));
        }

        Self { state, changed: rule.definition.changed, logged, waiting, left_out }
    }

    /// The state.
    pub const fn state(&self) -> &StoredAlertState {
        &self.state
    }

    /// The id of the rule, and the `changed` timestamp of the version by which the state was judged.
    pub const fn rule(&self) -> (&RuleId, Timestamp) {
        (&self.state.key.rule, self.changed)
    }

    /// The messages that become the rule's history, whether or not a channel sends them.
    pub fn logged(&self) -> &[LoggedMessage] {
        &self.logged
    }

    /// The messages that the channels are to send.
    pub fn waiting(&self) -> &[WaitingMessage] {
        &self.waiting
    }

    /// The number of messages that are not stored because the transaction is full. They are the oldest.
    pub const fn left_out(&self) -> usize {
        self.left_out
    }
}

/// Random bytes that cannot be guessed.
fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system has randomness");
    bytes
}

/// The outcome of storing a judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JudgementOutcome {
    /// The state and all messages are stored.
    Stored,
    /// Nothing is stored, because the stored state is not the one that was read.
    StateMoved,
    /// Nothing is stored, because the rule was saved again or deleted.
    RuleChanged,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use alerts::{FigureState, News};

    use super::*;
    use crate::given;

    #[test]
    fn a_transaction_holds_the_newest_messages_and_says_how_many_are_left_out() {
        let messages =
            |count: u64| (1..=count).map(|it| given::message(it, News::Passed)).collect();
        for (count, channels, kept) in
            [(0, 3, 0), (2, 0, 2), (200, 0, 98), (200, 1, 49), (24, 3, 24), (25, 3, 24), (9, 98, 0)]
        {
            let ids = (0..channels).map(|n| (given::channel_id(&format!("c{n}")), Timestamp::MIN));
            let (rule, state) = (given::alert_rule("r", Timestamp::MIN), given::firing("r", "d"));
            let ids: Vec<_> = ids.collect();
            let made = NewJudgement::new(&rule, state, messages(count), &ids, Timestamp::MAX);
            assert_eq!(made.logged().len() as u64, kept, "{count} {channels}");
            assert_eq!(made.left_out() as u64, count - kept);
            assert_eq!(made.waiting().len(), made.logged().len() * channels);
            assert!(made.logged().len() + made.waiting().len() <= MAX_JUDGEMENT_PARTS);
            let newest = made.logged().last().map_or(count, |it| it.message.number);
            assert_eq!(newest, count);
        }
    }

    #[test]
    fn what_fires_has_a_link_whose_hash_the_state_holds() {
        let rule = given::alert_rule("r", Timestamp::MIN);
        let by = ["a", "b"].map(|id| (given::channel_id(id), Timestamp::MIN));
        let news = [News::Passed, News::Fired, News::Repeated, News::Recovered];
        let messages: Vec<_> = (1..).zip(news).map(|(n, it)| given::message(n, it)).collect();
        let made = |by: &[_]| {
            let state = given::firing("r", "d");
            NewJudgement::new(&rule, state, messages.clone(), by, Timestamp::MAX)
        };
        let judgement = made(&by);
        let AlertState::Episodes(state) = &judgement.state().state else { panic!("episodes") };
        let mut keys = BTreeSet::new();
        for waiting in judgement.waiting() {
            assert_eq!(waiting.key.is_some(), waiting.logged.message.news.is_firing());
            if let Some(key) = &waiting.key {
                assert!(state.clone().acknowledge_by(key));
                keys.insert(key.as_str().to_owned());
            }
        }
        assert_eq!(keys.len(), 2, "one for all channels of a message");
        assert!(!state.clone().acknowledge_by(&LinkKey::new([0; 16])));
        assert_eq!(made(&[]).state(), &given::firing("r", "d"), "nobody gets a link");
    }

    #[test]
    fn a_figure_has_no_link_because_nothing_lasts_that_it_could_acknowledge() {
        let (rule, key) = (given::alert_rule("r", Timestamp::MIN), given::alert_key("r", "d"));
        let state = AlertState::Figures(FigureState::default());
        let state = StoredAlertState::next(None, key, state, Timestamp::MIN);
        let (by, messages) =
            ([(given::channel_id("a"), Timestamp::MIN)], vec![given::message(1, News::Fired)]);
        let made = NewJudgement::new(&rule, state, messages, &by, Timestamp::MAX);
        assert_eq!(made.waiting().len(), 1);
        assert_eq!(made.waiting()[0].key, None);
    }
}
