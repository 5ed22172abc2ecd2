//! The readings of a request, each with the places in the request that it was made of. Makes none.

use std::collections::hash_map::Entry as Slot;

use api::FieldError;
use domain::{Hints, Reading, Timestamp};

use crate::formats::draft::{Fault, Refusal};

/// Readings, and for each the places in the request that it was made of and what these teach of its device beside
/// the values. A reading that is refused takes that with it.
#[derive(Debug, Default)]
#[expect(clippy::struct_field_names, reason = "the other two are about the readings")]
pub(crate) struct Readings {
    pub(crate) readings: Vec<Reading>,
    pub(crate) origins: Vec<Vec<usize>>,
    pub(crate) hints: Vec<Hints>,
}

/// The readings of a request.
#[derive(Debug, Default)]
pub(crate) struct Assembled {
    /// Those with timestamps, no two of one device and timestamp.
    pub(crate) timed: Readings,
    /// Those without, at the timestamp of arrival, at most one of each device.
    pub(crate) arrivals: Readings,
    /// The timestamp of those in `timed` that have none of their own, as lines may.
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

impl Readings {
    /// Takes away the readings for which `fault` names a field and what is wrong with it.
    pub(crate) fn refuse(
        &mut self,
        rejected: &mut Vec<FieldError>,
        mut fault: impl FnMut(&Reading) -> Option<(String, String)>,
    ) {
        let mut faults = Vec::new();
        let refused = self.split_off(|reading| {
            let fault = fault(reading);
            let is_bad = fault.is_some();
            faults.extend(fault);
            is_bad
        });
        for (origins, (field, message)) in refused.origins.into_iter().zip(faults) {
            rejected.extend(origins.into_iter().map(|index| FieldError {
                index: Some(index),
                field: Some(field.clone()),
                message: message.clone(),
            }));
        }
    }

    /// Takes away those of the readings, and returns them.
    pub(crate) fn split_off(&mut self, mut is_one: impl FnMut(&Reading) -> bool) -> Self {
        let (mut kept, mut split) = (Self::default(), Self::default());
        let Self { readings, origins, hints } = std::mem::take(self);
        for ((reading, origins), hints) in readings.into_iter().zip(origins).zip(hints) {
            let to = if is_one(&reading) { &mut split } else { &mut kept };
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
        (reading, hints): (Reading, Hints),
        origin: usize,
    ) -> Result<(), Refusal> {
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
        (reading, hints): (Reading, Hints),
        origin: usize,
    ) -> Result<(), Refusal> {
        if let Slot::Occupied(slot) = &slot
            && let Some(metric) = self.readings[*slot.get()].shared_metric(&reading)
        {
            let fault = Fault::SecondArrival { metric: metric.clone(), device: reading.device };
            return Err(Refusal::of("timestamp", fault));
        }
        self.add_or_merge(slot, (reading, hints), origin)
    }
}
