//! Registers the devices and rooms that stored readings name, teaches devices what senders say of them, and
//! updates the cached devices. Does not change the room of a registered device in the table.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use domain::{
    Device, DeviceId, DeviceObservation, Hints, MAX_INTRODUCED_ROOMS, Reading, Room, RoomId,
};
use futures_util::{StreamExt as _, stream};
use runtime::clock::Clock;
use runtime::registry::{CachedRegistry, Registered};
use runtime::telemetry::WideEvent;
use table::{Invocation, RegisterDevices, StoreError, StoreResult, TeachRegistry, UpdateOutcome};

use crate::registry::known::Known;
use crate::registry::places::KnownPlaces;

/// The number of devices that one request registers at the same time.
const REGISTER_CONCURRENCY: usize = 8;
/// The maximum number of devices that one request registers. The registry function registers the others
/// from the stream.
const MAX_REGISTERED: usize = 500;
/// The maximum number of registered devices that one request teaches. Readings of the others are to be sent again.
const MAX_TAUGHT: usize = 500;
/// The attempts to teach a device that others change meanwhile: the registry function does, from the stream.
const MAX_ATTEMPTS: usize = 10;

/// The readings of a request that are stored, and what these teach of their devices.
#[derive(Default)]
pub(crate) struct Stored {
    pub(crate) readings: Vec<Reading>,
    pub(crate) hints: BTreeMap<DeviceId, Hints>,
    /// The places in the request of those with a timestamp that teach: sent again, they are stored once.
    pub(crate) teaching: BTreeMap<DeviceId, Vec<usize>>,
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

/// What became of the devices that a request registers.
#[derive(Default)]
pub(crate) struct Registering {
    /// They are registered, by this request or meanwhile by another.
    registered: BTreeMap<DeviceId, Device>,
    /// They are left to the registry function, which knows nothing of what senders teach; asked again, they may not be.
    left: BTreeSet<DeviceId>,
}

/// Registers the devices and rooms that the registry does not know, and names rooms that have no name.
///
/// Repeated or concurrent calls keep the item that was stored first, which may be the registry function's. That
/// registers the same devices and rooms from the stream, so an error is logged. Returns the devices that are
/// registered now, or were before.
pub(crate) async fn register<C: Clock>(
    (registry, places): (&CachedRegistry<C>, &KnownPlaces<C>),
    store: &(impl RegisterDevices + TeachRegistry),
    known: &Known,
    stored: &Stored,
    invocation: &Invocation,
    log: &mut WideEvent,
) -> Registering {
    let is_new = |reading: &&Reading| {
        !known.is_registered(&reading.device)
            || reading.named_room.as_ref().is_some_and(|room| !known.has_room(room))
    };
    let mut observations = observations(stored.readings.iter().filter(is_new));
    let mut registering = Registering::default();
    let mut rooms = known.unnamed_rooms(stored.hints.values());
    if observations.is_empty() && rooms.is_empty() {
        return registering;
    }
    for (id, observation) in &mut observations {
        observation.hints = stored.hints.get(id).cloned().unwrap_or_default();
    }
    let introduced_by = introducers(known, &stored.readings);
    log.set("registry.observations", observations.len());
    registering.left = observations.keys().skip(MAX_REGISTERED).map(|id| (*id).clone()).collect();
    let asking = observations.into_iter().take(MAX_REGISTERED).map(|(id, observation)| {
        let device = known.device(id).cloned();
        let introduced_by = &introduced_by;
        async move {
            let is_known = |room: &RoomId| {
                known.has_room(room) || introduced_by.get(room).is_some_and(|by| *by != id)
            };
            let asked = registry.register(store, id, &observation, device, is_known, invocation);
            (id, asked.await)
        }
    });
    let results: Vec<(&DeviceId, StoreResult<Registered>)> =
        stream::iter(asking.collect::<Vec<_>>())
            .buffer_unordered(REGISTER_CONCURRENCY)
            .collect()
            .await;
    let mut failed = None;
    for (id, result) in results {
        match result {
            Ok(Registered::Device(found)) => {
                if !known.has_all_devices() {
                    places.keep(&found.device);
                    found.rooms.iter().for_each(|room| places.keep_room(&room.id));
                }
                rooms.extend(found.rooms);
                registering.registered.insert(id.clone(), *found.device);
            }
            Ok(Registered::Deleted(_)) => {}
            Err(error) => {
                registering.left.extend(error.is_retryable().then(|| id.clone()));
                failed = failed.or(Some(error));
            }
        }
    }
    if let Err(error) = name(registry, store, &rooms, &stored.hints, invocation).await {
        failed = failed.or(Some(error));
    }
    if let Some(error) = failed {
        log.warn("registry.error", &error);
    }
    registering
}

/// Names the rooms that the registry function has registered, now or before: it knows no names.
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

/// Adds what the request teaches to the devices that lack it. Returns the devices that are not taught and may be later,
/// with the reason: whoever sends their readings again teaches them.
pub(crate) async fn teach<C: Clock>(
    (registry, _): (&CachedRegistry<C>, &KnownPlaces<C>),
    store: &impl TeachRegistry,
    (known, registering): (&Known, Registering),
    stored: &Stored,
    invocation: &Invocation,
    log: &mut WideEvent,
) -> Option<(BTreeSet<DeviceId>, StoreError)> {
    let current = registry.current()?;
    let Registering { registered, mut left } = registering;
    left.retain(|id| stored.hints.contains_key(id));
    let mut cause = (!left.is_empty()).then(|| StoreError::Throttled("devices to register".into()));
    let lacking = stored.hints.iter().filter_map(|(id, hints)| {
        let of_request = || registered.get(id).or_else(|| known.looked_up(id));
        let device = current.devices.get(id).or_else(of_request)?;
        device.taught(hints).is_some().then_some((device, hints))
    });
    let mut lacking: Vec<_> = lacking.collect();
    let beyond = lacking.split_off(lacking.len().min(MAX_TAUGHT));
    if !beyond.is_empty() {
        left.extend(beyond.iter().map(|(device, _)| device.id().clone()));
        cause = cause.or_else(|| Some(StoreError::Throttled("devices to teach".into())));
    }
    let teaching = lacking.into_iter().map(|(device, hints)| async move {
        (device.id(), teach_one(store, device, hints, invocation).await)
    });
    let results: Vec<(&DeviceId, StoreResult<Option<Device>>)> =
        stream::iter(teaching.collect::<Vec<_>>())
            .buffer_unordered(REGISTER_CONCURRENCY)
            .collect()
            .await;
    for (id, result) in results {
        match result {
            Ok(Some(device)) if current.has_all_devices => registry.keep_device(device),
            Ok(_) => {}
            Err(error) => {
                log.warn("registry.error", &error);
                if error.is_retryable() {
                    left.insert(id.clone());
                    cause = cause.or(Some(error));
                }
            }
        }
    }
    cause.map(|cause| (left, cause))
}

/// The device with what it is taught; none where it is being deleted. Others may change it meanwhile.
async fn teach_one(
    store: &impl TeachRegistry,
    device: &Device,
    hints: &Hints,
    invocation: &Invocation,
) -> StoreResult<Option<Device>> {
    let mut known = Cow::Borrowed(device);
    for _ in 0..MAX_ATTEMPTS {
        match store.teach_device(&known, hints, invocation).await? {
            UpdateOutcome::Updated(device) => return Ok(Some(device)),
            UpdateOutcome::ConditionFailed(Some(now)) => known = Cow::Owned(now),
            UpdateOutcome::ConditionFailed(None) => return Ok(None),
        }
    }
    Err(StoreError::Contended(format!("the device {}", device.id())))
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
