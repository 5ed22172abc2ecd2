//! Where a fold begins. Reads no readings.

use chrono::TimeDelta;
use domain::Timestamp;

use crate::fold::{Fold, Phase};
use crate::rule::Rule;
use crate::state::EpisodeState;
use crate::{MAX_AHEAD, MAX_BACK, MAX_BACK_FIRING, SETTLING};

/// The instant at which a fold begins, and the phase there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The instant after which all readings have to be read.
    pub(crate) from: Timestamp,
    pub(crate) fold: Fold,
    before: ReadingsBefore,
    /// The earliest time from which means of a room are read to find the newest decisive one.
    looks_back_to: Timestamp,
    /// Whether the phase of the state goes on if no decisive reading was found.
    keeps_phase: bool,
    /// The begin of an episode that may have lost its cause: the readings there are still to be checked.
    begin_to_check: Option<Timestamp>,
}

/// The readings at or before the start of a fold that the fold needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadingsBefore {
    /// None, because the fold continues a stored one.
    None,
    /// The newest, because its value may still hold. The phase at the start is known.
    Newest,
    /// All from the newest decisive one on ([`Rule::is_decisive`]), because only they show the phase at the start.
    Decisive,
}

impl Start {
    /// Where the fold of a judgement begins.
    ///
    /// `touched` is the time of the earliest reading that was stored, overwritten or deleted: the first of a batch, or
    /// the `since` of a recheck. `None` if only time has passed, or if a person saved the rule. "Before" a reading
    /// means earlier by an hour and the longer of `for` and `clear_for`: at most a day ago, or [`MAX_BACK_FIRING`] while
    /// the alert fires, because the reading may be its cause. In the order of the code:
    ///
    /// - Without a state: before the touched reading, or a day back.
    /// - With an anchor that cannot be trusted: a day back.
    /// - If nothing was touched: at the anchor.
    /// - If the touched reading is out of reach: as far back as is permitted.
    /// - If the reading is before the anchor: before the reading.
    /// - If the reading is later, and the state at rest: the later of before the reading and the anchor.
    /// - Otherwise: at the anchor.
    pub fn of(
        rule: &Rule,
        state: Option<&EpisodeState>,
        touched: Option<Timestamp>,
        now: Timestamp,
    ) -> Self {
        let day = now.saturating_add(-MAX_BACK);
        let Some(state) = state else {
            let from = touched.map_or(day, |touched| reach_before(rule, touched, now, MAX_BACK));
            return Self::by_decisive_reading(from);
        };
        // An anchor is not trusted if it was made by a clock that was ahead, or by another version of the rule.
        let newest = now.saturating_add(MAX_AHEAD - SETTLING);
        let is_same_rule = state.changed == rule.changed;
        if state.anchor.at > newest || !is_same_rule {
            return Self { keeps_phase: is_same_rule, ..Self::in_doubted_episode(state, day) };
        }

        let (anchor, fold) = (state.anchor.at, state.anchor.fold.clone());
        let anchored =
            Self { fold, before: ReadingsBefore::None, ..Self::by_decisive_reading(anchor) };
        let Some(touched) = touched else { return anchored };

        let back = if state.is_firing() { MAX_BACK_FIRING } else { MAX_BACK };
        let from = reach_before(rule, touched, now, back);
        // Of a state at rest, nothing happened between the anchor and `from`.
        let is_at_rest =
            state.due.is_none() && matches!(state.anchor.fold.phase, Phase::Normal { .. });

        if touched < from {
            Self::out_of_reach(state, from)
        } else if touched <= anchor {
            Self::in_known_episode(state, from)
        } else if is_at_rest && from > anchor {
            Self { before: ReadingsBefore::Newest, ..Self::by_decisive_reading(from) }
        } else {
            anchored
        }
    }

    /// Where the fold begins if a device has more readings than one judgement reads: before the touched reading, by an
    /// hour and the rule's `for` or `clear_for`.
    pub fn near(
        rule: &Rule,
        state: Option<&EpisodeState>,
        touched: Option<Timestamp>,
        now: Timestamp,
    ) -> Self {
        let from = reach_before(rule, touched.unwrap_or(now), now, MAX_BACK);
        match state.filter(|state| state.changed == rule.changed) {
            Some(state) if touched.is_some_and(|touched| touched < from) => {
                Self::out_of_reach(state, from)
            }
            Some(state) => Self::in_known_episode(state, from),
            None => Self::by_decisive_reading(from),
        }
    }

    /// Where the fold of a room's mean begins if any past mean may have changed: a day back, in the phase that the
    /// means before it show. These means are read back to an hour before the episode that fires, and for at least
    /// another day; at most for [`MAX_BACK_FIRING`].
    pub fn of_unseen_past(state: &EpisodeState, now: Timestamp) -> Self {
        let day = now.saturating_add(-MAX_BACK);
        let begin = state.fold.phase.fired_episode().map(|episode| episode.since);
        let begin = begin.map_or(day, |since| since.min(day)).saturating_add(-SETTLING);
        let looks_back_to = begin.min(day.saturating_add(-MAX_BACK));
        let earliest = now.saturating_add(-MAX_BACK_FIRING);
        Self {
            looks_back_to: looks_back_to.max(earliest),
            // An episode whose begin is not read cannot be taken back.
            keeps_phase: begin < earliest,
            ..Self::in_doubted_episode(state, day)
        }
    }

    /// A fold that begins in the phase that the readings before it show. A breach may last although later readings lack
    /// the metric, or lie between the limits.
    fn by_decisive_reading(from: Timestamp) -> Self {
        Self {
            from,
            fold: Fold::normal(from),
            before: ReadingsBefore::Decisive,
            looks_back_to: from.saturating_add(-MAX_BACK_FIRING),
            keeps_phase: false,
            begin_to_check: None,
        }
    }

    /// A start after the touched reading, which may be the cause of the episode that fires.
    fn out_of_reach(state: &EpisodeState, from: Timestamp) -> Self {
        let episode = state.fold.phase.fired_episode();
        let begin_to_check = episode.map(|episode| episode.since);
        Self { begin_to_check, ..Self::in_doubted_episode(state, from) }
    }

    /// As [`in_known_episode`](Self::in_known_episode), but the state is doubted: only a decisive reading shows whether
    /// the episode still ran.
    fn in_doubted_episode(state: &EpisodeState, from: Timestamp) -> Self {
        Self { before: ReadingsBefore::Decisive, ..Self::in_known_episode(state, from) }
    }

    /// A start before the anchor. If the state's episode already ran at `from`, its phase holds. Otherwise the told
    /// episode of that time is only a guess, which [`fold`](Self::fold) checks by the decisive reading before: the
    /// touched reading may have ended the episode.
    fn in_known_episode(state: &EpisodeState, from: Timestamp) -> Self {
        let mut start = Self::by_decisive_reading(from);
        if let Some(phase) = state.fold.phase.running_at(from) {
            start.fold.phase = phase;
            start.before = ReadingsBefore::Newest;
        } else if let Some(phase) = state.told.phase_at(from) {
            start.fold.phase = phase;
        }
        start
    }

    /// The instant after which all readings have to be read.
    pub const fn from(&self) -> Timestamp {
        self.from
    }

    /// The readings at or before [`from`](Self::from) that are needed too.
    pub const fn before(&self) -> ReadingsBefore {
        self.before
    }

    /// The earliest time from which means of a room are read to find the newest decisive one.
    pub const fn looks_back_to(&self) -> Timestamp {
        self.looks_back_to
    }

    /// The begin of an episode that may have lost its cause.
    pub const fn begin_to_check(&self) -> Option<Timestamp> {
        self.begin_to_check
    }

    /// The same start, with an episode that goes on unless a decisive reading ends it.
    #[must_use]
    pub fn keeping_phase(self) -> Self {
        Self { keeps_phase: true, ..self }
    }

    /// Whether the phase of the state goes on if no decisive reading was found.
    pub(crate) const fn keeps_phase(&self) -> bool {
        self.keeps_phase
    }
}

/// The instant before `at` by an hour and the longer of `for` and `clear_for`, at most `back` before now.
fn reach_before(rule: &Rule, at: Timestamp, now: Timestamp, back: TimeDelta) -> Timestamp {
    at.min(now).saturating_add(-rule.reach()).max(now.saturating_add(-back))
}
