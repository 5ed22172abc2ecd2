//! The devices and rooms that a request names, as the registry has them. Asks no table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::{Device, DeviceId, DeviceObservation, Place, Reading, RoomId, Timestamp};
use runtime::registry::Snapshot;

use crate::registry::place_cache::CachedPlace;
use crate::store_request::{StoreRequest, refusal};

/// The remembered registry, and the devices and rooms that it lacked and the table has.
pub(crate) struct FoundDevices {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) devices: BTreeMap<DeviceId, Device>,
    pub(super) rooms: BTreeSet<RoomId>,
    /// Devices for which only the room was needed; the full item was not read.
    pub(super) places: BTreeMap<DeviceId, CachedPlace>,
    /// The devices that the table says are being deleted.
    pub(super) deleted: BTreeSet<DeviceId>,
    /// The devices that the table's capacity did not let be looked up.
    pub(super) not_looked_up: BTreeSet<DeviceId>,
}

impl FoundDevices {
    /// A result that has what memory has, before the table is asked.
    pub(super) fn of(snapshot: Arc<Snapshot>) -> Self {
        Self {
            snapshot,
            devices: BTreeMap::new(),
            rooms: BTreeSet::new(),
            places: BTreeMap::new(),
            deleted: BTreeSet::new(),
            not_looked_up: BTreeSet::new(),
        }
    }

    /// A registered device whose full item is known.
    pub(crate) fn device(&self, id: &DeviceId) -> Option<&Device> {
        self.devices.get(id).or_else(|| self.snapshot.devices.get(id))
    }

    /// The device as memory has it now, else as this request looked it up.
    pub(super) fn device_now<'a>(
        &'a self,
        id: &DeviceId,
        current: &'a Snapshot,
    ) -> Option<&'a Device> {
        current.devices.get(id).or_else(|| self.devices.get(id))
    }

    pub(crate) fn is_registered(&self, id: &DeviceId) -> bool {
        self.places.contains_key(id) || self.device(id).is_some()
    }

    pub(crate) fn has_room(&self, id: &RoomId) -> bool {
        self.rooms.contains(id) || self.snapshot.rooms.contains_key(id)
    }

    /// Whether memory holds the registry.
    pub(crate) fn has_all_devices(&self) -> bool {
        self.snapshot.has_all_devices
    }

    /// How many devices a sender has introduced, in a registry that memory holds.
    pub(crate) fn introduced_by(&self, sender: &str) -> usize {
        self.snapshot.devices.introduced_by(sender)
    }

    /// Whether the registry tells that the sender introduced the device.
    pub(crate) fn is_introduced_by(&self, id: &DeviceId, sender: &str) -> bool {
        let introduced_by = |device: &Device| device.source().introduced_by.clone();
        self.device(id).and_then(introduced_by).as_deref() == Some(sender)
    }

    /// Whether some devices could not be looked up.
    pub(crate) fn lacks_some(&self) -> bool {
        !self.not_looked_up.is_empty()
    }

    /// Whether the table was too busy to look the device up.
    pub(crate) fn lacks(&self, id: &DeviceId) -> bool {
        self.not_looked_up.contains(id)
    }

    /// Whether a room has no name, as far as is known: it is not registered, or is remembered without one.
    pub(super) fn lacks_name(&self, id: &RoomId) -> bool {
        match self.snapshot.rooms.get(id) {
            Some(room) => room.name.is_none(),
            None => !self.rooms.contains(id),
        }
    }

    /// Refuses the readings of devices that are being deleted.
    pub(crate) fn refuse_deleted(&self, request: &mut StoreRequest<'_>) {
        let before = request.report.rejected.len();
        request.refuse(|reading| {
            let id = &reading.device;
            let is_deleted = self.deleted.contains(id) || self.snapshot.is_being_deleted(id);
            let message = "is of a device that is being deleted; a reading is taken again when the \
                           deletion is over";
            is_deleted.then(|| refusal("device_id", message))
        });
        request.report.of_deleted += request.report.rejected.len() - before;
    }

    /// Fills in the rooms of readings that name none: the room that the device named last in the same request,
    /// at or before the reading's timestamp, otherwise the room in the registry. If the registry says that the device moved
    /// between the two readings, the registry's room is taken.
    ///
    /// The room that a person chose replaces both, also in readings that name a room.
    pub(crate) fn fill_in_rooms(&self, request: &mut StoreRequest<'_>) {
        let mut readings: Vec<&mut Reading> = request.readings_mut().collect();
        if readings.iter().any(|reading| reading.named_room.is_some()) {
            self.carry_named_rooms(&mut readings);
        }
        for reading in readings {
            if let Some(place) = self.place(&reading.device) {
                place.fill_in(reading);
            }
        }
    }

    /// Sorts the readings by device and timestamp. Gives each reading without a room the room that its device
    /// named last before it.
    fn carry_named_rooms(&self, readings: &mut [&mut Reading]) {
        readings.sort_by(|a, b| (&a.device, a.at).cmp(&(&b.device, b.at)));
        let mut named: Option<(DeviceId, RoomId, Timestamp)> = None;
        for reading in readings {
            let id = &reading.device;
            if let Some(room) = &reading.named_room {
                named = Some((id.clone(), room.clone(), reading.at));
            } else if let Some((of, room, at)) = &named
                && of == id
                && !self.moved_between(id, *at, reading.at)
            {
                reading.room = Some(room.clone());
            }
        }
    }

    /// Whether a device moved to its room after `after` and up to `until`.
    fn moved_between(&self, id: &DeviceId, after: Timestamp, until: Timestamp) -> bool {
        match self.device(id).map(Device::place) {
            Some(Place::Learned(_, since)) => after < *since && *since <= until,
            _ => false,
        }
    }

    fn place(&self, id: &DeviceId) -> Option<CachedPlace> {
        self.places.get(id).cloned().or_else(|| self.device(id).map(CachedPlace::of))
    }
}

/// Summarises readings by device.
pub(super) fn observations<'a>(
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
