//! Estimates the rollups of an import: the number of items, and the cost of folding. Folds nothing.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use domain::{QuarterHour, Reading, Zone};

/// The maximum number of readings per invocation of the rollup function: `BatchSize` of its event source mapping.
const BATCH: u64 = 500;
/// The maximum bytes of a rollup's item without its metrics, and of a metric without its name.
const ITEM: u64 = 160;
const METRIC: u64 = 110;
/// The quarters of an hour in a day.
const QUARTERS: u64 = 96;

/// The counted buckets of all readings.
#[derive(Debug, Default)]
pub(super) struct RollupEstimate {
    /// Buckets are counted by hashes of eight bytes, to save memory.
    hasher: RandomState,
    quarters: HashSet<u64>,
    days: HashSet<u64>,
    readings: u64,
    bytes: u64,
    /// The size of the largest rollup in bytes.
    largest: u64,
}

impl RollupEstimate {
    /// Adds a reading of `bytes` bytes.
    pub(super) fn add(&mut self, reading: &Reading, bytes: u64) {
        let Reading { device, at, .. } = reading;
        self.quarters.insert(self.hasher.hash_one((device, QuarterHour::of(*at))));
        self.days.insert(self.hasher.hash_one((device, Zone::UTC.date(*at))));
        self.readings += 1;
        self.bytes += bytes;
        let metrics = reading.metrics().keys().map(|name| name.as_str().len() as u64 + METRIC);
        self.largest = self.largest.max(ITEM + metrics.sum::<u64>());
    }

    /// The number of rollups of 15 minutes.
    pub(super) fn quarters(&self) -> u64 {
        self.quarters.len() as u64
    }

    /// The number of day rollups, assuming days of UTC.
    pub(super) fn days(&self) -> u64 {
        self.days.len() as u64
    }

    /// The number of borders between batches of the stream. A bucket on such a border is folded twice.
    const fn edges(&self) -> u64 {
        self.readings / BATCH
    }

    /// The write units: one per started KB of each rollup.
    pub(super) fn write_units(&self) -> u64 {
        (self.quarters() + self.days() + 2 * self.edges()) * self.largest.div_ceil(1_024)
    }

    /// The read units of the folds. Each fold reads the existing rollup and, consistently, its sources: readings of 15
    /// minutes, or the rollups of a day. A consistent read costs one unit per started 4 KB.
    pub(super) fn read_units(&self) -> u64 {
        let rollup = self.largest.div_ceil(4_096);
        let per_quarter = self.bytes.div_ceil(4_096 * self.quarters().max(1)).max(1);
        let per_day = (QUARTERS.min(self.quarters()) * self.largest).div_ceil(4_096);
        (self.quarters() + self.edges()) * (rollup + per_quarter)
            + (self.days() + self.edges()) * (rollup + per_day)
    }
}
