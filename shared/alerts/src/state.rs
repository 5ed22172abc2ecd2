//! The state of a rule on one subject, as it is stored. Judges nothing.

use domain::Timestamp;
use serde::{Deserialize, Serialize};

use crate::fold::{Fold, Phase};
use crate::link::{LinkKey, MAX_LINKS};
use crate::text;
use crate::{MAX_UNJUDGED, SETTLING};

/// The state of a rule on one device or room.
///
/// Each judgement stores one, on the condition that nobody stored another since it was read. A condition on times
/// would not do: a late reading changes a state and is no newer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpisodeState {
    /// When the rule that it was judged by was saved.
    #[serde(with = "text")]
    pub changed: Timestamp,
    /// The fold of all readings.
    pub fold: Fold,
    /// The newest reading that was judged.
    #[serde(rename = "judged", with = "text", default, skip_serializing_if = "Option::is_none")]
    pub judged_until: Option<Timestamp>,
    /// Where the next fold begins.
    pub anchor: Anchor,
    /// What was told last.
    pub told: ToldAlert,
    /// The number of the last message; 0 where nothing was told.
    pub number: u64,
    /// The first breach of the episode that somebody acknowledged.
    #[serde(with = "text", default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Timestamp>,
    /// The hashes of the keys in the links of the episode that was told last, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
    /// When it is to be judged again, whether or not there are readings. Without it the state has been normal for
    /// an hour and may be forgotten.
    #[serde(with = "text", default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
}

/// The fold an hour before the newest reading that was judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// The instant up to which, inclusive, all readings are in the fold.
    #[serde(with = "text")]
    pub at: Timestamp,
    /// The fold.
    pub fold: Fold,
}

/// What was told last: the messages of judgements, sent or not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldAlert {
    /// Whether the state fires, as told.
    pub is_firing: bool,
    /// The first breach of the episode that was told last.
    #[serde(with = "text", default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// When that episode fired.
    #[serde(with = "text", default, skip_serializing_if = "Option::is_none")]
    pub fired: Option<Timestamp>,
    /// The newest change of the fold that was told.
    #[serde(with = "text", default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The time of the judgement that told last; repeats count from it.
    #[serde(rename = "sent", with = "text", default, skip_serializing_if = "Option::is_none")]
    pub told_at: Option<Timestamp>,
}

impl EpisodeState {
    /// Whether an episode lasts.
    pub fn is_firing(&self) -> bool {
        self.fold.phase.fired().is_some()
    }

    /// Whether the state can be deleted and nothing is told twice: the alert lasts, or its end was told an hour ago.
    pub fn may_be_forgotten(&self, now: Timestamp) -> bool {
        !matches!(self.fold.phase, Phase::Normal { .. })
            || self.told.told_at.is_none_or(|at| at.saturating_add(SETTLING) <= now)
    }

    /// Whether it is to be judged, though no reading asks for it. A time that no right clock sets is due too.
    pub fn is_due(&self, now: Timestamp) -> bool {
        let latest = now.saturating_add(MAX_UNJUDGED);
        self.due.is_some_and(|due| due <= now || due > latest)
    }

    /// Acknowledges the episode that lasts; it is repeated no longer. Returns whether there is one.
    pub fn acknowledge(&mut self) -> bool {
        let since = self.fold.phase.fired().map(|episode| episode.since);
        self.acknowledged = since.or(self.acknowledged);
        since.is_some()
    }

    /// Makes a link work, and the oldest one of many no longer.
    pub fn add_link(&mut self, key: &LinkKey) {
        self.links.push(key.hash());
        let excess = self.links.len().saturating_sub(MAX_LINKS);
        self.links.drain(..excess);
    }

    /// Acknowledges the episode that lasts, if the key is of a link of it. Returns whether it is.
    pub fn acknowledge_by(&mut self, key: &LinkKey) -> bool {
        self.links.contains(&key.hash()) && self.acknowledge()
    }
}
