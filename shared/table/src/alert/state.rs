//! The state of a rule on one device or room, as the table keeps it. Judges nothing.

use alerts::{AlertSubject, EpisodeState, FigureState, MAX_UNJUDGED};
use chrono::TimeDelta;
use domain::{RuleId, Timestamp};

use crate::Expected;

/// How long a state is kept that has been normal for an hour. Whoever read it before has put or given up by then, so
/// a state that begins again, with version 1, is not taken for it.
pub const STATE_KEPT: TimeDelta = TimeDelta::days(1);
/// How long it is kept what was told once: a day longer than it is remembered.
pub const FIGURES_KEPT: TimeDelta = TimeDelta::days(41);

/// The identity of a state.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AlertKey {
    /// The rule.
    pub rule: RuleId,
    /// The device or room that it is judged on.
    pub subject: AlertSubject,
}

/// A state, by the kind of its rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlertState {
    /// The state of a metric or of silence: what begins, lasts and ends.
    Episodes(Box<EpisodeState>),
    /// The state of a budget, a demand or a counter: each figure is told once.
    Figures(FigureState),
}

/// A state as the table keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct StoredAlertState {
    /// Its identity.
    pub key: AlertKey,
    /// The number of times that it was put.
    pub version: u64,
    /// What the rule has found on the subject so far.
    pub state: AlertState,
    /// When it expires. A state that is to be judged again does not.
    pub expires: Option<Timestamp>,
}

impl AlertState {
    /// When it is to be judged again, whether or not there are readings.
    pub const fn due(&self) -> Option<Timestamp> {
        match self {
            Self::Episodes(state) => state.due,
            Self::Figures(_) => None,
        }
    }

    /// Two timestamps: a state is due ([`is_due`](Self::is_due)) that is to be judged at the first or before it, or
    /// after the second.
    pub fn due_bounds(now: Timestamp) -> (Timestamp, Timestamp) {
        (now, now.saturating_add(MAX_UNJUDGED))
    }

    /// Whether it is to be judged, though no reading asks for it ([`EpisodeState::is_due`]).
    pub fn is_due(&self, now: Timestamp) -> bool {
        match self {
            Self::Episodes(state) => state.is_due(now),
            Self::Figures(_) => false,
        }
    }
}

impl StoredAlertState {
    /// What takes the place of `known`, the state as it was read; the first one where there is no state.
    pub fn next(known: Option<&Self>, key: AlertKey, state: AlertState, now: Timestamp) -> Self {
        let expires = match &state {
            AlertState::Episodes(state) if state.due.is_some() => None,
            AlertState::Episodes(_) => Some(now.saturating_add(STATE_KEPT)),
            AlertState::Figures(_) => Some(now.saturating_add(FIGURES_KEPT)),
        };
        Self { key, version: known.map_or(1, |known| known.version + 1), state, expires }
    }

    /// What a put of it expects in its place: the version before.
    pub const fn expected(&self) -> Expected {
        Expected::before(self.version)
    }
}
