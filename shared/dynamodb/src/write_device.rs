//! A device's `UpdateItem`, or a `TransactWriteItems` of it and its companions; the transactions of others.
//! Works out no companion.

use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, Delete, Put as TransactPut, ReturnConsumedCapacity,
    TransactWriteItem,
};

use crate::attribute::{self, to_sdk};
use crate::error::store_error;
use crate::put::Put;
use crate::update::Update;
use crate::{DynamoStore, note_write};
use domain::Device;
use table::item::attribute::DEVICE_VERSION;
use table::item::{self, Attribute, Item};
use table::keys::{Key, PK, SK};
use table::{Companion, Expected, Invocation, ItemKey, StoreError, StoreResult, UpdateOutcome};

/// The outcome of a device's write with its companions.
pub(super) enum DeviceWrite {
    /// All is written; this is the device now.
    Done(Device),
    /// Nothing is written: the device was this, or was not there.
    Lost(Option<Device>),
    /// Nothing is written: a companion was there already.
    CompanionExists,
}

/// The reasons for which a transaction is cancelled that succeeds later: another one holds the item, or
/// the table is asked for too much.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html>
const BUSY: [&str; 3] = ["TransactionConflict", "ProvisionedThroughputExceeded", "ThrottlingError"];

/// The write units of one small item in a transaction, which a cancelled one costs too.
const CANCELLED_ITEM: f64 = 2.0;

impl DynamoStore {
    /// Writes `new` with `update`, which gets the condition that the device's version is the one of `old`.
    ///
    /// Done twice, the second time is lost. The SDK gives each transaction a token, by which `DynamoDB` knows
    /// an attempt that the SDK repeats because its answer was lost.
    pub(super) async fn write_device(
        &self,
        (old, new): (&Device, &Device),
        mut update: Update,
        companions: Vec<Companion>,
        invocation: &Invocation,
    ) -> StoreResult<DeviceWrite> {
        let number = |version: u64| Attribute::N(version.to_string());
        update.only_if_still(&[DEVICE_VERSION], (old.version > 0).then(|| number(old.version)));
        update.set(&[DEVICE_VERSION], number(new.version));
        if companions.is_empty() {
            return Ok(match update.send_and_read(self, invocation).await? {
                UpdateOutcome::Updated(now) => DeviceWrite::Done(now),
                UpdateOutcome::ConditionFailed(was) => DeviceWrite::Lost(was),
            });
        }
        let companions = companions.into_iter().flat_map(|it| self.parts(it));
        let parts: Vec<TransactWriteItem> =
            [TransactWriteItem::builder().update(update.transact(self)).build()]
                .into_iter()
                .chain(companions)
                .collect();
        let Err(reasons) = self.transact(parts, invocation).await? else {
            return Ok(DeviceWrite::Done(new.clone()));
        };
        if let Some(device) = reasons.first().filter(|it| failed(it)) {
            let was = device.item.clone().map_or(Ok(None), attribute::read_present);
            return was.map(DeviceWrite::Lost);
        }
        Ok(DeviceWrite::CompanionExists)
    }

    /// Writes all parts or none; the reasons of each where a condition does not hold.
    pub(super) async fn transact(
        &self,
        parts: Vec<TransactWriteItem>,
        invocation: &Invocation,
    ) -> StoreResult<Result<(), Vec<CancellationReason>>> {
        let answer = self
            .client
            .transact_write_items()
            .set_transact_items(Some(parts))
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send();
        let error = match invocation.within(answer).await? {
            Ok(answer) => {
                let units = answer.consumed_capacity().iter();
                units.for_each(|units| note_write(invocation, Some(units)));
                return Ok(Ok(()));
            }
            Err(error) => error,
        };
        let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) =
            error.as_service_error()
        else {
            return Err(store_error(error));
        };
        let reasons = cancelled.cancellation_reasons();
        reasons.iter().for_each(|_| invocation.add_write(CANCELLED_ITEM));
        if reasons.iter().any(failed) {
            return Ok(Err(reasons.to_vec()));
        }
        let is_busy = reasons.iter().any(|it| it.code().is_some_and(|it| BUSY.contains(&it)));
        Err(if is_busy { StoreError::Throttled(Box::new(error)) } else { store_error(error) })
    }

    /// The parts of a transaction that write a companion.
    pub(super) fn parts(&self, companion: Companion) -> Vec<TransactWriteItem> {
        match companion {
            Companion::RegisterRoom(room) => {
                vec![self.conditional_part(Put::new(item::from_room(&room), Expected::Absent))]
            }
            Companion::KeepEntry(device, entry) => {
                vec![self.put_part(item::from_search_entry(&device, &entry, self.layout))]
            }
            Companion::DropEntry(device, entry) => {
                vec![self.delete_part(ItemKey::of(&Key::SearchEntry(device, entry)))]
            }
            Companion::KeepStay(stay) => item::from_stay(&stay).map(|it| self.put_part(it)).into(),
        }
    }

    /// A deletion without a condition.
    pub(super) fn delete_part(&self, ItemKey { pk, sk }: ItemKey) -> TransactWriteItem {
        let delete = Delete::builder()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(pk))
            .key(SK, AttributeValue::S(sk));
        TransactWriteItem::builder().delete(delete.build().expect("key and table are set")).build()
    }

    /// A put with its condition.
    pub(super) fn conditional_part(&self, put: Put) -> TransactWriteItem {
        TransactWriteItem::builder().put(put.transact(self)).build()
    }

    /// A put without a condition: that of another part holds for it too.
    pub(super) fn put_part(&self, item: Item) -> TransactWriteItem {
        let put = TransactPut::builder().table_name(&self.table).set_item(Some(to_sdk(item)));
        TransactWriteItem::builder().put(put.build().expect("item and table are set")).build()
    }
}

fn failed(reason: &CancellationReason) -> bool {
    reason.code() == Some("ConditionalCheckFailed")
}
