//! A table during one invocation: access patterns are its methods. Decides nothing of the domain.

mod annotations;
mod range;
mod tokens;

use crate::db::{Db, ItemQuery, Keys, Write, WriteOutcome};
use crate::item::{self, Decode, Item, ItemError, UnreadableItem};
use crate::keys::{self, Key};
use crate::{Invocation, Listing, StoreError, StoreResult};

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

/// Reads an item. Returns `None` for a device that is being deleted, or is deleted.
fn read_present<T: Decode>(found: Item) -> StoreResult<Option<T>> {
    match item::read(found) {
        Ok(present) => Ok(Some(present)),
        Err(UnreadableItem { why: ItemError::Deleted(_), .. }) => Ok(None),
        Err(unreadable) => Err(StoreError::Unreadable(unreadable)),
    }
}
