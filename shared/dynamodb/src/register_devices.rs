//! `PutItem` where nothing is, for devices and rooms; and `UpdateItem` for which device introduced a
//! room. Never overwrites.

use crate::DynamoStore;
use crate::update::Update;
use domain::{Device, DeviceId, MAX_INTRODUCED_ROOMS, Room, RoomId};
use table::item::attribute::INTRODUCED_ROOMS;
use table::{InsertOutcome, Invocation, RegisterDevices, StoreResult, UpdateOutcome, item};

impl RegisterDevices for DynamoStore {
    async fn register_device(
        &self,
        device: &Device,
        invocation: &Invocation,
    ) -> StoreResult<InsertOutcome<Device>> {
        self.claim_shards(invocation).await?;
        self.put_if_absent(item::from_device(device, self.layout), invocation).await
    }

    async fn register_room(
        &self,
        room: &Room,
        invocation: &Invocation,
    ) -> StoreResult<InsertOutcome<Room>> {
        self.put_if_absent(item::from_room(room), invocation).await
    }

    async fn introduce_room(
        &self,
        device: &DeviceId,
        room: &RoomId,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Device>> {
        let mut update = Update::of(self.layout.device_key(device));
        update.add_to_set(&[INTRODUCED_ROOMS], room.to_string());
        update.only_if_in_set_or_below(&[INTRODUCED_ROOMS], room.as_str(), MAX_INTRODUCED_ROOMS);
        update.send_and_read(self, invocation).await
    }
}
