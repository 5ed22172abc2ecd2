//! The mark of a device that is being deleted: `UpdateItem`, with the device's meter in one `TransactWriteItems`.
//! Removes nothing else.

use domain::{Deletion, Device, DeviceId, Timestamp};

use crate::DynamoStore;
use crate::pause::Pauses;
use crate::update::Update;
use crate::write_device::{ItemWrite, only_if_version};
use table::item::attribute::{DELETED, ENDED, FOUND};
use table::item::{self, Attribute, DeviceItem};
use table::keys::TTL;
use table::{
    BegunDeletion, FindRegistry as _, Invocation, LookUpRegistry as _, MarkDeletions, MeterChange,
    StoreError, StoreResult, UpdateOutcome,
};

/// The number of attempts at a device that others keep changing.
const MAX_ATTEMPTS: usize = 8;

impl MarkDeletions for DynamoStore {
    async fn begin_deletion(
        &self,
        id: &DeviceId,
        at: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<BegunDeletion> {
        let mut pauses = Pauses::default();
        for _ in 0..MAX_ATTEMPTS {
            let Some(device) = self.device(id, invocation).await? else {
                let known = self.deletion(id, invocation).await?;
                return Ok(known.map_or(BegunDeletion::NoDevice, BegunDeletion::Deletion));
            };
            let behind = self.still_behind(&device, invocation).await?;
            if !behind.is_empty() {
                return Ok(BegunDeletion::Meter(behind));
            }
            let change = MeterChange::of_deletion(&device);
            let companions = self.meter_companions(change, invocation).await?;
            let mut update = Update::of(self.layout.device_key(id));
            // Whoever is put behind it raises its version.
            only_if_version(&mut update, &device);
            update.set(&[DELETED], text(at));
            update.set(&[FOUND], text(at));
            item::description(&device).for_each(|name| update.remove(&[name]));
            let companions = companions.expect("it is put behind no meter");
            match self.write_item(update, companions, invocation).await? {
                ItemWrite::Done(_) => {
                    let begun = Deletion::begin(at, device.fold_settings().number);
                    return Ok(BegunDeletion::Deletion(begun));
                }
                // Somebody has done the same, or has changed something.
                ItemWrite::Lost(_) | ItemWrite::CompanionRefused => {
                    if !pauses.pause(invocation).await {
                        break;
                    }
                }
            }
        }
        Err(StoreError::Contended(format!("the device {id}")))
    }

    async fn note_found(
        &self,
        id: &DeviceId,
        at: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<Option<Deletion>> {
        let mut update = Update::of_marked(self.layout.device_key(id));
        update.only_if_still(&[ENDED], None);
        update.set(&[FOUND], text(at));
        Ok(match update.send_and_read::<DeviceItem>(self, invocation).await? {
            UpdateOutcome::Updated(now) => now.deletion(),
            UpdateOutcome::ConditionFailed(_) => None,
        })
    }

    async fn end_deletion(
        &self,
        id: &DeviceId,
        known: &Deletion,
        at: Timestamp,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let mut update = Update::of_marked(self.layout.device_key(id));
        update.only_if_still(&[ENDED], None);
        update.only_if_still(&[FOUND], Some(text(known.found)));
        update.set(&[ENDED], text(at));
        update.set(&[TTL], item::tombstone_expiry(at));
        let ended = update.send(self, invocation).await?;
        Ok(matches!(ended, UpdateOutcome::Updated(_)))
    }
}

impl DynamoStore {
    /// Those of the devices noted to be behind a meter that are.
    async fn still_behind(
        &self,
        meter: &Device,
        invocation: &Invocation,
    ) -> StoreResult<Vec<DeviceId>> {
        if meter.behind_it().is_empty() {
            return Ok(Vec::new());
        }
        let noted: Vec<DeviceId> = meter.behind_it().iter().cloned().collect();
        let found = self.find_devices(&noted, invocation).await?.found;
        let behind = found.into_iter().filter(|it| it.behind() == Some(meter.id()));
        let mut behind: Vec<DeviceId> = behind.map(|it| it.id().clone()).collect();
        behind.sort();
        Ok(behind)
    }
}

fn text(at: Timestamp) -> Attribute {
    Attribute::S(at.to_string())
}
