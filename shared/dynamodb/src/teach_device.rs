//! `UpdateItem`: adds to a device what a sender teaches of it. Never changes what a person set.

use crate::DynamoStore;
use crate::update::Update;
use crate::write_device::DeviceWrite;
use domain::{Device, Hints};
use table::item;
use table::item::attribute::{METRICS, SOURCE};
use table::{Invocation, StoreResult, TeachDevice, UpdateOutcome};

impl TeachDevice for DynamoStore {
    async fn teach_device(
        &self,
        known: &Device,
        hints: &Hints,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Device>> {
        let Some(new) = known.taught(hints) else {
            return Ok(UpdateOutcome::Updated(known.clone()));
        };
        let mut update = Update::of(self.layout.device_key(known.id()));
        if new.source() != known.source() {
            update.set(&[SOURCE], item::source(new.source()));
        }
        for (name, info) in new.metrics() {
            if known.metrics().get(name) != Some(info) {
                update.set(&[METRICS, name.as_str()], item::metric(info));
            }
        }
        if new.fold_settings() != known.fold_settings() {
            for (name, value) in item::from_fold_settings(new.fold_settings()) {
                update.set(&[name], value);
            }
        }
        Ok(match self.write_device((known, &new), update, Vec::new(), invocation).await? {
            DeviceWrite::Done(now) => UpdateOutcome::Updated(now),
            DeviceWrite::Lost(was) => UpdateOutcome::ConditionFailed(was),
            DeviceWrite::CompanionRefused | DeviceWrite::Busy(_) => {
                unreachable!("there is no companion")
            }
        })
    }
}
