//! `GetItem`, `PutItem` and `UpdateItem` on the schema of the index by conditions, and `Query` on the index.
//! Encodes no value.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};

use domain::{ConditionsSchema, DeviceId, Timestamp};

use crate::attribute::{SdkItem, from_sdk, to_sdk};
use crate::pause::asked;
use crate::put::Put;
use crate::update::Update;
use crate::{DynamoStore, note_read};
use table::item::attribute::{READY, VERSION};
use table::item::{self, Attribute, Decode as _};
use table::keys::{self, Key};
use table::layout::CONDITIONS_INDEX;
use table::{
    ConditionsPage, Expected, IndexedQuarter, Invocation, PutConditionsSchema, QueryConditions,
    ReadConditionsSchema, SetConditionsReady, StoreResult, StoredSchema, UpdateOutcome,
};

impl ReadConditionsSchema for DynamoStore {
    async fn conditions_schema(
        &self,
        invocation: &Invocation,
    ) -> StoreResult<Option<StoredSchema>> {
        if !self.layout.conditions_index {
            return Ok(None);
        }
        self.find(&Key::ConditionsSchema, invocation).await
    }

    fn has_conditions_index(&self) -> bool {
        self.layout.conditions_index
    }
}

impl PutConditionsSchema for DynamoStore {
    async fn put_conditions_schema(
        &self,
        schema: &ConditionsSchema,
        expected: Expected,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let put = Put::new(item::from_conditions_schema(schema), expected);
        Ok(matches!(put.send(self, invocation).await?, UpdateOutcome::Updated(())))
    }
}

impl SetConditionsReady for DynamoStore {
    async fn set_conditions_ready(
        &self,
        version: u8,
        invocation: &Invocation,
    ) -> StoreResult<bool> {
        let mut update = Update::of(Key::ConditionsSchema);
        update.only_if_still(&[VERSION], Some(Attribute::number(version)));
        update.set(&[READY], item::mark());
        Ok(matches!(update.send(self, invocation).await?, UpdateOutcome::Updated(_)))
    }
}

impl QueryConditions for DynamoStore {
    async fn indexed_quarters(
        &self,
        (device, month): (&DeviceId, Timestamp),
        (first, last): (&[u8], &[u8]),
        after: Option<&IndexedQuarter>,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<ConditionsPage> {
        let month = keys::conditions_month(device, month);
        let bytes = |bytes: &[u8]| AttributeValue::B(Blob::new(bytes));
        let request = self
            .client
            .query()
            .table_name(&self.table)
            .index_name(CONDITIONS_INDEX.name)
            .key_condition_expression("#p = :p AND #s BETWEEN :a AND :b")
            .expression_attribute_names("#p", CONDITIONS_INDEX.partition_key)
            .expression_attribute_names("#s", CONDITIONS_INDEX.sort_key)
            .expression_attribute_values(":p", AttributeValue::S(month.clone()))
            .expression_attribute_values(":a", bytes(first))
            .expression_attribute_values(":b", bytes(last))
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .set_exclusive_start_key(after.map(|after| place(after, &month)))
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let answer = asked(invocation, || request.clone().send()).await?;
        note_read(invocation, answer.consumed_capacity());
        let has_more = answer.last_evaluated_key.is_some();
        // What cannot be read is skipped: other writers may leave it there.
        let items = answer.items.unwrap_or_default().into_iter();
        let found = items.filter_map(|it| IndexedQuarter::decode(from_sdk(it)).ok()).collect();
        Ok(ConditionsPage { found, has_more })
    }
}

/// The key of an entry in the index.
fn place(entry: &IndexedQuarter, month: &str) -> SdkItem {
    let mut place = item::key(&Key::Rollup(entry.key.device.clone(), entry.key.bucket));
    place.insert(CONDITIONS_INDEX.partition_key.to_owned(), Attribute::S(month.to_owned()));
    let address = Attribute::B(entry.entry.address.clone());
    place.insert(CONDITIONS_INDEX.sort_key.to_owned(), address);
    to_sdk(place)
}
