//! Reads devices and rooms of the registry by their ids, from the table in place of a snapshot. Does not list all of
//! them.

use std::collections::BTreeMap;

use domain::{Deletion, Device, DeviceId, Room, RoomId};
use ports::port;

use crate::db::Db;
use crate::item::DeviceItem;
use crate::keys::Key;
use crate::{ItemKey, Listing, Patterns, StoreResult};

/// Looks up one device or room.
#[port(LookUpRegistry, GetItem(Devices, Rooms), Query(Devices))]
impl<D: Db> Patterns<'_, D> {
    /// One device, as it is this moment.
    pub async fn device(self, id: &DeviceId) -> StoreResult<Option<Device>> {
        self.check_shards().await?;
        self.find(&self.device_key(id)).await
    }

    /// The deletion of a device; `None` if the device is registered or if there is no such device.
    pub async fn deletion(self, id: &DeviceId) -> StoreResult<Option<Deletion>> {
        self.check_shards().await?;
        let found: Option<DeviceItem> = self.find(&self.device_key(id)).await?;
        Ok(found.and_then(DeviceItem::deletion))
    }

    /// One room, as it is this moment.
    pub async fn room(self, id: &RoomId) -> StoreResult<Option<Room>> {
        self.find(&Key::Room(id.clone())).await
    }
}

/// Looks up several devices and rooms, as they are this moment. No id may be given twice.
#[port(FindRegistry, BatchGetItem(Devices, Rooms), Query(Devices))]
impl<D: Db> Patterns<'_, D> {
    /// The registered devices with these ids, in any order.
    pub async fn find_devices(self, ids: &[DeviceId]) -> StoreResult<Listing<Device>> {
        self.check_shards().await?;
        let keys = ids.iter().map(|id| ItemKey::of(&self.device_key(id))).collect();
        self.find_all(keys).await
    }

    /// The registered devices with these ids, and the ids that could not be read because the table throttled.
    pub async fn find_some_devices(
        self,
        ids: &[DeviceId],
    ) -> StoreResult<(Listing<Device>, Vec<DeviceId>)> {
        self.check_shards().await?;
        let by_key: BTreeMap<ItemKey, &DeviceId> =
            ids.iter().map(|id| (ItemKey::of(&self.device_key(id)), id)).collect();
        let keys = ids.iter().map(|id| ItemKey::of(&self.device_key(id))).collect();
        let (listing, left) = self.find_some(keys).await?;
        let left = left.iter().filter_map(|key| by_key.get(key)).map(|id| (*id).clone());
        Ok((listing, left.collect()))
    }

    /// The registered rooms with these ids, in any order.
    pub async fn find_rooms(self, ids: &[RoomId]) -> StoreResult<Listing<Room>> {
        self.find_all(ids.iter().map(|id| ItemKey::of(&Key::Room(id.clone()))).collect()).await
    }
}
