//! A judgement to be stored: a state, what is told of it, and what each channel is to send. Judges nothing.

use alerts::Message;
use domain::{ChannelId, RuleId, Timestamp};

use crate::{StoredAlertState, StoredRule, ToldMessage, WaitingMessage};

/// The largest number of items that are stored with a state and the check of its rule: a transaction has 100 actions.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html>
pub const MAX_JUDGEMENT_PARTS: usize = 98;

/// A state and its messages, which are stored together or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJudgement {
    state: StoredAlertState,
    changed: Timestamp,
    told: Vec<ToldMessage>,
    waiting: Vec<WaitingMessage>,
    left_out: usize,
}

impl NewJudgement {
    /// A judgement by `rule`: the state that takes the place of the one that was read ([`StoredAlertState::next`]),
    /// its messages in order, and the channels, each with the time from which on it may send them.
    ///
    /// One transaction holds so many messages as [`MAX_JUDGEMENT_PARTS`] allow; of more, the newest are stored and
    /// the others are [`left_out`](Self::left_out).
    #[must_use]
    pub fn new(
        rule: &StoredRule,
        state: StoredAlertState,
        messages: Vec<Message>,
        channels: &[(ChannelId, Timestamp)],
        now: Timestamp,
    ) -> Self {
        let left_out = messages.len().saturating_sub(MAX_JUDGEMENT_PARTS / (1 + channels.len()));
        let told = |message| ToldMessage {
            alert: state.key.clone(),
            at: now,
            rule: rule.rule.clone(),
            message,
        };
        let told: Vec<_> = messages.into_iter().skip(left_out).map(told).collect();
        let waiting = told.iter().flat_map(|told| {
            let channels = channels.iter();
            channels.map(|(id, next)| WaitingMessage::new(id.clone(), told.clone(), *next))
        });
        let waiting = waiting.collect();
        Self { state, changed: rule.rule.changed, told, waiting, left_out }
    }

    /// The state.
    #[must_use]
    pub const fn state(&self) -> &StoredAlertState {
        &self.state
    }

    /// The rule, and when it was saved as it was judged by.
    #[must_use]
    pub const fn rule(&self) -> (&RuleId, Timestamp) {
        (&self.state.key.rule, self.changed)
    }

    /// What is told.
    #[must_use]
    pub fn told(&self) -> &[ToldMessage] {
        &self.told
    }

    /// What each channel is to send.
    #[must_use]
    pub fn waiting(&self) -> &[WaitingMessage] {
        &self.waiting
    }

    /// The number of messages, the oldest, that are not stored because a transaction holds no more.
    #[must_use]
    pub const fn left_out(&self) -> usize {
        self.left_out
    }
}

/// The outcome of storing a judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JudgementOutcome {
    /// All of it is stored.
    Stored,
    /// Nothing is stored: the state is not the one that was read.
    StateMoved,
    /// Nothing is stored: the rule was saved again since, or was deleted.
    RuleChanged,
}

#[cfg(test)]
mod tests {
    use alerts::News;

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
            assert_eq!(made.told().len() as u64, kept, "{count} {channels}");
            assert_eq!(made.left_out() as u64, count - kept);
            assert_eq!(made.waiting().len(), made.told().len() * channels);
            assert!(made.told().len() + made.waiting().len() <= MAX_JUDGEMENT_PARTS);
            let newest = made.told().last().map_or(count, |it| it.message.number);
            assert_eq!(newest, count);
        }
    }
}
