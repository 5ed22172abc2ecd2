//! `PutItem` where nothing is, for devices, rooms, tokens and arrivals; and `UpdateItem` for which
//! device introduced a room. Never overwrites.

use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::{ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure};

use crate::attribute::{read, to_sdk};
use crate::error::store_error;
use crate::update::Update;
use crate::{DynamoStore, note_write};
use domain::{Device, DeviceId, MAX_INTRODUCED_ROOMS, Room, RoomId};
use table::item::attribute::INTRODUCED_ROOMS;
use table::item::{Attribute, Decode};
use table::keys::{Key, PK};
use table::{InsertOutcome, Invocation, RegisterDevices, StoreResult, UpdateOutcome, item};

impl RegisterDevices for DynamoStore {
    async fn register_device(
        &self,
        device: &Device,
        invocation: &Invocation,
    ) -> StoreResult<InsertOutcome<Device>> {
        self.put_if_absent(item::from_device(device), invocation).await
    }

    async fn register_room(
        &self,
        room: &Room,
        invocation: &Invocation,
    ) -> StoreResult<InsertOutcome<Room>> {
        self.put_if_absent(item::from_room(room), invocation).await
    }

    async fn introduce_room(
        &self,
        device: &DeviceId,
        room: &RoomId,
        invocation: &Invocation,
    ) -> StoreResult<UpdateOutcome<Device>> {
        let mut update = Update::of(Key::Device(device.clone()));
        update.add_to_set(&[INTRODUCED_ROOMS], room.to_string());
        update.only_if_in_set_or_below(&[INTRODUCED_ROOMS], room.as_str(), MAX_INTRODUCED_ROOMS);
        update.send_and_read(self, invocation).await
    }
}

impl DynamoStore {
    pub(super) async fn put_if_absent<N: Into<String>, T: Decode>(
        &self,
        new: impl IntoIterator<Item = (N, Attribute)>,
        invocation: &Invocation,
    ) -> StoreResult<InsertOutcome<T>> {
        let answer = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(to_sdk(new)))
            .condition_expression("attribute_not_exists(#p)")
            .expression_attribute_names("#p", PK)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send();
        match invocation.within(answer).await? {
            Ok(answer) => {
                note_write(invocation, answer.consumed_capacity());
                Ok(InsertOutcome::Inserted)
            }
            Err(error) => match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(failed)) => {
                    invocation.add_write(1.0);
                    let known = failed.item.clone().unwrap_or_default();
                    read(known).map(InsertOutcome::Exists)
                }
                _ => Err(store_error(error)),
            },
        }
    }
}
