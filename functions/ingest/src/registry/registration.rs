//! Registers the devices and rooms that stored readings name, teaches devices what senders say of them, and
//! updates the cached devices. Does not change the room of a registered device in the table.

use std::collections::BTreeMap;

use domain::{
    Device, DeviceId, DeviceObservation, Hints, MAX_INTRODUCED_ROOMS, Reading, Room, RoomId,
};
use futures_util::{StreamExt as _, stream};
use runtime::clock::Clock;
use runtime::registry::{CachedRegistry, Registered};
use runtime::telemetry::WideEvent;
use table::{Invocation, RegisterDevices, StoreResult, TeachRegistry, UpdateOutcome};

use crate::registry::known::Known;
use crate::registry::places::KnownPlaces;

/// The number of devices that one request registers at the same time.
const REGISTER_CONCURRENCY: usize = 8;
/// The maximum number of devices that one request registers. The registry function registers the others
/// from the stream.
const MAX_REGISTERED: usize = 500;
/// The maximum number of registered devices that one request teaches. The next request teaches others.
const MAX_TAUGHT: usize = 25;

/// The readings of a request that are stored, and what these teach of their devices.
#[derive(Default)]
pub(crate) struct Stored {
    pub(crate) readings: Vec<Reading>,
    pub(crate) hints: BTreeMap<DeviceId, Hints>,
}

impl Stored {
    /// Adds a reading, and what it teaches beside its values.
    pub(crate) fn add(&mut self, reading: Reading, mut hints: Hints) {
        if !hints.is_empty() {
            hints.metrics.retain(|name, _| reading.metrics().contains_key(name));
            self.hints.entry(reading.device.clone()).or_default().absorb(hints);
        }
        self.readings.push(reading);
    }
}

/// Registers the devices and rooms that the registry does not know.
///
/// Repeated or concurrent calls keep the item that was stored first. An error is only logged, because the
/// registry function registers the same devices and rooms from the stream.
pub(crate) async fn register<C: Clock>(
    (registry, places): (&CachedRegistry<C>, &KnownPlaces<C>),
    store: &(impl RegisterDevices + TeachRegistry),
    known: &Known,
    stored: &Stored,
    invocation: &Invocation,
    log: &mut WideEvent,
) {
    let is_new = |reading: &&Reading| {
        !known.is_registered(&reading.device)
            || reading.named_room.as_ref().is_some_and(|room| !known.has_room(room))
    };
    let mut observations = observations(stored.readings.iter().filter(is_new));
    if observations.is_empty() {
        return;
    }
    for (id, observation) in &mut observations {
        observation.hints = stored.hints.get(id).cloned().unwrap_or_default();
    }
    let introduced_by = introducers(known, &stored.readings);
    log.set("registry.observations", observations.len());
    let registering = observations.into_iter().take(MAX_REGISTERED).map(|(id, observation)| {
        let device = known.device(id).cloned();
        let introduced_by = &introduced_by;
        async move {
            let is_known = |room: &RoomId| {
                known.has_room(room) || introduced_by.get(room).is_some_and(|by| *by != id)
            };
            registry.register(store, id, &observation, device, is_known, invocation).await
        }
    });
    let results: Vec<StoreResult<Registered>> = stream::iter(registering.collect::<Vec<_>>())
        .buffer_unordered(REGISTER_CONCURRENCY)
        .collect()
        .await;
    let (mut rooms, mut failed) = (Vec::new(), None);
    for result in results {
        match result {
            Ok(Registered::Device(found)) => {
                if !known.has_all_devices() {
                    places.keep(&found.device);
                    found.rooms.iter().for_each(|room| places.keep_room(&room.id));
                }
                rooms.extend(found.rooms);
            }
            Ok(Registered::Deleted(_)) => {}
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    if let Err(error) = name(registry, store, &rooms, &stored.hints, invocation).await {
        failed = failed.or(Some(error));
    }
    if let Some(error) = failed {
        log.warn("registry.error", &error);
    }
}

/// Names the rooms that the registry function has registered meanwhile: it knows no names.
async fn name<C: Clock>(
    registry: &CachedRegistry<C>,
    store: &impl TeachRegistry,
    rooms: &[Room],
    hints: &BTreeMap<DeviceId, Hints>,
    invocation: &Invocation,
) -> StoreResult<()> {
    for room in rooms.iter().filter(|room| room.name.is_none()) {
        let Some(name) = hints.values().find_map(|it| it.room_names.get(&room.id)) else {
            continue;
        };
        if let UpdateOutcome::Updated(room) = store.name_room(&room.id, name, invocation).await? {
            registry.keep_room(room);
        }
    }
    Ok(())
}

/// Applies the stored readings to the cached devices. The table is updated by the registry function.
///
/// The next request then fills in the room to which a device has just moved, and counts the device's new
/// metrics when it limits merging writes.
pub(crate) fn keep_learned<C: Clock>(
    (registry, places): (&CachedRegistry<C>, &KnownPlaces<C>),
    known: &Known,
    stored: &[Reading],
) {
    let Some(current) = registry.current() else { return };
    let device_now = |id: &DeviceId| current.devices.get(id).or_else(|| known.looked_up(id));
    // Most readings change nothing, and this test is cheaper than a summary.
    let is_news = |reading: &&Reading| {
        device_now(&reading.device).is_some_and(|device| {
            let is_elsewhere = |room| device.place().room() != Some(room);
            reading.named_room.as_ref().is_some_and(is_elsewhere)
                || reading.metrics().keys().any(|name| !device.metrics().contains_key(name))
        })
    };
    for (id, observation) in observations(stored.iter().filter(is_news)) {
        let Some(device) = device_now(id) else { continue };
        let update = device
            .diff(&observation, |room| current.rooms.contains_key(room) || places.has_room(room));
        if update.room.is_none() && update.metrics.is_empty() {
            continue;
        }
        let mut device = device.clone();
        update.apply(&mut device);
        if current.has_all_devices {
            registry.keep_device(device);
        } else {
            places.keep(&device);
        }
    }
}

/// Adds what the request teaches to the devices that the cache holds and that lack it.
///
/// An error is only logged, and a device that has changed is only read: the next request teaches it.
pub(crate) async fn teach<C: Clock>(
    (registry, _): (&CachedRegistry<C>, &KnownPlaces<C>),
    store: &impl TeachRegistry,
    known: &Known,
    stored: &Stored,
    invocation: &Invocation,
    log: &mut WideEvent,
) {
    let Some(current) = registry.current() else { return };
    let lacking = stored.hints.iter().filter_map(|(id, hints)| {
        let device = current.devices.get(id).or_else(|| known.looked_up(id))?;
        device.taught(hints).is_some().then_some((device, hints))
    });
    let teaching = lacking
        .take(MAX_TAUGHT)
        .map(|(device, hints)| async move { store.teach_device(device, hints, invocation).await });
    let results: Vec<StoreResult<UpdateOutcome<Device>>> =
        stream::iter(teaching.collect::<Vec<_>>())
            .buffer_unordered(REGISTER_CONCURRENCY)
            .collect()
            .await;
    for result in results {
        match result {
            Ok(UpdateOutcome::Updated(device) | UpdateOutcome::ConditionFailed(Some(device))) => {
                if current.has_all_devices {
                    registry.keep_device(device);
                }
            }
            Ok(UpdateOutcome::ConditionFailed(None)) => {}
            Err(error) => log.warn("registry.error", &error),
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

/// Maps each new room to the first device that names it and may introduce it. Only this device registers
/// the room, so that a request writes it once.
fn introducers<'a>(known: &Known, stored: &'a [Reading]) -> BTreeMap<&'a RoomId, &'a DeviceId> {
    let mut introduced_by = BTreeMap::new();
    let mut free: BTreeMap<&DeviceId, usize> = BTreeMap::new();
    for reading in stored {
        let Some(room) = reading.named_room.as_ref().filter(|room| !known.has_room(room)) else {
            continue;
        };
        let free = free.entry(&reading.device).or_insert_with(|| {
            let device = known.device(&reading.device);
            MAX_INTRODUCED_ROOMS.saturating_sub(device.map_or(0, |it| it.introduced_rooms().len()))
        });
        if *free > 0 && !introduced_by.contains_key(room) {
            *free -= 1;
            introduced_by.insert(room, &reading.device);
        }
    }
    introduced_by
}
