//! Registers the devices and rooms that stored readings name. Changes no registered device.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    Device, DeviceId, DeviceObservation, Hints, MAX_INTRODUCED_ROOMS, Reading, Room, RoomId,
};
use futures_util::{StreamExt as _, stream};
use runtime::clock::Clock;
use runtime::registry::Registered;
use runtime::telemetry::WideEvent;
use table::{Invocation, RegisterDevices, StoreResult, TeachRegistry, UpdateOutcome};

use crate::readings::StoredReadings;
use crate::registry::found::{FoundDevices, observations};
use crate::registry::remembered::Registry;

/// The number of devices that one request writes at the same time.
pub(super) const CONCURRENCY: usize = 8;
/// The maximum number of devices that one request registers. The registry function registers the others
/// from the stream.
const MAX_REGISTERED: usize = 500;

/// What became of the devices that a request registers.
#[derive(Default)]
pub(crate) struct Registration {
    /// Devices that are registered, by this request or meanwhile by another.
    pub(super) registered: BTreeMap<DeviceId, Device>,
    /// Devices that this request did not register. The registry function registers them without what senders say; a
    /// repeated request can register them with it.
    pub(super) left: BTreeSet<DeviceId>,
}

impl<C: Clock> Registry<C> {
    /// Registers unknown devices and rooms, and names rooms that have no name. An item that already exists is kept.
    ///
    /// An error is only logged: the registry function registers the same devices and rooms from the stream.
    pub(crate) async fn register_new(
        &self,
        store: &(impl RegisterDevices + TeachRegistry),
        stored: &StoredReadings,
        found: &FoundDevices,
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> Registration {
        let mut registration = Registration::default();
        let observations = observations_of_new(stored, found);
        let mut rooms = found.unnamed_rooms(stored.hints.values());
        if observations.is_empty() && rooms.is_empty() {
            return registration;
        }
        log.set("registry.observations", observations.len());

        let left = observations.keys().skip(MAX_REGISTERED);
        registration.left = left.map(|id| (*id).clone()).collect();
        let introduced_by = introducers(found, &stored.readings);
        let registering = observations.into_iter().take(MAX_REGISTERED).map(async |(id, seen)| {
            let is_known = |room: &RoomId| {
                found.has_room(room) || introduced_by.get(room).is_some_and(|by| *by != id)
            };
            let device = found.device(id).cloned();
            let result = self.cache.register(store, id, &seen, device, is_known, invocation).await;
            (id, result)
        });
        let registering: Vec<_> = registering.collect();
        let mut results = stream::iter(registering).buffer_unordered(CONCURRENCY);

        let mut failed = None;
        while let Some((id, result)) = results.next().await {
            match result {
                Ok(Registered::Device(new)) => {
                    if !found.has_all_devices() {
                        self.places.keep(&new.device);
                        new.rooms.iter().for_each(|room| self.places.keep_room(&room.id));
                    }
                    rooms.extend(new.rooms);
                    registration.registered.insert(id.clone(), *new.device);
                }
                Ok(Registered::Deleted(_)) => {}
                Err(error) => {
                    registration.left.extend(error.is_retryable().then(|| id.clone()));
                    failed = failed.or(Some(error));
                }
            }
        }

        let named = self.name_rooms(store, &rooms, &stored.hints, invocation).await;
        if let Some(error) = failed.or(named.err()) {
            log.warn("registry.error", &error);
        }
        registration
    }

    /// Names each room without a name for which the request has one. The registry function makes rooms without names.
    async fn name_rooms(
        &self,
        store: &impl TeachRegistry,
        rooms: &[Room],
        hints: &BTreeMap<DeviceId, Hints>,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        for room in rooms.iter().filter(|room| room.name.is_none()) {
            let Some(name) = hints.values().find_map(|hints| hints.room_names.get(&room.id)) else {
                continue;
            };
            let named = store.name_room(&room.id, name, invocation).await?;
            if let UpdateOutcome::Updated(room) = named {
                self.cache.keep_room(room);
            }
        }
        Ok(())
    }
}

/// What stored readings say of devices that are new, or that name a new room.
fn observations_of_new<'a>(
    stored: &'a StoredReadings,
    found: &FoundDevices,
) -> BTreeMap<&'a DeviceId, DeviceObservation> {
    let is_new = |reading: &&Reading| {
        let names_new_room = |room| !found.has_room(room);
        !found.is_registered(&reading.device)
            || reading.named_room.as_ref().is_some_and(names_new_room)
    };
    let mut observations = observations(stored.readings.iter().filter(is_new));
    for (id, observation) in &mut observations {
        observation.hints = stored.hints.get(id).cloned().unwrap_or_default();
    }
    observations
}

/// Maps each new room to the first device that names it and may introduce it. Only this device registers
/// the room, so that a request writes it once.
fn introducers<'a>(
    found: &FoundDevices,
    stored: &'a [Reading],
) -> BTreeMap<&'a RoomId, &'a DeviceId> {
    let mut introduced_by = BTreeMap::new();
    let mut free: BTreeMap<&DeviceId, usize> = BTreeMap::new();
    for reading in stored {
        let Some(room) = reading.named_room.as_ref().filter(|room| !found.has_room(room)) else {
            continue;
        };
        let free = free.entry(&reading.device).or_insert_with(|| {
            let introduced = |device: &Device| device.introduced_rooms().len();
            MAX_INTRODUCED_ROOMS.saturating_sub(found.device(&reading.device).map_or(0, introduced))
        });
        if *free > 0 && !introduced_by.contains_key(room) {
            *free -= 1;
            introduced_by.insert(room, &reading.device);
        }
    }
    introduced_by
}
