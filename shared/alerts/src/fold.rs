//! The fold: observations in order of time become phases and changes of phase. Knows nothing of messages.
//!
//! A value holds until the next value, at most until the device counts as silent. If time and an observation change
//! something at the same instant, time comes first: a judgement a moment earlier would have said so too.

use chrono::TimeDelta;
use domain::{Decimal, TimeRange, Timestamp};
use serde::{Deserialize, Serialize};

use crate::rule::{NoData, Rule, Side};
use crate::text;

/// A reading as the fold sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The timestamp of the reading.
    pub at: Timestamp,
    /// The value of the rule's metric, if the reading has it. A reading without it shows only that the device is alive.
    pub value: Option<Decimal>,
}

/// The phase of an episode. `since` is the breach that began the episode and identifies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "lowercase")]
pub enum Phase {
    /// No breach.
    Normal {
        /// The start of the phase.
        #[serde(with = "text")]
        from: Timestamp,
    },
    /// In breach, for less time than the rule demands.
    Pending {
        /// The first breach.
        #[serde(with = "text")]
        since: Timestamp,
    },
    /// In breach for as long as the rule demands.
    Firing {
        /// The first breach.
        #[serde(with = "text")]
        since: Timestamp,
        /// When the breach had lasted long enough.
        #[serde(with = "text")]
        fired: Timestamp,
    },
    /// Clear, for less time than the rule demands.
    Recovering {
        /// The first breach.
        #[serde(with = "text")]
        since: Timestamp,
        /// When the breach had lasted long enough.
        #[serde(with = "text")]
        fired: Timestamp,
        /// The first clear value.
        #[serde(with = "text")]
        clear: Timestamp,
    },
}

/// An episode that fired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FiredEpisode {
    pub(crate) since: Timestamp,
    pub(crate) at: Timestamp,
}

impl Phase {
    pub(crate) const fn fired_episode(self) -> Option<FiredEpisode> {
        match self {
            Self::Normal { .. } | Self::Pending { .. } => None,
            Self::Firing { since, fired } | Self::Recovering { since, fired, .. } => {
                Some(FiredEpisode { since, at: fired })
            }
        }
    }

    /// The phase at an earlier instant, if the present episode ran then.
    pub(crate) fn running_at(self, at: Timestamp) -> Option<Self> {
        match self {
            Self::Firing { since, fired } | Self::Recovering { since, fired, .. } => {
                Self::of_episode(since, fired, at)
            }
            Self::Pending { since } if since <= at => Some(self),
            Self::Pending { .. } | Self::Normal { .. } => None,
        }
    }

    /// The phase of an episode at an instant; `None` before the episode.
    pub(crate) fn of_episode(since: Timestamp, fired: Timestamp, at: Timestamp) -> Option<Self> {
        if fired <= at {
            return Some(Self::Firing { since, fired });
        }
        (since <= at).then_some(Self::Pending { since })
    }
}

/// The state of the fold at an instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fold {
    /// The phase.
    #[serde(flatten)]
    pub phase: Phase,
    /// The newest value of the metric, even if it no longer holds.
    #[serde(with = "text", default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Decimal>,
    /// The time of the newest observation.
    #[serde(with = "text", default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Timestamp>,
    /// Whether the device has become silent since the newest observation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_silent: bool,
}

/// A change that may make a message: an episode fires or ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EpisodeChange {
    pub(crate) episode: FiredEpisode,
    /// When the episode ended; `None` if it fires.
    pub(crate) ended: Option<Timestamp>,
}

/// When a device counts as silent.
#[derive(Debug, Clone, Copy)]
pub struct SilenceLimit<'a> {
    /// The longest time between two readings of a device that is not silent.
    pub limit: TimeDelta,
    /// The pauses of the system, in order of time. Silence is counted from the end of a pause.
    pub pauses: &'a [TimeRange],
    /// The last silence that a judgement found. A pause of the system that is noted later does not undo this silence.
    pub known: Option<KnownSilence>,
}

/// A silence that was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownSilence {
    /// The time of the last reading before the silence.
    #[serde(with = "text")]
    seen: Timestamp,
    /// When the silence began.
    #[serde(with = "text")]
    from: Timestamp,
}

impl<'a> SilenceLimit<'a> {
    /// The limit for a device that no judgement has found silent.
    pub const fn new(limit: TimeDelta, pauses: &'a [TimeRange]) -> Self {
        Self { limit, pauses, known: None }
    }

    /// When the device becomes silent if its newest reading has the time `seen`.
    pub fn begins(self, seen: Timestamp) -> Timestamp {
        // A pause is taken to begin at the last note that the system runs. A silence that was judged after that note
        // stays.
        if let Some(known) = self.known.filter(|known| known.seen == seen) {
            return known.from;
        }

        self.pauses.iter().fold(seen.saturating_add(self.limit), |end, pause| {
            let is_touched = pause.from() <= end && pause.to() > seen;
            if is_touched { end.max(pause.to().saturating_add(self.limit)) } else { end }
        })
    }
}

/// The next change that time alone makes.
enum Due {
    Phase,
    Silence,
}

impl Fold {
    /// A new fold in the phase normal.
    pub(crate) const fn normal(from: Timestamp) -> Self {
        Self { phase: Phase::Normal { from }, value: None, seen: None, is_silent: false }
    }

    /// The silence of the device, if it is silent now.
    pub(crate) fn silence(&self, limit: SilenceLimit<'_>) -> Option<KnownSilence> {
        let seen = self.seen.filter(|_| self.is_silent)?;
        Some(KnownSilence { seen, from: limit.begins(seen) })
    }

    /// Adds the next observation. The caller has advanced the fold to its instant.
    pub(crate) fn take(&mut self, rule: &Rule, observation: &Observation) {
        let Observation { at, value } = observation;
        self.seen = Some(*at);
        self.is_silent = false;
        if value.is_some() {
            self.value.clone_from(value);
        }
        match rule.side(value.as_ref()) {
            Some(Side::Breach) => self.breach(*at),
            Some(Side::Clear) => self.clear(*at),
            Some(Side::Between) | None => {}
        }
    }

    /// Advances the fold to `to`, inclusive, without an observation.
    pub(crate) fn advance(
        &mut self,
        rule: &Rule,
        silence: SilenceLimit<'_>,
        to: Timestamp,
        changes: &mut Vec<EpisodeChange>,
    ) {
        while let Some((at, due)) = self.next(rule, silence).filter(|(at, _)| *at <= to) {
            match due {
                Due::Phase => self.change(at, changes),
                Due::Silence => self.fall_silent(rule, at),
            }
        }
    }

    /// The next instant at which time alone changes the phase.
    pub(crate) fn due(&self, rule: &Rule, silence: SilenceLimit<'_>) -> Option<Timestamp> {
        self.next(rule, silence).map(|(at, _)| at)
    }

    fn next(&self, rule: &Rule, silence: SilenceLimit<'_>) -> Option<(Timestamp, Due)> {
        let phase = match self.phase {
            Phase::Pending { since } => Some(since.saturating_add(rule.breach_time)),
            Phase::Recovering { clear, .. } => Some(clear.saturating_add(rule.clear_time)),
            Phase::Normal { .. } | Phase::Firing { .. } => None,
        };
        let silent_from = self.seen.filter(|_| !self.is_silent).map(|seen| silence.begins(seen));
        match (phase, silent_from) {
            (Some(phase), Some(silent_from)) if phase > silent_from => {
                Some((silent_from, Due::Silence))
            }
            (Some(phase), _) => Some((phase, Due::Phase)),
            (None, silent_from) => silent_from.map(|at| (at, Due::Silence)),
        }
    }

    fn change(&mut self, at: Timestamp, changes: &mut Vec<EpisodeChange>) {
        let (episode, ended) = match self.phase {
            Phase::Pending { since } => {
                self.phase = Phase::Firing { since, fired: at };
                (FiredEpisode { since, at }, None)
            }
            Phase::Recovering { since, fired, .. } => {
                self.phase = Phase::Normal { from: at };
                (FiredEpisode { since, at: fired }, Some(at))
            }
            Phase::Normal { .. } | Phase::Firing { .. } => return,
        };
        changes.push(EpisodeChange { episode, ended });
    }

    fn fall_silent(&mut self, rule: &Rule, at: Timestamp) {
        self.is_silent = true;
        match rule.no_data() {
            NoData::Fire => self.breach(at),
            NoData::Clear => self.clear(at),
            // Nothing shows that the breach, or its end, goes on.
            NoData::Keep => match self.phase {
                Phase::Pending { .. } => self.phase = Phase::Normal { from: at },
                Phase::Recovering { since, fired, .. } => {
                    self.phase = Phase::Firing { since, fired };
                }
                Phase::Normal { .. } | Phase::Firing { .. } => {}
            },
        }
    }

    const fn breach(&mut self, at: Timestamp) {
        match self.phase {
            Phase::Normal { .. } => self.phase = Phase::Pending { since: at },
            Phase::Recovering { since, fired, .. } => self.phase = Phase::Firing { since, fired },
            Phase::Pending { .. } | Phase::Firing { .. } => {}
        }
    }

    const fn clear(&mut self, at: Timestamp) {
        match self.phase {
            Phase::Pending { .. } => self.phase = Phase::Normal { from: at },
            Phase::Firing { since, fired } => {
                self.phase = Phase::Recovering { since, fired, clear: at };
            }
            Phase::Normal { .. } | Phase::Recovering { .. } => {}
        }
    }
}
