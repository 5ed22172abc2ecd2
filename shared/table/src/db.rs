//! The only access to the table: seven operations on items. Knows no port and no kind of item.

mod condition;
mod write;

use std::future::Future;
use std::ops::RangeInclusive;
use std::sync::atomic::AtomicBool;

use domain::Order;

pub use self::condition::{
    If, Op, Path, above, absent, absent_or, any, at_least, at_most, below, fewer, holds, is,
    member, present, still,
};
pub(crate) use self::write::set_as;
pub use self::write::{
    AttributeChange, RefusedWrites, Write, WriteChange, WriteOutcome, add, check, delete, put,
    remove, replace, replace_all, set, set_if_absent, take, update, upsert,
};
use crate::item::{Attribute, Item};
use crate::layout::{Index, Layout};
use crate::{Invocation, ItemKey, PutOutcome, StoreResult};

/// A table: the deployed one, the embedded one, or one in memory.
///
/// Every operation adds the units that it consumes to the invocation. All but [`transact`](Self::transact) and
/// [`insert_all`](Self::insert_all) are repeated while the table throttles them and the invocation has patience.
pub trait Db: Send + Sync {
    /// The indexes and partitions that the table has.
    fn layout(&self) -> Layout;

    /// Whether the number of partitions with devices was compared with the layout. Patterns set this flag, so that they
    /// compare only once.
    fn has_checked_shards(&self) -> &AtomicBool;

    /// Reads an item as it is this moment, with a consistent read: `GetItem`.
    fn get(
        &self,
        key: &ItemKey,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<Option<Item>>> + Send;

    /// Reads any number of items as they are this moment, with consistent reads, in any order: `BatchGetItem`. No key
    /// may be given twice. Returns the keys that could not be read because the table throttled.
    fn get_all(
        &self,
        keys: Vec<ItemKey>,
        invocation: &Invocation,
        each: Each<'_>,
    ) -> impl Future<Output = StoreResult<Vec<ItemKey>>> + Send;

    /// Reads one page of a partition: `Query`. Returns the key after which the next page begins, `None` after the
    /// last page.
    fn query(
        &self,
        query: &ItemQuery,
        invocation: &Invocation,
        each: Each<'_>,
    ) -> impl Future<Output = StoreResult<Option<Item>>> + Send;

    /// Writes one item: `PutItem`, `UpdateItem` or `DeleteItem`. A lone [`WriteChange::Check`] is not allowed.
    fn write(
        &self,
        write: Write,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<WriteOutcome>> + Send;

    /// Makes all of 1 to 100 writes or none: `TransactWriteItems`. No two writes may be to the same item.
    ///
    /// Not repeated while the table throttles: the caller decides whether to repeat the writes or to read again.
    fn transact(
        &self,
        writes: Vec<Write>,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<Result<(), RefusedWrites>>> + Send;

    /// Puts any number of items without a condition: `BatchWriteItem`. No two items may have the same key.
    fn put_all(
        &self,
        items: &impl Items,
        invocation: &Invocation,
    ) -> impl Future<Output = PutOutcome> + Send;

    /// Inserts the items at up to 25 positions: `BatchExecuteStatement`. Returns for each position whether the item was
    /// inserted. `false` does not say why not: an item with this key may exist, or the new item may be too large.
    fn insert_all(
        &self,
        items: &impl Items,
        positions: &[usize],
        invocation: &Invocation,
    ) -> impl Future<Output = Vec<bool>> + Send;
}

/// Takes the attributes of one item. The operation may still fail after this call, so a pattern uses the attributes
/// only when the operation has succeeded.
pub type Each<'a> = &'a mut (dyn FnMut(&mut dyn Iterator<Item = (String, Attribute)>) + Send + 'a);

/// Items to be stored. The attributes of an item are made when it is sent, so that there is no map of each item before.
pub trait Items: Sync {
    /// The number of items.
    fn count(&self) -> usize;

    /// The attributes of the item at a position, its key among them.
    fn attributes(&self, position: usize) -> impl Iterator<Item = (&str, Attribute)>;

    /// The item at a position, as a map.
    fn item(&self, position: usize) -> Item {
        self.attributes(position).map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// A query for one page of a partition of the table or of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct ItemQuery {
    /// The index, or `None` for the table itself.
    pub index: Option<&'static Index>,
    /// The partition key.
    pub partition: String,
    /// The sort keys.
    pub keys: Keys,
    /// The order of the sort keys.
    pub order: Order,
    /// The key after which the page begins. The key must be in the partition and between the sort keys.
    pub start: Option<Item>,
    /// The largest number of items to visit, including items that the filter leaves out. If a page ends at its limit,
    /// there is a next page, which may be empty.
    pub limit: Option<usize>,
    /// Whether the page shows all earlier writes. A query of an index cannot be consistent.
    pub consistent: bool,
    /// Conditions on attributes that are not keys. An item that fails a condition costs read units, but is not sent.
    pub filter: Vec<If>,
    /// The attributes that are sent; empty for all.
    pub only: &'static [&'static str],
}

/// A selection of sort keys of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keys {
    /// Every sort key.
    All,
    /// Sort keys that are equal to this text or greater.
    From(String),
    /// Sort keys from the first to the last of these texts or bytes, both inclusive. The first must not be greater than
    /// the last.
    Between(Attribute, Attribute),
}

impl ItemQuery {
    /// The first page of a whole partition of the table, in ascending order, with a consistent read.
    pub fn of(partition: impl Into<String>) -> Self {
        Self {
            index: None,
            partition: partition.into(),
            keys: Keys::All,
            order: Order::Ascending,
            start: None,
            limit: None,
            consistent: true,
            filter: Vec::new(),
            only: &[],
        }
    }

    /// The first page of a whole partition of an index.
    pub fn of_index(index: &'static Index, partition: impl Into<String>) -> Self {
        Self { index: Some(index), consistent: false, ..Self::of(partition) }
    }

    /// The same query, limited to the sort keys from the first to the last text, both included.
    pub fn between(self, texts: RangeInclusive<String>) -> Self {
        Self { keys: Keys::between(texts), ..self }
    }
}

impl Keys {
    /// The sort keys from the first to the last text, both inclusive.
    pub fn between(texts: RangeInclusive<String>) -> Self {
        let (first, last) = texts.into_inner();
        Self::Between(Attribute::S(first), Attribute::S(last))
    }
}
