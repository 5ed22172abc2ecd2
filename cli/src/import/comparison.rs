//! Compares an import with its source: counts and sums by month, gaps, and how to take the import back. Sends no
//! reading.

mod compare;
mod gap;
mod kept;
mod known;
mod outcome;
mod report;
mod take_back;
mod tally;

pub(super) use compare::{Comparison, StoredHour, value_metric};
pub(super) use kept::{GoesOn, Import};
pub(super) use report::{Head, Places};
