//! Judges the rules of alerts by the readings in the table, and stores states with their messages. Sends nothing, and
//! has no clock.
//!
//! [`Judging`] is the memory of one process, and a [`JudgingSession`] is one call. `task` has the one loop that judges.
//! Five modules make its tasks. `batch` makes them from readings of the stream, `recheck` from saved rules and from
//! stored requests to judge again. `due` makes them from states whose time has come, `silence` from devices that send
//! nothing, `sealed` from quarters of an hour with complete rollups. `progress` remembers how far the tasks of each
//! kind were judged.
//!
//! A judgement reads a state and then the readings, and folds these. It stores the new state with its messages only if
//! nobody changed the state meanwhile. So in the end a state is the fold of the readings in the table, whoever judged
//! it last. `episodes` and `figures` are the two kinds of judgement. `budget`, `counter`, `demand` and `room_mean`
//! compute figures. `preview` tries a rule on the past.

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
mod rule_on_subject;
mod rules;
mod rules_reading;
mod sealed;
mod silence;
mod silence_limits;
mod task;
mod throttled;

pub use batch::{BatchReport, ReadingsByTime};
pub use breach::{Breaches, SealedBreaches};
pub use devices::{ListedDevices, MAX_FEW};
pub use ending::end_device;
pub use judging::{Judging, JudgingSession};
pub use ports::Store;
pub use preview::{MAX_PREVIEW, Preview, PreviewQuestion, Previewed};
pub use report::JudgingReport;
pub use result::{JudgementResult, LostMessages};
pub use rules::{AlertRules, devices_of, has_sent_watched, subjects_of};
pub use series::SeriesError;
pub use throttled::RequestThrottle;

/// A result whose error says why nothing can be judged.
type Result<T, E = SeriesError> = std::result::Result<T, E>;
