//! What is told of a state. Has no words.

use domain::{Decimal, Timestamp};

use crate::state::State;

/// A message about one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its number among those of the state, from 1.
    pub number: u64,
    /// What it tells.
    pub news: News,
    /// The breach that began the episode.
    pub since: Timestamp,
    /// When it had lasted long enough.
    pub fired: Timestamp,
    /// When the episode ended, where that is known.
    pub ended: Option<Timestamp>,
    /// The newest value.
    pub value: Option<Decimal>,
    /// The newest reading.
    pub seen: Option<Timestamp>,
}

/// What a message tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum News {
    /// An episode fires.
    Fired,
    /// An episode that was told is over.
    Recovered,
    /// An episode fired and is over, both first seen now.
    Passed,
    /// It still fires, and nobody has acknowledged it.
    Repeated,
    /// The episode that was told never was: readings came late, were corrected or deleted.
    TakenBack,
    /// By the rule as it is now, the episode that was told does not exist.
    Edited,
}

impl News {
    /// The news as they are stored.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fired => "fired",
            Self::Recovered => "recovered",
            Self::Passed => "passed",
            Self::Repeated => "repeated",
            Self::TakenBack => "taken_back",
            Self::Edited => "edited",
        }
    }

    /// Whether the state fires once this is told.
    #[must_use]
    pub const fn is_firing(self) -> bool {
        matches!(self, Self::Fired | Self::Repeated)
    }
}

impl Message {
    /// Whether a message that waited is still what was told last: no later one has changed it.
    #[must_use]
    pub fn is_still_true(&self, state: &State) -> bool {
        self.news.is_firing() == state.told.is_firing
            && (!self.news.is_firing() || Some(self.since) == state.told.since)
    }
}
