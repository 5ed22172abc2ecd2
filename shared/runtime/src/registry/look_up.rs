//! Looks up the devices and rooms that readings name, first in memory, then in the table. Writes nothing.

use std::collections::BTreeSet;

use domain::{DeviceId, Reading, RoomId};
use table::{FindRegistry, ReadRegistry, Session, StoreError, StoreResult};

use super::place_cache::CachedPlace;
use super::{CachedRegistry, FoundDevices};
use crate::clock::Clock;
use crate::telemetry::WideEvent;

/// The maximum number of rooms that one request looks up in the table. Any further room counts as new.
const MAX_ROOMS_LOOKED_UP: usize = 100;

/// What must be known about the devices of readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceDetail {
    /// Only the room of each device. If memory does not hold the registry, a cached room is enough.
    Places,
    /// The full items, with metrics and all other facts.
    Items,
}

impl<C: Clock> CachedRegistry<C> {
    /// Finds the devices and rooms that readings name. If some are not in memory, the table is read: another instance
    /// may have registered them.
    ///
    /// Throttled look-ups are repeated for half of the time that the invocation can wait for the table. Devices not
    /// looked up by then are listed, so that each attempt of a request with many devices stores some readings.
    pub async fn find<'a>(
        &self,
        readings: impl Iterator<Item = &'a Reading> + Clone,
        need: DeviceDetail,
        session: Session<'_, impl ReadRegistry + FindRegistry>,
        log: &mut WideEvent,
    ) -> StoreResult<FoundDevices> {
        let mut found = FoundDevices::of(self.snapshot(session, log).await?);
        let part = session.invocation.with_half_patience();
        let session = session.within(&part);

        self.look_up_rooms(readings.clone(), session, &mut found).await?;
        self.look_up_devices(readings, need, session, &mut found).await?;
        Ok(found)
    }

    async fn look_up_rooms(
        &self,
        readings: impl Iterator<Item = &Reading>,
        session: Session<'_, impl FindRegistry>,
        found: &mut FoundDevices,
    ) -> StoreResult<()> {
        let mut wanted = BTreeSet::new();
        for room in readings.filter_map(|reading| reading.named_room.as_ref()) {
            if found.has_room(room) || wanted.contains(room) {
                continue;
            }
            if self.cached_places.has_room(room) {
                found.rooms.insert(room.clone());
            } else if wanted.len() < MAX_ROOMS_LOOKED_UP {
                wanted.insert(room.clone());
            }
        }

        if wanted.is_empty() {
            return Ok(());
        }

        let ids: Vec<RoomId> = wanted.into_iter().collect();
        let registered = match session.find_rooms(&ids).await {
            // The rooms then count as new. To register them again changes nothing.
            Err(StoreError::Throttled(_)) => Vec::new(),
            listing => listing?.found,
        };
        for room in registered {
            found.rooms.insert(room.id.clone());
            self.keep_room(room);
        }
        Ok(())
    }

    /// Reads the items of devices that are not in memory. If memory does not hold the registry, a device's cached room
    /// is enough, unless `need` asks for items, or a reading names another room or may say something new of the device.
    async fn look_up_devices<'a>(
        &self,
        readings: impl Iterator<Item = &'a Reading> + Clone,
        need: DeviceDetail,
        session: Session<'_, impl FindRegistry>,
        found: &mut FoundDevices,
    ) -> StoreResult<()> {
        let mut wanted = BTreeSet::new();
        for reading in readings.clone() {
            let id = &reading.device;
            if wanted.contains(id)
                || found.snapshot.devices.contains_key(id)
                || found.snapshot.is_being_deleted(id)
            {
                continue;
            }

            // A place that was enough for an earlier reading of the device may not be for this one, so it is taken out.
            let place = found.places.remove(id).or_else(|| self.cached_places.get(id));
            let is_enough = |place: &CachedPlace| {
                need == DeviceDetail::Places
                    && suffices(place, reading, found)
                    && self.known_facts.has_all_of(reading, session.now)
            };
            if let Some(place) = place.filter(is_enough) {
                found.places.insert(id.clone(), place);
            } else {
                wanted.insert(id.clone());
            }
        }

        if wanted.is_empty() {
            return Ok(());
        }

        let ids: Vec<DeviceId> = wanted.into_iter().collect();
        let (listing, not_looked_up) = session.find_some_devices(&ids).await?;
        found.not_looked_up.extend(not_looked_up);
        for device in listing.deleted {
            if device.deletion.ended.is_none() {
                found.deleted.insert(device.id.clone());
                self.keep_deleted(device);
            }
        }

        listing.found.iter().for_each(|device| self.keep_device(device.clone()));
        found.add(listing.found);
        for reading in readings {
            if let Some(device) = found.devices.get(&reading.device) {
                self.known_facts.note(reading, device, session.now);
            }
        }
        Ok(())
    }
}

/// Whether the cached room is enough to give the reading its room. If so, the device's item need not be read. A chosen
/// room overrides a named one, so the item is needed only if the named room is new.
fn suffices(place: &CachedPlace, reading: &Reading, found: &FoundDevices) -> bool {
    match &reading.named_room {
        None => true,
        Some(room) if place.is_chosen => found.has_room(room),
        Some(room) => place.room.as_ref() == Some(room),
    }
}
