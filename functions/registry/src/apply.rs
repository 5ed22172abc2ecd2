//! Applies the observations of a batch to the registry. Parses no record and sends no dead letter.

use std::collections::{BTreeMap, BTreeSet};

use domain::{Device, DeviceId, DeviceObservation, Order, Place, RoomId, TimeRange, Timestamp};
use runtime::panic::catching;
use runtime::registry::{self, Registered, RegisteredDevice, is_gone};
use runtime::stream::BatchResult;
use runtime::telemetry::{WideEvent, chain};
use table::keys::{DEVICES, ROOMS};
use table::shards::Shard;
use table::{
    FindRegistry, Invocation, Listing, QueryReadings, RangeQuery, ReadingKey, RegisterDevices,
    StoreError, StoreResult, UnreadableItem, UpdateOutcome, UpdateRegistry,
};

use crate::ports::RegistryStore;
use crate::seen::Seen;

/// The number of attempts at an update whose item keeps changing.
const MAX_ATTEMPTS: usize = 5;
/// The number of a device's newest readings that are searched for one that names a room.
const MAX_SEARCHED_READINGS: usize = 200;

/// The devices and rooms of a batch, as they are now.
struct Current {
    devices: BTreeMap<DeviceId, Device>,
    /// The rooms that are registered, and since when each is known to be named by readings.
    rooms: BTreeMap<RoomId, Timestamp>,
}

/// Writes what the devices' observations add to the registry.
pub(crate) async fn apply(
    store: &impl RegistryStore,
    mut batch: BTreeMap<DeviceId, Seen>,
    invocation: &Invocation,
    log: &mut WideEvent,
) -> BatchResult {
    let mut result = BatchResult::default();
    let Some(first) = batch.values().map(|seen| seen.first_record).min() else {
        return result;
    };
    let (mut current, unreadable) = match read(store, &mut batch, invocation).await {
        Ok(read) => read,
        Err(error) => {
            log.error("table.error", &error);
            result.retry_from(first);
            return result;
        }
    };
    let named = rooms_of(&batch);
    for item in &unreadable {
        result.give_up(first, (&item.pk, &item.sk), chain(item));
    }
    let is_damaged = |partition: &str, id: &str| {
        unreadable.iter().any(|item| Shard::parse(&item.pk, partition).is_some() && item.sk == id)
    };
    // A damaged room counts as registered, and nothing about it is written.
    let damaged = named.iter().filter(|id| is_damaged(ROOMS, id.as_str()));
    current.rooms.extend(damaged.map(|id| ((*id).clone(), Timestamp::MIN)));
    // All rooms come first, because a device may be in one that another device introduces.
    let devices = batch.iter().filter(|(id, _)| !is_damaged(DEVICES, id.as_str()));
    let mut registered = Vec::new();
    for (id, seen) in devices {
        let registering = Box::pin(register(store, id, seen, &mut current, invocation));
        match catching(registering).await {
            Ok(Ok(Some(device))) => registered.push((device, seen)),
            Ok(Ok(None)) => {}
            failed => {
                let failed = failed.map(|it| it.map(drop));
                result.note(seen.first_record, (DEVICES, id.as_str()), failed, log);
            }
        }
    }
    for (device, seen) in registered {
        let id = device.id().clone();
        let applying = Box::pin(apply_observation(store, device, seen, &mut current, invocation));
        let written = catching(applying).await;
        result.note(seen.first_record, (DEVICES, id.as_str()), written, log);
    }
    for id in named {
        let naming =
            batch.values().filter_map(|it| Some((it.observation.rooms.get(id)?.first, it)));
        let Some((first_seen, seen)) = naming.min_by_key(|(first, _)| *first) else { continue };
        if current.rooms.get(id).is_some_and(|known| first_seen < *known) {
            let written = store.update_room(id, first_seen, invocation).await.map(drop);
            result.note(seen.first_record, (ROOMS, id.as_str()), Ok(written), log);
        }
    }
    result
}

/// The rooms that readings of a batch name.
fn rooms_of(batch: &BTreeMap<DeviceId, Seen>) -> BTreeSet<&RoomId> {
    batch.values().flat_map(|seen| seen.observation.rooms.keys()).collect()
}

/// Reads the devices and rooms as they are now, with what another instance has just written. Takes the
/// devices out of the batch that are gone: a late record of a deleted reading registers nothing.
async fn read(
    store: &(impl FindRegistry + QueryReadings),
    batch: &mut BTreeMap<DeviceId, Seen>,
    invocation: &Invocation,
) -> StoreResult<(Current, Vec<UnreadableItem>)> {
    let devices: Vec<_> = batch.keys().cloned().collect();
    let devices = store.find_devices(&devices, invocation).await?;
    for device in &devices.deleted {
        if is_gone(store, device, invocation).await? {
            batch.remove(&device.id);
        }
    }
    let rooms: Vec<_> = rooms_of(batch).into_iter().cloned().collect();
    let rooms = match rooms.as_slice() {
        [] => Listing::default(),
        rooms => store.find_rooms(rooms, invocation).await?,
    };
    let current = Current {
        devices: devices.found.into_iter().map(|it| (it.id().clone(), it)).collect(),
        rooms: rooms.found.into_iter().map(|it| (it.id, it.first_seen)).collect(),
    };
    Ok((current, devices.unreadable.into_iter().chain(rooms.unreadable).collect()))
}

/// Registers a device and the rooms that it introduces; `None` where the device is being deleted.
async fn register(
    store: &impl RegisterDevices,
    id: &DeviceId,
    seen: &Seen,
    current: &mut Current,
    invocation: &Invocation,
) -> StoreResult<Option<Device>> {
    let known = current.devices.remove(id);
    let is_known = |room: &RoomId| current.rooms.contains_key(room);
    let registered =
        registry::register(store, id, &seen.observation, known, is_known, invocation).await?;
    let Registered::Device(RegisteredDevice { device, rooms }) = registered else {
        return Ok(None);
    };
    current.rooms.extend(rooms.into_iter().map(|room| (room.id, room.first_seen)));
    Ok(Some(*device))
}

async fn apply_observation(
    store: &impl RegistryStore,
    mut device: Device,
    seen: &Seen,
    current: &mut Current,
    invocation: &Invocation,
) -> StoreResult<()> {
    for _ in 0..MAX_ATTEMPTS {
        let is_known = |room: &RoomId| current.rooms.contains_key(room);
        let mut update = device.diff(&seen.observation, is_known);
        if let Some(named) = update.room.take() {
            let newest = newest_room(store, &device, named, current, invocation).await?;
            update.room = newest.map(|newest| begin_of_stay(&device, &seen.observation, newest));
        }
        if update.is_empty() {
            return settle(store, device, seen.observation.last, invocation).await;
        }
        match store.update_device(&device, &update, invocation).await? {
            UpdateOutcome::Updated(now) => {
                return settle(store, now, seen.observation.last, invocation).await;
            }
            // Somebody was faster, or a person has decided: what is there now is the new base.
            UpdateOutcome::ConditionFailed(Some(now)) => device = now,
            // Somebody is deleting it.
            UpdateOutcome::ConditionFailed(None) => return Ok(()),
        }
    }
    Err(kept_changing(device.id()))
}

/// A move with the first reading that names the room, as far as the batch tells: a batch may hold days. A room in
/// which the device is already is only confirmed.
fn begin_of_stay(
    device: &Device,
    observation: &DeviceObservation,
    (at, room): (Timestamp, RoomId),
) -> (Timestamp, RoomId) {
    let since = match device.place() {
        Place::Learned(known, _) if *known == room => at,
        Place::Learned(_, earliest) => observation.since(&room, at).max(*earliest),
        Place::Unknown | Place::Chosen(_) => observation.since(&room, at),
    };
    (since, room)
}

/// Begins a stay where the device's room has held up to `newest`, the timestamp of a reading.
async fn settle(
    store: &impl UpdateRegistry,
    mut device: Device,
    newest: Timestamp,
    invocation: &Invocation,
) -> StoreResult<()> {
    for _ in 0..MAX_ATTEMPTS {
        let Some(stay) = device.settled(newest) else { return Ok(()) };
        match store.begin_stay(&device, &stay, invocation).await? {
            UpdateOutcome::Updated(_) => return Ok(()),
            UpdateOutcome::ConditionFailed(Some(now)) => device = now,
            UpdateOutcome::ConditionFailed(None) => break,
        }
    }
    Err(kept_changing(device.id()))
}

fn kept_changing(id: &DeviceId) -> StoreError {
    StoreError::Contended(format!("the device {id}"))
}

async fn is_registered(
    store: &impl FindRegistry,
    room: &RoomId,
    current: &mut Current,
    invocation: &Invocation,
) -> StoreResult<bool> {
    if !current.rooms.contains_key(room) {
        let found = store.find_rooms(std::slice::from_ref(room), invocation).await?.found;
        current.rooms.extend(found.into_iter().map(|room| (room.id, room.first_seen)));
    }
    Ok(current.rooms.contains_key(room))
}

/// The room that the newest of the device's readings names, at or after the one that the batch `named`, and since
/// when, as far back as was looked; `None` where the device is in that room already.
///
/// The registry is not written per reading, so it does not know how new its own room is: a late
/// reading from elsewhere could look newer. The readings themselves know. Where none of the newest
/// names a room, the device stays where it is, and the registry notes since when, so that the next
/// late reading does not start the same search.
///
/// The stream may be behind the table, by all of an import. Then no later batch need say that the device has
/// been in the room for long enough to settle: the readings are searched for that too.
async fn newest_room(
    store: &(impl FindRegistry + QueryReadings),
    device: &Device,
    named: (Timestamp, RoomId),
    current: &mut Current,
    invocation: &Invocation,
) -> StoreResult<Option<(Timestamp, RoomId)>> {
    let Ok(range) = TimeRange::new(named.0, Timestamp::MAX) else { return Ok(Some(named)) };
    let mut query =
        RangeQuery { range, order: Order::Descending, after: None, limit: 10, consistent: true };
    let mut newest = None;
    let mut found: Option<(Timestamp, RoomId)> = None;
    loop {
        let page = store.device_readings(device.id(), &query, invocation).await?;
        for reading in &page.readings {
            newest.get_or_insert(reading.at);
            let Some(room) = &reading.named_room else { continue };
            match &mut found {
                Some((since, named)) if named == room => *since = reading.at,
                Some(_) => return Ok(found),
                // A room that no device could introduce is in readings only; no device moves there.
                None if !is_registered(store, room, current, invocation).await? => {}
                None if device.place().room() == Some(room) => return Ok(None),
                None => found = Some((reading.at, room.clone())),
            }
        }
        match (page.readings.last(), newest, device.place().room()) {
            (Some(last), _, _) if page.has_more && query.limit == 10 => {
                query.after = Some(ReadingKey::of(last));
                query.limit = MAX_SEARCHED_READINGS - 10;
            }
            _ if found.is_some() => return Ok(found),
            (Some(_), Some(newest), Some(room)) if page.has_more => {
                return Ok(Some((newest, room.clone())));
            }
            // The readings are deleted, or the device is in no room: the batch alone tells its room.
            _ => return Ok(Some(named)),
        }
    }
}
