//! What a batch teaches, written to the registry. Reads no record and puts nothing aside.

use std::collections::{BTreeMap, BTreeSet};

use domain::{Device, DeviceId, DeviceObservation, Order, RoomId, TimeRange, Timestamp};
use runtime::clock::Clock;
use runtime::panic::{Panic, catching};
use runtime::registration;
use runtime::telemetry::{WideEvent, chain};
use table::keys::{DEVICES, ROOMS};
use table::{
    Invocation, Listing, RangeQuery, ReadingKey, StoreError, StoreResult, UnreadableItem,
    UpdateOutcome,
};

use crate::{DeadLetter, DeadLetters, Learned, Poison, Registry, Seen, Store};

/// How often a write begins again because the registry changed meanwhile.
const ATTEMPTS: usize = 5;
/// How many of a device's newest readings are looked through for one that names a room.
const MAX_LOOKED_THROUGH: usize = 200;

/// The devices and rooms of a batch, as they are now.
struct Current {
    devices: BTreeMap<DeviceId, Device>,
    /// The rooms that are registered, and since when each is known to be named by readings.
    rooms: BTreeMap<RoomId, Timestamp>,
}

impl<S: Store, D: DeadLetters, C: Clock> Registry<S, D, C> {
    /// Writes what the devices' observations teach.
    pub(crate) async fn learn(
        &self,
        batch: &BTreeMap<DeviceId, Seen>,
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> Learned {
        let mut learned = Learned::default();
        let Some(first) = batch.values().map(|seen| seen.first_record).min() else {
            return learned;
        };
        let named: BTreeSet<&RoomId> =
            batch.values().flat_map(|seen| seen.observation.rooms.keys()).collect();
        let (mut current, unreadable) = match self.read(batch.keys(), &named, invocation).await {
            Ok(read) => read,
            Err(error) => {
                log.error("registry.error", &error);
                learned.failed = Some(first);
                return learned;
            }
        };
        for item in &unreadable {
            let letter =
                DeadLetter { pk: item.pk.clone(), sk: item.sk.clone(), reason: chain(item) };
            learned.poison.push(Poison { letter, first_record: first });
        }
        let is_damaged =
            |pk: &str, id: &str| unreadable.iter().any(|item| item.pk == pk && item.sk == id);
        // A damaged room is registered all the same, and nothing can be learned of it.
        let damaged = named.iter().filter(|id| is_damaged(ROOMS, id.as_str()));
        current.rooms.extend(damaged.map(|id| ((*id).clone(), Timestamp::MIN)));
        // First all rooms, because a device may be in one that another device introduces.
        let devices = batch.iter().filter(|(id, _)| !is_damaged(DEVICES, id.as_str()));
        let mut registered = Vec::new();
        for (id, seen) in devices {
            let registering =
                Box::pin(self.register(id, &seen.observation, &mut current, invocation));
            match catching(registering).await {
                Ok(Ok(device)) => registered.push((device, seen)),
                failed => {
                    learned.note((DEVICES, id.as_str()), failed.map(|it| it.map(drop)), seen, log);
                }
            }
        }
        for (device, seen) in registered {
            let id = device.id.clone();
            let learning = Box::pin(self.apply_observation(
                device,
                &seen.observation,
                &mut current,
                invocation,
            ));
            let written = catching(learning).await;
            learned.note((DEVICES, id.as_str()), written, seen, log);
        }
        for id in named {
            let naming =
                batch.values().filter_map(|it| Some((it.observation.rooms.get(id)?.first, it)));
            let Some((first_seen, seen)) = naming.min_by_key(|(first, _)| *first) else { continue };
            if current.rooms.get(id).is_some_and(|known| first_seen < *known) {
                let written = self.store.update_room(id, first_seen, invocation).await;
                learned.note((ROOMS, id.as_str()), Ok(written.map(drop)), seen, log);
            }
        }
        learned
    }

    /// The devices and rooms as they are this moment: what another instance wrote a moment ago counts.
    async fn read<'a>(
        &self,
        devices: impl Iterator<Item = &'a DeviceId>,
        rooms: &BTreeSet<&RoomId>,
        invocation: &Invocation,
    ) -> StoreResult<(Current, Vec<UnreadableItem>)> {
        let devices: Vec<_> = devices.cloned().collect();
        let rooms: Vec<_> = rooms.iter().map(|id| (*id).clone()).collect();
        let devices = self.store.find_devices(&devices, invocation).await?;
        let rooms = match rooms.as_slice() {
            [] => Listing::default(),
            rooms => self.store.find_rooms(rooms, invocation).await?,
        };
        let current = Current {
            devices: devices.found.into_iter().map(|it| (it.id.clone(), it)).collect(),
            rooms: rooms.found.into_iter().map(|it| (it.id, it.first_seen)).collect(),
        };
        Ok((current, devices.unreadable.into_iter().chain(rooms.unreadable).collect()))
    }

    async fn register(
        &self,
        id: &DeviceId,
        observation: &DeviceObservation,
        current: &mut Current,
        invocation: &Invocation,
    ) -> StoreResult<Device> {
        let known = current.devices.remove(id);
        let is_known = |room: &RoomId| current.rooms.contains_key(room);
        let registered =
            registration::register(&self.store, id, observation, known, is_known, invocation)
                .await?;
        let rooms = registered.rooms.into_iter();
        current.rooms.extend(rooms.map(|room| (room.id, room.first_seen)));
        Ok(registered.device)
    }

    async fn apply_observation(
        &self,
        mut device: Device,
        observation: &DeviceObservation,
        current: &mut Current,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        let id = device.id.clone();
        for _ in 0..ATTEMPTS {
            let mut lesson = device.diff(observation, |room| current.rooms.contains_key(room));
            if let Some(seen) = lesson.room.take() {
                lesson.room = self.newest_room(&device, seen, current, invocation).await?;
            }
            if lesson.is_empty() {
                return Ok(());
            }
            match self.store.update_device(&device, &lesson, invocation).await? {
                UpdateOutcome::Updated(_) => return Ok(()),
                // Somebody was faster, or a person has decided: what is there now is the new base.
                UpdateOutcome::ConditionFailed(Some(now)) => device = now,
                UpdateOutcome::ConditionFailed(None) => break,
            }
        }
        Err(StoreError::Unavailable(format!("the item of {id} kept changing").into()))
    }

    async fn is_registered(
        &self,
        room: &RoomId,
        current: &mut Current,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        if !current.rooms.contains_key(room) {
            let found = self.store.find_rooms(std::slice::from_ref(room), invocation).await?.found;
            current.rooms.extend(found.into_iter().map(|room| (room.id, room.first_seen)));
        }
        Ok(current.rooms.contains_key(room))
    }

    /// The room that the newest of the device's readings names, at or after the one seen in the batch;
    /// none where the device is there already.
    ///
    /// The registry is not written per reading, so it does not know how new its own room is: a late
    /// reading from elsewhere could look newer. The readings themselves know. Where none of the newest
    /// names a room, the device stays where it is, and the registry notes as of when, so that the next
    /// late reading does not make it look through them again.
    async fn newest_room(
        &self,
        device: &Device,
        seen: (Timestamp, RoomId),
        current: &mut Current,
        invocation: &Invocation,
    ) -> StoreResult<Option<(Timestamp, RoomId)>> {
        let Ok(range) = TimeRange::new(seen.0, Timestamp::MAX) else { return Ok(Some(seen)) };
        let mut query = RangeQuery {
            range,
            order: Order::Descending,
            after: None,
            limit: 10,
            consistent: true,
        };
        let mut newest = None;
        loop {
            let page = self.store.device_readings(&device.id, &query, invocation).await?;
            for reading in &page.readings {
                newest.get_or_insert(reading.at);
                let Some(room) = &reading.named_room else { continue };
                // What no device may introduce is in readings only; nobody moves there.
                if self.is_registered(room, current, invocation).await? {
                    let told = (reading.at, room.clone());
                    return Ok(Some(told).filter(|_| device.place.room() != Some(room)));
                }
            }
            match (page.readings.last(), newest, device.place.room()) {
                (Some(last), _, _) if page.has_more && query.limit == 10 => {
                    query.after = Some(ReadingKey::of(last));
                    query.limit = MAX_LOOKED_THROUGH - 10;
                }
                (Some(_), Some(newest), Some(room)) if page.has_more => {
                    return Ok(Some((newest, room.clone())));
                }
                // Deleted since, or in no room so far: what the stream said is all there is.
                _ => return Ok(Some(seen)),
            }
        }
    }
}

impl Learned {
    /// Notes what became of one item: what fails for good is poison, anything else is to come again.
    fn note(
        &mut self,
        (pk, sk): (&str, &str),
        written: Result<StoreResult<()>, Panic>,
        seen: &Seen,
        log: &mut WideEvent,
    ) {
        let reason = match written {
            Ok(Ok(())) => return,
            Ok(Err(error)) if error.is_permanent() => chain(&error),
            Err(panic) => panic.to_string(),
            Ok(Err(error)) => {
                log.error("registry.error", &error);
                let record = seen.first_record;
                self.failed = Some(self.failed.map_or(record, |first| first.min(record)));
                return;
            }
        };
        let letter = DeadLetter { pk: pk.to_owned(), sk: sk.to_owned(), reason };
        self.poison.push(Poison { letter, first_record: seen.first_record });
    }
}
