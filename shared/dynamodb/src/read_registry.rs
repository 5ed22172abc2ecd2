//! `Query` and `GetItem` on the registry's two partitions. Caches nothing.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};

use crate::attribute::{from_sdk, read_present, to_sdk};
use crate::error::store_error;
use crate::{DynamoStore, note_read};
use domain::{Device, DeviceId, Room, RoomId};
use table::item::Decode;
use table::keys::{DEVICES, Key, PK, ROOMS};
use table::{
    Invocation, ListDevices, Listing, LookUpRegistry, MAX_CACHED_ENTRIES, ReadRegistry,
    StoreResult, item,
};

/// One more than a function keeps in memory, which tells it that the list is incomplete.
const MAX_LISTED: usize = MAX_CACHED_ENTRIES + 1;

impl ReadRegistry for DynamoStore {
    async fn devices(&self, invocation: &Invocation) -> StoreResult<Listing<Device>> {
        self.list(DEVICES, MAX_LISTED, invocation).await
    }

    async fn rooms(&self, invocation: &Invocation) -> StoreResult<Listing<Room>> {
        self.list(ROOMS, MAX_LISTED, invocation).await
    }
}

impl ListDevices for DynamoStore {
    async fn all_devices(&self, invocation: &Invocation) -> StoreResult<Listing<Device>> {
        self.list(DEVICES, usize::MAX, invocation).await
    }
}

impl LookUpRegistry for DynamoStore {
    async fn device(&self, id: &DeviceId, invocation: &Invocation) -> StoreResult<Option<Device>> {
        self.find(&self.layout.device_key(id), invocation).await
    }

    async fn room(&self, id: &RoomId, invocation: &Invocation) -> StoreResult<Option<Room>> {
        self.find(&Key::Room(id.clone()), invocation).await
    }
}

impl DynamoStore {
    pub(super) async fn list<T: Decode>(
        &self,
        partition: &str,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<Listing<T>> {
        let mut listing = Listing::default();
        let mut start = None;
        loop {
            let answer = self
                .client
                .query()
                .table_name(&self.table)
                .key_condition_expression("#p = :p")
                .expression_attribute_names("#p", PK)
                .expression_attribute_values(":p", AttributeValue::S(partition.to_owned()))
                // Twice the price of next to nothing; a person asks for what they have just set.
                .consistent_read(true)
                .set_exclusive_start_key(start)
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send();
            let answer = invocation.within(answer).await?.map_err(store_error)?;
            note_read(invocation, answer.consumed_capacity());
            answer.items.into_iter().flatten().for_each(|item| listing.add(from_sdk(item)));
            start = answer.last_evaluated_key;
            if start.is_none() || listing.found.len() >= limit {
                listing.found.truncate(limit);
                return Ok(listing);
            }
        }
    }

    /// Consistent, because it is asked where a list that may be old has no answer.
    pub(super) async fn find<T: Decode>(
        &self,
        key: &Key,
        invocation: &Invocation,
    ) -> StoreResult<Option<T>> {
        let answer = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(to_sdk(item::key(key))))
            .consistent_read(true)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send();
        let answer = invocation.within(answer).await?.map_err(store_error)?;
        note_read(invocation, answer.consumed_capacity());
        answer.item.map_or(Ok(None), read_present)
    }
}
