//! A device's `UpdateItem`, or a `TransactWriteItems` of it and its companions; the transactions of others.
//! Works out no companion.

use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, ConditionCheck, Delete, Put as TransactPut,
    ReturnConsumedCapacity, TransactWriteItem,
};

use crate::attribute::{self, SdkItem, to_sdk};
use crate::error::store_error;
use crate::pause::while_throttled;
use crate::put::Put;
use crate::update::Update;
use crate::{DynamoStore, note_write};
use domain::{Device, DeviceId};
use table::item::attribute::{BEHIND, BEHIND_IT, DEVICE_VERSION};
use table::item::{self, Attribute, Item};
use table::keys::{Key, PK, SK};
use table::{Companion, Expected, Invocation, ItemKey, StoreError, StoreResult, UpdateOutcome};

/// The outcome of a device's write with its companions.
pub(super) enum DeviceWrite {
    /// All is written; this is the device now.
    Done(Device),
    /// Nothing is written: the device was this, or was not there.
    Lost(Option<Device>),
    /// Nothing is written: a companion's condition does not hold.
    CompanionRefused,
}

/// The outcome of a write of a device's item with its companions.
pub(super) enum ItemWrite {
    /// All is written; this is the item now, where it was written alone.
    Done(Option<SdkItem>),
    /// Nothing is written: the item was this, or was not there.
    Lost(Option<SdkItem>),
    /// Nothing is written: a companion's condition does not hold.
    CompanionRefused,
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
        only_if_version(&mut update, old);
        update.set(&[DEVICE_VERSION], version(new.version()));
        Ok(match self.write_item(update, companions, invocation).await? {
            ItemWrite::Done(Some(now)) => DeviceWrite::Done(attribute::read(now)?),
            ItemWrite::Done(None) => DeviceWrite::Done(new.clone()),
            ItemWrite::Lost(was) => {
                DeviceWrite::Lost(was.map_or(Ok(None), attribute::read_present)?)
            }
            ItemWrite::CompanionRefused => DeviceWrite::CompanionRefused,
        })
    }

    /// Writes a device's item with its companions.
    pub(super) async fn write_item(
        &self,
        update: Update,
        companions: Vec<Companion>,
        invocation: &Invocation,
    ) -> StoreResult<ItemWrite> {
        if companions.is_empty() {
            return Ok(match update.send(self, invocation).await? {
                UpdateOutcome::Updated(now) => ItemWrite::Done(Some(now)),
                UpdateOutcome::ConditionFailed(was) => ItemWrite::Lost(was),
            });
        }
        let companions = companions.into_iter().flat_map(|it| self.parts(it));
        let parts: Vec<TransactWriteItem> =
            [TransactWriteItem::builder().update(update.transact(self)).build()]
                .into_iter()
                .chain(companions)
                .collect();
        let Err(reasons) = self.transact_parts(parts, invocation).await? else {
            return Ok(ItemWrite::Done(None));
        };
        Ok(match reasons.into_iter().next().filter(failed) {
            Some(device) => ItemWrite::Lost(device.item),
            None => ItemWrite::CompanionRefused,
        })
    }

    /// Writes all parts or none; the reason of each part where a condition does not hold. A transaction that is
    /// throttled, or conflicts with another one, is sent again while there is patience.
    ///
    /// Each attempt has a token of its own, so an attempt whose answer is lost is made again by the SDK within it.
    ///
    /// Sources: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html> (conflicts;
    /// the token; two units for what else costs one),
    /// <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_CancellationReason.html> (the reasons, in
    /// the order of the parts).
    pub(super) async fn transact_parts(
        &self,
        parts: Vec<TransactWriteItem>,
        invocation: &Invocation,
    ) -> StoreResult<Result<(), Vec<CancellationReason>>> {
        while_throttled(invocation, || self.transact_once(parts.clone(), invocation)).await
    }

    async fn transact_once(
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
        let is_busy =
            reasons.iter().filter_map(CancellationReason::code).any(|code| BUSY.contains(&code));
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
            Companion::NoteBehind(meter, device) => {
                let mut update = self.next_version(&meter);
                update.add_to_set(&[BEHIND_IT], device.to_string());
                vec![TransactWriteItem::builder().update(update.transact(self)).build()]
            }
            Companion::ForgetBehind(meter, device) => {
                let mut update = self.next_version(&meter);
                update.remove_from_set(&[BEHIND_IT], device.to_string());
                vec![TransactWriteItem::builder().update(update.transact(self)).build()]
            }
            Companion::StillBehind { device, meter } => {
                let check = self.behind_check(&device, meter.as_ref());
                vec![TransactWriteItem::builder().condition_check(check).build()]
            }
        }
    }

    /// An update of a device that is still what was read.
    fn next_version(&self, known: &Device) -> Update {
        let mut update = Update::of(self.layout.device_key(known.id()));
        only_if_version(&mut update, known);
        update.set(&[DEVICE_VERSION], version(known.version() + 1));
        update
    }

    /// A check that holds for a device that is not registered too, where no meter is expected.
    fn behind_check(&self, device: &DeviceId, meter: Option<&DeviceId>) -> ConditionCheck {
        let value = meter.map(|it| AttributeValue::S(it.to_string()));
        ConditionCheck::builder()
            .table_name(&self.table)
            .set_key(Some(to_sdk(item::key(&self.layout.device_key(device)))))
            .expression_attribute_names("#b", BEHIND)
            .condition_expression(if meter.is_some() {
                "#b = :b"
            } else {
                "attribute_not_exists(#b)"
            })
            .set_expression_attribute_values(value.map(|it| [(":b".to_owned(), it)].into()))
            .build()
            .expect("key, table and condition are set")
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

/// Lets an update fail where the device's version is not the one of `known`.
pub(super) fn only_if_version(update: &mut Update, known: &Device) {
    update
        .only_if_still(&[DEVICE_VERSION], (known.version() > 0).then(|| version(known.version())));
}

fn version(version: u64) -> Attribute {
    Attribute::number(version)
}

/// Whether a condition of this part does not hold.
pub(super) fn failed(reason: &CancellationReason) -> bool {
    reason.code() == Some("ConditionalCheckFailed")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::{Decimal, DeviceObservation, Reading, Timestamp};
    use table::{Belonging, Deadline, NoteSeen as _, RemoveBelongings as _, Seen};

    use super::*;
    use crate::canned::Canned;

    /// A table that cancels every transaction, for this reason of its first part.
    fn cancelling(code: &str) -> Canned {
        let answer = format!(
            r#"{{"__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
                "CancellationReasons": [{{"Code": "{code}"}}, {{"Code": "None"}}]}}"#
        );
        Canned::new(400, &answer)
    }

    fn invocation() -> Invocation {
        Invocation::until(Deadline::after(Duration::from_millis(300)))
    }

    fn seen() -> Seen {
        let month = "2026-01".parse().expect("a month");
        let (room, device) = ("hall".parse().expect("an id"), "d".parse().expect("an id"));
        Seen { room, device, first: month, last: month, version: 1 }
    }

    fn device() -> Device {
        let metrics =
            [("t".parse().expect("a name"), Decimal::parse("1").expect("a number"))].into();
        let id: DeviceId = "d".parse().expect("an id");
        let reading = Reading::new(id.clone(), Timestamp::MIN, None, metrics).expect("a reading");
        DeviceObservation::of(&reading).new_device(id, |_| false)
    }

    #[tokio::test]
    async fn a_transaction_that_succeeds_later_is_repeated_and_is_no_refusal() {
        for code in BUSY {
            let canned = cancelling(code);
            let store = canned.store();
            let seen = seen();
            let belongings = [Belonging::of_seen(&seen.device, &seen.room)];

            for operation in ["put_seen", "remove_belongings", "write_entries"] {
                let invocation = invocation();
                let before = canned.count();
                let error = match operation {
                    "put_seen" => {
                        store.put_seen(&seen, Expected::Absent, &invocation).await.expect_err(code)
                    }
                    "remove_belongings" => {
                        let outcome = store.remove_belongings(&belongings, &invocation).await;
                        outcome.cause.expect("nothing is removed")
                    }
                    _ => store.write_entries(&device(), &[], &invocation).await.expect_err(code),
                };

                let sent = canned.count() - before;
                assert!(matches!(error, StoreError::Throttled(_)), "{operation} {code}: {error:?}");
                assert!(sent > 1, "{operation} {code} is sent once");
                let units = 2.0 * CANCELLED_ITEM * f64::from(u32::try_from(sent).expect("few"));
                assert!((invocation.write_units() - units).abs() < 0.1, "{operation} {code}");
            }
        }
    }

    #[tokio::test]
    async fn a_condition_that_does_not_hold_is_a_refusal_at_once() {
        let canned = cancelling("ConditionalCheckFailed");
        let store = canned.store();
        let is_new = store.put_seen(&seen(), Expected::Absent, &invocation()).await;
        assert!(!is_new.expect("an answer"));
        assert!(!store.write_entries(&device(), &[], &invocation()).await.expect("an answer"));
        assert_eq!(canned.count(), 2);
    }
}
