//! `BatchGetItem`, consistent: on the registry's two partitions, and on any keys. Makes no list.

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
        whole(self.find_some_devices(ids, invocation).await?)
    }

    async fn find_some_devices(
        &self,
        ids: &[DeviceId],
        invocation: &Invocation,
    ) -> StoreResult<(Listing<Device>, Vec<DeviceId>)> {
        self.check_shards(invocation).await?;
        self.find_some(ids, |id| self.layout.device_key(id), invocation).await
    }

    async fn find_rooms(
        &self,
        ids: &[RoomId],
        invocation: &Invocation,
    ) -> StoreResult<Listing<Room>> {
        whole(self.find_some(ids, |id| Key::Room(id.clone()), invocation).await?)
    }
}

/// All that was asked for, or the error of capacity that let in a part only.
pub(super) fn whole<T, I>((found, left): (Listing<T>, Vec<I>)) -> StoreResult<Listing<T>> {
    if left.is_empty() { Ok(found) } else { Err(StoreError::Throttled("keys remained".into())) }
}

impl DynamoStore {
    /// The items of those of the ids that the table's capacity let in, and the other ids.
    pub(super) async fn find_some<T: Decode, I: Clone + Sync>(
        &self,
        ids: &[I],
        key: impl Fn(&I) -> Key + Send + Sync,
        invocation: &Invocation,
    ) -> StoreResult<(Listing<T>, Vec<I>)> {
        let mut listing = Listing::default();
        for (nth, chunk) in ids.chunks(MAX_KEYS).enumerate() {
            let key = |id: &I| to_sdk(item::key(&key(id)));
            let mut waiting: Vec<SdkItem> = chunk.iter().map(key).collect();
            let mut pauses = Pauses::default();
            while !waiting.is_empty() {
                let keys = KeysAndAttributes::builder()
                    .set_keys(Some(waiting.clone()))
                    .consistent_read(true)
                    .build()
                    .expect("the keys are set");
                let request = self
                    .client
                    .batch_get_item()
                    .request_items(&self.table, keys)
                    .return_consumed_capacity(ReturnConsumedCapacity::Total);
                let is_over = match asked(invocation, || request.clone().send()).await {
                    Ok(answer) => {
                        for consumed in answer.consumed_capacity() {
                            note_read(invocation, Some(consumed));
                        }
                        let found = answer.responses.and_then(|mut all| all.remove(&self.table));
                        let found = found.into_iter().flatten();
                        found.for_each(|item| listing.add(from_sdk(item)));
                        // They come with a 200, and nobody retries them but us.
                        let rest = answer.unprocessed_keys;
                        let rest = rest.and_then(|mut all| all.remove(&self.table));
                        waiting = rest.map(|rest| rest.keys).unwrap_or_default();
                        if !waiting.is_empty() {
                            invocation.note_throttled();
                        }
                        !waiting.is_empty() && !pauses.pause(invocation).await
                    }
                    Err(StoreError::Throttled(_)) => true,
                    Err(error) => return Err(error),
                };
                if is_over {
                    let is_left = |id: &&I| waiting.contains(&key(id));
                    let rest = &ids[nth * MAX_KEYS + chunk.len()..];
                    let left = chunk.iter().filter(is_left).chain(rest).cloned().collect();
                    return Ok((listing, left));
                }
            }
        }
        Ok((listing, Vec::new()))
    }
}
