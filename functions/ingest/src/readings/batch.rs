//! The readings of a request, each with the places in the request that it was made of. Makes none.

use std::collections::hash_map::Entry as Slot;

use api::FieldError;
use domain::{Hints, Reading, Timestamp};

use crate::formats::draft::{Fault, Refusal};

/// The readings of a request, each with the indices of its entries and with what the entries say about the device. A
/// reading that is refused takes both along.
#[derive(Debug, Default)]
pub(crate) struct PlacedReadings {
    pub(crate) readings: Vec<Reading>,
    pub(crate) origins: Vec<Vec<usize>>,
    pub(crate) hints: Vec<Hints>,
}

/// The reading of an entry, and what the entry says about the device beside the values.
#[derive(Debug)]
pub(crate) struct DescribedReading {
    pub(crate) reading: Reading,
    pub(crate) hints: Hints,
    /// Whether the entry has a timestamp; else the reading has that of the arrival.
    pub(crate) has_timestamp: bool,
}

/// What the entries of a request became.
#[derive(Debug, Default)]
pub(crate) struct Assembled {
    /// Those with timestamps, no two of one device and timestamp.
    pub(crate) timed: PlacedReadings,
    /// Those without, at the timestamp of arrival, at most one of each device.
    pub(crate) arrivals: PlacedReadings,
    /// The time of arrival, which lines without a timestamp have in `timed`.
    pub(crate) arrived: Option<Timestamp>,
    /// The refused entries, in the order of the request.
    pub(crate) rejected: Vec<FieldError>,
    /// Whether an entry names a device that is not the sender's.
    pub(crate) is_foreign: bool,
    /// The number of payloads that are as old as their arrival because the device's clock is wrong.
    pub(crate) wrong_clocks: usize,
    /// The names of what is not stored because it is no number.
    pub(crate) ignored: Vec<String>,
}

impl PlacedReadings {
    /// Takes away the readings for which `refusal` says why. Returns a refusal for each of their entries.
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

    /// Takes readings away, and returns them.
    pub(crate) fn split_off(&mut self, mut is_taken: impl FnMut(&Reading) -> bool) -> Self {
        let (mut kept, mut split) = (Self::default(), Self::default());
        let Self { readings, origins, hints } = std::mem::take(self);
        for ((reading, origins), hints) in readings.into_iter().zip(origins).zip(hints) {
            let to = if is_taken(&reading) { &mut split } else { &mut kept };
            to.readings.push(reading);
            to.origins.push(origins);
            to.hints.push(hints);
        }
        *self = kept;
        split
    }

    /// Adds a reading, or merges it into the one in its slot.
    pub(super) fn add_or_merge<K>(
        &mut self,
        slot: Slot<'_, K, usize>,
        described: DescribedReading,
        origin: usize,
    ) -> Result<(), Refusal> {
        let DescribedReading { reading, hints, .. } = described;
        match slot {
            Slot::Vacant(slot) => {
                slot.insert(self.readings.len());
                self.readings.push(reading);
                self.origins.push(vec![origin]);
                self.hints.push(hints);
            }
            Slot::Occupied(slot) => {
                self.readings[*slot.get()].absorb(reading).map_err(Refusal::whole)?;
                self.origins[*slot.get()].push(origin);
                self.hints[*slot.get()].absorb(hints);
            }
        }
        Ok(())
    }

    /// Adds or merges a reading that shares no metric with the one in its slot.
    pub(super) fn add_once<K>(
        &mut self,
        slot: Slot<'_, K, usize>,
        described: DescribedReading,
        origin: usize,
    ) -> Result<(), Refusal> {
        if let Slot::Occupied(slot) = &slot
            && let Some(metric) = self.readings[*slot.get()].shared_metric(&described.reading)
        {
            let device = described.reading.device;
            let fault = Fault::SecondArrival { metric: metric.clone(), device };
            return Err(Refusal::of("timestamp", fault));
        }
        self.add_or_merge(slot, described, origin)
    }
}
