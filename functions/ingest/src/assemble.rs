//! Drafts become readings: one a device and timestamp, the bad ones named. Asks nobody and stores nothing.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use api::FieldError;
use domain::{DeviceId, Reading};
use table::ReadingKey;

use crate::body;
use crate::reading::{self, Draft, Refusal, Sender, Times};

/// Readings, and for each the places in the request that it was made of.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    pub(crate) readings: Vec<Reading>,
    pub(crate) origins: Vec<Vec<usize>>,
}

/// What a request holds.
#[derive(Debug, Default)]
pub(crate) struct Assembled {
    /// Those with timestamps, no two of one device and timestamp.
    pub(crate) timed: Readings,
    /// Those without, at the timestamp of arrival, at most one of each device.
    pub(crate) arrivals: Readings,
    /// What cannot be stored, in the order of the request.
    pub(crate) rejected: Vec<FieldError>,
    /// Whether a reading was of a device that is not the sender's.
    pub(crate) foreign: bool,
}

impl Readings {
    fn push(&mut self, reading: Reading, origin: usize) {
        self.readings.push(reading);
        self.origins.push(vec![origin]);
    }

    fn absorb(&mut self, place: usize, reading: Reading, origin: usize) -> Result<(), Refusal> {
        self.readings[place].absorb(reading).map_err(Refusal::whole)?;
        self.origins[place].push(origin);
        Ok(())
    }
}

/// Makes readings of the entries of a request.
///
/// What has the same device and timestamp becomes one reading, the later values winning. What has no
/// timestamp becomes one reading too, but not by losing a value: a second one of the same metric is
/// refused, because the request does not say which was measured when.
pub(crate) fn assemble(
    entries: Vec<body::Entry<'_>>,
    sender: Sender<'_>,
    times: &Times,
) -> Assembled {
    let mut all = Assembled::default();
    let mut places: HashMap<ReadingKey, usize> = HashMap::new();
    let mut arrivals: HashMap<DeviceId, usize> = HashMap::new();
    for (index, entry) in entries.into_iter().enumerate() {
        let draft =
            entry.map_err(Refusal::whole).and_then(|members| reading::read(members, sender, times));
        let assembled = draft.and_then(|Draft { reading, has_timestamp }| {
            if has_timestamp {
                match places.entry(ReadingKey::of(&reading)) {
                    Entry::Occupied(place) => all.timed.absorb(*place.get(), reading, index),
                    Entry::Vacant(place) => {
                        place.insert(all.timed.readings.len());
                        all.timed.push(reading, index);
                        Ok(())
                    }
                }
            } else {
                match arrivals.entry(reading.device.clone()) {
                    Entry::Occupied(place) => {
                        let first = &all.arrivals.readings[*place.get()];
                        if let Some(metric) = first.shared_metric(&reading) {
                            return Err(Refusal::second_arrival(&reading.device, metric));
                        }
                        all.arrivals.absorb(*place.get(), reading, index)
                    }
                    Entry::Vacant(place) => {
                        place.insert(all.arrivals.readings.len());
                        all.arrivals.push(reading, index);
                        Ok(())
                    }
                }
            }
        });
        if let Err(Refusal { field, message, forbidden }) = assembled {
            all.foreign |= forbidden;
            all.rejected.push(FieldError { index: Some(index), field, message });
        }
    }
    all
}
