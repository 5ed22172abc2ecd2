//! The stored form of a rule's state on one device or room. Judges nothing.

use alerts::{AlertSubject, EpisodeState, FigureState, MAX_UNJUDGED};
use chrono::TimeDelta;
use domain::{RuleId, Timestamp};

/// How long a state is kept once it has been normal for an hour. A process that read the state has stored the next
/// version or given up by then. A new state begins again with version 1, and could otherwise be mistaken for the
/// deleted one.
pub const STATE_KEPT: TimeDelta = TimeDelta::days(1);
/// How long the record of the sent figures is kept. This is a day longer than a figure is remembered.
pub const FIGURES_KEPT: TimeDelta = TimeDelta::days(41);

/// The identity of the state of a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AlertKey {
    /// The rule.
    pub rule: RuleId,
    /// The device or room on which the rule is judged.
    pub subject: AlertSubject,
}

/// A state. Its form depends on the kind of rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlertState {
    /// The state of a rule about a metric or silence. Such an alert fires, lasts and ends.
    Episodes(Box<EpisodeState>),
    /// The state of a rule about a budget, a demand or a counter. Each figure is sent once.
    Figures(FigureState),
}

/// The stored form of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct StoredAlertState {
    /// The identity of the state.
    pub key: AlertKey,
    /// The number of times that the state was stored.
    pub version: u64,
    /// The findings of the rule about the subject so far.
    pub state: AlertState,
    /// When the state expires; `None` for a state that must be judged again.
    pub expires: Option<Timestamp>,
}

impl AlertState {
    /// When the state must be judged again, even if no reading arrives.
    pub const fn due(&self) -> Option<Timestamp> {
        match self {
            Self::Episodes(state) => state.due,
            Self::Figures(_) => None,
        }
    }

    /// The two bounds by which a query finds due states ([`is_due`](Self::is_due)). A state is due if its time is at or
    /// before the first bound, or after the second.
    pub fn due_bounds(now: Timestamp) -> (Timestamp, Timestamp) {
        (now, now.saturating_add(MAX_UNJUDGED))
    }

    /// Whether the state must be judged now, even if no reading arrives ([`EpisodeState::is_due`]).
    pub fn is_due(&self, now: Timestamp) -> bool {
        match self {
            Self::Episodes(state) => state.is_due(now),
            Self::Figures(_) => false,
        }
    }
}

impl StoredAlertState {
    /// The version after `known`, the state that was read; without `known`, the first version.
    pub fn next(known: Option<&Self>, key: AlertKey, state: AlertState, now: Timestamp) -> Self {
        let expires = match &state {
            AlertState::Episodes(state) if state.due.is_some() => None,
            AlertState::Episodes(_) => Some(now.saturating_add(STATE_KEPT)),
            AlertState::Figures(_) => Some(now.saturating_add(FIGURES_KEPT)),
        };
        Self { key, version: known.map_or(1, |known| known.version + 1), state, expires }
    }
}
