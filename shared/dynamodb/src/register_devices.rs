//! `PutItem` where nothing is, for devices and rooms; and `UpdateItem` for which device introduced a
//! room. Overwrites nothing but the tombstone of a deleted device.

use crate::DynamoStore;
use crate::attribute::read;
use crate::put::Put;
use crate::update::Update;
use domain::{DeletedDevice, Device, DeviceId, MAX_INTRODUCED_ROOMS, Room, RoomId};
use table::item::DeviceItem;
use table::item::attribute::INTRODUCED_ROOMS;
use table::{
    Expected, InsertOutcome, Invocation, RegisterDevices, Registration, StoreResult, UpdateOutcome,
    item,
};

impl RegisterDevices for DynamoStore {
    async fn register_device(
        &self,
        device: &Device,
        invocation: &Invocation,
    ) -> StoreResult<Registration> {
        self.claim_shards(invocation).await?;
        let new = item::from_device(device, self.layout);
        let deletion = match self.put_if_absent(new, invocation).await? {
            InsertOutcome::Inserted => return Ok(Registration::Inserted),
            InsertOutcome::Exists(DeviceItem::Device(known)) => {
                return Ok(Registration::Exists(known));
            }
            InsertOutcome::Exists(DeviceItem::Deleted(DeletedDevice { deletion, .. })) => deletion,
        };
        let Some(ended) = deletion.ended else { return Ok(Registration::Deleted(deletion)) };
        let device = device.clone().numbered_after(&deletion);
        let put = Put::new(item::from_device(&device, self.layout), Expected::Tombstone(ended));
        match put.send(self, invocation).await? {
            UpdateOutcome::Updated(()) => Ok(Registration::Exists(Box::new(device))),
            // Somebody was faster, and it is that device which is there.
            UpdateOutcome::ConditionFailed(known) => match known.map(read).transpose()? {
                Some(DeviceItem::Device(known)) => Ok(Registration::Exists(known)),
                _ => Ok(Registration::Deleted(deletion)),
            },
        }
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
