//! Rules, the fold that judges readings by them, and the requests that deliver messages. Has no store and no clock, and
//! sends nothing.
//!
//! A state is the fold of all stored readings. A message says how the fold differs from what earlier messages said. The
//! caller reads the state, asks [`Start::of`] where the fold begins, reads the readings from there on and calls
//! [`fold_episodes`]. It stores the state and the messages in one transaction, on the condition that nobody has
//! replaced the state meanwhile.
//!
//! A [`Channel`] is the public part of a receiver; only the sender of messages reads its [`Secret`]. [`Post::by`] makes
//! the request, [`outgoing::Answer::verdict`] reads the answer, and [`next_attempt`] says when a failed request is
//! repeated.

mod back_off;
mod body;
mod channel;
mod channel_kind;
mod channel_kinds;
mod channel_member;
mod demand;
mod figures;
mod fit;
mod fold;
mod json;
mod judge;
mod link;
mod message;
mod message_text;
mod nearest;
mod preview;
mod quiet;
mod rule;
mod secret;
mod silence;
mod start;
mod state;
mod subject;
mod text;

pub use back_off::{MAX_PAUSE, MAX_RETRIED, next_attempt};
pub use body::{Email, Notice, Outgoing, Post};
pub use channel::{Channel, ChannelBody};
pub use channel_kind::ChannelKind;
pub use channel_kinds::CHANNEL_KINDS;
pub use channel_member::{ChannelMember, MemberForm, Need};
pub use demand::{ProjectedPower, RECENT, RunningPeriod};
pub use figures::{Figure, FigureState};
pub use fold::{Fold, KnownSilence, Observation, Phase, SilenceLimit};
pub use json::RuleBody;
pub use judge::{
    JudgedReadings, Judgement, begins_in_breach, can_be_skipped, ended_by_edit, fold_episodes,
};
pub use link::LinkKey;
pub use message::{Message, News};
pub use message_text::Names;
pub use preview::{FiredEpisode, Past};
pub use quiet::{QuietHours, QuietHoursError};
pub use rule::{
    CounterEvent, DemandLimit, Group, Limits, MAX_FOR, NoData, Rule, Scope, Threshold, Watch,
};
pub use secret::Secret;
pub use silence::{DayCounts, LEAST_SILENCE, LONGEST_SILENCE, silence_limit};
pub use start::{ReadingsBefore, Start};
pub use state::{Anchor, EpisodeState, ToldAlert};
pub use subject::{AlertSubject, AlertSubjectError};

use chrono::TimeDelta;

/// The units of a rule's durations.
const UNITS: &str = "smhd";
/// Readings at most this far ahead of the clock are judged at once. Readings further ahead wait for their time.
pub const MAX_AHEAD: TimeDelta = TimeDelta::minutes(2);
/// How far a judgement of an alert that fires looks back for a reading that was changed or deleted. A batch with only
/// older readings is not judged.
pub const MAX_BACK_FIRING: TimeDelta = TimeDelta::days(31);
/// How long a normal state is kept. An episode that ended longer ago makes no message.
pub const SETTLING: TimeDelta = TimeDelta::hours(1);
/// The longest time between two judgements of a state that is not at rest.
pub const MAX_UNJUDGED: TimeDelta = TimeDelta::minutes(15);
/// The time until every process knows a saved rule: a process may use its list of rules for a minute.
pub const MAX_UNKNOWN: TimeDelta = TimeDelta::minutes(2);
/// How far back a fold begins at most, unless the alert fires. A batch with only older readings is judged only if it
/// may correct what an alert fires for.
pub const MAX_BACK: TimeDelta = TimeDelta::days(1);
