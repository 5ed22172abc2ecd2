//! Judges the rules of alerts on what the table has, and stores states with their messages. Sends nothing, and has no
//! clock.
//!
//! [`Judging`] is what one process has. A judgement reads the state, then the readings, folds, and puts the state with
//! its messages where it has not moved on: so at rest a state is the fold of the readings in the table, whoever judged
//! it last. `batch` judges what the stream tells, `look` what was left to look at again, `due` what the time brings
//! about, `quiet_devices` silence, `sealed` what waits for whole quarters of an hour, and `saved` a rule that a person
//! saved. `episodes` and `once` are the two kinds of judgement; `budget`, `counter`, `demand` and `room_mean` have
//! their figures. `preview` tries a rule on the past.

mod batch;
mod breach;
mod budget;
mod case;
mod counter;
mod demand;
mod devices;
mod due;
mod ending;
mod energy;
mod episodes;
mod judged;
mod judging;
mod known;
mod look;
mod next_questions;
mod observed;
mod once;
mod outcome;
mod ports;
mod preview;
mod preview_walk;
mod quiet_devices;
mod room_mean;
mod rules;
mod saved;
mod sealed;
mod sealed_progress;
mod seen;
mod silence;

pub use batch::{BatchJudged, Written};
pub use breach::{Breaches, SealedBreaches};
pub use case::Case;
pub use devices::{Devices, MAX_PROMPT};
pub use ending::{end_device, end_rule};
pub use judged::Judged;
pub use judging::Judging;
pub use outcome::{LeftOut, Outcome};
pub use ports::Store;
pub use preview::{MAX_PREVIEW, Preview, Previewed};
pub use rules::{Rules, devices_of, has_sent_watched, subjects_of};
pub use saved::JudgedSaved;
pub use series::Failure;
