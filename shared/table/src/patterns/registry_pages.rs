//! Lists of the registry: whole, page by page, and by room. Caches nothing.

use domain::{Device, DeviceId, Room, RoomId};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use ports::port;

use super::shards::shards_of_first;
use crate::db::{Db, ItemQuery, Keys};
use crate::item::{Attribute, Decode, Item};
use crate::keys::{self, DEVICES, ROOMS, SK};
use crate::layout::ROOM_INDEX;
use crate::shards::Shards;
use crate::{ListPage, Listing, MAX_CACHED_ENTRIES, Patterns, StoreResult};

/// The largest number of entries in a list: one more than memory holds, to show that the list is not complete.
const MAX_LISTED: usize = MAX_CACHED_ENTRIES + 1;
/// The number of partitions that are read at once.
const SHARD_CONCURRENCY: usize = 16;
/// How many items more than its share of a page are read from each partition. So most pages need one round.
const MARGIN: usize = 8;

/// The position in one partition, whose items are merged into a page.
struct PartitionCursor {
    partition: String,
    /// The least sort key that was not read yet; `None` if all are read.
    next: Option<String>,
}

impl PartitionCursor {
    /// Whether the partition may have an unread entry that comes before `last`.
    fn may_precede(&self, last: Option<&str>) -> bool {
        self.next.as_deref().is_some_and(|next| last.is_none_or(|last| next < last))
    }
}

/// Lists devices and rooms.
#[port(ReadRegistry, Query(Devices, Rooms))]
impl<D: Db> Patterns<'_, D> {
    /// All devices, sorted by id. If there are too many, returns `MAX_CACHED_ENTRIES + 1` of them, so that the caller
    /// knows that the list is not complete.
    pub async fn devices(self) -> StoreResult<Listing<Device>> {
        Ok(self.device_page(None, MAX_LISTED).await?.listing)
    }

    /// All rooms, sorted by id, with the same limit as for devices.
    pub async fn rooms(self) -> StoreResult<Listing<Room>> {
        Ok(self.room_page(None, MAX_LISTED).await?.listing)
    }
}

/// Lists all devices, at once or page by page, for registries of any size.
#[port(ListDevices, Query(Devices))]
impl<D: Db> Patterns<'_, D> {
    /// All devices, sorted by id, as they are this moment.
    pub async fn all_devices(self) -> StoreResult<Listing<Device>> {
        Ok(self.device_page(None, usize::MAX).await?.listing)
    }

    /// The devices after an id, sorted by id, as they are this moment. All partitions are read, several at once, each
    /// for its share of the page. A partition is read again only if it may have more devices of the page.
    pub async fn device_page(
        self,
        after: Option<&DeviceId>,
        limit: usize,
    ) -> StoreResult<ListPage<Device>> {
        let shards = self.db.layout().shards;
        // With a single partition, its first page shows whether the number of partitions is right.
        if shards != Shards::ONE || after.is_some() {
            self.check_shards().await?;
        }

        let share = match shards {
            Shards::ONE => limit.saturating_add(1),
            several => (limit / usize::from(several.number())).saturating_add(MARGIN),
        };
        let begin = keys::behind(after.map(DeviceId::as_str));
        let mut cursors: Vec<PartitionCursor> = shards
            .all()
            .map(|shard| shard.of_name(DEVICES))
            .map(|partition| PartitionCursor { partition, next: Some(begin.clone()) })
            .collect();
        let mut merged = Listing::default();

        loop {
            // The first device after the page. Once it is known, no later device is needed.
            let last = merged.found.get(limit).map(|device: &Device| device.id().as_str());
            let requests: Vec<_> = cursors
                .iter_mut()
                .filter(|cursor| cursor.may_precede(last))
                .map(|cursor| Box::pin(self.next_of(cursor, share)))
                .collect();
            if requests.is_empty() {
                break;
            }

            let answers: Vec<Listing<Device>> =
                stream::iter(requests).buffer_unordered(SHARD_CONCURRENCY).try_collect().await?;
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

/// Pages of rooms, and of a room's devices, for registries of any size.
#[port(PageRegistry, Query(Rooms, RoomIndex))]
impl<D: Db> Patterns<'_, D> {
    /// The rooms after an id, sorted by id, as they are this moment.
    pub async fn room_page(
        self,
        after: Option<&RoomId>,
        limit: usize,
    ) -> StoreResult<ListPage<Room>> {
        let next = Some(keys::behind(after.map(RoomId::as_str)));
        let mut cursor = PartitionCursor { partition: ROOMS.to_owned(), next };
        let share = limit.saturating_add(1);
        let mut listing = Listing::default();
        while listing.found.len() <= limit && cursor.next.is_some() {
            let answer: Listing<Room> = self.next_of(&mut cursor, share).await?;
            listing.found.extend(answer.found);
            listing.unreadable.extend(answer.unreadable);
        }
        Ok(page_of(listing, limit))
    }

    /// The devices of a room after an id, sorted by id; `None` if the table has no room index. The index may lag for a
    /// moment.
    pub async fn room_device_page(
        self,
        room: &RoomId,
        after: Option<&DeviceId>,
        limit: usize,
    ) -> StoreResult<Option<ListPage<Device>>> {
        if !self.has_room_index() {
            return Ok(None);
        }

        let mut listing = Listing::default();
        for range in keys::devices_of_room(after) {
            let mut next = Some(range.start().clone());
            while listing.found.len() <= limit
                && let Some(from) = next
            {
                let query = ItemQuery::of_index(&ROOM_INDEX, room.as_str())
                    .between(from..=range.end().clone());
                let left = limit.saturating_add(1) - listing.found.len();
                next = self.segment(query, left, |attributes| listing.add(attributes)).await?;
            }
        }

        Ok(Some(page_of(listing, limit)))
    }

    /// Reads the next items of a partition, at most `share`.
    async fn next_of<T: Decode + Send>(
        self,
        cursor: &mut PartitionCursor,
        share: usize,
    ) -> StoreResult<Listing<T>> {
        let from = cursor.next.take().unwrap_or_default();
        // The first item of the first partition with devices shows the number of partitions.
        let is_first = cursor.partition == DEVICES && from == keys::behind(None);
        let query = ItemQuery { keys: Keys::From(from), ..ItemQuery::of(&*cursor.partition) };

        let mut listing = Listing::default();
        let mut first: Option<Item> = None;
        let add = |attributes: &mut dyn Iterator<Item = (String, Attribute)>| {
            if is_first && first.is_none() {
                let item: Item = attributes.collect();
                first = Some(item.clone());
                listing.add(item);
            } else {
                listing.add(attributes);
            }
        };
        cursor.next = self.segment(query, share, add).await?;

        if let Some(first) = first {
            self.compare_shards(shards_of_first(first)?)?;
        }
        Ok(listing)
    }

    /// Reads at most `limit` items of a query. Returns the sort key to go on from; `None` if all items are read.
    async fn segment(
        self,
        query: ItemQuery,
        limit: usize,
        add: impl FnMut(&mut dyn Iterator<Item = (String, Attribute)>) + Send,
    ) -> StoreResult<Option<String>> {
        let sort_key = query.index.map_or(SK, |index| index.sort_key);
        let reached = self.read_items(query, limit, add).await?;
        let reached = reached.as_ref().and_then(|reached| reached.get(sort_key));
        Ok(match reached {
            Some(Attribute::S(reached)) => Some(keys::behind(Some(reached))),
            _ => None,
        })
    }
}

/// Shortens a list to a page.
fn page_of<T>(mut listing: Listing<T>, limit: usize) -> ListPage<T> {
    let has_more = listing.found.len() > limit;
    listing.found.truncate(limit);
    ListPage { listing, has_more }
}
