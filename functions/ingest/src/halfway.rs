//! What requests have stored that the table's capacity let in by half: sent again, only the other half is stored, so that
//! each attempt gets further. Holds hashes, no readings.
//!
//! A batch that needs more than the units of an attempt would otherwise be begun from its start for ever. That an earlier
//! write is told later changes nothing: whoever wrote or deleted the same reading meanwhile did so after it.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};

use chrono::TimeDelta;
use domain::{Reading, Timestamp};

/// How long a sender may wait before it sends a batch again.
const REMEMBERED: TimeDelta = TimeDelta::minutes(2);
/// The number of readings that are remembered. Beyond it, all others are forgotten.
const MAX_REMEMBERED: usize = 50_000;

/// The readings that refused requests have stored, by their hashes.
#[derive(Debug, Default)]
pub(crate) struct Halfway {
    hasher: RandomState,
    stored: Mutex<Stored>,
}

#[derive(Debug, Default)]
struct Stored {
    hashes: HashSet<u64>,
    /// Until when they count.
    until: Option<Timestamp>,
}

impl Halfway {
    fn hash(&self, reading: &Reading, is_merged: bool) -> u64 {
        self.hasher.hash_one((reading, is_merged))
    }

    /// The places of the readings that no earlier attempt has stored.
    pub(crate) fn left(&self, readings: &[Reading], is_merged: bool, now: Timestamp) -> Vec<usize> {
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        if stored.until.is_none_or(|until| until <= now) {
            stored.hashes.clear();
        }
        let is_left = |reading| {
            stored.hashes.is_empty() || !stored.hashes.contains(&self.hash(reading, is_merged))
        };
        (0..readings.len()).filter(|place| is_left(&readings[*place])).collect()
    }

    /// Remembers what a refused request has stored.
    pub(crate) fn keep<'a>(
        &self,
        readings: impl Iterator<Item = &'a Reading>,
        is_merged: bool,
        now: Timestamp,
    ) {
        let hashes: Vec<u64> = readings.map(|it| self.hash(it, is_merged)).collect();
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        if stored.hashes.len() + hashes.len() > MAX_REMEMBERED {
            stored.hashes.clear();
        }
        stored.hashes.extend(hashes);
        stored.until = Some(now.saturating_add(REMEMBERED));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(n: i64, value: &str) -> Reading {
        let at = Timestamp::from_millis(1_768_147_200_000 + n).expect("a timestamp");
        table::given::reading("d", at, None, &[("t", value)])
    }

    #[test]
    fn what_is_stored_is_left_out_for_a_while_and_only_as_it_was() {
        let halfway = Halfway::default();
        let now = Timestamp::from_millis(1_768_147_200_000).expect("a timestamp");
        let all: Vec<_> = (0..4).map(|n| reading(n, "1")).collect();
        assert_eq!(halfway.left(&all, false, now), [0, 1, 2, 3]);
        halfway.keep(all[1..3].iter(), false, now);
        assert_eq!(halfway.left(&all, false, now), [0, 3]);
        assert_eq!(halfway.left(&all, true, now), [0, 1, 2, 3], "merged, it is another write");
        let corrected: Vec<_> = (0..4).map(|n| reading(n, "2")).collect();
        assert_eq!(halfway.left(&corrected, false, now), [0, 1, 2, 3]);
        let later = now.saturating_add(REMEMBERED);
        assert_eq!(halfway.left(&all, false, later), [0, 1, 2, 3]);
    }

    #[test]
    fn memory_is_bounded() {
        let halfway = Halfway::default();
        let now = Timestamp::from_millis(1_768_147_200_000).expect("a timestamp");
        let many: Vec<_> = (0..40_000).map(|n| reading(n, "1")).collect();
        halfway.keep(many.iter(), false, now);
        let more: Vec<_> = (40_000..60_000).map(|n| reading(n, "1")).collect();
        halfway.keep(more.iter(), false, now);
        assert!(halfway.left(&more, false, now).is_empty());
        assert_eq!(halfway.left(&many, false, now).len(), 40_000);
    }
}
