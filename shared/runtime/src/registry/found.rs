//! The devices and rooms of a request: from memory, or from the table if they are not in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::{Problem, ProblemKind};
use domain::{Device, DeviceId, Reading, RoomId};
use table::{FindRegistry, LookUpRegistry, PageRegistry, Session, StoreResult, at_once};

use super::RegistrySnapshot;
use super::place_cache::CachedPlace;
use crate::telemetry::{WideEvent, chain};

/// The number of rooms whose devices are read at once.
const ROOM_CONCURRENCY: usize = 8;
/// The number of found devices, meters included, from which no further meter is looked up.
const MAX_METERS: usize = 1_000;

/// The registry in memory, with further devices and rooms that were read from the table.
#[derive(Debug)]
pub struct FoundDevices {
    /// The registry in memory.
    pub snapshot: Arc<RegistrySnapshot>,
    pub(super) devices: BTreeMap<DeviceId, Device>,
    pub(super) rooms: BTreeSet<RoomId>,
    /// Devices for which only the room was needed, so the full item was not read.
    pub(super) places: BTreeMap<DeviceId, CachedPlace>,
    /// The devices that the table says are being deleted.
    pub(super) deleted: BTreeSet<DeviceId>,
    /// The devices that were not looked up, because the table throttled the requests.
    pub(super) not_looked_up: BTreeSet<DeviceId>,
}

/// The start and the size of a page of devices.
#[derive(Debug, Clone, Copy)]
pub struct PageStart<'a> {
    /// The last device of the previous page.
    pub after: Option<&'a DeviceId>,
    /// The largest number of devices that are read from the table. Memory returns all devices at once.
    pub limit: usize,
}

/// Devices that are in some rooms now, by id.
#[derive(Debug)]
pub struct RoomMembers {
    /// The devices.
    pub ids: Vec<DeviceId>,
    /// Whether the table has more devices.
    pub has_more: bool,
}

impl FoundDevices {
    /// The registry in memory only, before the table is read.
    pub fn of(snapshot: Arc<RegistrySnapshot>) -> Self {
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
    pub fn device(&self, id: &DeviceId) -> Option<&Device> {
        self.devices.get(id).or_else(|| self.snapshot.devices.get(id))
    }

    /// Whether the device is registered, as far as is known.
    pub fn is_registered(&self, id: &DeviceId) -> bool {
        self.places.contains_key(id) || self.device(id).is_some()
    }

    /// Whether the room is registered, as far as is known.
    pub fn has_room(&self, id: &RoomId) -> bool {
        self.rooms.contains(id) || self.snapshot.rooms.contains_key(id)
    }

    /// Whether a room has no name as far as is known: it is not registered, or is in memory without a name.
    pub fn lacks_name(&self, id: &RoomId) -> bool {
        match self.snapshot.rooms.get(id) {
            Some(room) => room.name.is_none(),
            None => !self.rooms.contains(id),
        }
    }

    /// Whether the device is being deleted.
    pub fn is_being_deleted(&self, id: &DeviceId) -> bool {
        self.deleted.contains(id) || self.snapshot.is_being_deleted(id)
    }

    /// The number of devices that a sender has introduced. Returns `None` if memory does not hold the registry.
    pub fn number_introduced_by(&self, sender: &str) -> Option<usize> {
        self.snapshot.all_devices().map(|devices| devices.number_introduced_by(sender))
    }

    /// Whether the table was too busy to look all devices up.
    pub fn is_incomplete(&self) -> bool {
        !self.not_looked_up.is_empty()
    }

    /// Whether the table was too busy to look the device up.
    pub fn was_not_looked_up(&self, id: &DeviceId) -> bool {
        self.not_looked_up.contains(id)
    }

    /// Fills in the room of a reading from its device; see [`Reading::fill_in_room`].
    pub fn fill_in_room(&self, reading: &mut Reading) {
        let place = self.places.get(&reading.device).cloned();
        let place = place.or_else(|| self.device(&reading.device).map(CachedPlace::of));
        if let Some(CachedPlace { room: Some(room), is_chosen }) = place {
            reading.fill_in_room(&room, is_chosen);
        }
    }

    /// The devices that are in the rooms now: from memory, else from the table's room index. `None` if memory does not
    /// hold all devices and the table has no such index.
    pub async fn now_in_rooms(
        &mut self,
        rooms: &BTreeSet<RoomId>,
        page: PageStart<'_>,
        session: Session<'_, impl PageRegistry>,
        log: &mut WideEvent,
    ) -> StoreResult<Option<RoomMembers>> {
        let Some(all) = self.snapshot.all_devices() else {
            return self.read_in_rooms(rooms, page, session, log).await;
        };
        let is_there =
            |device: &&Device| device.place().room().is_some_and(|room| rooms.contains(room));
        let there = all.values().filter(is_there).map(Device::id);
        let ids = there.filter(|id| page.after.is_none_or(|after| *id > after)).cloned().collect();
        Ok(Some(RoomMembers { ids, has_more: false }))
    }

    /// The devices that are in the rooms now, from the table's room index. `None` if the table has no such index.
    pub async fn read_in_rooms(
        &mut self,
        rooms: &BTreeSet<RoomId>,
        PageStart { after, limit }: PageStart<'_>,
        session: Session<'_, impl PageRegistry>,
        log: &mut WideEvent,
    ) -> StoreResult<Option<RoomMembers>> {
        let requests = rooms.iter().map(|room| session.room_device_page(room, after, limit));
        let pages = at_once(ROOM_CONCURRENCY, requests).await?;

        // The index follows a move with a delay, so a device may be found in its old and its new room.
        let (mut ids, mut has_more) = (BTreeSet::new(), false);
        let mut unreadable = Vec::new();
        for page in pages {
            let Some(page) = page else { return Ok(None) };
            has_more |= page.has_more;
            unreadable.extend(page.listing.unreadable.iter().map(|item| chain(item)));
            ids.extend(page.listing.found.iter().map(|device| device.id().clone()));
            self.add(page.listing.found);
        }

        if !unreadable.is_empty() {
            log.set("registry.unreadable", unreadable);
        }

        has_more |= ids.len() > limit;
        Ok(Some(RoomMembers { ids: ids.into_iter().take(limit).collect(), has_more }))
    }

    /// Reads the devices that are not found yet, unless memory holds all devices.
    pub async fn look_up<'a>(
        &mut self,
        ids: impl IntoIterator<Item = &'a DeviceId>,
        session: Session<'_, impl FindRegistry>,
    ) -> StoreResult<()> {
        if self.snapshot.has_all_devices {
            return Ok(());
        }
        let unread = ids.into_iter().filter(|id| !self.devices.contains_key(*id));
        let unread: Vec<DeviceId> = unread.cloned().collect();
        if !unread.is_empty() {
            self.add(session.find_devices(&unread).await?.found);
        }
        Ok(())
    }

    /// Reads the meters above the found devices, one level after the other, unless memory holds all devices.
    pub async fn look_up_meters(
        &mut self,
        session: Session<'_, impl LookUpRegistry>,
    ) -> Result<(), Problem> {
        if self.snapshot.has_all_devices {
            return Ok(());
        }

        let mut waiting: Vec<DeviceId> =
            self.devices.values().filter_map(|device| device.behind().cloned()).collect();
        while let Some(id) = waiting.pop() {
            if self.devices.contains_key(&id) {
                continue;
            }
            if self.devices.len() >= MAX_METERS {
                let detail = format!("More than {MAX_METERS} devices are behind one another.");
                return Err(Problem::new(ProblemKind::Unanswerable, detail));
            }
            if let Some(device) = Box::pin(session.device(&id)).await? {
                waiting.extend(device.behind().cloned());
                self.devices.insert(id, device);
            }
        }

        Ok(())
    }

    /// Adds devices that were read from the table.
    pub fn add(&mut self, devices: Vec<Device>) {
        let by_id = devices.into_iter().map(|device| (device.id().clone(), device));
        self.devices.extend(by_id);
    }
}
