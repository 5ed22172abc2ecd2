//! Limits how many metrics merging writes give a device, and how many rooms a device introduces. New names of the last
//! minutes count until the registry has noted them. Reads and writes no table.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use domain::{
    Device, DeviceId, MAX_INTRODUCED_ROOMS, MAX_KNOWN_METRICS, MetricName, RoomId, Timestamp,
};
use runtime::registry::FoundDevices;
use table::BoundedMemory;

use crate::store_request::{StoreRequest, refusal};

/// New metrics from merging writes of the last minutes, which count towards the limit until the registry has them.
#[derive(Debug, Default)]
pub(crate) struct MetricLimit(NewNames<MetricName>);

/// The metrics that a request has introduced, by device.
pub(crate) type IntroducedMetrics = Vec<(DeviceId, Vec<MetricName>)>;

impl MetricLimit {
    /// Refuses readings that would give a device more metrics than it may have. Returns the new metrics of the others.
    pub(crate) fn refuse_beyond_limit(
        &self,
        request: &mut StoreRequest<'_>,
        found: &FoundDevices,
        now: Timestamp,
    ) -> IntroducedMetrics {
        let mut introduced = Vec::new();
        request.refuse_timed(|reading| {
            let known = found.device(&reading.device).map(Device::metrics);
            let is_known = |name: &MetricName| known.is_some_and(|known| known.contains_key(name));
            let free = MAX_KNOWN_METRICS.saturating_sub(known.map_or(0, BTreeMap::len));
            let names = reading.metrics().keys();

            let new = self.0.introduce(&reading.device, names, is_known, free, now);
            let beyond = match new {
                Ok(names) => {
                    introduced.push((reading.device.clone(), names));
                    return None;
                }
                Err(beyond) => beyond,
            };
            let message = format!(
                "is not among the metrics of the device, which has {MAX_KNOWN_METRICS} or gets them just now; a \
                 merging write can add no more"
            );
            Some(refusal(beyond.to_string(), message))
        });
        introduced
    }

    /// Forgets the metrics of a request that is refused as a whole.
    pub(crate) fn forget(&self, introduced: &IntroducedMetrics, now: Timestamp) {
        for (id, names) in introduced {
            self.0.forget(id, names, now);
        }
    }
}

/// Rooms that devices introduced in the last minutes, which count towards the limit until the registry has noted them.
#[derive(Debug, Default)]
pub(crate) struct RoomLimit(NewNames<RoomId>);

impl RoomLimit {
    /// Returns whether a device may introduce a room. If so, remembers the room. `known` is the device in the registry.
    pub(crate) fn introduce(
        &self,
        id: &DeviceId,
        room: &RoomId,
        known: Option<&Device>,
        now: Timestamp,
    ) -> bool {
        let noted = known.map(Device::introduced_rooms);
        let is_noted = |room: &RoomId| noted.is_some_and(|noted| noted.contains(room));
        let free = MAX_INTRODUCED_ROOMS.saturating_sub(noted.map_or(0, BTreeSet::len));
        self.0.introduce(id, std::iter::once(room), is_noted, free, now).is_ok()
    }
}

/// The largest number of devices whose new names are remembered. Beyond it, all names are forgotten.
const MAX_DEVICES: usize = 1_000;
/// How long names are remembered. After this time, the registry has noted all names that were stored.
const REMEMBERED: TimeDelta = TimeDelta::minutes(3);

/// Names that the registry may not have noted yet. They count, so that overlapping requests cannot exceed the limit.
#[derive(Debug)]
struct NewNames<N>(BoundedMemory<DeviceId, BTreeSet<N>>);

impl<N: Clone> Default for NewNames<N> {
    fn default() -> Self {
        Self(BoundedMemory::new(MAX_DEVICES, REMEMBERED))
    }
}

impl<N: Ord + Clone> NewNames<N> {
    /// Introduces names of a device, unless more than `free` names would then be unknown to the registry. In that case
    /// introduces no name and returns the first name beyond the limit. Returns the names that were not remembered yet.
    fn introduce<'a>(
        &self,
        id: &DeviceId,
        names: impl Iterator<Item = &'a N>,
        is_noted: impl Fn(&N) -> bool,
        free: usize,
        now: Timestamp,
    ) -> Result<Vec<N>, &'a N> {
        let unknown: Vec<&N> = names.filter(|name| !is_noted(name)).collect();
        if unknown.is_empty() {
            return Ok(Vec::new());
        }

        let mut remembered = self.0.get(id, now).unwrap_or_default();
        remembered.retain(|name| !is_noted(name));
        let is_new = |name: &&N| !remembered.contains(*name);
        let new: Vec<&N> = unknown.into_iter().filter(is_new).collect();
        // The first name beyond the limit.
        if let Some(beyond) = new.get(free.saturating_sub(remembered.len())) {
            return Err(beyond);
        }

        let new: Vec<N> = new.into_iter().cloned().collect();
        if !new.is_empty() {
            remembered.extend(new.iter().cloned());
            self.0.keep(id.clone(), remembered, now);
        }
        Ok(new)
    }

    fn forget(&self, id: &DeviceId, names: &[N], now: Timestamp) {
        let mut remembered = self.0.get(id, now).unwrap_or_default();
        remembered.retain(|name| !names.contains(name));
        self.0.keep(id.clone(), remembered, now);
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use domain::given;

    use super::*;

    #[test]
    fn rooms_count_until_they_are_noted_or_forgotten() {
        let limit = RoomLimit::default();
        let id = given::device("d");
        let now = Timestamp::from_millis(1_000_000).unwrap();
        let introduce =
            |n: usize, now| limit.introduce(&id, &given::room(&format!("r{n}")), None, now);
        for n in 0..MAX_INTRODUCED_ROOMS {
            assert!(introduce(n, now));
        }
        assert!(!introduce(MAX_INTRODUCED_ROOMS, now), "one more");
        assert!(introduce(0, now), "the same room again");

        let later = now.saturating_add(TimeDelta::minutes(3));
        assert!(
            introduce(MAX_INTRODUCED_ROOMS, later),
            "what was not noted until now was not stored"
        );
    }
}
