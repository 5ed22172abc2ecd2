//! Reads the devices and rooms of a batch from the table. Writes nothing.

use std::collections::{BTreeMap, BTreeSet};

use domain::{Device, DeviceId, Room, RoomId, Timestamp};
use runtime::registry::is_gone;
use table::keys::{DEVICES, ROOMS};
use table::shards::Shard;
use table::{
    FindRegistry, Listing, QueryReadings, Session, StoreError, StoreResult, UnreadableItem,
};

use crate::observed::{ObservedDevice, ThrottledDevice};

/// The devices and rooms of a batch, as the table has them now.
pub(crate) struct Current {
    pub(crate) devices: BTreeMap<DeviceId, Device>,
    /// The registered rooms, by id.
    pub(crate) rooms: BTreeMap<RoomId, Room>,
    /// The items that cannot be read. The devices and rooms of these items are not written.
    pub(crate) unreadable: Vec<UnreadableItem>,
    /// Deleted devices that may have new readings, because the query of their readings was throttled.
    pub(crate) throttled: Vec<ThrottledDevice>,
}

impl Current {
    /// Reads the devices and rooms as they are now, including the latest writes of other instances. Removes deleted
    /// devices from the batch: a record of a deleted reading, delivered late, registers nothing.
    pub(crate) async fn read(
        session: Session<'_, impl FindRegistry + QueryReadings>,
        batch: &mut BTreeMap<DeviceId, ObservedDevice>,
    ) -> StoreResult<Self> {
        let ids: Vec<_> = batch.keys().cloned().collect();
        let devices = session.find_devices(&ids).await?;

        let mut throttled = Vec::new();
        for device in &devices.deleted {
            let part = session.invocation.with_quarter_patience();
            match is_gone(session.within(&part), device).await {
                Ok(false) => {}
                Ok(true) => drop(batch.remove(&device.id)),
                Err(error @ StoreError::Throttled(_)) => {
                    if let Some((id, observed)) = batch.remove_entry(&device.id) {
                        let first_record = observed.first_record;
                        throttled.push(ThrottledDevice { id, first_record, error });
                    }
                }
                Err(error) => return Err(error),
            }
        }

        let named: Vec<_> = rooms_of(batch).into_iter().collect();
        let rooms = match named.as_slice() {
            [] => Listing::default(),
            named => session.find_rooms(named).await?,
        };

        let mut current = Self {
            devices: devices
                .found
                .into_iter()
                .map(|device| (device.id().clone(), device))
                .collect(),
            rooms: rooms.found.into_iter().map(|room| (room.id.clone(), room)).collect(),
            unreadable: devices.unreadable.into_iter().chain(rooms.unreadable).collect(),
            throttled,
        };

        // A damaged room counts as registered: no device introduces it again.
        for room in named {
            if current.is_room_damaged(&room) {
                current.rooms.insert(room.clone(), Room::new(room, Timestamp::MIN));
            }
        }
        Ok(current)
    }

    /// Whether the item of a device cannot be read.
    pub(crate) fn is_device_damaged(&self, id: &DeviceId) -> bool {
        self.is_damaged(DEVICES, id.as_str())
    }

    /// Whether the item of a room cannot be read.
    pub(crate) fn is_room_damaged(&self, id: &RoomId) -> bool {
        self.is_damaged(ROOMS, id.as_str())
    }

    fn is_damaged(&self, partition: &str, id: &str) -> bool {
        let is_it =
            |item: &UnreadableItem| Shard::parse(&item.pk, partition).is_some() && item.sk == id;
        self.unreadable.iter().any(is_it)
    }

    /// Whether a room is registered. A room that the batch does not name is read from the table.
    pub(crate) async fn has_room(
        &mut self,
        room: &RoomId,
        session: Session<'_, impl FindRegistry>,
    ) -> StoreResult<bool> {
        if !self.rooms.contains_key(room) {
            let found = session.find_rooms(std::slice::from_ref(room)).await?.found;
            self.rooms.extend(found.into_iter().map(|room| (room.id.clone(), room)));
        }
        Ok(self.rooms.contains_key(room))
    }
}

/// The rooms that readings of a batch name.
pub(crate) fn rooms_of(batch: &BTreeMap<DeviceId, ObservedDevice>) -> BTreeSet<RoomId> {
    batch.values().flat_map(|device| device.observation.rooms.keys().cloned()).collect()
}
