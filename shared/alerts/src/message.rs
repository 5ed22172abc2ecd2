//! A message about a state, as data. The text is made elsewhere.

use domain::{Decimal, Timestamp};
use serde::{Deserialize, Serialize};

use crate::state::EpisodeState;
use crate::text;

/// A message about one state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The number of the message. A newer message of a state has a greater number, even if the state was deleted and
    /// made again.
    pub number: u64,
    /// The news of the message.
    pub news: News,
    /// The breach that began the episode. For a figure, the start of the period or the time of the step.
    #[serde(with = "text")]
    pub since: Timestamp,
    /// When the breach had lasted long enough. For a figure, when the message was made.
    #[serde(with = "text")]
    pub fired: Timestamp,
    /// When the episode ended, if that is known.
    #[serde(with = "text", default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// The newest value, or the figure.
    #[serde(with = "text", default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Decimal>,
    /// The time of the newest reading.
    #[serde(with = "text", default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Timestamp>,
    /// Whether the device was silent when the message was made, whatever the newest value is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_silent: bool,
}

/// The number after `number`. A state begins with the time as its first number. So after a state was deleted and made
/// again, no message replaces an older message that still waits.
pub(crate) fn next_number(number: u64, now: Timestamp) -> u64 {
    match number {
        0 => u64::try_from(now.as_millis() / 1_000).unwrap_or_default(),
        number => number + 1,
    }
}

domain::words! {
    /// The news of a message.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
    pub enum News {
        /// An episode fires.
        Fired = "fired",
        /// The episode of an earlier message is over.
        Recovered = "recovered",
        /// An episode fired and ended before anybody judged it.
        Passed = "passed",
        /// The alert still fires, and nobody has acknowledged it.
        Repeated = "repeated",
        /// The episode of an earlier message never happened: readings came late, were corrected or were deleted.
        TakenBack = "taken_back",
        /// The rule was edited, and by the new rule the episode of an earlier message never happened.
        Edited = "edited",
        /// A test of a channel, which a person asked for.
        Test = "test",
    }
}

impl News {
    /// Whether the state counts as firing after this message.
    pub const fn is_firing(self) -> bool {
        matches!(self, Self::Fired | Self::Repeated)
    }
}

impl Message {
    /// Whether a message that waited is still true: no later message says otherwise. An alert is no longer true if its
    /// episode ended while its rule was paused.
    pub fn is_still_true(&self, state: &EpisodeState) -> bool {
        self.news.is_firing() == state.told.is_firing
            && (!self.news.is_firing() || state.is_firing() && Some(self.since) == state.told.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_message_comes_back_to_the_last_digit() {
        for (news, text) in [
            (News::Fired, "fired"),
            (News::Recovered, "recovered"),
            (News::Passed, "passed"),
            (News::Repeated, "repeated"),
            (News::TakenBack, "taken_back"),
            (News::Edited, "edited"),
            (News::Test, "test"),
        ] {
            let message = Message {
                number: 7,
                news,
                since: Timestamp::MIN,
                fired: Timestamp::MAX,
                ended: news.is_firing().then_some(Timestamp::MAX),
                value: Decimal::parse("-0.12345678901234567890123456789012345678").ok(),
                seen: None,
                is_silent: news.is_firing(),
            };
            let stored = serde_json::to_value(&message).expect("JSON");
            assert_eq!(stored["news"], text);
            assert_eq!(news.as_str(), text);
            assert_eq!(serde_json::from_value::<Message>(stored).expect("a message"), message);
        }
    }
}
