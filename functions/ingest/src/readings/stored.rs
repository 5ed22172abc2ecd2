//! The readings of a request that are in the table, and what they say about their devices. Writes none.

use std::collections::{BTreeMap, BTreeSet};

use domain::{DeviceId, Hints, Reading};
use table::StoreError;

/// The readings of a request that are stored, and what they say about their devices.
#[derive(Default)]
pub(crate) struct StoredReadings {
    pub(crate) readings: Vec<Reading>,
    pub(crate) hints: BTreeMap<DeviceId, Hints>,
    /// The indices of entries with a timestamp that say something: sent again, they are stored once.
    pub(crate) teaching: BTreeMap<DeviceId, Vec<usize>>,
}

impl StoredReadings {
    /// Adds a reading, and what was said about the device beside the values.
    pub(crate) fn add(&mut self, reading: Reading, mut hints: Hints) {
        if !hints.is_empty() {
            hints.metrics.retain(|name, _| reading.metrics().contains_key(name));
            self.hints.entry(reading.device.clone()).or_default().absorb(hints);
        }
        self.readings.push(reading);
    }

    /// Notes who introduced devices.
    pub(crate) fn introduce(
        &mut self,
        devices: impl IntoIterator<Item = DeviceId>,
        introduced_by: &str,
    ) {
        for id in devices {
            self.hints.entry(id).or_default().introduced_by = Some(introduced_by.to_owned());
        }
    }
}

/// Devices that do not have yet what their readings say about them, and will if the readings are sent again.
#[derive(Debug)]
pub(crate) struct Untaught {
    pub(crate) devices: BTreeSet<DeviceId>,
    /// Why the first of them has it not.
    pub(crate) cause: StoreError,
}
