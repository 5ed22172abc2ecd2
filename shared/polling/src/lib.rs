//! Sources that are polled: the requests of each maker, how answers are read, and when the next run is due. Sends
//! nothing, and reads no clock.
//!
//! A [`PolledSource`] is what people write. A run makes a request for each of its [`Question`]s. The answers are read
//! into [`Portion`]s, which ingest takes. [`AnswerOutcome`] says what an answer means. [`SourceStatus`] is kept between
//! runs, and [`schedule`] says when the next run is due. A maker is a [`SourceKind`]: one value, whose requests have
//! the form that people write for the kind `json`.

mod asking;
mod budget;
mod directory;
mod kind;
mod kinds;
mod members;
mod outcome;
mod placeholder;
mod pointer;
mod portion;
mod reader;
pub mod schedule;
mod secrets;
mod source;
mod status;
mod time_window;

pub use budget::{Budget, Spent};
pub use directory::{DirectoryDevice, DirectoryListing, Question};
pub use kind::{SourceKind, SourceMember, SourceMemberForm};
pub use kinds::SOURCE_KINDS;
pub use outcome::{AnswerOutcome, FailurePause};
pub use placeholder::Values;
pub use portion::Portion;
pub use reader::ReadAnswer;
pub use secrets::SecretTexts;
pub use source::{AskContext, PolledSource, SourceRoom};
pub use status::{RunReport, SourceState, SourceStatus};
pub use time_window::{HistoryWindow, TimeWindow};
