//! The episodes that a rule would have had, by the fold that judges. Tells nothing.

use domain::Timestamp;

use crate::fold::{Fold, Patience};
use crate::judge::Sight;
use crate::rule::Rule;

/// An episode that fired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Episode {
    /// The first breach.
    pub since: Timestamp,
    /// When it had lasted long enough.
    pub fired: Timestamp,
    /// When it ended; `None` if it lasts.
    pub ended: Option<Timestamp>,
}

/// The episodes of readings up to an instant, in order. The fold begins as normal with the first reading.
#[must_use]
pub fn preview(rule: &Rule, sight: &Sight<'_>, until: Timestamp) -> Vec<Episode> {
    let Some(first) = sight.readings.first() else { return Vec::new() };
    let end = sight.readings.partition_point(|it| it.at <= until);
    let mut turns = Vec::new();
    let patience = Patience::of(rule, sight);
    Fold::normal(first.at).run(rule, patience, &sight.readings[..end], until, &mut turns);
    let mut episodes: Vec<Episode> = Vec::new();
    for turn in turns {
        match (turn.ended, episodes.last_mut()) {
            (Some(ended), Some(last)) => last.ended = Some(ended),
            _ => episodes.push(Episode {
                since: turn.episode.since,
                fired: turn.episode.at,
                ended: None,
            }),
        }
    }
    episodes
}
