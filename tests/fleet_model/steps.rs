//! Stays that begin as a design says. Moves no device.

use table::db::{Write, present};
use table::item::Item;
use table::item::attribute::STAY;
use table::keys::PK;

use crate::gate::rules::{Rules, changes};

/// A design of the stays that are learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Design {
    /// A stay is written for the version and the place that were read.
    Ours,
    /// A stay is written whatever is there now.
    Blind,
}

impl Rules for Design {
    fn are_ours(&self) -> bool {
        *self == Self::Ours
    }

    fn made(&self, mut write: Write, _known: Option<Item>) -> Option<Write> {
        if changes(&write, STAY) {
            write.conditions = vec![present(PK)];
        }
        Some(write)
    }
}
