//! `TransactWriteItems`, and parts of transactions. Chooses none.

use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, Delete, Put as TransactPut, ReturnConsumedCapacity,
    TransactWriteItem,
};

use crate::attribute::to_sdk;
use crate::error::store_error;
use crate::pause::while_throttled;
use crate::put::Put;
use crate::{DynamoStore, note_write};
use table::item::{self, Item};
use table::keys::{Key, PK, SK};
use table::{Companion, Invocation, ItemKey, StoreError, StoreResult};

/// The reasons for which a transaction is cancelled that succeeds later: another one holds the item, or
/// the table is asked for too much.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html>
const BUSY: [&str; 3] = ["TransactionConflict", "ProvisionedThroughputExceeded", "ThrottlingError"];

/// The write units of one small item in a transaction, which a cancelled one costs too.
const CANCELLED_ITEM: f64 = 2.0;

impl DynamoStore {
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

    /// The part of a transaction that stores or deletes a value of the index of attributes.
    pub(super) fn entry_part(&self, companion: Companion) -> TransactWriteItem {
        match companion {
            Companion::KeepEntry(device, entry) => {
                self.put_part(item::from_search_entry(&device, &entry, self.layout))
            }
            Companion::DropEntry(device, entry) => {
                self.delete_part(ItemKey::of(&Key::SearchEntry(device, entry)))
            }
            other => unreachable!("no value of the index of attributes: {other:?}"),
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

/// Whether a condition of this part does not hold.
pub(super) fn failed(reason: &CancellationReason) -> bool {
    reason.code() == Some("ConditionalCheckFailed")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::{Decimal, Device, DeviceId, DeviceObservation, Reading, Timestamp};
    use table::{Belonging, Deadline, Expected, NoteSeen as _, RemoveBelongings as _, Seen};

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
