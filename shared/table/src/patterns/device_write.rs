//! Writes a device, alone or with its companions in a transaction. Does not choose companions.

use std::iter;

use domain::{Device, DeviceId, MetricName};

use super::{read, read_present};
use crate::db::{
    AttributeChange, Db, If, Path, Write, WriteOutcome, absent, add, check, delete, member, put,
    replace_all, set, still, take, update,
};
use crate::item::attribute::{BEHIND, BEHIND_IT, DEVICE_VERSION, METRICS};
use crate::item::{Attribute, Kind as _, from_search_entry, from_stay};
use crate::keys::{Key, PK};
use crate::{Companion, Patterns, StoreResult, UpdateOutcome};

impl<D: Db> Patterns<'_, D> {
    /// An update of a device to its next version, on the condition that the device is still as it was read.
    pub(super) fn next_version(self, known: &Device) -> Write {
        let next = Attribute::number(known.version() + 1);
        update(&self.device_key(known.id()))
            .when([is_still(known)])
            .with([set(DEVICE_VERSION, next)])
    }

    /// Writes `new`, the next version of a device, and its companions, all or nothing. If the condition of a companion
    /// fails, the outcome has no device. A repeat is refused.
    pub(super) async fn write_device(
        self,
        new: &Device,
        update: Write,
        companions: Vec<Companion>,
    ) -> StoreResult<UpdateOutcome<Device>> {
        Ok(match self.write_with(update, companions).await? {
            WriteOutcome::Done(Some(now)) => UpdateOutcome::Updated(read(now)?),
            WriteOutcome::Done(None) => UpdateOutcome::Updated(new.clone()),
            WriteOutcome::Refused(was) => {
                UpdateOutcome::ConditionFailed(was.map_or(Ok(None), read_present)?)
            }
        })
    }

    /// Updates a device's item and writes its companions, all or nothing. With companions, the outcome has an item only
    /// if the condition on the device fails.
    pub(super) async fn write_with(
        self,
        update: Write,
        companions: Vec<Companion>,
    ) -> StoreResult<WriteOutcome> {
        if companions.is_empty() {
            return self.write(update).await;
        }

        let beside = companions.into_iter().flat_map(|companion| self.companion_writes(companion));
        Ok(match self.transact(iter::once(update).chain(beside).collect()).await? {
            Ok(()) => WriteOutcome::Done(None),
            Err(mut refused) => WriteOutcome::Refused(refused.take(0)),
        })
    }

    pub(super) fn companion_writes(self, companion: Companion) -> Vec<Write> {
        match companion {
            Companion::RegisterRoom(room) => vec![put(room.item()).when([absent(PK)])],
            Companion::KeepEntry(device, entry) => {
                vec![put(from_search_entry(&device, &entry, self.db.layout()))]
            }
            Companion::DropEntry(device, entry) => vec![delete(&Key::SearchEntry(device, entry))],
            Companion::KeepStay(stay) => from_stay(&stay).map(put).into(),
            Companion::NoteBehind(meter, device) => {
                vec![self.next_version(&meter).with([add(BEHIND_IT, only(&device))])]
            }
            Companion::ForgetBehind(meter, device) => {
                vec![self.next_version(&meter).with([take(BEHIND_IT, only(&device))])]
            }
            // Without a `meter`, the condition holds also for a device that is not registered.
            Companion::StillBehind { device, meter } => {
                let meter = meter.map(|meter| Attribute::text(&meter));
                vec![check(&self.device_key(&device)).when([still(BEHIND, meter)])]
            }
        }
    }
}

/// The condition that a device still has the version that was read.
pub(super) fn is_still(known: &Device) -> If {
    let version = known.version();
    still(DEVICE_VERSION, (version > 0).then(|| Attribute::number(version)))
}

/// The changes that store the fold settings of `new`, if they differ from those of `old`.
pub(super) fn changed_fold_settings(
    old: &Device,
    new: &Device,
) -> impl Iterator<Item = AttributeChange> + use<> {
    let has_changed = new.fold_settings() != old.fold_settings();
    has_changed.then(|| replace_all(new.fold_settings())).into_iter().flatten()
}

/// The path of a metric in a device's item.
pub(super) fn metric_path(name: &MetricName) -> Path {
    member(METRICS, name.as_str())
}

/// A set with one device.
fn only(device: &DeviceId) -> Attribute {
    Attribute::Ss(vec![device.to_string()])
}
