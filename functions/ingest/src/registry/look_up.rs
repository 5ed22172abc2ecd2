//! Looks up the devices and rooms that a request names, first in memory, then in the table. Writes nothing.

use std::collections::BTreeSet;

use domain::{DeviceId, Reading, RoomId};
use runtime::clock::Clock;
use runtime::telemetry::WideEvent;
use table::{FindRegistry, ReadRegistry, Session, StoreError, StoreResult};

use crate::registry::found::FoundDevices;
use crate::registry::place_cache::CachedPlace;
use crate::registry::remembered::Registry;
use crate::store_request::StoreRequest;

/// The maximum number of rooms that one request looks up in the table. Any further room counts as new.
const MAX_ROOMS_LOOKED_UP: usize = 100;

impl<C: Clock> Registry<C> {
    /// Finds the devices and rooms that a request names. What memory lacks is asked of the table: another instance may
    /// have registered it.
    ///
    /// Half of the patience is for looking up. Devices that are not found by then are postponed, so that each attempt of a
    /// request with many devices stores some readings.
    pub(crate) async fn find(
        &self,
        session: Session<'_, impl ReadRegistry + FindRegistry>,
        request: &StoreRequest<'_>,
        log: &mut WideEvent,
    ) -> StoreResult<FoundDevices> {
        let mut found = FoundDevices::of(self.cache.snapshot(session, log).await?);
        let part = session.invocation.part();
        let session = session.within(&part);

        let rooms = self.rooms_to_look_up(request, &mut found);
        if !rooms.is_empty() {
            self.look_up_rooms(session, rooms, &mut found).await?;
        }

        let devices = self.devices_to_look_up(request, &mut found);
        if !devices.is_empty() {
            self.look_up_devices(session, devices, &mut found).await?;
        }
        Ok(found)
    }

    /// The rooms that are not remembered. Notes the others.
    fn rooms_to_look_up(
        &self,
        request: &StoreRequest<'_>,
        found: &mut FoundDevices,
    ) -> BTreeSet<RoomId> {
        let mut wanted = BTreeSet::new();
        for room in request.readings().filter_map(|reading| reading.named_room.as_ref()) {
            if found.has_room(room) || wanted.contains(room) {
                continue;
            }
            if self.places.has_room(room) {
                found.rooms.insert(room.clone());
            } else if wanted.len() < MAX_ROOMS_LOOKED_UP {
                wanted.insert(room.clone());
            }
        }
        wanted
    }

    async fn look_up_rooms(
        &self,
        session: Session<'_, impl FindRegistry>,
        rooms: BTreeSet<RoomId>,
        found: &mut FoundDevices,
    ) -> StoreResult<()> {
        let ids: Vec<RoomId> = rooms.into_iter().collect();
        let registered = match session.find_rooms(&ids).await {
            // They count as new, and registering them changes no room that is there.
            Err(StoreError::Throttled(_)) => Vec::new(),
            listing => listing?.found,
        };
        for room in registered {
            found.rooms.insert(room.id.clone());
            self.keep_room(&found.snapshot, room);
        }
        Ok(())
    }

    /// The devices whose items must be read. The remembered places of the others are put into `found`.
    ///
    /// If memory does not hold the registry, the place of a device is enough, with two exceptions: the device names another
    /// room than its own, or the request merges, so that the number of metrics is limited.
    fn devices_to_look_up(
        &self,
        request: &StoreRequest<'_>,
        found: &mut FoundDevices,
    ) -> BTreeSet<DeviceId> {
        let mut wanted = BTreeSet::new();
        for reading in request.readings() {
            let id = &reading.device;
            if wanted.contains(id)
                || found.snapshot.devices.contains_key(id)
                || found.snapshot.is_being_deleted(id)
            {
                continue;
            }

            let place = found.places.remove(id).or_else(|| self.places.get(id));
            let is_enough =
                |place: &CachedPlace| !request.options.merge && suffices(place, reading, found);
            if let Some(place) = place.filter(is_enough) {
                found.places.insert(id.clone(), place);
            } else {
                wanted.insert(id.clone());
            }
        }
        wanted
    }

    async fn look_up_devices(
        &self,
        session: Session<'_, impl FindRegistry>,
        devices: BTreeSet<DeviceId>,
        found: &mut FoundDevices,
    ) -> StoreResult<()> {
        let ids: Vec<DeviceId> = devices.into_iter().collect();
        let (listing, not_looked_up) = session.find_some_devices(&ids).await?;
        found.not_looked_up.extend(not_looked_up);

        for device in listing.deleted {
            if device.deletion.ended.is_none() {
                found.deleted.insert(device.id.clone());
                self.cache.keep_deleted(device);
            }
        }
        for device in listing.found {
            self.keep_device(&found.snapshot, &device);
            found.devices.insert(device.id().clone(), device);
        }
        Ok(())
    }
}

/// Whether the remembered place is enough to give the reading its room, so that the device's item need not be read.
fn suffices(place: &CachedPlace, reading: &Reading, found: &FoundDevices) -> bool {
    match &reading.named_room {
        None => true,
        Some(room) if place.is_chosen => found.has_room(room),
        Some(room) => place.room.as_ref() == Some(room),
    }
}
