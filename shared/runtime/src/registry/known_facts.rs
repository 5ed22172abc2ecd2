//! Remembers facts that readings give about devices which memory does not hold, if the registry has the facts already.
//! Reads no table.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use chrono::TimeDelta;
use domain::{Device, Reading, Timestamp};
use table::BoundedMemory;

/// The largest number of remembered devices and facts. Beyond it, all are forgotten.
const MAX_KNOWN: usize = 50_000;

/// Facts about devices that the registry has, each as a hash of the device and of all that a reading says about it.
#[derive(Debug)]
pub(super) struct KnownFacts {
    known: BoundedMemory<u64, ()>,
    hasher: RandomState,
}

impl KnownFacts {
    /// A memory in which each fact counts for this time.
    pub(super) fn new(max_age: Duration) -> Self {
        let max_age = TimeDelta::from_std(max_age).unwrap_or(TimeDelta::MAX);
        Self { known: BoundedMemory::new(MAX_KNOWN, max_age), hasher: RandomState::new() }
    }

    /// Whether a reading says nothing about its device that may be new to the registry.
    pub(super) fn has_all_of(&self, reading: &Reading, now: Timestamp) -> bool {
        reading.about.is_none() || self.known.get(&self.hash(reading), now).is_some()
    }

    /// Notes the facts of a reading, if the device has all of them. The device was just read.
    pub(super) fn note(&self, reading: &Reading, device: &Device, now: Timestamp) {
        if reading.about.as_ref().is_some_and(|about| device.news(about).is_none()) {
            self.known.keep(self.hash(reading), (), now);
        }
    }

    fn hash(&self, reading: &Reading) -> u64 {
        self.hasher.hash_one((&reading.device, &reading.about))
    }
}
