//! A table in memory that does something else than it is asked, as the rules of a wrong design say. Knows no design.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use table::db::{Db, Each, If, ItemQuery, Items, RefusedWrites, Write, WriteChange, WriteOutcome};
use table::item::{Attribute, Item};
use table::keys::Key;
use table::layout::Layout;
use table::memory_db::MemoryDb;
use table::{Action, Invocation, ItemKey, PutOutcome, StoreResult};

/// What a table does otherwise than it is asked, and what is noted of the things that it does.
pub(crate) trait Rules: Send + Sync {
    /// Whether the table does what it is asked. It asks for no rule then.
    fn are_ours(&self) -> bool;

    /// The write that is made in the place of a write, by the item that is there. `None` if the write is said to be done
    /// and is not made.
    fn made(&self, write: Write, known: Option<Item>) -> Option<Write>;

    /// The items that a reader is shown in the place of those that an action found in a table.
    fn shown(&self, _action: Action, found: Vec<Item>, _db: &MemoryDb) -> Vec<Item> {
        found
    }

    /// Notes an item that was put in a batch, is updated, or was deleted.
    fn note(&self, _action: Action, _item: &Item) {}

    /// Notes a query that found nothing.
    fn note_nothing(&self, _query: &ItemQuery) {}
}

/// The key of an item, if it is what its key says.
pub(crate) fn key_of(item: &Item) -> Option<Key> {
    let ItemKey { pk, sk } = ItemKey::of_item(item);
    Key::parse(&pk, &sk)
}

/// Whether an update changes an attribute.
pub(crate) fn changes(write: &Write, name: &'static str) -> bool {
    let WriteChange::Update(_, changes) = &write.change else { return false };
    changes.iter().any(|change| *change.path() == name.into())
}

/// Whether a condition compares an attribute.
pub(crate) fn compares(condition: &If, name: &'static str) -> bool {
    matches!(condition, If::Compare(path, ..) if *path == name.into())
}

/// A table in memory under rules. Clones count together.
#[derive(Clone)]
pub(crate) struct Ruled<R> {
    pub(crate) db: MemoryDb,
    pub(crate) rules: R,
    writes: Arc<AtomicUsize>,
}

impl<R: Rules> Ruled<R> {
    pub(crate) fn new(db: &MemoryDb, rules: R) -> Self {
        Self { db: db.clone(), rules, writes: Arc::default() }
    }

    /// The number of writes and transactions so far. While it stays, nothing is to be judged again.
    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Ordering::Relaxed)
    }

    fn count_write(&self) {
        self.writes.fetch_add(1, Ordering::Relaxed);
    }

    async fn made(&self, write: Write, invocation: &Invocation) -> StoreResult<Option<Write>> {
        if self.rules.are_ours() {
            return Ok(Some(write));
        }
        let known = self.db.get(&write.key(), invocation).await?;
        Ok(self.rules.made(write, known))
    }

    fn shown(&self, action: Action, found: Vec<Item>) -> Vec<Item> {
        if self.rules.are_ours() { found } else { self.rules.shown(action, found, &self.db) }
    }

    fn show_one(&self, action: Action, found: Option<Item>) -> Option<Item> {
        self.shown(action, found.into_iter().collect()).pop()
    }

    fn show_each(&self, action: Action, found: Vec<Item>, each: Each<'_>) {
        for item in self.shown(action, found) {
            each(&mut item.into_iter());
        }
    }
}

impl<R: Rules> Db for Ruled<R> {
    fn layout(&self) -> Layout {
        self.db.layout()
    }

    fn has_checked_shards(&self) -> &AtomicBool {
        self.db.has_checked_shards()
    }

    async fn get(&self, key: &ItemKey, invocation: &Invocation) -> StoreResult<Option<Item>> {
        let found = self.db.get(key, invocation).await?;
        Ok(self.show_one(Action::GetItem, found))
    }

    async fn get_all(
        &self,
        keys: Vec<ItemKey>,
        invocation: &Invocation,
        each: Each<'_>,
    ) -> StoreResult<Vec<ItemKey>> {
        let mut found = Vec::new();
        let mut keep = |attributes: &mut dyn Iterator<Item = (String, Attribute)>| {
            found.push(attributes.collect());
        };
        let left = self.db.get_all(keys, invocation, &mut keep).await?;

        self.show_each(Action::BatchGetItem, found, each);
        Ok(left)
    }

    async fn query(
        &self,
        query: &ItemQuery,
        invocation: &Invocation,
        each: Each<'_>,
    ) -> StoreResult<Option<Item>> {
        let mut found = Vec::new();
        let mut keep = |attributes: &mut dyn Iterator<Item = (String, Attribute)>| {
            found.push(attributes.collect());
        };
        let next = self.db.query(query, invocation, &mut keep).await?;

        if found.is_empty() {
            self.rules.note_nothing(query);
        }
        self.show_each(Action::Query, found, each);
        Ok(next)
    }

    async fn write(&self, write: Write, invocation: &Invocation) -> StoreResult<WriteOutcome> {
        let Some(write) = self.made(write, invocation).await? else {
            return Ok(WriteOutcome::Done(None));
        };

        self.count_write();
        let action = write.action();
        Ok(match self.db.write(write, invocation).await? {
            WriteOutcome::Done(item) => {
                item.iter().for_each(|item| self.rules.note(action, item));
                WriteOutcome::Done(self.show_one(action, item))
            }
            WriteOutcome::Refused(known) => WriteOutcome::Refused(self.show_one(action, known)),
        })
    }

    async fn transact(
        &self,
        writes: Vec<Write>,
        invocation: &Invocation,
    ) -> StoreResult<Result<(), RefusedWrites>> {
        let mut made = Vec::new();
        for write in writes {
            let write = self.made(write, invocation).await?;
            made.push(write.expect("each write of a transaction is made, so that positions stay"));
        }
        self.count_write();
        self.db.transact(made, invocation).await
    }

    async fn put_all(&self, items: &impl Items, invocation: &Invocation) -> PutOutcome {
        let outcome = self.db.put_all(items, invocation).await;
        for position in 0..items.count() {
            self.rules.note(Action::BatchWriteItem, &items.item(position));
        }
        outcome
    }

    async fn insert_all(
        &self,
        items: &impl Items,
        positions: &[usize],
        invocation: &Invocation,
    ) -> Vec<bool> {
        self.db.insert_all(items, positions, invocation).await
    }
}
