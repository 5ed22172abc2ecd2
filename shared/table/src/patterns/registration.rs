//! Registers new devices and rooms. Replaces nothing except the tombstone of a deleted device.

use domain::{DeletedDevice, Deletion, Device, Room, Timestamp};
use ports::port;

use super::read;
use crate::db::{Db, WriteOutcome, is, put};
use crate::item::attribute::ENDED;
use crate::item::{Attribute, DeviceItem, Kind as _, from_device};
use crate::{InsertOutcome, Patterns, Registration, StoreResult};

/// Registers new devices and rooms. A registered item is not replaced, by a repeat or by another process.
#[port(RegisterDevices, PutItem(Devices, Rooms), Query(Devices))]
impl<D: Db> Patterns<'_, D> {
    /// Registers a device, unless it is registered or being deleted. If it replaces a tombstone, the number of its fold
    /// settings counts on from that in the tombstone.
    pub async fn register_device(self, device: &Device) -> StoreResult<Registration> {
        self.claim_shards().await?;
        let new = put(from_device(device, self.db.layout()));
        Ok(match self.insert(new).await? {
            InsertOutcome::Inserted => Registration::Inserted,
            InsertOutcome::Exists(DeviceItem::Device(known)) => Registration::Exists(known),
            InsertOutcome::Exists(DeviceItem::Deleted(DeletedDevice { deletion, .. })) => {
                match deletion.ended {
                    None => Registration::Deleted(deletion),
                    Some(ended) => self.replace_tombstone(device, deletion, ended).await?,
                }
            }
        })
    }

    /// Registers a device in place of its tombstone, whose deletion ended at this time.
    async fn replace_tombstone(
        self,
        device: &Device,
        deletion: Deletion,
        ended: Timestamp,
    ) -> StoreResult<Registration> {
        let device = device.clone().numbered_after(&deletion);
        let tombstone = is(ENDED, Attribute::text(&ended));
        let new = put(from_device(&device, self.db.layout())).when([tombstone]);
        match self.write(new).await? {
            WriteOutcome::Done(_) => Ok(Registration::Exists(Box::new(device))),
            // Another writer was faster and has stored its device.
            WriteOutcome::Refused(known) => match known.map(read).transpose()? {
                Some(DeviceItem::Device(known)) => Ok(Registration::Exists(known)),
                _ => Ok(Registration::Deleted(deletion)),
            },
        }
    }

    /// Registers a room, unless it is registered.
    pub async fn register_room(self, room: &Room) -> StoreResult<InsertOutcome<Room>> {
        self.insert(put(room.item())).await
    }
}
