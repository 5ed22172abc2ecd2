//! The episodes that a rule would have had in the past. Sends nothing.

use domain::Timestamp;

use crate::fold::{Fold, Observation, Phase, SilenceLimit};
use crate::rule::Rule;

/// An episode that fired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FiredEpisode {
    /// The first breach.
    pub since: Timestamp,
    /// When the breach had lasted long enough.
    pub fired: Timestamp,
    /// When the episode ended; `None` if it goes on.
    pub ended: Option<Timestamp>,
}

/// A fold over past readings. Readings that change nothing may be skipped.
#[derive(Debug)]
pub struct Past<'a> {
    rule: &'a Rule,
    silence: SilenceLimit<'a>,
    fold: Fold,
    episodes: Vec<FiredEpisode>,
    settled: Option<Timestamp>,
}

impl<'a> Past<'a> {
    /// Begins a fold at an instant: in the phase normal or, if the past is unknown, inside an episode that is not
    /// reported. Once such an episode has ended, the phase no longer depends on the unknown past.
    pub fn begin(
        rule: &'a Rule,
        silence: SilenceLimit<'a>,
        from: Timestamp,
        is_normal: bool,
    ) -> Self {
        let mut fold = Fold::normal(from);
        if !is_normal {
            fold.phase = Phase::Firing { since: from, fired: from };
        }
        let settled = is_normal.then_some(from);
        Self { rule, silence, fold, episodes: Vec::new(), settled }
    }

    /// Adds the readings up to `until`, inclusive, and advances the fold to this time.
    pub fn take(&mut self, readings: &[Observation], until: Timestamp) {
        let end = readings.partition_point(|reading| reading.at <= until);
        let mut changes = Vec::new();
        self.fold.run(self.rule, self.silence, &readings[..end], until, &mut changes);
        for change in changes {
            match (change.ended, self.episodes.last_mut()) {
                (Some(ended), _) if self.settled.is_none() => self.settled = Some(ended),
                (Some(ended), Some(last)) => last.ended = Some(ended),
                _ => self.episodes.push(FiredEpisode {
                    since: change.episode.since,
                    fired: change.episode.at,
                    ended: None,
                }),
            }
        }
    }

    /// Whether readings can change the phase, if they may have a breach or a clear value.
    pub const fn may_change(&self, may_breach: bool, may_clear: bool) -> bool {
        match self.fold.phase {
            Phase::Normal { .. } => may_breach,
            Phase::Firing { .. } => may_clear,
            Phase::Pending { .. } | Phase::Recovering { .. } => true,
        }
    }

    /// Skips readings that change nothing. The next reading is treated as the first of the device.
    pub const fn pass_over(&mut self) {
        self.fold.seen = None;
        self.fold.is_silent = false;
    }

    /// The instant from which the phase no longer depends on an unknown past.
    pub const fn settled(&self) -> Option<Timestamp> {
        self.settled
    }

    /// The episodes, in order of time.
    pub fn episodes(self) -> Vec<FiredEpisode> {
        self.episodes
    }
}
