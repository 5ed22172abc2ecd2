//! Devices, rooms and homes: lists, single entries, stays, edits, deletions, search. Reads no range of readings.

pub(crate) mod deletion;
pub(crate) mod edit;
pub(crate) mod homes;
pub(crate) mod lists;
pub(crate) mod lookup;
pub(crate) mod patch;
pub(crate) mod presence;
pub(crate) mod search;
pub(crate) mod stays;

/// The field of the log that names items that cannot be read.
const UNREADABLE: &str = "registry.unreadable";
