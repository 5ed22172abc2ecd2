//! What this process remembers of the registry: all of it, or only places where it is too large. Asks no table.

use std::time::Duration;

use domain::{Device, DeviceObservation, Reading, Room, RoomId};
use runtime::clock::Clock;
use runtime::registry::{CachedRegistry, Snapshot};

use crate::registry::found::{FoundDevices, observations};
use crate::registry::place_cache::PlaceCache;

/// The registry in memory. If the registry has too many devices, only the rooms of its devices are remembered.
#[derive(Debug)]
pub(crate) struct Registry<C> {
    pub(crate) cache: CachedRegistry<C>,
    pub(super) places: PlaceCache<C>,
}

impl<C: Clock> Registry<C> {
    /// Remembers nothing yet.
    pub(crate) fn new(max_age: Duration, clock: C) -> Self {
        let cache = CachedRegistry::new(max_age, clock.clone());
        Self { cache, places: PlaceCache::new(max_age, clock) }
    }

    pub(super) fn keep_device(&self, snapshot: &Snapshot, device: &Device) {
        if snapshot.has_all_devices {
            self.cache.keep_device(device.clone());
        } else {
            self.places.keep(device);
        }
    }

    pub(super) fn keep_room(&self, snapshot: &Snapshot, room: Room) {
        if snapshot.has_all_rooms {
            self.cache.keep_room(room);
        } else {
            self.places.keep_room(&room.id);
        }
    }

    /// Updates remembered devices from stored readings, so that the next request sees a device's new room and new metrics.
    /// The registry function updates the table.
    pub(crate) fn remember(&self, stored: &[Reading], found: &FoundDevices) {
        let Some(current) = self.cache.current() else { return };
        let has_room =
            |room: &RoomId| current.rooms.contains_key(room) || self.places.has_room(room);

        // Most readings change nothing, and this test is cheaper than a summary.
        let news = stored.iter().filter(|reading| {
            let device = found.device_now(&reading.device, &current);
            device.is_some_and(|device| says_more(reading, device))
        });
        for (id, observation) in observations(news) {
            if let Some(device) = found.device_now(id, &current)
                && let Some(device) = with_observation(device, &observation, has_room)
            {
                self.keep_device(&current, &device);
            }
        }
    }
}

/// Whether a reading names another room than its device is in, a metric that the device has not, or another fact.
fn says_more(reading: &Reading, device: &Device) -> bool {
    let is_elsewhere = |room| device.place().room() != Some(room);
    reading.about.is_some()
        || reading.named_room.as_ref().is_some_and(is_elsewhere)
        || reading.metrics().keys().any(|name| !device.metrics().contains_key(name))
}

/// The device after its readings; `None` if the readings change nothing.
fn with_observation(
    device: &Device,
    observation: &DeviceObservation,
    has_room: impl Fn(&RoomId) -> bool,
) -> Option<Device> {
    let update = device.diff(observation, has_room);
    if update.room.is_none() && update.metrics.is_empty() && update.about.is_none() {
        return None;
    }
    let mut device = device.clone();
    update.apply(&mut device);
    Some(device)
}
