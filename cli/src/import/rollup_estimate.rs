//! Estimates the rollups of an import: their items, and what folding them costs. Folds nothing.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use domain::{QuarterHour, Reading, Zone};

/// The readings that the rollup function takes at once: `BatchSize` of its event source mapping.
const BATCH: u64 = 500;
/// The bytes of a rollup's item without its metrics, and of a metric beside its name, at most.
const ITEM: u64 = 160;
const METRIC: u64 = 110;
/// The quarters of an hour of a day.
const QUARTERS: u64 = 96;

/// The buckets of all readings.
#[derive(Debug, Default)]
pub(super) struct RollupEstimate {
    /// Hashes, as of the readings: eight bytes a bucket.
    hasher: RandomState,
    quarters: HashSet<u64>,
    days: HashSet<u64>,
    readings: u64,
    bytes: u64,
    /// The bytes of the largest rollup.
    largest: u64,
}

impl RollupEstimate {
    /// Adds a reading of this size.
    pub(super) fn add(&mut self, reading: &Reading, bytes: u64) {
        let Reading { device, at, .. } = reading;
        self.quarters.insert(self.hasher.hash_one((device, QuarterHour::of(*at))));
        self.days.insert(self.hasher.hash_one((device, Zone::UTC.date(*at))));
        self.readings += 1;
        self.bytes += bytes;
        let metrics = reading.metrics().keys().map(|name| name.as_str().len() as u64 + METRIC);
        self.largest = self.largest.max(ITEM + metrics.sum::<u64>());
    }

    /// The rollups of 15 minutes.
    pub(super) fn quarters(&self) -> u64 {
        self.quarters.len() as u64
    }

    /// The rollups of days, as the days of UTC are.
    pub(super) fn days(&self) -> u64 {
        self.days.len() as u64
    }

    /// A bucket is folded once, and once more where one batch of the stream ends and the next begins.
    const fn edges(&self) -> u64 {
        self.readings / BATCH
    }

    /// One unit per started KB of each rollup.
    pub(super) fn write_units(&self) -> u64 {
        (self.quarters() + self.days() + 2 * self.edges()) * self.largest.div_ceil(1_024)
    }

    /// For each fold the rollup that is there, and consistently, with one unit per started 4 KB, what is
    /// folded: the readings of 15 minutes or the rollups of a day.
    pub(super) fn read_units(&self) -> u64 {
        let rollup = self.largest.div_ceil(4_096);
        let per_quarter = self.bytes.div_ceil(4_096 * self.quarters().max(1)).max(1);
        let per_day = (QUARTERS.min(self.quarters()) * self.largest).div_ceil(4_096);
        (self.quarters() + self.edges()) * (rollup + per_quarter)
            + (self.days() + self.edges()) * (rollup + per_day)
    }
}
