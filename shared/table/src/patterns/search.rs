//! Searches and writes the attribute index, and the record that it is complete.

use std::collections::BTreeSet;
use std::iter;

use domain::{Device, DeviceId, SearchEntry, Timestamp};
use futures_util::future::try_join_all;
use ports::port;

use super::device_write::is_still;
use super::expected;
use crate::db::{Db, ItemQuery, check, is, present, put, set, update, upsert};
use crate::item::attribute::{DONE, RUN, VERSION};
use crate::item::{self, Attribute};
use crate::keys::{Key, PK, SK, VALUE, search_pk, search_range};
use crate::layout::ATTRIBUTE_INDEX;
use crate::{
    Companion, Expected, ItemKey, MAX_CACHED_ENTRIES, Page, Patterns, SearchHit, SearchQuery,
    StoreError, StoreResult, entry_companions,
};

/// The largest number of values that one transaction writes. The transaction also checks the device.
const MAX_ENTRIES: usize = 90;
/// The number of attempts to index a device that others keep changing.
const MAX_ATTEMPTS: usize = 5;

/// Finds devices by the values in the attribute index.
#[port(SearchDevices, Query(AttributeIndex), GetItem(Attributes))]
impl<D: Db> Patterns<'_, D> {
    /// Whether the index has every device, except for writes of the last moment.
    pub async fn is_indexed(self) -> StoreResult<bool> {
        if !self.db.layout().attribute_index {
            return Ok(false);
        }
        let note = self.db.get(&ItemKey::of(&Key::Indexed), self.invocation).await?;
        Ok(note.is_some_and(|note| note.contains_key(DONE)))
    }

    /// A page of entries of the index, in the order of the index. The index may lag behind the devices. All partitions
    /// of the subject are read at once.
    pub async fn search(self, query: &SearchQuery<'_>) -> StoreResult<Page<SearchHit>> {
        let after = query.after.map(SearchHit::place);
        let range = search_range(query.range, after.as_deref());
        if range.is_empty() {
            return Ok(Page::default());
        }

        let pages = self.db.layout().shards.all().map(|shard| {
            let partition = shard.of_name(query.subject.as_str());
            let entries = ItemQuery::of_index(&ATTRIBUTE_INDEX, partition).between(range.clone());
            self.entries(entries, query.limit)
        });
        let pages = try_join_all(pages).await?;

        let mut has_more = pages.iter().any(|page| page.has_more);
        let mut hits: Vec<(String, SearchHit)> =
            pages.into_iter().flat_map(|page| page.items).map(|hit| (hit.place(), hit)).collect();
        hits.sort_by(|(a, _), (b, _)| a.cmp(b));
        has_more |= hits.len() > query.limit;
        // No entry is skipped: a partition that has more entries has returned at least `limit` of them.
        hits.truncate(query.limit);
        Ok(Page { items: hits.into_iter().map(|(_, hit)| hit).collect(), has_more })
    }

    /// At most `limit` entries of one partition.
    async fn entries(self, mut query: ItemQuery, limit: usize) -> StoreResult<Page<SearchHit>> {
        let mut hits = Vec::new();
        loop {
            query.limit = Some(limit - hits.len());
            let mut each = |attributes: &mut dyn Iterator<Item = (String, Attribute)>| {
                hits.extend(text_of(attributes, VALUE).and_then(|place| SearchHit::parse(&place)));
            };
            query.start = self.db.query(&query, self.invocation, &mut each).await?;
            if query.start.is_none() || hits.len() >= limit {
                return Ok(Page { items: hits, has_more: query.start.is_some() });
            }
        }
    }
}

/// Records that the attribute index is complete, if no device has a value for it.
#[port(MarkIndexed, GetItem(Attributes), PutItem(Attributes), Query(Devices))]
impl<D: Db> Patterns<'_, D> {
    /// Records that the index is complete if no device has a value for it; returns whether the index is complete. The
    /// record is not stored if a device cannot be read, or if there are more devices than memory holds. Nor is it
    /// stored if another run has begun, or an edit without the index is made meanwhile. Once it is stored, each edit of
    /// a device writes its values to the index or removes the record.
    pub async fn mark_indexed(self, now: Timestamp) -> StoreResult<bool> {
        if !self.db.layout().attribute_index {
            return Ok(false);
        }
        if self.is_indexed().await? {
            return Ok(true);
        }

        // The version distinguishes this record from later ones. If an edit deletes the record and another process puts
        // a new one, the last write below is refused.
        let version = u64::try_from(now.as_millis()).unwrap_or(0);
        let mut note = item::key(&Key::Indexed);
        note.insert(VERSION.to_owned(), Attribute::number(version));
        note.insert(RUN.to_owned(), Attribute::text(&now));
        let begun = put(note.clone()).when([expected(Expected::Absent)]);
        if !self.is_written(begun).await? {
            return Ok(false);
        }

        let devices = self.devices().await?;
        let has_none = |device: &Device| device.search_entries().is_empty();
        if devices.found.len() > MAX_CACHED_ENTRIES
            || !devices.unreadable.is_empty()
            || !devices.found.iter().all(has_none)
        {
            return Ok(false);
        }

        note.insert(DONE.to_owned(), Attribute::text(&now));
        self.is_written(put(note).when([expected(Expected::Version(version))])).await
    }
}

/// Completes the attribute index: for the command line, not for functions.
#[port(
    IndexDevices,
    GetItem(Devices),
    Query(Devices, Attributes),
    ConditionCheckItem(Devices),
    PutItem(Attributes),
    DeleteItem(Attributes),
    UpdateItem(Attributes)
)]
impl<D: Db> Patterns<'_, D> {
    /// Records that a run over all devices has begun. An index that was complete counts as complete during the run.
    pub async fn begin_index(self, run: &str) -> StoreResult<()> {
        let begun = upsert(&Key::Indexed).with([set(RUN, Attribute::S(run.to_owned()))]);
        self.write(begun).await.map(drop)
    }

    /// Corrects the entries of a device in the index; returns how many were wrong. A repeat returns 0.
    pub async fn index_device(self, device: &Device) -> StoreResult<usize> {
        let mut device = device.clone();
        for _ in 0..MAX_ATTEMPTS {
            let stored = self.stored_entries(device.id()).await?;
            let wrong = entry_companions(device.id(), &stored, &device.search_entries());
            if self.write_all_entries(&device, &wrong).await? {
                return Ok(wrong.len());
            }

            match self.device(device.id()).await? {
                Some(now) => device = now,
                None => return Ok(0),
            }
        }

        Err(StoreError::Contended(format!("the device {}", device.id())))
    }

    /// Records that the index is complete, unless another run has begun since, or an edit without the index was made.
    /// Returns whether this is recorded.
    pub async fn end_index(self, run: &str, at: Timestamp) -> StoreResult<bool> {
        let ended = update(&Key::Indexed)
            .when([is(RUN, Attribute::S(run.to_owned()))])
            .with([set(DONE, Attribute::text(&at))]);
        self.is_written(ended).await
    }

    async fn stored_entries(self, device: &DeviceId) -> StoreResult<BTreeSet<SearchEntry>> {
        let pk = search_pk(device);
        let mut entries = BTreeSet::new();
        let add = |attributes: &mut dyn Iterator<Item = (String, Attribute)>| {
            let sk = text_of(attributes, SK);
            if let Some(Key::SearchEntry(_, entry)) = sk.and_then(|sk| Key::parse(&pk, &sk)) {
                entries.insert(entry);
            }
        };
        self.read_items(ItemQuery::of(pk.as_str()), usize::MAX, add).await?;
        Ok(entries)
    }

    /// Writes entries of a device in several transactions. Returns `false` at the first transaction that is refused
    /// because the device has changed since the read.
    async fn write_all_entries(self, device: &Device, entries: &[Companion]) -> StoreResult<bool> {
        for some in entries.chunks(MAX_ENTRIES) {
            if !self.write_entries(device, some).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes entries of a device, unless the device has changed since the read. Returns whether they are written.
    async fn write_entries(self, device: &Device, entries: &[Companion]) -> StoreResult<bool> {
        let device = check(&self.device_key(device.id())).when([present(PK), is_still(device)]);
        let entries = entries.iter().flat_map(|entry| self.companion_writes(entry.clone()));
        // Only the check of the device has a condition. If it fails, the device was edited since the read.
        let writes = iter::once(device).chain(entries).collect();
        Ok(self.transact(writes).await?.is_ok())
    }
}

fn text_of(
    mut attributes: impl Iterator<Item = (String, Attribute)>,
    name: &str,
) -> Option<String> {
    match attributes.find(|(known, _)| known == name)? {
        (_, Attribute::S(text)) => Some(text),
        _ => None,
    }
}
