//! The stored state of a rule on one subject. Judges nothing.

use domain::Timestamp;
use serde::{Deserialize, Serialize};

use crate::fold::{EpisodeChange, FiredEpisode, Fold, KnownSilence, Phase};
use crate::link::{LinkKey, MAX_LINKS};
use crate::text;
use crate::{MAX_UNJUDGED, SETTLING};

/// The state of a rule on one device or room.
///
/// Each judgement stores a state on the condition that nobody has replaced the state that it read. A comparison of
/// times would not suffice, because a late reading changes the state without making it newer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpisodeState {
    /// When the rule was saved, in the version that judged this state.
    #[serde(with = "text")]
    pub changed: Timestamp,
    /// What the rule watched when its messages were last decided ([`Rule::watched`](crate::Rule::watched)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<String>,
    /// The fold over all readings.
    pub fold: Fold,
    /// The last silence of the device. A fold that begins earlier keeps this silence, even if a pause was noted later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence: Option<KnownSilence>,
    /// The time of the newest judged reading.
    #[serde(rename = "judged", with = "text", default, skip_serializing_if = "Option::is_none")]
    pub judged_until: Option<Timestamp>,
    /// Where the next fold begins.
    pub anchor: Anchor,
    /// What the last message said.
    pub told: ToldAlert,
    /// The number of the last message; 0 if there was none.
    pub number: u64,
    /// The first breach of the acknowledged episode.
    #[serde(with = "text", default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Timestamp>,
    /// The hashes of the keys in links to the episode of the last message, newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
    /// When the state is judged again even without readings. `None` if the state has been normal for an hour and may be
    /// forgotten.
    #[serde(with = "text", default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
}

/// The fold as it was an hour before the newest judged reading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// The instant up to which, inclusive, all readings are in the fold.
    #[serde(with = "text")]
    pub at: Timestamp,
    /// The fold.
    pub fold: Fold,
}

/// What the last message of a state said. The message may still wait.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldAlert {
    /// Whether the state fires according to the last message.
    pub is_firing: bool,
    /// The first breach of the episode in the last message.
    #[serde(with = "text", default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// When the episode in the last message fired.
    #[serde(with = "text", default, skip_serializing_if = "Option::is_none")]
    pub fired: Option<Timestamp>,
    /// The time of the newest change of the fold that had a message.
    #[serde(with = "text", default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// When a judgement last made a message. Repetitions count from this time.
    #[serde(rename = "sent", with = "text", default, skip_serializing_if = "Option::is_none")]
    pub told_at: Option<Timestamp>,
}

impl ToldAlert {
    /// The episode in the last message; `None` before the first message.
    pub(crate) fn episode(&self) -> Option<FiredEpisode> {
        Some(FiredEpisode { since: self.since?, at: self.fired? })
    }

    /// The phase at an instant, if the episode in the last message ran then.
    pub(crate) fn phase_at(&self, at: Timestamp) -> Option<Phase> {
        let has_ended = !self.is_firing && self.until <= Some(at);
        let told = self.episode().filter(|_| !has_ended)?;
        Phase::of_episode(told.since, told.at, at)
    }
}

impl EpisodeState {
    /// Whether an episode goes on.
    pub fn is_firing(&self) -> bool {
        self.fold.phase.fired_episode().is_some()
    }

    /// Whether the state can be deleted without any message being repeated: no message was made in the last hour.
    pub fn repeats_nothing_if_deleted(&self, now: Timestamp) -> bool {
        self.told.told_at.is_none_or(|at| at.saturating_add(SETTLING) <= now)
    }

    /// Whether the state has to be judged although no reading came. A time more than 15 minutes ahead was set by a
    /// wrong clock, and counts as due.
    pub fn is_due(&self, now: Timestamp) -> bool {
        let latest = now.saturating_add(MAX_UNJUDGED);
        self.due.is_some_and(|due| due <= now || due > latest)
    }

    /// The breach that was acknowledged, if its episode goes on in `fold`, which `changes` have led to. Late or deleted
    /// readings may have moved the begin of the episode.
    pub(crate) fn acknowledged_in(
        &self,
        fold: &Fold,
        changes: &[EpisodeChange],
    ) -> Option<Timestamp> {
        let since = fold.phase.fired_episode()?.since;
        let has_ended = |at: Timestamp| {
            changes.iter().filter_map(|change| change.ended).any(|end| at <= end && end <= since)
        };
        let goes_on =
            |at: &Timestamp| since <= *at || Some(since) <= self.judged_until && !has_ended(*at);
        self.acknowledged.filter(goes_on)
    }

    /// Acknowledges the running episode, which ends its repetitions. Returns whether an episode is running.
    pub fn acknowledge(&mut self) -> bool {
        let since = self.fold.phase.fired_episode().map(|episode| episode.since);
        self.acknowledged = since.or(self.acknowledged);
        since.is_some()
    }

    /// Adds the key of a link. If there are too many, the oldest link stops working.
    pub fn add_link(&mut self, key: &LinkKey) {
        self.links.push(key.hash());
        let excess = self.links.len().saturating_sub(MAX_LINKS);
        self.links.drain(..excess);
    }

    /// Acknowledges the running episode if `key` belongs to one of its links. Returns whether the episode was
    /// acknowledged.
    pub fn acknowledge_by(&mut self, key: &LinkKey) -> bool {
        self.links.contains(&key.hash()) && self.acknowledge()
    }
}
