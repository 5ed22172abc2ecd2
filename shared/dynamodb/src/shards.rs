//! The number of partitions of the registry's devices, compared before any device is read. Stores nothing.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use std::sync::atomic::Ordering;

use crate::attribute::{SdkItem, read};
use crate::pause::asked;
use crate::{DynamoStore, note_read};
use table::keys::{DEVICES, Key, PK, SK};
use table::shards::Shards;
use table::{Invocation, StoreError, StoreResult};

impl DynamoStore {
    /// The number of partitions of the registry's devices; `None` for a table without devices.
    pub async fn stored_shards(&self, invocation: &Invocation) -> StoreResult<Option<Shards>> {
        let request = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("#p = :p")
            .expression_attribute_names("#p", PK)
            .expression_attribute_values(":p", AttributeValue::S(DEVICES.to_owned()))
            .limit(1)
            .consistent_read(true)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let answer = asked(invocation, || request.clone().send()).await?;
        note_read(invocation, answer.consumed_capacity());
        answer.items.into_iter().flatten().next().map(first_of_all).transpose()
    }

    /// Refuses a table whose devices are in another number of partitions than the settings say: a list
    /// would be empty, and every device would be registered again.
    pub async fn check_shards(&self, invocation: &Invocation) -> StoreResult<()> {
        if self.has_checked_shards.load(Ordering::Relaxed) {
            return Ok(());
        }
        match self.stored_shards(invocation).await? {
            Some(stored) => self.compare(stored),
            None => Ok(()),
        }
    }

    /// Compares the number with that of the first item of the partition that a table with one has.
    pub(super) fn check_first(&self, first: &SdkItem) -> StoreResult<()> {
        if self.has_checked_shards.load(Ordering::Relaxed) {
            return Ok(());
        }
        first_of_all(first.clone()).and_then(|stored| self.compare(stored))
    }

    fn compare(&self, stored: Shards) -> StoreResult<()> {
        let set = self.layout.shards;
        if stored != set {
            let what = format!(
                "DEVICE_SHARDS (the parameter DeviceShards) is {set}, but the table's devices are in \
                 {stored} partitions; set it to {stored}"
            );
            return Err(StoreError::Refused(what.into()));
        }
        self.has_checked_shards.store(true, Ordering::Relaxed);
        Ok(())
    }
}

/// The number that the first item of the partition tells: its own, which sorts before every device, or one,
/// where a device is there.
fn first_of_all(first: SdkItem) -> StoreResult<Shards> {
    let part = |name| first.get(name)?.as_s().ok();
    let key = part(PK).zip(part(SK)).and_then(|(pk, sk)| Key::parse(pk, sk));
    if key == Some(Key::Shards) { read(first) } else { Ok(Shards::ONE) }
}
