//! `UpdateItem`: adds to a device or a room what a sender teaches of it. Never changes what a person set.

use crate::DynamoStore;
use crate::update::Update;
use crate::write_device::DeviceWrite;
use domain::{Device, Hints, Label, Room, RoomId};
use table::item;
use table::item::Attribute;
use table::item::attribute::{METRICS, NAME, SOURCE};
use table::keys::Key;
use table::{Invocation, StoreResult, TeachRegistry, UpdateOutcome};

impl TeachRegistry for DynamoStore {
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
            DeviceWrite::CompanionRefused => unreachable!("there is no companion"),
        })
    }

    async fn name_room(
        &self,
        id: &RoomId,
        name: &Label,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Room>> {
        let mut update = Update::of(Key::Room(id.clone()));
        update.set(&[NAME], Attribute::S(name.to_string()));
        update.only_if_still(&[NAME], None);
        update.send_and_read(self, invocation).await
    }
}
