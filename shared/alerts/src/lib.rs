//! Rules, the fold that judges readings by them, and the requests that deliver messages. Has no store and no clock,
//! and sends nothing.
//!
//! A state is the fold of the readings that are stored, and a message is what the fold says beyond what was
//! judged before. Who calls reads the state, asks [`Start::of`] where the fold begins, reads the readings from
//! there on, calls [`fold_episodes`], and stores the state and its messages in one transaction, on the condition that the
//! state is still the one that was read.
//!
//! A [`Channel`] is what everybody sees of where messages go, a [`Secret`] what the sender alone reads. [`Post::by`]
//! makes the request, [`outgoing::Answer::verdict`] says what follows from its answer, and [`next_attempt`] when it is
//! sent again.

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
pub use demand::{Projection, RECENT, RunningPeriod};
pub use figures::{Figure, FigureState};
pub use fold::{Fold, KnownSilence, Observation, Phase, SilenceLimit};
pub use json::RuleBody;
pub use judge::{JudgedReadings, Judgement, can_be_skipped, ended_by_edit, fold_episodes};
pub use link::LinkKey;
pub use message::{Message, News};
pub use message_text::Names;
pub use preview::{Episode, Past};
pub use quiet::{QuietHours, QuietHoursError};
pub use rule::{
    CounterEvent, DemandLimit, Edge, Group, Limits, MAX_FOR, NoData, Rule, Scope, Watch,
};
pub use secret::Secret;
pub use silence::{Day, LEAST_SILENCE, LONGEST_SILENCE, silence_limit};
pub use start::Start;
pub use state::{Anchor, EpisodeState, ToldAlert};
pub use subject::{AlertSubject, AlertSubjectError};

use chrono::TimeDelta;

/// The units of a rule's durations.
const UNITS: &str = "smhd";
/// How far ahead of the clock a reading may be and is judged; beyond, it waits for its time.
pub const MAX_AHEAD: TimeDelta = TimeDelta::minutes(2);
/// How long a state that is normal is kept, and how long ago an episode may have ended to be told.
pub const SETTLING: TimeDelta = TimeDelta::hours(1);
/// How long a state stands at most before it is judged again.
pub const MAX_UNJUDGED: TimeDelta = TimeDelta::minutes(15);
/// After how long every process knows a rule that was saved: some use what they have read for a minute.
const MAX_UNKNOWN: TimeDelta = TimeDelta::minutes(2);
/// How far back a fold begins at most, and how late readings may be for the stream to judge them.
pub const MAX_BACK: TimeDelta = TimeDelta::days(1);
