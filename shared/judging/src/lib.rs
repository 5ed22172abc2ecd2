//! Judges the rules of alerts on what the table has, and stores states with their messages. Sends nothing, and has no
//! clock.
//!
//! [`Judging`] is what one process has, a [`JudgingSession`] one call of it. `task` has the one loop that judges, whatever
//! made the tasks: `batch` what the stream tells, `recheck` a rule that was saved and what was left to be judged again,
//! `due` what the time brings about, `silence` who sends nothing, and `sealed` what waits for whole quarters of an hour.
//! `progress` is how far each of them has come.
//!
//! A judgement reads the state, then the readings, folds, and puts the state with its messages where it has not moved on:
//! so at rest a state is the fold of the readings in the table, whoever judged it last. `episodes` and `figures` are the
//! two kinds of judgement; `budget`, `counter`, `demand` and `room_mean` have their figures. `preview` tries a rule on the
//! past.

mod batch;
mod breach;
mod budget;
mod counter;
mod demand;
mod devices;
mod due;
mod ending;
mod energy;
mod episodes;
mod figures;
mod judging;
mod observed;
mod peaks;
mod ports;
mod preview;
mod preview_walk;
mod progress;
mod readings;
mod recheck;
mod report;
mod result;
mod room_mean;
mod rules;
mod rules_reading;
mod sealed;
mod silence;
mod silence_limits;
mod task;
mod throttled;

pub use batch::{BatchReport, Written};
pub use breach::{Breaches, SealedBreaches};
pub use devices::{Devices, MAX_FEW};
pub use ending::end_device;
pub use judging::{Judging, JudgingSession};
pub use ports::Store;
pub use preview::{MAX_PREVIEW, Preview, PreviewQuestion, Previewed};
pub use recheck::JudgedSaved;
pub use report::JudgingReport;
pub use result::{JudgementResult, LostMessages};
pub use rules::{Rules, devices_of, has_sent_watched, subjects_of};
pub use series::SeriesError;
pub use throttled::ThrottledRequest;

/// What can be judged, or why it cannot.
type Result<T> = std::result::Result<T, SeriesError>;
