//! Readings into the table, with the rooms that the registry knows; then devices and rooms into the
//! registry. Reads no request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::FieldError;
use chrono::TimeDelta;
use domain::{Device, DeviceId, DeviceObservation, MAX_INTRODUCED_ROOMS, Place, Reading, RoomId};
use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use runtime::clock::Clock;
use runtime::registration;
use runtime::registry_cache::Snapshot;
use runtime::telemetry::WideEvent;
use table::{Added, Invocation, PutOutcome, StoreError, StoreResult};

use crate::assemble::{Assembled, Readings};
use crate::reply::Outcome;
use crate::{Ingest, Store};

/// How many readings without a timestamp are stored at once.
const ARRIVAL_CONCURRENCY: usize = 16;
/// How many milliseconds an arrival may be moved so that it takes no other reading's place.
const ARRIVAL_SLOTS: i64 = 10;
/// How many devices are registered at once.
const REGISTER_CONCURRENCY: usize = 8;
/// How many new devices a request registers; the stream registers the rest.
const MAX_REGISTERED: usize = 500;
/// How many rooms that the cache lacks a request looks up; the stream looks at the rest.
const MAX_ROOMS_LOOKED_UP: usize = 100;

/// How readings are written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mode {
    /// Whether a reading with a timestamp sets its metrics and leaves the others of that device and
    /// timestamp, instead of replacing them.
    pub(crate) merge: bool,
    /// Whether rooms are taken as they are sent: they are history, of which the registry knows nothing.
    pub(crate) rooms_given: bool,
}

/// The registry, with what the cache lacked looked up.
struct Known {
    snapshot: Arc<Snapshot>,
    devices: BTreeMap<DeviceId, Device>,
    rooms: BTreeSet<RoomId>,
}

impl Known {
    fn device(&self, id: &DeviceId) -> Option<&Device> {
        self.devices.get(id).or_else(|| self.snapshot.devices.get(id))
    }

    fn has_room(&self, id: &RoomId) -> bool {
        self.rooms.contains(id) || self.snapshot.rooms.contains_key(id)
    }
}

impl<S: Store, C: Clock> Ingest<S, C> {
    /// Stores readings; those without timestamps under `arrival`, which tells them from all others.
    pub(crate) async fn store(
        &self,
        assembled: Assembled,
        mode: Mode,
        arrival: &str,
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> Outcome {
        let Assembled { mut timed, mut arrivals, rejected, .. } = assembled;
        let mut outcome = Outcome { rejected, ..Outcome::default() };
        if timed.readings.is_empty() && arrivals.readings.is_empty() {
            outcome.count(log);
            return outcome;
        }
        let all = || timed.readings.iter().chain(&arrivals.readings);
        let known = match self.look_up(all(), invocation, log).await {
            Ok(known) => known,
            // Without the registry a reading's room is not known, and a reading is written once.
            Err(error) => {
                log.error("registry.error", &error);
                let origins = timed.origins.into_iter().chain(arrivals.origins);
                outcome.not_stored = origins.flatten().collect();
                outcome.not_stored.sort_unstable();
                outcome.cause = Some(error);
                outcome.count(log);
                return outcome;
            }
        };
        if !mode.rooms_given {
            let mut all: Vec<_> = timed.readings.iter_mut().chain(&mut arrivals.readings).collect();
            fill_in_rooms(&mut all, &known);
        }
        if mode.merge {
            refuse_endless_metrics(&mut timed, &known, &mut outcome.rejected);
        }

        let mut stored = Vec::new();
        let put = if mode.merge {
            self.store.merge_readings(&timed.readings, self.retention(), invocation).await
        } else {
            self.store.put_readings(&timed.readings, self.retention(), invocation).await
        };
        stored.extend(outcome.note(timed, put));
        // After the others, because one of them may have the very timestamp of the arrival.
        stored.extend(self.add_arrivals(arrivals, arrival, &mut outcome, invocation).await);
        outcome.not_stored.sort_unstable();
        outcome.rejected.sort_by_key(|refusal| refusal.index);
        if let Some(cause) = &outcome.cause {
            log.error("table.error", cause);
        }
        outcome.count(log);
        self.register(&known, &stored, invocation, log).await;
        self.keep_what_was_told(&stored);
        outcome
    }

    /// What the registry knows of the readings' devices and rooms: what the cache lacks is asked of the
    /// table, because another instance may have met it, or a person may have edited it.
    async fn look_up(
        &self,
        readings: impl Iterator<Item = &Reading>,
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> StoreResult<Known> {
        let (snapshot, stale) = self.registry.snapshot(&self.store, invocation).await?;
        if let Some(error) = stale {
            log.warn("registry.error", &error);
        }
        if !snapshot.unreadable.is_empty() {
            log.set("registry.unreadable", snapshot.unreadable.clone());
        }
        let (mut devices, mut rooms) = (BTreeSet::new(), BTreeSet::new());
        for reading in readings {
            if !snapshot.devices.contains_key(&reading.device) {
                devices.insert(reading.device.clone());
            }
            if let Some(room) =
                reading.named_room.as_ref().filter(|it| !snapshot.rooms.contains_key(*it))
                && rooms.len() < MAX_ROOMS_LOOKED_UP
            {
                rooms.insert(room.clone());
            }
        }
        let mut known = Known { snapshot, devices: BTreeMap::new(), rooms: BTreeSet::new() };
        if !devices.is_empty() {
            let ids: Vec<_> = devices.into_iter().collect();
            for device in self.store.find_devices(&ids, invocation).await?.found {
                self.registry.keep_device(device.clone());
                known.devices.insert(device.id.clone(), device);
            }
        }
        if !rooms.is_empty() {
            let ids: Vec<_> = rooms.into_iter().collect();
            for room in self.store.find_rooms(&ids, invocation).await?.found {
                known.rooms.insert(room.id.clone());
                self.registry.keep_room(room);
            }
        }
        Ok(known)
    }

    /// Stores readings at the timestamp of their arrival, each where no other reading is. Two requests of
    /// one device within a millisecond are two readings: the second is stored a millisecond later.
    async fn add_arrivals(
        &self,
        arrivals: Readings,
        arrival: &str,
        outcome: &mut Outcome,
        invocation: &Invocation,
    ) -> Vec<Reading> {
        let mut added = Vec::with_capacity(arrivals.readings.len());
        // A request under way takes some 13 KB: only so many are made at a time.
        for some in arrivals.readings.chunks(ARRIVAL_CONCURRENCY) {
            let adding = some.iter().map(|it| self.add_arrival(it.clone(), arrival, invocation));
            added.extend(join_all(adding).await);
        }
        let mut stored = Vec::new();
        for (added, origins) in added.into_iter().zip(arrivals.origins) {
            match added {
                Ok(Some(reading)) => {
                    outcome.accepted += origins.len();
                    stored.push(reading);
                }
                Ok(None) => {
                    let message = format!(
                        "is missing, and other readings of the device took all {ARRIVAL_SLOTS} milliseconds from its arrival on; send it again, or with a timestamp"
                    );
                    outcome.rejected.extend(origins.iter().map(|index| FieldError {
                        index: Some(*index),
                        field: Some("timestamp".to_owned()),
                        message: message.clone(),
                    }));
                    outcome.not_stored.extend(origins);
                    outcome.cause.get_or_insert(StoreError::Throttled("arrivals".into()));
                }
                Err(error) => {
                    outcome.not_stored.extend(origins);
                    outcome.cause.get_or_insert(error);
                }
            }
        }
        stored
    }

    /// Keeps what stored readings say of devices until the registry is read again: the next reading
    /// without a room is where the device has moved, and merging writes stay within the metrics that the
    /// registry may know.
    fn keep_what_was_told(&self, stored: &[Reading]) {
        let Some(current) = self.registry.current() else { return };
        // Most readings tell nothing new.
        let tells = |reading: &&Reading| {
            current.devices.get(&reading.device).is_some_and(|device| {
                let is_elsewhere = |room| device.place.room() != Some(room);
                reading.named_room.as_ref().is_some_and(is_elsewhere)
                    || reading.metrics().keys().any(|name| !device.metrics.contains_key(name))
            })
        };
        for (id, observation) in observations(stored.iter().filter(tells)) {
            let Some(device) = current.devices.get(id) else { continue };
            let lesson = device.diff(&observation, |room| current.rooms.contains_key(room));
            if lesson.room.is_none() && lesson.metrics.is_empty() {
                continue;
            }
            let mut device = device.clone();
            if let Some((at, room)) = lesson.room {
                device.place = Place::Learned(room, at);
            }
            let metrics = lesson.metrics.iter().map(|name| (name.clone(), name.into()));
            device.metrics.extend(metrics);
            self.registry.keep_device(device);
        }
    }

    /// The reading as it is stored, or none where every timestamp that it may have is taken.
    async fn add_arrival(
        &self,
        mut reading: Reading,
        arrival: &str,
        invocation: &Invocation,
    ) -> StoreResult<Option<Reading>> {
        let arrived = reading.at;
        for slot in 0..ARRIVAL_SLOTS {
            reading.at = arrived.saturating_add(TimeDelta::milliseconds(slot));
            let added =
                self.store.add_arrival(&reading, arrival, self.retention(), invocation).await?;
            if added == Added::Stored {
                return Ok(Some(reading));
            }
        }
        Ok(None)
    }

    /// Registers the devices and rooms that the registry does not know. Done twice, or by many at
    /// once, it leaves the items of whoever came first; a failure is left to the stream function.
    async fn register(
        &self,
        known: &Known,
        stored: &[Reading],
        invocation: &Invocation,
        log: &mut WideEvent,
    ) {
        let is_new = |reading: &&Reading| {
            known.device(&reading.device).is_none()
                || reading.named_room.as_ref().is_some_and(|room| !known.has_room(room))
        };
        let observations = observations(stored.iter().filter(is_new));
        if observations.is_empty() {
            return;
        }
        let introduced_by = introducers(known, stored);
        log.set("registry.observations", observations.len());
        let registering = observations.into_iter().take(MAX_REGISTERED).map(|(id, observation)| {
            let device = known.device(id).cloned();
            let introduced_by = &introduced_by;
            async move {
                let is_known = |room: &RoomId| {
                    known.has_room(room) || introduced_by.get(room).is_some_and(|by| *by != id)
                };
                let registered = registration::register(
                    &self.store,
                    id,
                    &observation,
                    device,
                    is_known,
                    invocation,
                )
                .await?;
                self.registry.keep_device(registered.device);
                registered.rooms.into_iter().for_each(|room| self.registry.keep_room(room));
                Ok(())
            }
        });
        let results: Vec<StoreResult<()>> = stream::iter(registering.collect::<Vec<_>>())
            .buffer_unordered(REGISTER_CONCURRENCY)
            .collect()
            .await;
        if let Some(error) = results.into_iter().find_map(Result::err) {
            log.warn("registry.error", &error);
        }
    }
}

/// What readings say of each device.
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

/// The first device that names each new room and may introduce it: it is registered once.
fn introducers<'a>(known: &Known, stored: &'a [Reading]) -> BTreeMap<&'a RoomId, &'a DeviceId> {
    let mut introduced_by = BTreeMap::new();
    let mut free: BTreeMap<&DeviceId, usize> = BTreeMap::new();
    for reading in stored {
        let Some(room) = reading.named_room.as_ref().filter(|room| !known.has_room(room)) else {
            continue;
        };
        let free = free.entry(&reading.device).or_insert_with(|| {
            let device = known.device(&reading.device);
            MAX_INTRODUCED_ROOMS.saturating_sub(device.map_or(0, |it| it.introduced_rooms.len()))
        });
        if *free > 0 && !introduced_by.contains_key(room) {
            *free -= 1;
            introduced_by.insert(room, &reading.device);
        }
    }
    introduced_by
}

/// Fills in rooms: the one that the device names in the same request at or before the reading, else the
/// registry's.
fn fill_in_rooms(readings: &mut [&mut Reading], known: &Known) {
    readings.sort_by(|a, b| (&a.device, a.at).cmp(&(&b.device, b.at)));
    let mut named: Option<(DeviceId, RoomId)> = None;
    for reading in readings {
        if let Some(room) = &reading.named_room {
            named = Some((reading.device.clone(), room.clone()));
        } else if let Some((_, room)) = named.as_ref().filter(|(id, _)| *id == reading.device) {
            reading.room = Some(room.clone());
        }
        if let Some(device) = known.device(&reading.device) {
            reading.fill_in_room(device);
        }
    }
}

/// Merging writes may add up: a reading could grow for ever, and every merge costs what the whole weighs.
/// So they bring no metric beyond those that the registry may know of a device.
fn refuse_endless_metrics(timed: &mut Readings, known: &Known, rejected: &mut Vec<FieldError>) {
    let endless = |reading: &Reading| {
        let device = known.device(&reading.device).filter(|it| it.knows_enough_metrics())?;
        reading.metrics().keys().find(|name| !device.metrics.contains_key(*name)).cloned()
    };
    let Readings { readings, origins } = std::mem::take(timed);
    for (reading, origins) in readings.into_iter().zip(origins) {
        if let Some(metric) = endless(&reading) {
            rejected.extend(origins.into_iter().map(|index| {
                FieldError {
                    index: Some(index),
                    field: Some(metric.to_string()),
                    message:
                        "is not among the metrics that the registry knows of the device, and it \
                          knows as many as it may; a merging write can add no more"
                            .to_owned(),
                }
            }));
        } else {
            timed.readings.push(reading);
            timed.origins.push(origins);
        }
    }
}

impl Outcome {
    fn count(&self, log: &mut WideEvent) {
        log.count("readings.accepted", self.accepted);
        log.count("readings.rejected", self.rejected.len());
        log.count("readings.not_stored", self.not_stored.len());
    }

    /// Notes what became of readings, and returns those that are stored.
    fn note(&mut self, put: Readings, result: PutOutcome) -> Vec<Reading> {
        let mut not_stored = result.not_stored.into_iter().peekable();
        let mut stored = Vec::with_capacity(put.readings.len());
        for (n, (reading, origins)) in put.readings.into_iter().zip(put.origins).enumerate() {
            if not_stored.next_if_eq(&n).is_some() {
                self.not_stored.extend(origins);
            } else {
                self.accepted += origins.len();
                stored.push(reading);
            }
        }
        self.cause = result.cause;
        stored
    }
}
