//! `Query` on the partitions of a device, and `DeleteItem` on what is there, or `TransactWriteItems` on what has
//! two sides. Chooses nothing.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use domain::DeviceId;
use futures_util::{StreamExt as _, stream};

use crate::attribute::SdkItem;
use crate::pause::asked;
use crate::{DynamoStore, note_read, note_write};
use table::item::attribute::STAY_ROOM;
use table::keys::{self, Key, PK, SK};
use table::{
    Belonging, Belongings, Invocation, ItemKey, PutOutcome, RemoveBelongings, StoreError,
    StoreResult,
};

/// How many belongings are removed at once. A role that may delete in batches may also put in batches, and
/// nobody who deletes a device should be able to replace a reading.
const REMOVE_CONCURRENCY: usize = 32;

impl RemoveBelongings for DynamoStore {
    /// Whatever is in the device's partitions belongs to it, whether or not it can be read.
    async fn belongings(
        &self,
        id: &DeviceId,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<Belongings> {
        let mut found = Vec::new();
        for partition in keys::partitions_of(id) {
            self.keys_in(&partition, limit + 1, &mut found, invocation).await?;
            if found.len() > limit {
                break;
            }
        }
        if let Some(more) = (limit + 1).checked_sub(found.len()).filter(|more| *more > 0) {
            found.extend(self.annotations_of(id, more, invocation).await?);
        }
        let has_more = found.len() > limit;
        found.truncate(limit);
        Ok(Belongings { found, has_more })
    }

    async fn remove_belongings(
        &self,
        belongings: &[Belonging],
        invocation: &Invocation,
    ) -> PutOutcome {
        let removing = belongings.iter().map(|it| self.remove_belonging(it, invocation));
        let removed: Vec<StoreResult<()>> =
            stream::iter(removing.collect::<Vec<_>>()).buffered(REMOVE_CONCURRENCY).collect().await;
        let mut outcome = PutOutcome::default();
        for (position, removed) in removed.into_iter().enumerate() {
            if let Err(error) = removed {
                outcome.not_stored.push(position);
                outcome.cause.get_or_insert(error);
            }
        }
        outcome
    }
}

impl DynamoStore {
    /// Adds the keys in a partition until there are `limit` of all.
    async fn keys_in(
        &self,
        partition: &str,
        limit: usize,
        found: &mut Vec<Belonging>,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        let mut start = None;
        while found.len() < limit {
            let wanted = limit - found.len();
            let request = self
                .client
                .query()
                .table_name(&self.table)
                .key_condition_expression("#p = :p")
                .projection_expression("#p, #s, #r")
                .expression_attribute_names("#p", PK)
                .expression_attribute_names("#s", SK)
                .expression_attribute_names("#r", STAY_ROOM)
                .expression_attribute_values(":p", AttributeValue::S(partition.to_owned()))
                .consistent_read(true)
                .limit(i32::try_from(wanted).unwrap_or(i32::MAX))
                .set_exclusive_start_key(start)
                .return_consumed_capacity(ReturnConsumedCapacity::Total);
            let answer = asked(invocation, || request.clone().send()).await?;
            note_read(invocation, answer.consumed_capacity());
            let items = answer.items.unwrap_or_default();
            found.extend(items.iter().filter_map(belonging));
            start = answer.last_evaluated_key;
            if start.is_none() {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn remove_belonging(
        &self,
        Belonging(keys): &Belonging,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        if let [ItemKey { pk, sk }] = &keys[..] {
            return self.delete_item(pk.clone(), sk.clone(), invocation).await;
        }
        let parts = keys.iter().map(|key| self.delete_part(key.clone())).collect();
        self.transact_parts(parts, invocation)
            .await?
            .map_err(|_| StoreError::Contended(format!("{keys:?}")))
    }

    /// Deletes an item, whatever it is. Done twice, it changes nothing.
    pub(super) async fn delete_item(
        &self,
        pk: String,
        sk: String,
        invocation: &Invocation,
    ) -> StoreResult<()> {
        let request = self
            .client
            .delete_item()
            .table_name(&self.table)
            .key(PK, AttributeValue::S(pk))
            .key(SK, AttributeValue::S(sk))
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let answer = asked(invocation, || request.clone().send()).await?;
        note_write(invocation, answer.consumed_capacity());
        Ok(())
    }
}

fn belonging(item: &SdkItem) -> Option<Belonging> {
    let text = |name| item.get(name).and_then(|value| value.as_s().ok()).cloned();
    let (pk, sk) = (text(PK)?, text(SK)?);
    let room = text(STAY_ROOM).and_then(|room| room.parse().ok());
    Some(match (Key::parse(&pk, &sk), room) {
        (Some(Key::StayOf(device, since)), Some(room)) => Belonging::of_stay(&device, &room, since),
        (Some(Key::SeenOf(device, room)), _) => Belonging::of_seen(&device, &room),
        _ => Belonging(vec![ItemKey { pk, sk }]),
    })
}
