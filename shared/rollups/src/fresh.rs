//! The fold of a bucket before it is stored. Reads nothing.

use domain::{Rollup, Timestamp};

use crate::seen_rooms::NamedRooms;

/// The fold of a bucket, with facts about its source.
#[derive(Debug, Default)]
pub(crate) struct Fresh {
    pub(crate) rollup: Rollup,
    /// When the first part of the source expires.
    pub(crate) until: Option<Timestamp>,
    /// The newest settings with which a part of the source was folded.
    pub(crate) settings: u64,
    /// The oldest settings among the parts of the source that must be folded again with newer settings.
    pub(crate) outdated: Option<u64>,
    /// The rooms that the readings name.
    pub(crate) named: NamedRooms,
    /// Whether the rollup is stored even if the table has no rollup of the bucket yet.
    pub(crate) is_stored_even_if_new: bool,
}
