//! A table during one invocation: access patterns are its methods. Decides nothing of the domain.

mod annotations;
mod arrivals;
mod belongings;
mod deletions;
mod device_write;
mod edits;
mod learning;
mod look_up;
mod range;
mod registration;
mod shards;
mod tokens;

use domain::DeviceId;

use crate::db::{Db, ItemQuery, Keys, RefusedWrites, Write, WriteOutcome, absent};
use crate::item::{self, Decode, Item, ItemError, UnreadableItem};
use crate::keys::{self, Key, PK};
use crate::{
    InsertOutcome, Invocation, Listing, StoreError, StoreResult, UpdateOutcome, while_throttled,
};

/// A table during one invocation.
pub struct Session<'a, D> {
    db: &'a D,
    invocation: &'a Invocation,
}

/// Copies ask the same table in the same invocation.
impl<D> Clone for Session<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D> Copy for Session<'_, D> {}

impl<'a, D: Db> Session<'a, D> {
    /// The table during this invocation.
    pub const fn new(db: &'a D, invocation: &'a Invocation) -> Self {
        Self { db, invocation }
    }

    fn device_key(self, id: &DeviceId) -> Key {
        self.db.layout().device_key(id)
    }

    /// Reads an item as it is this moment. Returns `None` for a device that is being deleted, or is deleted.
    async fn find<T: Decode>(self, key: &Key) -> StoreResult<Option<T>> {
        let found = self.db.get(&key.into(), self.invocation).await?;
        found.map_or(Ok(None), read_present)
    }

    async fn write(self, write: Write) -> StoreResult<WriteOutcome> {
        self.db.write(write, self.invocation).await
    }

    /// Writes an item; returns whether its conditions held.
    async fn is_written(self, write: Write) -> StoreResult<bool> {
        Ok(matches!(self.write(write).await?, WriteOutcome::Done(_)))
    }

    /// Puts an item where no item is, or reads the one that is there.
    async fn insert<T: Decode>(self, put: Write) -> StoreResult<InsertOutcome<T>> {
        match self.write(put.when([absent(PK)])).await? {
            WriteOutcome::Done(_) => Ok(InsertOutcome::Inserted),
            WriteOutcome::Refused(known) => {
                read(known.unwrap_or_default()).map(InsertOutcome::Exists)
            }
        }
    }

    /// Updates an item, and reads it as it is now, or as it is where a condition does not hold.
    async fn update_and_read<T: Decode>(self, update: Write) -> StoreResult<UpdateOutcome<T>> {
        Ok(match self.write(update).await? {
            WriteOutcome::Done(now) => UpdateOutcome::Updated(read(now.unwrap_or_default())?),
            WriteOutcome::Refused(was) => {
                UpdateOutcome::ConditionFailed(was.map_or(Ok(None), read_present)?)
            }
        })
    }

    /// Makes all writes or none. What is throttled, or conflicts with another transaction, is sent again while there
    /// is patience.
    ///
    /// Conflicts: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html>
    async fn transact(self, writes: Vec<Write>) -> StoreResult<Result<(), RefusedWrites>> {
        let attempt = || self.db.transact(writes.clone(), self.invocation);
        while_throttled(self.invocation, attempt).await
    }

    /// Reads a whole partition. Items that cannot be read stand apart.
    async fn list<T: Decode + Send>(self, partition: &str) -> StoreResult<Listing<T>> {
        let keys = Keys::From(keys::behind(None));
        let mut query = ItemQuery { keys, ..ItemQuery::of(partition) };
        let mut listing = Listing::default();
        loop {
            let mut each = |attributes: &mut dyn Iterator<Item = _>| listing.add(attributes);
            query.start = self.db.query(&query, self.invocation, &mut each).await?;
            if query.start.is_none() {
                return Ok(listing);
            }
        }
    }
}

/// Reads an item that must be what its key says.
fn read<T: Decode>(found: Item) -> StoreResult<T> {
    item::read(found).map_err(StoreError::Unreadable)
}

/// Reads an item. Returns `None` for a device that is being deleted, or is deleted.
fn read_present<T: Decode>(found: Item) -> StoreResult<Option<T>> {
    match item::read(found) {
        Ok(present) => Ok(Some(present)),
        Err(UnreadableItem { why: ItemError::Deleted(_), .. }) => Ok(None),
        Err(unreadable) => Err(StoreError::Unreadable(unreadable)),
    }
}
