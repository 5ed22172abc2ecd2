//! The readings of a request, each with the indices of the entries from which it was made. Makes no reading.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry as Slot;

use api::FieldError;
use domain::{DeviceId, Reading};

use crate::formats::draft::{Fault, Refusal};

/// The readings of a request, each with the indices of its entries.
#[derive(Debug, Default)]
pub(crate) struct PlacedReadings {
    pub(crate) readings: Vec<Reading>,
    /// For each reading, the indices of the request's entries from which it was made.
    pub(crate) origins: Vec<Vec<usize>>,
}

/// The reading of an entry.
#[derive(Debug)]
pub(crate) struct EntryReading {
    pub(crate) reading: Reading,
    /// Whether the entry has a timestamp. Otherwise the reading has the time of arrival.
    pub(crate) has_timestamp: bool,
}

/// The readings and the refusals that were made of a request's entries.
#[derive(Debug, Default)]
pub(crate) struct Assembled {
    /// Readings with a timestamp and all points of line protocol, at most one of each device and timestamp.
    pub(crate) timed: PlacedReadings,
    /// Readings without a timestamp, dated at their arrival, at most one of each device.
    pub(crate) arrivals: PlacedReadings,
    /// The refused entries, in the order of the request.
    pub(crate) rejected: Vec<FieldError>,
    /// Whether an entry names a device that is not the sender's.
    pub(crate) is_foreign: bool,
    /// The number of payloads whose clock was wrong, so that the time of arrival was taken.
    pub(crate) wrong_clocks: usize,
    /// The names of members that are not stored because they are not numbers.
    pub(crate) ignored: Vec<String>,
    /// The devices that a source leaves out, with the number of their readings.
    pub(crate) left_out: BTreeMap<DeviceId, usize>,
}

impl PlacedReadings {
    /// Removes the readings for which `refusal` returns a reason. Returns a refusal for each entry of these readings.
    pub(crate) fn refuse(
        &mut self,
        mut refusal: impl FnMut(&Reading) -> Option<FieldError>,
    ) -> Vec<FieldError> {
        let mut reasons = Vec::new();
        let refused = self.split_off(|reading| {
            let reason = refusal(reading);
            let is_refused = reason.is_some();
            reasons.extend(reason);
            is_refused
        });

        let mut refusals = Vec::new();
        for (indices, reason) in refused.origins.into_iter().zip(reasons) {
            for index in indices {
                refusals.push(FieldError { index: Some(index), ..reason.clone() });
            }
        }
        refusals
    }

    /// Removes the readings that `is_taken` accepts, and returns them.
    pub(crate) fn split_off(&mut self, mut is_taken: impl FnMut(&Reading) -> bool) -> Self {
        let (mut kept, mut split) = (Self::default(), Self::default());
        let Self { readings, origins } = std::mem::take(self);
        for (reading, origins) in readings.into_iter().zip(origins) {
            let to = if is_taken(&reading) { &mut split } else { &mut kept };
            to.readings.push(reading);
            to.origins.push(origins);
        }
        *self = kept;
        split
    }

    /// Adds a reading and stores its index in `slot`, an entry of a map. If `slot` has the index of a reading already,
    /// merges both readings into one.
    pub(super) fn add_or_merge<K>(
        &mut self,
        slot: Slot<'_, K, usize>,
        reading: Reading,
        origin: usize,
    ) -> Result<(), Refusal> {
        match slot {
            Slot::Vacant(slot) => {
                slot.insert(self.readings.len());
                self.readings.push(reading);
                self.origins.push(vec![origin]);
            }
            Slot::Occupied(slot) => {
                self.readings[*slot.get()]
                    .merge_later_within_limit(reading)
                    .map_err(Refusal::whole)?;
                self.origins[*slot.get()].push(origin);
            }
        }

        Ok(())
    }

    /// Adds or merges a reading, but refuses the reading if it has a metric of the reading in `slot`.
    pub(super) fn add_once<K>(
        &mut self,
        slot: Slot<'_, K, usize>,
        reading: Reading,
        origin: usize,
    ) -> Result<(), Refusal> {
        if let Slot::Occupied(slot) = &slot
            && let Some(metric) = self.readings[*slot.get()].shared_metric(&reading)
        {
            let fault = Fault::SecondArrival { metric: metric.clone(), device: reading.device };
            return Err(Refusal::of("timestamp", fault));
        }
        self.add_or_merge(slot, reading, origin)
    }
}
