//! The access patterns of a table during one invocation. Decides nothing of the domain.

#![expect(unreachable_pub, reason = "the package exports ports, not patterns")]

mod alert_messages;
mod alert_rechecks;
mod alert_rules;
mod alert_states;
mod annotations;
mod arrivals;
mod belongings;
mod conditions;
mod deletions;
mod device_write;
mod edits;
mod introduced;
mod learning;
mod look_up;
mod range;
mod reading_ranges;
mod readings;
mod registration;
mod registry_pages;
mod rollup_state;
mod rollups;
mod search;
mod shards;
mod sources;
mod stays;
mod tariffs;
mod tokens;

use domain::DeviceId;

pub use self::{
    alert_messages::*, alert_rechecks::*, alert_rules::*, alert_states::*, annotations::*,
    arrivals::*, belongings::*, conditions::*, deletions::*, edits::*, introduced::*, learning::*,
    look_up::*, reading_ranges::*, readings::*, registration::*, registry_pages::*,
    rollup_state::*, rollups::*, search::*, shards::*, sources::*, stays::*, tariffs::*, tokens::*,
};
use crate::db::{Db, If, ItemQuery, Keys, RefusedWrites, Write, WriteOutcome, absent, is, present};
use crate::item::attribute::VERSION;
use crate::item::{self, Attribute, Decode, Item, ItemError, UnreadableItem};
use crate::keys::{self, Key, PK};
use crate::{
    Expected, InsertOutcome, Invocation, ItemKey, ListPage, Listing, StoreError, StoreResult,
    UpdateOutcome, while_throttled,
};

/// The access patterns of a table, during one invocation.
pub(crate) struct Patterns<'a, D> {
    db: &'a D,
    invocation: &'a Invocation,
}

/// A copy has the same table and invocation.
impl<D> Clone for Patterns<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D> Copy for Patterns<'_, D> {}

impl<'a, D: Db> Patterns<'a, D> {
    /// The table during this invocation.
    pub const fn new(db: &'a D, invocation: &'a Invocation) -> Self {
        Self { db, invocation }
    }

    fn device_key(self, id: &DeviceId) -> Key {
        self.db.layout().device_key(id)
    }

    /// Reads an item, with a consistent read. Returns `None` for a device that is deleted or being deleted.
    async fn find<T: Decode>(self, key: &Key) -> StoreResult<Option<T>> {
        let found = self.db.get(&key.into(), self.invocation).await?;
        found.map_or(Ok(None), read_present)
    }

    async fn write(self, write: Write) -> StoreResult<WriteOutcome> {
        self.db.write(write, self.invocation).await
    }

    /// Writes an item; returns whether it is written, that is, whether all conditions hold.
    async fn is_written(self, write: Write) -> StoreResult<bool> {
        Ok(matches!(self.write(write).await?, WriteOutcome::Done(_)))
    }

    /// Puts an item, if its key has no item yet; otherwise reads the stored item.
    async fn insert<T: Decode>(self, put: Write) -> StoreResult<InsertOutcome<T>> {
        match self.write(put.when([absent(PK)])).await? {
            WriteOutcome::Done(_) => Ok(InsertOutcome::Inserted),
            WriteOutcome::Refused(known) => {
                read(known.unwrap_or_default()).map(InsertOutcome::Exists)
            }
        }
    }

    /// Updates an item. Returns the updated item, or the stored item if a condition does not hold.
    async fn update_and_read<T: Decode>(self, update: Write) -> StoreResult<UpdateOutcome<T>> {
        Ok(match self.write(update).await? {
            WriteOutcome::Done(now) => UpdateOutcome::Updated(read(now.unwrap_or_default())?),
            WriteOutcome::Refused(was) => {
                UpdateOutcome::ConditionFailed(was.map_or(Ok(None), read_present)?)
            }
        })
    }

    /// Makes all writes or none. A transaction that is throttled, or conflicts with another transaction, is repeated
    /// for as long as the invocation has patience.
    ///
    /// Conflicts: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html>
    async fn transact(self, writes: Vec<Write>) -> StoreResult<Result<(), RefusedWrites>> {
        let attempt = || self.db.transact(writes.clone(), self.invocation);
        while_throttled(self.invocation, attempt).await
    }

    /// Reads the items that exist under these keys, in any order. No key may be given twice.
    async fn find_all<T: Decode + Send>(self, keys: Vec<ItemKey>) -> StoreResult<Listing<T>> {
        let (listing, left) = self.find_some(keys).await?;
        if left.is_empty() {
            Ok(listing)
        } else {
            Err(StoreError::Throttled("some items were not read".into()))
        }
    }

    /// Reads items in any order. Returns the keys that were not read because the table throttled.
    async fn find_some<T: Decode + Send>(
        self,
        keys: Vec<ItemKey>,
    ) -> StoreResult<(Listing<T>, Vec<ItemKey>)> {
        let mut listing = Listing::default();
        let mut each = |attributes: &mut dyn Iterator<Item = _>| listing.add(attributes);
        let left = self.db.get_all(keys, self.invocation, &mut each).await?;
        Ok((listing, left))
    }

    /// A page of a partition of alerts. Items that cannot be read are in the page too, because nothing else would
    /// report them.
    async fn alert_page<T: Decode + Send>(
        self,
        mut query: ItemQuery,
        limit: usize,
        keep: impl Fn(&T) -> bool + Send + Sync,
    ) -> StoreResult<ListPage<T>> {
        let keeps = |item: &Result<T, UnreadableItem>| item.as_ref().map_or(true, &keep);
        let mut listing = Listing::default();
        loop {
            let page = self.range(query.clone(), limit, keeps, |_| 0).await?;
            for item in page.items {
                match item {
                    Ok(found) => listing.found.push(found),
                    Err(unreadable) => listing.unreadable.push(unreadable),
                }
            }

            // The caller goes on after the last readable item. If no item is readable, the next page is read here.
            let has_position = !listing.found.is_empty();
            let damaged = listing.unreadable.last().filter(|_| page.has_more && !has_position);
            let Some(UnreadableItem { pk, sk, .. }) = damaged else {
                return Ok(ListPage { listing, has_more: page.has_more });
            };
            query.start = Some(ItemKey { pk: pk.clone(), sk: sk.clone() }.into_item());
        }
    }

    /// Reads a whole partition. Items that cannot be read are listed separately.
    async fn list<T: Decode + Send>(self, partition: &str) -> StoreResult<Listing<T>> {
        let keys = Keys::From(keys::behind(None));
        self.list_of(ItemQuery { keys, ..ItemQuery::of(partition) }).await
    }

    /// Reads all items of a query. Items that cannot be read are listed separately.
    async fn list_of<T: Decode + Send>(self, query: ItemQuery) -> StoreResult<Listing<T>> {
        let mut listing = Listing::default();
        self.read_items(query, usize::MAX, |attributes| listing.add(attributes)).await?;
        Ok(listing)
    }

    /// Reads at most `limit` items of a query, page after page. Returns the key after which the next item begins;
    /// `None` if all items are read.
    async fn read_items(
        self,
        mut query: ItemQuery,
        limit: usize,
        mut add: impl FnMut(&mut dyn Iterator<Item = (String, Attribute)>) + Send,
    ) -> StoreResult<Option<Item>> {
        let mut read = 0;
        loop {
            query.limit = Some(limit - read);
            let mut each = |attributes: &mut dyn Iterator<Item = (String, Attribute)>| {
                read += 1;
                add(attributes);
            };
            query.start = self.db.query(&query, self.invocation, &mut each).await?;
            if query.start.is_none() || read >= limit {
                return Ok(query.start);
            }
        }
    }
}

/// The condition that a put makes on the stored item.
fn expected(before: Expected) -> If {
    match before {
        Expected::Absent => absent(PK),
        Expected::Present => present(PK),
        Expected::Version(version) => is(VERSION, Attribute::number(version)),
    }
}

/// Reads an item as a `T`. It is an error if this is not possible, such as for a deletion mark that is read as a
/// `Device`.
fn read<T: Decode>(found: Item) -> StoreResult<T> {
    item::read(found).map_err(StoreError::Unreadable)
}

/// Reads an item. Returns `None` for a device that is deleted or being deleted.
fn read_present<T: Decode>(found: Item) -> StoreResult<Option<T>> {
    match item::read(found) {
        Ok(present) => Ok(Some(present)),
        Err(UnreadableItem { why: ItemError::Deleted(_), .. }) => Ok(None),
        Err(unreadable) => Err(StoreError::Unreadable(unreadable)),
    }
}

#[cfg(test)]
mod tests {
    use domain::given::room;
    use domain::{Device, DeviceUpdate, Stay, Timestamp};

    use super::*;
    use crate::Action::{DeleteItem, PutItem};
    use crate::Target::Stays;
    use crate::db::put;
    use crate::given::{device, device_of, invocation, reading};
    use crate::item::Kind as _;
    use crate::memory_db::{MemoryDb, on};
    use crate::{Belonging, Recheck, Rechecked};

    async fn registered(db: &MemoryDb) -> Device {
        let device = device_of([&reading("d", Timestamp::MIN, None, &[("t", "1")])]);
        db.register_device(&device, &invocation()).await.expect("registered");
        device
    }

    #[tokio::test]
    async fn more_damaged_items_than_a_page_holds_hide_none_behind_them() {
        let (db, invocation) = (MemoryDb::default(), invocation());
        let session = Patterns::new(&db, &invocation);
        for n in 0..25 {
            let recheck = Key::AlertRecheck(Rechecked::Device(device(&format!("a{n:02}"))));
            session.write(put(item::key(&recheck))).await.expect("written");
        }
        let last =
            Recheck { target: device("b").into(), since: Timestamp::MIN, after: None, touch: 1 };
        session.write(put(last.item())).await.expect("written");

        let page = session.rechecks(None, 10).await.expect("read");
        assert_eq!(page.listing.found, [last]);
        assert_eq!((page.listing.unreadable.len(), page.has_more), (25, false));
    }

    #[tokio::test]
    async fn a_transaction_that_is_throttled_is_made_again() {
        let db = MemoryDb::default();
        let device = registered(&db).await;
        let stay = Stay::begun(room("hall"), Timestamp::MIN);
        db.fail(on(PutItem, Stays), 0, StoreError::Throttled("on demand".into()));
        let begun = db.begin_stay(&device, &stay, &invocation()).await.expect("begun");
        assert_eq!(begun, UpdateOutcome::Updated(device.with_stay(Some(stay.clone()))));
        assert_eq!(db.count(on(PutItem, Stays)), 2);

        let belongings = [Belonging::of_stay(device.id(), &stay.room, stay.since)];
        db.fail(on(DeleteItem, Stays), 0, StoreError::Throttled("on demand".into()));
        let removed = db.remove_belongings(&belongings, &invocation()).await;
        assert!(removed.not_stored.is_empty(), "{removed:?}");
        assert_eq!(db.count(on(DeleteItem, Stays)), 2);
    }

    #[tokio::test]
    async fn a_transaction_whose_condition_does_not_hold_is_refused_at_once() {
        let db = MemoryDb::default();
        let device = registered(&db).await;
        let stay = Stay::begun(room("hall"), Timestamp::MIN);
        db.begin_stay(&device, &stay, &invocation()).await.expect("begun");

        // The device has a stay now, so the one that was read is an old version.
        let again = db.begin_stay(&device, &stay, &invocation()).await.expect("refused");
        let now = device.with_stay(Some(stay));
        assert_eq!(again, UpdateOutcome::ConditionFailed(Some(now)));
        assert_eq!(db.count(on(PutItem, Stays)), 2);
    }

    #[tokio::test]
    async fn an_item_that_is_not_there_refuses_an_update_and_is_not_made() {
        let db = MemoryDb::default();
        let nobody = device_of([&reading("d", Timestamp::MIN, None, &[("t", "1")])]);
        let learned = DeviceUpdate { first_seen: Some(Timestamp::MIN), ..DeviceUpdate::default() };
        let updated = db.update_device(&nobody, &learned, &invocation()).await.expect("refused");
        assert_eq!(updated, UpdateOutcome::ConditionFailed(None));
        assert_eq!(db.items(), Vec::<Item>::new());
    }
}
