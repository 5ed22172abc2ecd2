//! `BatchGetItem` on the registry's two partitions, consistent. Makes no list.

use aws_sdk_dynamodb::types::{KeysAndAttributes, ReturnConsumedCapacity};

use crate::attribute::{SdkItem, from_sdk, to_sdk};
use crate::pause::{Pauses, asked};
use crate::{DynamoStore, note_read};
use domain::{Device, DeviceId, Room, RoomId};
use table::item::Decode;
use table::keys::Key;
use table::{FindRegistry, Invocation, Listing, StoreError, StoreResult, item};

/// `DynamoDB` takes at most 100 keys in a `BatchGetItem`.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html>
const MAX_KEYS: usize = 100;

impl FindRegistry for DynamoStore {
    async fn find_devices(
        &self,
        ids: &[DeviceId],
        invocation: &Invocation,
    ) -> StoreResult<Listing<Device>> {
        self.check_shards(invocation).await?;
        let keys = ids.iter().map(|id| self.layout.device_key(id)).collect();
        self.find_all(keys, invocation).await
    }

    async fn find_rooms(
        &self,
        ids: &[RoomId],
        invocation: &Invocation,
    ) -> StoreResult<Listing<Room>> {
        let keys = ids.iter().map(|id| Key::Room(id.clone())).collect();
        self.find_all(keys, invocation).await
    }
}

impl DynamoStore {
    async fn find_all<T: Decode>(
        &self,
        keys: Vec<Key>,
        invocation: &Invocation,
    ) -> StoreResult<Listing<T>> {
        let mut listing = Listing::default();
        for keys in keys.chunks(MAX_KEYS) {
            let mut waiting: Vec<SdkItem> = keys.iter().map(|key| to_sdk(item::key(key))).collect();
            let mut pauses = Pauses::default();
            while !waiting.is_empty() {
                let keys = KeysAndAttributes::builder()
                    .set_keys(Some(waiting))
                    .consistent_read(true)
                    .build()
                    .expect("the keys are set");
                let request = self
                    .client
                    .batch_get_item()
                    .request_items(&self.table, keys)
                    .return_consumed_capacity(ReturnConsumedCapacity::Total);
                let answer = asked(invocation, || request.clone().send()).await?;
                answer.consumed_capacity().iter().for_each(|it| note_read(invocation, Some(it)));
                let found = answer.responses.and_then(|mut tables| tables.remove(&self.table));
                found.into_iter().flatten().for_each(|item| listing.add(from_sdk(item)));
                // They come with a 200, and nobody retries them but us.
                let rest = answer.unprocessed_keys;
                waiting = rest
                    .and_then(|mut tables| tables.remove(&self.table))
                    .map(|rest| rest.keys)
                    .unwrap_or_default();
                if !waiting.is_empty() && !pauses.pause(invocation).await {
                    return Err(StoreError::Throttled("unprocessed keys remained".into()));
                }
            }
        }
        Ok(listing)
    }
}
