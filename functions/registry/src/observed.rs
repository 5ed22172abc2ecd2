//! The observations of devices in a batch, and devices whose readings the table throttles. Reads no table.

use std::collections::BTreeMap;

use domain::{DeviceId, DeviceObservation, Reading};
use runtime::stream::Recorded;
use table::StoreError;

/// The observation of one device in a batch, and the first record of that device.
#[derive(Debug)]
pub(crate) struct ObservedDevice {
    pub(crate) observation: DeviceObservation,
    pub(crate) first_record: usize,
}

/// A device whose readings could not be queried, because the table throttled the query. So its room is unknown; for a
/// deleted device, also whether it has new readings.
#[derive(Debug)]
pub(crate) struct ThrottledDevice {
    pub(crate) id: DeviceId,
    pub(crate) first_record: usize,
    pub(crate) error: StoreError,
}

/// The observations of a batch, by device.
pub(crate) fn observations(readings: &[Recorded<Reading>]) -> BTreeMap<DeviceId, ObservedDevice> {
    let mut devices: BTreeMap<DeviceId, ObservedDevice> = BTreeMap::new();
    for Recorded { record, change: reading } in readings {
        let first = || ObservedDevice {
            observation: DeviceObservation::of(reading),
            first_record: *record,
        };
        devices
            .entry(reading.device.clone())
            .and_modify(|seen| seen.observation.see(reading))
            .or_insert_with(first);
    }
    devices
}
