//! Looks up the devices and rooms that a request names, and fills in rooms. Writes nothing to the table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::FieldError;
use domain::{Device, DeviceId, Hints, Place, Reading, Room, RoomId, Timestamp};
use runtime::clock::Clock;
use runtime::registry::{CachedRegistry, Snapshot};
use runtime::telemetry::WideEvent;
use table::{FindRegistry, Invocation, ReadRegistry, StoreError, StoreResult};

use crate::intake::mode::Mode;
use crate::readings::Readings;
use crate::registry::places::{KnownPlace, KnownPlaces};

/// The maximum number of rooms that one request looks up in the table. Any further room counts as new.
const MAX_ROOMS_LOOKED_UP: usize = 100;

/// The cached registry, and the devices and rooms that the cache lacked and the table has.
pub(crate) struct Known {
    snapshot: Arc<Snapshot>,
    devices: BTreeMap<DeviceId, Device>,
    rooms: BTreeSet<RoomId>,
    /// Devices for which only the room was needed; the full item was not read.
    places: BTreeMap<DeviceId, KnownPlace>,
    /// The devices that the table says are being deleted.
    deleted: BTreeSet<DeviceId>,
    /// The devices that the table's capacity did not let be looked up.
    unknown: BTreeSet<DeviceId>,
}

impl Known {
    /// A registered device whose full item is known.
    pub(crate) fn device(&self, id: &DeviceId) -> Option<&Device> {
        self.devices.get(id).or_else(|| self.snapshot.devices.get(id))
    }

    fn is_being_deleted(&self, id: &DeviceId) -> bool {
        self.deleted.contains(id) || self.snapshot.is_being_deleted(id)
    }

    /// Takes away the readings of devices that could not be looked up: their rooms are not known.
    pub(crate) fn leave_unknown(&self, readings: &mut Readings) -> Readings {
        readings.split_off(|reading| self.unknown.contains(&reading.device))
    }

    pub(crate) fn has_unknown(&self) -> bool {
        !self.unknown.is_empty()
    }

    pub(crate) fn is_registered(&self, id: &DeviceId) -> bool {
        self.places.contains_key(id) || self.device(id).is_some()
    }

    pub(crate) fn has_room(&self, id: &RoomId) -> bool {
        self.rooms.contains(id) || self.snapshot.rooms.contains_key(id)
    }

    /// The registered rooms without a name that senders name.
    pub(crate) fn unnamed_rooms<'h>(&self, hints: impl Iterator<Item = &'h Hints>) -> Vec<Room> {
        let named: BTreeSet<&RoomId> = hints.flat_map(|it| it.room_names.keys()).collect();
        let registered = named.into_iter().filter_map(|room| self.snapshot.rooms.get(room));
        registered.filter(|room| room.name.is_none()).cloned().collect()
    }

    pub(crate) fn has_all_devices(&self) -> bool {
        self.snapshot.has_all_devices
    }

    /// How many devices a sender has introduced, in a registry that memory holds.
    pub(crate) fn introduced_by(&self, sender: &str) -> usize {
        self.snapshot.devices.introduced_by(sender)
    }

    /// Whether the registry tells that the sender introduced the device.
    pub(crate) fn is_introduced_by(&self, id: &DeviceId, sender: &str) -> bool {
        self.device(id).is_some_and(|it| it.source().introduced_by.as_deref() == Some(sender))
    }

    /// Those of the devices that were read from the table for this request.
    pub(crate) fn looked_up(&self, id: &DeviceId) -> Option<&Device> {
        self.devices.get(id)
    }

    /// Whether a device came to where it is after one moment and up to another.
    fn came_between(&self, id: &DeviceId, after: Timestamp, until: Timestamp) -> bool {
        match self.device(id).map(Device::place) {
            Some(Place::Learned(_, since)) => after < *since && *since <= until,
            _ => false,
        }
    }

    fn place(&self, id: &DeviceId) -> Option<KnownPlace> {
        self.places.get(id).cloned().or_else(|| self.device(id).map(KnownPlace::of))
    }
}

/// Looks up the devices and rooms that the readings name, first in the cache, then in the table: another
/// instance may have registered them after this one read the registry.
///
/// Of a registry that memory does not hold, `places` remembers where devices are. Only what needs more is read
/// anew: a device that names another room than its own, and every device of a merging request, whose number
/// of metrics is limited.
///
/// Half of the patience is for it, so that a request whose devices are too many for the table's capacity stores some of
/// them at each attempt.
pub(crate) async fn look_up<C: Clock>(
    (registry, places): (&CachedRegistry<C>, &KnownPlaces<C>),
    store: &(impl ReadRegistry + FindRegistry),
    readings: impl Iterator<Item = &Reading> + Clone,
    mode: Mode,
    invocation: &Invocation,
    log: &mut WideEvent,
) -> StoreResult<Known> {
    let snapshot = registry.snapshot(store, invocation, log).await?;
    let (devices, rooms) = (BTreeMap::new(), BTreeSet::new());
    let (places_known, deleted, unknown) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    let mut known = Known { snapshot, devices, rooms, places: places_known, deleted, unknown };
    let invocation = &invocation.part();
    let mut rooms = BTreeSet::new();
    for room in readings.clone().filter_map(|reading| reading.named_room.as_ref()) {
        if known.has_room(room) || rooms.contains(room) {
            continue;
        }
        if places.has_room(room) {
            known.rooms.insert(room.clone());
        } else if rooms.len() < MAX_ROOMS_LOOKED_UP {
            rooms.insert(room.clone());
        }
    }
    if !rooms.is_empty() {
        let ids: Vec<_> = rooms.into_iter().collect();
        let found = match store.find_rooms(&ids, invocation).await {
            // They count as new.
            Err(StoreError::Throttled(_)) => Vec::new(),
            listing => listing?.found,
        };
        for room in found {
            known.rooms.insert(room.id.clone());
            if known.snapshot.has_all_rooms {
                registry.keep_room(room);
            } else {
                places.keep_room(&room.id);
            }
        }
    }
    let mut devices = BTreeSet::new();
    for reading in readings {
        let id = &reading.device;
        if devices.contains(id) || known.snapshot.devices.contains_key(id) {
            continue;
        }
        if known.snapshot.is_being_deleted(id) {
            continue;
        }
        let place = known.places.remove(id).or_else(|| places.get(id));
        let suffices = |place: &KnownPlace| match &reading.named_room {
            _ if mode.merge => false,
            None => true,
            Some(room) if place.is_chosen => known.has_room(room),
            Some(room) => place.room.as_ref() == Some(room),
        };
        match place.filter(suffices) {
            Some(place) => drop(known.places.insert(id.clone(), place)),
            None => drop(devices.insert(id.clone())),
        }
    }
    if !devices.is_empty() {
        let ids: Vec<_> = devices.into_iter().collect();
        let (listing, unknown) = store.find_some_devices(&ids, invocation).await?;
        known.unknown.extend(unknown);
        for device in listing.deleted.into_iter().filter(|it| it.deletion.ended.is_none()) {
            known.deleted.insert(device.id.clone());
            registry.keep_deleted(device);
        }
        for device in listing.found {
            if known.snapshot.has_all_devices {
                registry.keep_device(device.clone());
            } else {
                places.keep(&device);
            }
            known.devices.insert(device.id().clone(), device);
        }
    }
    Ok(known)
}

/// Fills in the rooms of readings that name none: the room that the device named last in the same request,
/// at or before the reading's timestamp, otherwise the room in the registry. The device may have come to that one
/// between the two: then the request names its room of before.
///
/// The room that a person chose replaces both, also in readings that name a room.
pub(crate) fn fill_in_rooms(readings: &mut [&mut Reading], known: &Known) {
    if readings.iter().any(|reading| reading.named_room.is_some()) {
        carry_named_rooms(readings, known);
    }
    for reading in readings {
        if let Some(place) = known.place(&reading.device) {
            place.fill_in(reading);
        }
    }
}

/// Sorts the readings by device and timestamp. Gives each reading without a room the room that its device
/// named last before it.
fn carry_named_rooms(readings: &mut [&mut Reading], known: &Known) {
    readings.sort_by(|a, b| (&a.device, a.at).cmp(&(&b.device, b.at)));
    let mut named: Option<(DeviceId, RoomId, Timestamp)> = None;
    for reading in readings {
        let id = &reading.device;
        if let Some(room) = &reading.named_room {
            named = Some((id.clone(), room.clone(), reading.at));
        } else if let Some((of, room, at)) = &named
            && of == id
            && !known.came_between(id, *at, reading.at)
        {
            reading.room = Some(room.clone());
        }
    }
}

/// Refuses the readings of devices that are being deleted; returns how many.
pub(crate) fn refuse_deleted(
    timed: &mut Readings,
    known: &Known,
    rejected: &mut Vec<FieldError>,
) -> usize {
    let before = rejected.len();
    timed.refuse(rejected, |reading| {
        let message = "is of a device that is being deleted; a reading is taken again when the \
                       deletion is over";
        known
            .is_being_deleted(&reading.device)
            .then(|| ("device_id".to_owned(), message.to_owned()))
    });
    rejected.len() - before
}
