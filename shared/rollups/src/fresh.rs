//! The fold of a bucket before it is stored. Reads nothing.

use domain::{Rollup, Timestamp};

use crate::seen_rooms::NamedRooms;

/// The fold of a bucket, with what is known of its source.
#[derive(Debug, Default)]
pub(crate) struct Fresh {
    pub(crate) rollup: Rollup,
    /// When the first part of the source expires.
    pub(crate) until: Option<Timestamp>,
    /// The newest settings that a part of the source was folded with.
    pub(crate) settings: u64,
    /// The oldest settings of any part of the source that has to be folded again with newer settings.
    pub(crate) outdated: Option<u64>,
    /// The rooms that the readings name.
    pub(crate) named: NamedRooms,
    /// Whether the rollup is stored even where none is stored yet.
    pub(crate) is_stored_even_if_new: bool,
}
