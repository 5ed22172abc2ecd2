//! `UpdateItem`, and `TransactWriteItems` with a new room: a person's edits of the registry.

use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{CancellationReason, ReturnConsumedCapacity, TransactWriteItem};

use crate::attribute;
use crate::error::store_error;
use crate::put::Put;
use crate::update::Update;
use crate::{DynamoStore, note_write};
use domain::{Decimal, Device, DeviceId, DevicePatch, Edit, Place, Room, RoomId, RoomPatch};
use table::item::attribute::{
    BEHIND, EXCHANGES, HOLD, KIND, MAX_W, METRICS, MODULUS, NAME, TAGS, TOLERANCE, UNIT, VERDICTS,
};
use table::item::{self, Attribute};
use table::keys::Key;
use table::layout::Layout;
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
        let mut read = self.read_to_change(id, patch, invocation).await?;
        for _ in 0..MAX_ATTEMPTS {
            let update = device_update(self.layout, id, patch, read.as_ref());
            match update.send_and_read::<Device>(self, invocation).await? {
                // Another change of the settings was faster: this one gets the next number.
                UpdateOutcome::ConditionFailed(Some(now))
                    if read.as_ref().is_some_and(|it| it.fold_settings != now.fold_settings) =>
                {
                    read = Some(now);
                }
                outcome => return Ok(outcome),
            }
        }
        Err(StoreError::Unavailable(format!("the item of {id} kept changing").into()))
    }

    async fn move_device(
        &self,
        id: &DeviceId,
        patch: &DevicePatch,
        room: &Room,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<(Device, InsertOutcome<Room>), Device>> {
        let read = self.read_to_change(id, patch, invocation).await?;
        let put = Put::new(item::from_room(room), Expected::Absent).transact(self);
        let answer = self
            .client
            .transact_write_items()
            .transact_items(
                TransactWriteItem::builder()
                    .update(device_update(self.layout, id, patch, read.as_ref()).transact(self))
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
            let was: Option<Device> = device.item.clone().map(attribute::read).transpose()?;
            let settings = |it: &Option<Device>| it.as_ref().map(|it| it.fold_settings.clone());
            if read.is_some() && settings(&was) != settings(&read) {
                return Err(StoreError::Unavailable(
                    format!("the settings of {id} have just changed").into(),
                ));
            }
            return Ok(UpdateOutcome::ConditionFailed(was));
        }
        if failed(known) {
            let known = attribute::read(known.item.clone().unwrap_or_default())?;
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

/// The number of attempts at an edit of settings that others keep changing.
const MAX_ATTEMPTS: usize = 5;

impl DynamoStore {
    /// Reads the device if the edit may change how its readings are folded: such a change gets the number
    /// after the last.
    async fn read_to_change(
        &self,
        id: &DeviceId,
        patch: &DevicePatch,
        invocation: &Invocation,
    ) -> StoreResult<Option<Device>> {
        if patch.metrics.is_empty() && patch.dropped_metrics.is_empty() {
            return Ok(None);
        }
        self.device(id, invocation).await
    }
}

/// An update of the device, refused where it is not registered, has not sent a metric to be set, or has
/// other settings than it had when it was `read`.
fn device_update(
    layout: Layout,
    id: &DeviceId,
    patch: &DevicePatch,
    read: Option<&Device>,
) -> Update {
    let mut update = Update::of(layout.device_key(id));
    if let Some(read) = read {
        let mut edited = read.clone();
        patch.apply(&mut edited);
        let [(name, number), _] = item::from_fold_settings(&read.fold_settings);
        update.only_if_still(&[name], Some(number).filter(|_| read.fold_settings.number > 0));
        if edited.fold_settings != read.fold_settings {
            for (name, value) in item::from_fold_settings(&edited.fold_settings) {
                update.set(&[name], value);
            }
        }
    }
    edit(&mut update, &[BEHIND], &patch.behind, text);
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
        edit(&mut update, &[METRICS, name, TOLERANCE], &patch.tolerance, number);
        edit(&mut update, &[METRICS, name, HOLD], &patch.hold, item::hold);
        edit(&mut update, &[METRICS, name, EXCHANGES], &patch.exchanges, item::exchanges);
        edit(&mut update, &[METRICS, name, VERDICTS], &patch.verdicts, item::verdicts);
        match patch.kind {
            Edit::Keep => {}
            // Without a kind the metric's name decides.
            Edit::Clear => update.remove(&[METRICS, name, KIND]),
            Edit::Set(kind) => {
                update.set(&[METRICS, name, KIND], Attribute::S(kind.as_str().to_owned()));
            }
        }
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
