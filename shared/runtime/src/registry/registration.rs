//! Registers new devices and rooms of stored readings, and updates devices in memory by their readings. Does not change
//! registered devices in the table.

use std::collections::{BTreeMap, BTreeSet};

use domain::{DeletedDevice, Device, DeviceId, DeviceObservation, Reading, Room, RoomId};
use futures_util::{StreamExt as _, stream};
use table::{InsertOutcome, RegisterDevices, Registration, Session, StoreResult};

use super::{CachedRegistry, FoundDevices};
use crate::clock::Clock;
use crate::telemetry::WideEvent;

/// The number of devices that one request writes at the same time.
const CONCURRENCY: usize = 8;
/// The maximum number of devices that one request registers. The registry function registers the others
/// from the stream.
const MAX_REGISTERED: usize = 500;

/// The new devices and rooms that stored readings name.
struct FirstNames<'a> {
    /// The observations of new devices, and of devices that introduce a room.
    observations: BTreeMap<&'a DeviceId, DeviceObservation>,
    introduced_rooms: BTreeSet<&'a RoomId>,
}

impl<C: Clock> CachedRegistry<C> {
    /// Registers unknown devices and rooms. An item that already exists is kept.
    ///
    /// An error is only logged: the registry function registers the same devices and rooms from the stream.
    pub async fn register_new(
        &self,
        stored: &[Reading],
        found: &FoundDevices,
        session: Session<'_, impl RegisterDevices>,
        log: &mut WideEvent,
    ) {
        let new = FirstNames::of(stored, found);
        if new.observations.is_empty() {
            return;
        }

        log.set("registry.observations", new.observations.len());

        let registering = new.observations.iter().take(MAX_REGISTERED).map(|(id, observation)| {
            let is_known_from_others =
                |room: &RoomId| new.is_known_from_others(observation, room, found);
            self.register(session, id, observation, is_known_from_others, found)
        });
        let registering: Vec<_> = registering.collect();
        let results = stream::iter(registering).buffer_unordered(CONCURRENCY);
        let failures: Vec<_> =
            results.filter_map(async |result: StoreResult<()>| result.err()).collect().await;

        if let Some(error) = failures.first() {
            log.warn("registry.error", error);
        }
    }

    /// Registers the device of an observation if it is new, and then the rooms that the device introduces.
    async fn register(
        &self,
        session: Session<'_, impl RegisterDevices>,
        id: &DeviceId,
        observation: &DeviceObservation,
        is_known_from_others: impl Fn(&RoomId) -> bool,
        found: &FoundDevices,
    ) -> StoreResult<()> {
        let device = match found.device(id) {
            // Changed in memory only: the registry function stores in the table which rooms a device introduced.
            Some(device) => with_introduced_rooms(device, observation),
            None => {
                let new = observation.new_device(id.clone(), is_known_from_others);
                match session.register_device(&new).await? {
                    Registration::Inserted => new,
                    Registration::Exists(device) => *device,
                    Registration::Deleted(deletion) => {
                        self.keep_deleted(DeletedDevice { id: id.clone(), deletion });
                        return Ok(());
                    }
                }
            }
        };
        self.keep_device(device);

        for room in &observation.introduced_rooms {
            let name = observation.room_names.get(room).cloned();
            let first_seen = observation.rooms[room].first;
            let new = Room { name, ..Room::new(room.clone(), first_seen) };
            let room = match session.register_room(&new).await? {
                InsertOutcome::Inserted => new,
                InsertOutcome::Exists(room) => room,
            };
            self.keep_room(room);
        }

        Ok(())
    }

    /// Updates the devices in memory from stored readings, so that the next request finds a device's new room and new
    /// metrics. The registry function updates the table.
    pub fn remember(&self, stored: &[Reading], found: &FoundDevices) {
        let Some(current) = self.current() else { return };
        let has_room =
            |room: &RoomId| current.rooms.contains_key(room) || self.cached_places.has_room(room);
        let device_now = |id: &DeviceId| current.devices.get(id).or_else(|| found.devices.get(id));

        // Most readings change nothing. This test is cheaper than summarising them.
        let news = stored.iter().filter(|reading| {
            device_now(&reading.device).is_some_and(|device| says_more(reading, device))
        });

        for (id, observation) in observations(news) {
            if let Some(device) = device_now(id)
                && let Some(device) = with_observation(device, &observation, has_room)
            {
                self.keep_device(device);
            }
        }
    }
}

/// Summarises readings by device.
fn observations<'a>(
    readings: impl Iterator<Item = &'a Reading>,
) -> BTreeMap<&'a DeviceId, DeviceObservation> {
    let mut observations: BTreeMap<&DeviceId, DeviceObservation> = BTreeMap::new();
    for reading in readings {
        observations
            .entry(&reading.device)
            .and_modify(|observation| observation.see(reading))
            .or_insert_with(|| DeviceObservation::of(reading));
    }
    observations
}

/// Whether a reading says something new about its device: another room, a new metric or another fact.
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

impl<'a> FirstNames<'a> {
    fn of(stored: &'a [Reading], found: &FoundDevices) -> Self {
        let introduces_room =
            |reading: &Reading| reading.about.as_ref().is_some_and(|about| about.introduces_room);
        let needs_registration =
            |reading: &&Reading| !found.is_registered(&reading.device) || introduces_room(reading);
        let introducing = stored.iter().filter(|reading| introduces_room(reading));
        let introduced_rooms = introducing.filter_map(|reading| reading.named_room.as_ref());
        let observations = observations(stored.iter().filter(needs_registration));
        Self { observations, introduced_rooms: introduced_rooms.collect() }
    }

    /// Whether a room is known without this device: it is registered, or another device of the request introduces it.
    /// [`DeviceObservation::new_device`] takes rooms for which this is false as introduced by the device.
    fn is_known_from_others(
        &self,
        observation: &DeviceObservation,
        room: &RoomId,
        found: &FoundDevices,
    ) -> bool {
        !observation.introduced_rooms.contains(room)
            && (found.has_room(room) || self.introduced_rooms.contains(room))
    }
}

/// The device with the rooms that its readings introduce.
fn with_introduced_rooms(device: &Device, observation: &DeviceObservation) -> Device {
    let rooms = observation.introduced_rooms.iter().cloned();
    let with_rooms = device.changed(|parts| parts.introduced_rooms.extend(rooms));
    with_rooms.unwrap_or_else(|_| device.clone())
}
