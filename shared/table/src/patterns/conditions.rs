//! The schema of the conditions index, and the rollups in the index. Encodes no value.

use std::sync::Arc;

use domain::ConditionsSchema;
use ports::port;

use super::expected;
use crate::db::{Db, ItemQuery, Keys, is, put, set, update};
use crate::item::attribute::{READY, VERSION};
use crate::item::{self, Attribute, Attributes as _, Decode as _, Item, with_key};
use crate::keys::{self, Key};
use crate::layout::CONDITIONS_INDEX;
use crate::{
    ConditionsQuery, Expected, IndexedQuarter, Indexing, Page, Patterns, StoreResult, StoredSchema,
};

/// Reads the schema of the conditions index.
#[port(ReadConditionsSchema, GetItem(ConditionsSchema))]
impl<D: Db> Patterns<'_, D> {
    /// Whether the table has the conditions index.
    pub fn has_conditions_index(self) -> bool {
        self.db.layout().conditions_index
    }

    /// The schema, as it is this moment. Without a conditions index, returns `None` and reads nothing.
    pub async fn conditions_schema(self) -> StoreResult<Option<StoredSchema>> {
        if !self.has_conditions_index() {
            return Ok(None);
        }
        self.find(&Key::ConditionsSchema).await
    }

    /// The values of rollups that are put into the conditions index, by the stored schema.
    pub async fn indexing(self) -> StoreResult<Indexing> {
        if !self.has_conditions_index() {
            return Ok(Indexing::Off);
        }
        let stored = self.conditions_schema().await?;
        Ok(stored.map_or(Indexing::Unset, |stored| Indexing::By(Arc::new(stored.schema))))
    }
}

/// Stores the schema of the conditions index.
#[port(PutConditionsSchema, PutItem(ConditionsSchema))]
impl<D: Db> Patterns<'_, D> {
    /// Stores a schema by which the index is not complete yet, if the stored schema is as expected. Returns whether it
    /// is stored. A repeat is refused.
    pub async fn put_conditions_schema(
        self,
        schema: &ConditionsSchema,
        before: Expected,
    ) -> StoreResult<bool> {
        let new = with_key(&Key::ConditionsSchema, schema.attributes());
        self.is_written(put(new).when([expected(before)])).await
    }
}

/// Records that the conditions index is complete.
#[port(SetConditionsReady, UpdateItem(ConditionsSchema))]
impl<D: Db> Patterns<'_, D> {
    /// Records that the index has every rollup of 15 minutes by the schema of this version. Returns whether the stored
    /// schema has this version. A repeat has the same result.
    pub async fn set_conditions_ready(self, version: u8) -> StoreResult<bool> {
        let ready = update(&Key::ConditionsSchema)
            .when([is(VERSION, Attribute::number(version))])
            .with([set(READY, item::flag())]);
        self.is_written(ready).await
    }
}

/// Finds rollups of 15 minutes by the address of their means.
#[port(QueryConditions, Query(ConditionsIndex))]
impl<D: Db> Patterns<'_, D> {
    /// At most `limit` rollups of a device in a month of UTC, sorted by address. The addresses are from `first` to
    /// `last`, both inclusive. Begins after `after`, if given. Skips entries that cannot be read, because other writers
    /// may have left them there.
    pub async fn indexed_quarters(
        self,
        asked: &ConditionsQuery<'_>,
    ) -> StoreResult<Page<IndexedQuarter>> {
        let month = keys::conditions_month(asked.device, asked.month);
        let [first, last] = [asked.first, asked.last].map(|address| Attribute::B(address.to_vec()));
        let query = ItemQuery {
            keys: Keys::Between(first, last),
            start: asked.after.map(|after| place(after, &month)),
            limit: Some(asked.limit),
            ..ItemQuery::of_index(&CONDITIONS_INDEX, month)
        };

        let mut items = Vec::new();
        let mut each = |attributes: &mut dyn Iterator<Item = _>| {
            items.extend(IndexedQuarter::decode(attributes));
        };
        let next = self.db.query(&query, self.invocation, &mut each).await?;
        Ok(Page { items, has_more: next.is_some() })
    }
}

/// The key of an entry in the index.
fn place(entry: &IndexedQuarter, month: &str) -> Item {
    let mut place = item::key(&Key::Rollup(entry.key.device.clone(), entry.key.bucket));
    place.insert(CONDITIONS_INDEX.partition_key.to_owned(), Attribute::S(month.to_owned()));
    let address = Attribute::B(entry.entry.address.clone());
    place.insert(CONDITIONS_INDEX.sort_key.to_owned(), address);
    place
}
