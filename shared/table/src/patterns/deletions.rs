//! The deletion mark of a device, written with the device's meter; and rooms and homes that go. Removes nothing else.

use domain::{Deletion, Device, DeviceId, HomeId, Room, RoomId, Timestamp};

use super::device_write::is_still;
use crate::db::{
    Db, Write, WriteOutcome, absent, delete, is, present, remove, set, set_as, update, upsert,
};
use crate::item::attribute::{DELETED, ENDED, FOUND, HOME};
use crate::item::{Attribute, DeviceItem, Seconds, description, tombstone_expires};
use crate::keys::{Key, TTL};
use crate::{BegunDeletion, MeterChange, Patterns, Pauses, StoreError, StoreResult, UpdateOutcome};

/// The number of attempts at a device that others keep changing.
const MAX_ATTEMPTS: usize = 8;

impl<D: Db> Patterns<'_, D> {
    /// Begins to delete a device, which from then on is in no list, no room and behind no meter. A meter with devices
    /// behind it is not deleted.
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

            // Somebody has done the same, or has changed something.
            if !pauses.pause(self.invocation).await {
                break;
            }
        }

        Err(StoreError::Contended(format!("the device {id}")))
    }

    /// Gives a device the deletion mark in the version that was read: a device that is put behind it raises the version.
    fn deletion_mark(self, device: &Device, at: Timestamp) -> Write {
        update(&self.device_key(device.id()))
            .when([is_still(device)])
            .with([set(DELETED, Attribute::text(&at)), set(FOUND, Attribute::text(&at))])
            .with(description(device).map(remove))
    }

    /// The devices that are behind the meter now. The meter's own list (`behind_it`) may name more.
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

    /// Notes that something of the device is found now. Returns the deletion, `None` where no deletion is under way.
    pub async fn note_found(self, id: &DeviceId, at: Timestamp) -> StoreResult<Option<Deletion>> {
        let update = self.update_under_way(id).with([set(FOUND, Attribute::text(&at))]);
        Ok(match self.update_and_read::<DeviceItem>(update).await? {
            UpdateOutcome::Updated(now) => now.deletion(),
            UpdateOutcome::ConditionFailed(_) => None,
        })
    }

    /// Ends a deletion, if nothing has been found since `known`; returns whether it is ended. What is left is
    /// a tombstone that expires, and that the next reading replaces.
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

    /// An update of a device whose deletion is under way.
    fn update_under_way(self, id: &DeviceId) -> Write {
        upsert(&self.device_key(id)).when([present(DELETED), absent(ENDED)])
    }

    /// Removes a room of the registry. Done twice, it changes nothing.
    pub async fn remove_room(self, id: &RoomId) -> StoreResult<()> {
        self.write(delete(&Key::Room(id.clone()))).await.map(drop)
    }

    /// Puts a room back that was removed, unless it is registered again.
    pub async fn put_back_room(self, room: &Room) -> StoreResult<()> {
        self.register_room(room).await.map(drop)
    }

    /// Takes a room out of a home; returns whether it was in it.
    pub async fn leave_home(self, room: &RoomId, home: &HomeId) -> StoreResult<bool> {
        let update = update(&Key::Room(room.clone()))
            .when([is(HOME, Attribute::text(home))])
            .with([remove(HOME)]);
        self.is_written(update).await
    }
}
