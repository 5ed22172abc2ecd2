//! `TransactWriteItems` of a device and the stays of a backup. Chooses none.

use crate::DynamoStore;
use crate::update::Update;
use crate::write_device::DeviceWrite;
use domain::{Device, DeviceStay, Stay};
use table::item;
use table::item::attribute::STAY;
use table::{Companion, Invocation, RestoreStays, StoreResult, UpdateOutcome};

impl RestoreStays for DynamoStore {
    async fn restore_stays(
        &self,
        known: &Device,
        stays: &[Stay],
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Device>> {
        let new = known.with_stay(known.stay().or(stays.last()).cloned());
        let mut update = Update::of(self.layout.device_key(known.id()));
        new.stay().into_iter().for_each(|stay| update.set(&[STAY], item::newest_stay(stay)));
        let keep = |stay: &Stay| {
            Companion::KeepStay(DeviceStay { device: known.id().clone(), stay: stay.clone() })
        };
        let companions = stays.iter().map(keep).collect();
        let written = self.write_device((known, &new), update, companions, invocation).await?;
        Ok(match written {
            DeviceWrite::Done(now) => UpdateOutcome::Updated(now),
            DeviceWrite::Lost(was) => UpdateOutcome::ConditionFailed(was),
            DeviceWrite::CompanionRefused => unreachable!("stays are put without a condition"),
        })
    }
}
