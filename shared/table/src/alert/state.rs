//! The stored form of a rule's state on one device or room. Judges nothing.

use alerts::{AlertSubject, EpisodeState, FigureState, MAX_UNJUDGED};
use chrono::TimeDelta;
use domain::{RuleId, Timestamp};

use crate::Expected;

/// How long a state is kept after it has been normal for an hour. By then, every process that read it has put its
/// successor or given up. So a new state, which begins with version 1, is not mistaken for the old one.
pub const STATE_KEPT: TimeDelta = TimeDelta::days(1);
/// How long figures that were sent once are kept: a day longer than they are remembered.
pub const FIGURES_KEPT: TimeDelta = TimeDelta::days(41);

/// The identity of the state of a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AlertKey {
    /// The rule.
    pub rule: RuleId,
    /// The device or room on which the rule is judged.
    pub subject: AlertSubject,
}

/// A state, by the kind of its rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlertState {
    /// The state of a rule about a metric or silence, whose episodes begin, last and end.
    Episodes(Box<EpisodeState>),
    /// The state of a rule about a budget, a demand or a counter, which sends each figure once.
    Figures(FigureState),
}

/// The stored form of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct StoredAlertState {
    /// The identity of the state.
    pub key: AlertKey,
    /// The number of times that the state was put.
    pub version: u64,
    /// The findings of the rule on the subject so far.
    pub state: AlertState,
    /// When the state expires; `None` for a state that must be judged again.
    pub expires: Option<Timestamp>,
}

impl AlertState {
    /// When the state must be judged again, even without new readings.
    pub const fn due(&self) -> Option<Timestamp> {
        match self {
            Self::Episodes(state) => state.due,
            Self::Figures(_) => None,
        }
    }

    /// The bounds by which a query finds due states ([`is_due`](Self::is_due)): a state is due if its time is not after
    /// the first bound, or if it is after the second.
    pub fn due_bounds(now: Timestamp) -> (Timestamp, Timestamp) {
        (now, now.saturating_add(MAX_UNJUDGED))
    }

    /// Whether the state must be judged although no reading asks for it ([`EpisodeState::is_due`]).
    pub fn is_due(&self, now: Timestamp) -> bool {
        match self {
            Self::Episodes(state) => state.is_due(now),
            Self::Figures(_) => false,
        }
    }
}

impl StoredAlertState {
    /// The state that replaces `known`, the state that was read; without `known`, a first version.
    pub fn next(known: Option<&Self>, key: AlertKey, state: AlertState, now: Timestamp) -> Self {
        let expires = match &state {
            AlertState::Episodes(state) if state.due.is_some() => None,
            AlertState::Episodes(_) => Some(now.saturating_add(STATE_KEPT)),
            AlertState::Figures(_) => Some(now.saturating_add(FIGURES_KEPT)),
        };
        Self { key, version: known.map_or(1, |known| known.version + 1), state, expires }
    }

    /// The item that a put of this state expects: the previous version.
    pub const fn expected(&self) -> Expected {
        Expected::before(self.version)
    }
}
