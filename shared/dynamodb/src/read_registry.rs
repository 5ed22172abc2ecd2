//! `Query` and `GetItem` on the registry's partitions and the index by room. Caches nothing.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use crate::attribute::{SdkItem, from_sdk, read_present, to_sdk};
use crate::pause::asked;
use crate::{DynamoStore, note_read};
use domain::{Deletion, Device, DeviceId, Room, RoomId};
use table::item::{Decode, DeviceItem};
use table::keys::{self, DEVICES, Key, PK, ROOMS, SK};
use table::layout::{Index, ROOM_INDEX};
use table::shards::Shards;
use table::{
    Invocation, ListDevices, ListPage, Listing, LookUpRegistry, MAX_CACHED_ENTRIES, PageRegistry,
    ReadRegistry, StoreResult, item,
};

/// One more than a function keeps in memory, which tells it that the list is incomplete.
const MAX_LISTED: usize = MAX_CACHED_ENTRIES + 1;
/// The number of partitions that are asked at once.
const SHARD_CONCURRENCY: usize = 16;
/// What each of several partitions is asked for beyond its share of a page, so that most pages take one round.
const MARGIN: usize = 8;

impl ReadRegistry for DynamoStore {
    async fn devices(&self, invocation: &Invocation) -> StoreResult<Listing<Device>> {
        Ok(self.device_page(None, MAX_LISTED, invocation).await?.listing)
    }

    async fn rooms(&self, invocation: &Invocation) -> StoreResult<Listing<Room>> {
        Ok(self.room_page(None, MAX_LISTED, invocation).await?.listing)
    }
}

impl ListDevices for DynamoStore {
    async fn all_devices(&self, invocation: &Invocation) -> StoreResult<Listing<Device>> {
        Ok(self.device_page(None, usize::MAX, invocation).await?.listing)
    }

    /// Each partition is asked for its share of the page, several at once, and again only where it may hold
    /// more of the page than that.
    async fn device_page(
        &self,
        after: Option<&DeviceId>,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<ListPage<Device>> {
        let shards = self.layout.shards;
        // The first page of a single partition checks itself.
        if shards != Shards::ONE || after.is_some() {
            self.check_shards(invocation).await?;
        }
        let share = match shards {
            Shards::ONE => limit.saturating_add(1),
            several => (limit / usize::from(several.number())).saturating_add(MARGIN),
        };
        let begin = keys::behind(after.map(DeviceId::as_str));
        let mut lanes: Vec<Lane> = shards
            .all()
            .map(|shard| Lane { partition: shard.of_name(DEVICES), next: Some(begin.clone()) })
            .collect();
        let mut merged = Listing::default();
        loop {
            // Behind this one no device belongs to the page; it only tells that there are more.
            let last = merged.found.get(limit).map(|it: &Device| it.id().as_str());
            let asked: Vec<_> = lanes
                .iter_mut()
                .filter(|lane| lane.may_precede(last))
                .map(|lane| Box::pin(self.take(lane, share, invocation)))
                .collect();
            if asked.is_empty() {
                break;
            }
            let answers: Vec<Listing<Device>> =
                stream::iter(asked).buffer_unordered(SHARD_CONCURRENCY).try_collect().await?;
            for answer in answers {
                merged.found.extend(answer.found);
                merged.unreadable.extend(answer.unreadable);
                merged.deleted.extend(answer.deleted);
            }
            merged.found.sort_by(|a, b| a.id().cmp(b.id()));
            merged.found.truncate(limit.saturating_add(1));
        }
        Ok(page_of(merged, limit))
    }
}

impl PageRegistry for DynamoStore {
    async fn room_page(
        &self,
        after: Option<&RoomId>,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<ListPage<Room>> {
        let next = Some(keys::behind(after.map(RoomId::as_str)));
        let mut lane = Lane { partition: ROOMS.to_owned(), next };
        let share = limit.saturating_add(1);
        let mut listing = Listing::default();
        while listing.found.len() <= limit && lane.next.is_some() {
            let answer: Listing<Room> = self.take(&mut lane, share, invocation).await?;
            listing.found.extend(answer.found);
            listing.unreadable.extend(answer.unreadable);
        }
        Ok(page_of(listing, limit))
    }

    async fn room_device_page(
        &self,
        room: &RoomId,
        after: Option<&DeviceId>,
        limit: usize,
        invocation: &Invocation,
    ) -> StoreResult<Option<ListPage<Device>>> {
        if !self.layout.room_index {
            return Ok(None);
        }
        let mut listing = Listing::default();
        for (first, last) in keys::devices_of_room(after) {
            let mut next = Some(first);
            while listing.found.len() <= limit
                && let Some(from) = next
            {
                let segment = Segment {
                    index: Some(&ROOM_INDEX),
                    partition: room.as_str(),
                    from,
                    to: Some(last.clone()),
                    limit: limit.saturating_add(1) - listing.found.len(),
                };
                let (items, reached) = self.segment(segment, invocation).await?;
                items.into_iter().for_each(|item| listing.add(from_sdk(item)));
                next = reached;
            }
        }
        Ok(Some(page_of(listing, limit)))
    }
}

/// Cuts what was read to a page.
fn page_of<T>(mut listing: Listing<T>, limit: usize) -> ListPage<T> {
    let has_more = listing.found.len() > limit;
    listing.found.truncate(limit);
    ListPage { listing, has_more }
}

/// One partition on its way into a page.
struct Lane {
    partition: String,
    /// The least sort key that is yet to be read; none where the partition has no more.
    next: Option<String>,
}

impl Lane {
    /// Whether an entry that is yet to be read may come before `last`.
    fn may_precede(&self, last: Option<&str>) -> bool {
        self.next.as_deref().is_some_and(|next| last.is_none_or(|last| next < last))
    }
}

/// Some items of a partition, by sort key.
struct Segment<'a> {
    index: Option<&'static Index>,
    partition: &'a str,
    /// The least sort key.
    from: String,
    /// The greatest sort key, if there is one.
    to: Option<String>,
    limit: usize,
}

impl LookUpRegistry for DynamoStore {
    async fn device(&self, id: &DeviceId, invocation: &Invocation) -> StoreResult<Option<Device>> {
        self.check_shards(invocation).await?;
        self.find(&self.layout.device_key(id), invocation).await
    }

    async fn deletion(
        &self,
        id: &DeviceId,
        invocation: &Invocation,
    ) -> StoreResult<Option<Deletion>> {
        self.check_shards(invocation).await?;
        let found: Option<DeviceItem> = self.find(&self.layout.device_key(id), invocation).await?;
        Ok(found.and_then(DeviceItem::deletion))
    }

    async fn room(&self, id: &RoomId, invocation: &Invocation) -> StoreResult<Option<Room>> {
        self.find(&Key::Room(id.clone()), invocation).await
    }
}

impl DynamoStore {
    /// At most `share` items of a lane.
    async fn take<T: Decode>(
        &self,
        lane: &mut Lane,
        share: usize,
        invocation: &Invocation,
    ) -> StoreResult<Listing<T>> {
        let from = lane.next.take().unwrap_or_default();
        let is_first = lane.partition == DEVICES && from == keys::behind(None);
        let Lane { partition, .. } = &*lane;
        let segment = Segment { index: None, partition, from, to: None, limit: share };
        let (items, next) = self.segment(segment, invocation).await?;
        if let Some(first) = items.first().filter(|_| is_first) {
            self.check_first(first)?;
        }
        lane.next = next;
        let mut listing = Listing::default();
        items.into_iter().for_each(|item| listing.add(from_sdk(item)));
        Ok(listing)
    }

    /// At most so many items of a segment, and the least sort key behind them if there may be more.
    async fn segment(
        &self,
        segment: Segment<'_>,
        invocation: &Invocation,
    ) -> StoreResult<(Vec<SdkItem>, Option<String>)> {
        let Segment { index, partition, from, to, limit } = segment;
        let (partition_key, sort_key) =
            index.map_or((PK, SK), |index| (index.partition_key, index.sort_key));
        let condition = match &to {
            Some(_) => "#p = :p AND #s BETWEEN :a AND :b",
            None => "#p = :p AND #s >= :a",
        };
        let mut found = Vec::new();
        let mut start = None;
        loop {
            let mut query = self
                .client
                .query()
                .table_name(&self.table)
                .set_index_name(index.map(|index| index.name.to_owned()))
                .key_condition_expression(condition)
                .expression_attribute_names("#p", partition_key)
                .expression_attribute_names("#s", sort_key)
                .expression_attribute_values(":p", AttributeValue::S(partition.to_owned()))
                .expression_attribute_values(":a", AttributeValue::S(from.clone()))
                // Twice the price of next to nothing; a person asks for what they have just set. An index is
                // never consistent.
                .consistent_read(index.is_none())
                .set_exclusive_start_key(start)
                .return_consumed_capacity(ReturnConsumedCapacity::Total);
            if let Some(to) = &to {
                query = query.expression_attribute_values(":b", AttributeValue::S(to.clone()));
            }
            if let Ok(rest) = i32::try_from(limit - found.len()) {
                query = query.limit(rest);
            }
            let answer = asked(invocation, || query.clone().send()).await?;
            note_read(invocation, answer.consumed_capacity());
            found.extend(answer.items.into_iter().flatten());
            start = answer.last_evaluated_key;
            if start.is_none() || found.len() >= limit {
                break;
            }
        }
        let reached = start.as_ref().and_then(|start| start.get(sort_key)?.as_s().ok());
        let next = reached.map(|reached| keys::behind(Some(reached)));
        Ok((found, next))
    }

    /// Consistent, because it is asked where a list that may be old has no answer.
    pub(super) async fn find<T: Decode>(
        &self,
        key: &Key,
        invocation: &Invocation,
    ) -> StoreResult<Option<T>> {
        let request = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(to_sdk(item::key(key))))
            .consistent_read(true)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let answer = asked(invocation, || request.clone().send()).await?;
        note_read(invocation, answer.consumed_capacity());
        answer.item.map_or(Ok(None), read_present)
    }
}
