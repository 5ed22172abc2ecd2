//! Applies the observations of a batch to the registry. Parses no record and sends no dead letter.

use std::collections::BTreeMap;

use domain::{Device, DeviceId, DeviceObservation, Place, Room, RoomId, Timestamp};
use runtime::stream::BatchResult;
use runtime::telemetry::{WideEvent, chain};
use table::keys::{DEVICES, ROOMS};
use table::panic::catching;
use table::{ItemKey, Session, StoreError, StoreResult, UpdateOutcome, UpdateRegistry};

use crate::current::{Current, rooms_of};
use crate::newest_room::{NamedRoom, newest_room};
use crate::observed::{ObservedDevice, ThrottledDevice};
use crate::ports::RegistryStore;
use crate::register::register;

/// The number of attempts at an update whose item keeps changing.
const MAX_ATTEMPTS: usize = 5;

/// The result of adding new facts about a device.
enum Applied {
    /// The registry has all facts, or the device is being deleted and needs no facts.
    Wholly,
    /// The registry has all facts except the room: the query of the device's readings was throttled.
    WithoutRoom(StoreError),
}

/// Adds the new facts in the observations of a batch to the registry.
pub(crate) async fn apply(
    session: Session<'_, impl RegistryStore>,
    mut batch: BTreeMap<DeviceId, ObservedDevice>,
    log: &mut WideEvent,
) -> BatchResult {
    let mut result = BatchResult::default();
    let Some(first) = batch.values().map(|device| device.first_record).min() else {
        return result;
    };

    let mut current = match Current::read(session, &mut batch).await {
        Ok(current) => current,
        Err(error) => {
            log.error("table.error", &error);
            result.retry_from(first);
            return result;
        }
    };

    // Several records may be about a damaged item. It is given up once for the batch, with the batch's first record.
    for item in &current.unreadable {
        result.give_up(first, ItemKey::new(&item.pk, &item.sk), chain(item));
    }

    // All rooms are registered before any device is updated: a device may be in a room that another device introduces.
    let registered = register_all(session, &batch, &mut current, &mut result, log).await;
    apply_observations(session, registered, &mut current, &mut result, log).await;
    update_rooms(session, &batch, &current, &mut result, log).await;
    result
}

/// Registers the new devices and rooms of a batch. Returns the registered devices of the batch, without unreadable
/// devices and devices that are being deleted.
async fn register_all<'a>(
    session: Session<'_, impl RegistryStore>,
    batch: &'a BTreeMap<DeviceId, ObservedDevice>,
    current: &mut Current,
    result: &mut BatchResult,
    log: &mut WideEvent,
) -> Vec<(Device, &'a ObservedDevice)> {
    let mut registered = Vec::new();
    for (id, observed) in batch {
        if current.is_device_damaged(id) {
            continue;
        }

        let registering = Box::pin(register(session, id, &observed.observation, current));
        let written = match catching(registering).await {
            Ok(Ok(device)) => {
                registered.extend(device.map(|device| (device, observed)));
                Ok(Ok(()))
            }
            failed => failed.map(|failed| failed.map(drop)),
        };
        let key = || ItemKey::new(DEVICES, id.as_str());
        result.note(observed.first_record, key, written, log);
    }
    registered
}

/// Adds the new facts in observations to registered devices. The table may throttle the query of a device's readings.
/// If the facts of any other device could be applied, only this device is affected, and its next reading tries again.
/// Otherwise the whole table counts as throttled, and the stream delivers the records again.
async fn apply_observations(
    session: Session<'_, impl RegistryStore>,
    registered: Vec<(Device, &ObservedDevice)>,
    current: &mut Current,
    result: &mut BatchResult,
    log: &mut WideEvent,
) {
    let mut throttled = std::mem::take(&mut current.throttled);
    let mut is_any_applied = false;
    for (device, observed) in registered {
        let (id, first_record) = (device.id().clone(), observed.first_record);
        let applying = Box::pin(apply_observation(session, device, &observed.observation, current));
        let written = match catching(applying).await {
            Ok(Ok(Applied::WithoutRoom(error))) => {
                throttled.push(ThrottledDevice { id, first_record, error });
                continue;
            }
            written => written.map(|written| written.map(drop)),
        };
        is_any_applied |= matches!(written, Ok(Ok(())));
        let key = || ItemKey::new(DEVICES, id.as_str());
        result.note(first_record, key, written, log);
    }

    if !throttled.is_empty() {
        let named: Vec<_> = throttled.iter().map(|device| device.id.to_string()).collect();
        log.set("stream.throttled_devices", named);
    }

    for ThrottledDevice { first_record, error, .. } in throttled {
        if is_any_applied {
            log.warn("table.throttled", &error);
        } else {
            log.error("table.error", &error);
            result.retry_from(first_record);
        }
    }
}

/// Updates the rooms that readings of a batch name.
async fn update_rooms(
    session: Session<'_, impl UpdateRegistry>,
    batch: &BTreeMap<DeviceId, ObservedDevice>,
    current: &Current,
    result: &mut BatchResult,
    log: &mut WideEvent,
) {
    for id in rooms_of(batch) {
        let room = current.rooms.get(&id).filter(|_| !current.is_room_damaged(&id));
        if let Some(room) = room
            && let Some(earliest) = earliest_naming(&id, batch)
        {
            let first = earliest.observation.rooms[&id].first;
            let updated = update_room(session, room, first, batch).await;
            let key = || ItemKey::new(ROOMS, id.as_str());
            result.note(earliest.first_record, key, Ok(updated), log);
        }
    }
}

/// The device of the batch with the earliest reading that names the room.
fn earliest_naming<'a>(
    room: &RoomId,
    batch: &'a BTreeMap<DeviceId, ObservedDevice>,
) -> Option<&'a ObservedDevice> {
    let naming = batch.values().filter(|device| device.observation.rooms.contains_key(room));
    naming.min_by_key(|device| device.observation.rooms[room].first)
}

/// Stores a room's first reading if the batch has an earlier one than the registry. Names a room that has no name.
async fn update_room(
    session: Session<'_, impl UpdateRegistry>,
    room: &Room,
    first: Timestamp,
    batch: &BTreeMap<DeviceId, ObservedDevice>,
) -> StoreResult<()> {
    if first < room.first_seen {
        session.update_room(&room.id, first).await?;
    }

    let mut names = batch.values().filter_map(|device| device.observation.room_names.get(&room.id));
    if room.name.is_none()
        && let Some(name) = names.next()
    {
        session.name_room(&room.id, name).await?;
    }
    Ok(())
}

/// Adds the new facts in an observation to a registered device. If the device has been in its room long enough, also
/// begins a stay there. If the query of its readings is throttled, the device keeps its room.
async fn apply_observation(
    session: Session<'_, impl RegistryStore>,
    mut device: Device,
    observation: &DeviceObservation,
    current: &mut Current,
) -> StoreResult<Applied> {
    let mut throttled = None;
    for _ in 0..MAX_ATTEMPTS {
        let is_known = |room: &RoomId| current.rooms.contains_key(room);
        let mut update = device.diff(observation, is_known);
        if let Some((since, room)) = update.room.take().filter(|_| throttled.is_none()) {
            let named = NamedRoom { room, since };
            match newest_stay(session, &device, observation, named, current).await {
                Ok(stay) => update.room = stay,
                Err(error @ StoreError::Throttled(_)) => throttled = Some(error),
                Err(error) => return Err(error),
            }
        }

        if !update.is_empty() {
            match session.update_device(&device, &update).await? {
                UpdateOutcome::Updated(now) => device = now,
                // Another instance or a person has changed the device, so the update is computed again.
                UpdateOutcome::ConditionFailed(Some(now)) => {
                    device = now;
                    continue;
                }
                // The device is being deleted.
                UpdateOutcome::ConditionFailed(None) => return Ok(Applied::Wholly),
            }
        }

        if let Some(error) = throttled {
            return Ok(Applied::WithoutRoom(error));
        }
        settle(session, device, observation.last).await?;
        return Ok(Applied::Wholly);
    }

    Err(kept_changing(device.id()))
}

/// The room of a device's newest reading, and when the device came into it. `None` if the device stays where it is.
async fn newest_stay(
    session: Session<'_, impl RegistryStore>,
    device: &Device,
    observation: &DeviceObservation,
    named: NamedRoom,
    current: &mut Current,
) -> StoreResult<Option<(Timestamp, RoomId)>> {
    let part = session.invocation.with_quarter_patience();
    let newest = newest_room(session.within(&part), device, named, current).await?;
    Ok(newest
        .map(|NamedRoom { room, since }| (begin_of_stay(device, observation, &room, since), room)))
}

/// When a device came into the room of its reading at `at`. A batch may span days, so the first reading of the batch in
/// this room counts. For a device that is in the room already, the time is `at`.
fn begin_of_stay(
    device: &Device,
    observation: &DeviceObservation,
    room: &RoomId,
    at: Timestamp,
) -> Timestamp {
    match device.place() {
        Place::Learned(known, _) if known == room => at,
        Place::Learned(_, earliest) => observation.since(room, at).max(*earliest),
        Place::Unknown | Place::Chosen(_) => observation.since(room, at),
    }
}

/// Begins a stay in the device's room if the device has been there long enough at `newest`, the timestamp of a reading.
async fn settle(
    session: Session<'_, impl UpdateRegistry>,
    mut device: Device,
    newest: Timestamp,
) -> StoreResult<()> {
    for _ in 0..MAX_ATTEMPTS {
        let Some(stay) = device.settled(newest) else { return Ok(()) };
        match session.begin_stay(&device, &stay).await? {
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
