//! The deletion mark of a device, written in one transaction with the device's meter; and the removal of rooms and
//! homes. Removes nothing else.

use domain::{Deletion, Device, DeviceId, HomeId, Room, RoomId, Timestamp};
use ports::port;

use super::device_write::is_still;
use crate::db::{
    Db, Write, WriteOutcome, absent, delete, is, present, remove, set, set_as, update, upsert,
};
use crate::item::attribute::{DELETED, ENDED, FOUND, HOME};
use crate::item::{Attribute, DeviceItem, Seconds, description, tombstone_expires};
use crate::keys::{Key, TTL};
use crate::{BegunDeletion, MeterChange, Patterns, Pauses, StoreError, StoreResult, UpdateOutcome};

/// The number of attempts to write a device that others keep changing.
const MAX_ATTEMPTS: usize = 8;

/// Puts deletion marks into devices' own items, so that a device is not registered again while it is being deleted. A
/// repeat changes nothing.
#[port(MarkDeletions, BatchGetItem(Devices), GetItem(Devices), UpdateItem(Devices), Query(Devices))]
impl<D: Db> Patterns<'_, D> {
    /// Begins to delete a device. After this, the device is in no list, in no room and behind no meter. A meter is not
    /// deleted while devices are behind it.
    pub async fn begin_deletion(self, id: &DeviceId, at: Timestamp) -> StoreResult<BegunDeletion> {
        let mut pauses = Pauses::default();
        for _ in 0..MAX_ATTEMPTS {
            let Some(device) = self.device(id).await? else {
                let known = self.deletion(id).await?;
                return Ok(known.map_or(BegunDeletion::NoDevice, BegunDeletion::Deletion));
            };

            let behind = self.still_behind(&device).await?;
            if !behind.is_empty() {
                return Ok(BegunDeletion::Meter(behind));
            }

            let companions = self.meter_companions(MeterChange::of_deletion(&device)).await?;
            let companions = companions.expect("it is put behind no meter");
            let marked = self.write_with(self.deletion_mark(&device, at), companions).await?;
            if matches!(marked, WriteOutcome::Done(_)) {
                let begun = Deletion::begin(at, device.fold_settings().number);
                return Ok(BegunDeletion::Deletion(begun));
            }

            // Another writer has begun the same deletion or changed the device.
            if !pauses.pause(self.invocation).await {
                break;
            }
        }

        Err(StoreError::Contended(format!("the device {id}")))
    }

    /// The update that marks a device as deleted, if the device still has the version that was read. A device that is
    /// put behind this one raises the version.
    fn deletion_mark(self, device: &Device, at: Timestamp) -> Write {
        update(&self.device_key(device.id()))
            .when([is_still(device)])
            .with([set(DELETED, Attribute::text(&at)), set(FOUND, Attribute::text(&at))])
            .with(description(device).map(remove))
    }

    /// The devices that are behind the meter now. The meter's own list, `behind_it`, may also have devices that have
    /// left it.
    async fn still_behind(self, meter: &Device) -> StoreResult<Vec<DeviceId>> {
        if meter.behind_it().is_empty() {
            return Ok(Vec::new());
        }

        let noted: Vec<DeviceId> = meter.behind_it().iter().cloned().collect();
        let found = self.find_devices(&noted).await?.found;
        let behind = found.into_iter().filter(|device| device.behind() == Some(meter.id()));
        let mut behind: Vec<DeviceId> = behind.map(|device| device.id().clone()).collect();
        behind.sort();
        Ok(behind)
    }

    /// Stores that belongings of the device were found at the time `at`. Returns the deletion; `None` if the device is
    /// not being deleted.
    pub async fn note_found(self, id: &DeviceId, at: Timestamp) -> StoreResult<Option<Deletion>> {
        let update = self.update_under_way(id).with([set(FOUND, Attribute::text(&at))]);
        Ok(match self.update_and_read::<DeviceItem>(update).await? {
            UpdateOutcome::Updated(now) => now.deletion(),
            UpdateOutcome::ConditionFailed(_) => None,
        })
    }

    /// Ends a deletion, unless a belonging was found after `known` was read. Returns whether it is ended. The item
    /// stays as a tombstone until it expires or until the next reading replaces it.
    pub async fn end_deletion(
        self,
        id: &DeviceId,
        known: &Deletion,
        at: Timestamp,
    ) -> StoreResult<bool> {
        let update =
            self.update_under_way(id).when([is(FOUND, Attribute::text(&known.found))]).with([
                set(ENDED, Attribute::text(&at)),
                set_as::<Seconds, _>(TTL, &tombstone_expires(at)),
            ]);
        self.is_written(update).await
    }

    /// An update of a device, on the condition that its deletion has begun and has not ended.
    fn update_under_way(self, id: &DeviceId) -> Write {
        upsert(&self.device_key(id)).when([present(DELETED), absent(ENDED)])
    }
}

/// Removes rooms, and homes from rooms.
#[port(RemoveRooms, DeleteItem(Rooms), PutItem(Rooms), UpdateItem(Rooms))]
impl<D: Db> Patterns<'_, D> {
    /// Removes a room of the registry. A repeat changes nothing.
    pub async fn remove_room(self, id: &RoomId) -> StoreResult<()> {
        self.write(delete(&Key::Room(id.clone()))).await.map(drop)
    }

    /// Restores a removed room, unless it was registered again.
    pub async fn put_back_room(self, room: &Room) -> StoreResult<()> {
        self.register_room(room).await.map(drop)
    }

    /// Takes a room out of a home; returns whether the room was in the home.
    pub async fn leave_home(self, room: &RoomId, home: &HomeId) -> StoreResult<bool> {
        let update = update(&Key::Room(room.clone()))
            .when([is(HOME, Attribute::text(home))])
            .with([remove(HOME)]);
        self.is_written(update).await
    }
}
