//! `UpdateItem`, and `TransactWriteItems` with a new room: a person's edits of the registry.

use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{CancellationReason, ReturnConsumedCapacity, TransactWriteItem};

use crate::attribute::read;
use crate::error::store_error;
use crate::put::Put;
use crate::update::Update;
use crate::{DynamoStore, note_write};
use domain::{Decimal, Device, DeviceId, DevicePatch, Edit, Place, Room, RoomId, RoomPatch};
use table::item::attribute::{DIP, KIND, MAX_W, METRICS, MODULUS, NAME, TAGS, UNIT};
use table::item::{self, Attribute};
use table::keys::Key;
use table::{
    EditRegistry, Expected, InsertOutcome, Invocation, LookUpRegistry as _, StoreError,
    StoreResult, UpdateOutcome,
};

impl EditRegistry for DynamoStore {
    async fn edit_device(
        &self,
        id: &DeviceId,
        patch: &DevicePatch,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Device>> {
        device_update(id, patch).send_and_read(self, invocation).await
    }

    async fn move_device(
        &self,
        id: &DeviceId,
        patch: &DevicePatch,
        room: &Room,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<(Device, InsertOutcome<Room>), Device>> {
        let put = Put::new(item::from_room(room), Expected::Absent).transact(self);
        let answer = self
            .client
            .transact_write_items()
            .transact_items(
                TransactWriteItem::builder()
                    .update(device_update(id, patch).transact(self))
                    .build(),
            )
            .transact_items(TransactWriteItem::builder().put(put).build())
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send();
        let error = match invocation.within(answer).await? {
            Ok(answer) => {
                answer
                    .consumed_capacity()
                    .iter()
                    .for_each(|units| note_write(invocation, Some(units)));
                // A transaction does not return what it wrote.
                let device = self.device(id, invocation).await?;
                return Ok(match device {
                    Some(now) => UpdateOutcome::Updated((now, InsertOutcome::Inserted)),
                    None => UpdateOutcome::ConditionFailed(None),
                });
            }
            Err(error) => error,
        };
        let Some(TransactWriteItemsError::TransactionCanceledException(canceled)) =
            error.as_service_error()
        else {
            return Err(store_error(error));
        };
        invocation.add_write(CANCELED);
        let [device, known] = canceled.cancellation_reasons() else {
            return Err(store_error(error));
        };
        if failed(device) {
            let was = device.item.clone().map(read).transpose()?;
            return Ok(UpdateOutcome::ConditionFailed(was));
        }
        if failed(known) {
            let known = read(known.item.clone().unwrap_or_default())?;
            return Ok(match self.edit_device(id, patch, invocation).await? {
                UpdateOutcome::Updated(now) => {
                    UpdateOutcome::Updated((now, InsertOutcome::Exists(known)))
                }
                UpdateOutcome::ConditionFailed(was) => UpdateOutcome::ConditionFailed(was),
            });
        }
        let is_busy =
            [device, known].iter().any(|it| it.code().is_some_and(|it| BUSY.contains(&it)));
        Err(if is_busy { StoreError::Throttled(Box::new(error)) } else { store_error(error) })
    }

    async fn edit_room(
        &self,
        id: &RoomId,
        patch: &RoomPatch,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Room>> {
        let mut update = Update::of(Key::Room(id.clone()));
        edit(&mut update, &[NAME], &patch.name, text);
        update.send_and_read(self, invocation).await
    }
}

/// The write units of a transaction of two small items that was canceled: as many as of one that was not.
const CANCELED: f64 = 4.0;

/// The reasons for which a transaction is canceled that succeeds later: another one holds the item, or
/// the table is asked for too much.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html>
const BUSY: [&str; 3] = ["TransactionConflict", "ProvisionedThroughputExceeded", "ThrottlingError"];

fn failed(reason: &CancellationReason) -> bool {
    reason.code() == Some("ConditionalCheckFailed")
}

/// An update of the device, refused where it is not registered or has not sent a metric to be set.
fn device_update(id: &DeviceId, patch: &DevicePatch) -> Update {
    let mut update = Update::of(Key::Device(id.clone()));
    edit(&mut update, &[NAME], &patch.name, text);
    edit(&mut update, &[KIND], &patch.kind, text);
    edit(&mut update, &[TAGS], &patch.tags, item::tags);
    let place = match &patch.room {
        Edit::Keep => None,
        Edit::Clear => Some(Place::Unknown),
        Edit::Set(room) => Some(Place::Chosen(room.clone())),
    };
    for (name, value) in place.iter().flat_map(item::from_place) {
        match value {
            Some(value) => update.set(&[name], value),
            None => update.remove(&[name]),
        }
    }
    for (name, patch) in &patch.metrics {
        let name = name.as_str();
        update.only_if_present(&[METRICS, name]);
        edit(&mut update, &[METRICS, name, UNIT], &patch.unit, text);
        edit(&mut update, &[METRICS, name, MODULUS], &patch.modulus, number);
        edit(&mut update, &[METRICS, name, MAX_W], &patch.max_w, number);
        edit(&mut update, &[METRICS, name, DIP], &patch.dip, number);
    }
    for name in &patch.dropped_metrics {
        update.remove(&[METRICS, name.as_str()]);
    }
    update
}

fn edit<T>(
    update: &mut Update,
    path: &[&str],
    edit: &Edit<T>,
    attribute: impl Fn(&T) -> Attribute,
) {
    match edit {
        Edit::Keep => {}
        Edit::Clear => update.remove(path),
        Edit::Set(value) => update.set(path, attribute(value)),
    }
}

fn text(text: &impl ToString) -> Attribute {
    Attribute::S(text.to_string())
}

fn number(number: &Decimal) -> Attribute {
    Attribute::N(number.to_string())
}
