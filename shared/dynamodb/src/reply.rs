//! The answers to requests, read from their JSON, items attribute by attribute while it is read. Knows no operation.

use std::collections::HashMap;
use std::fmt;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::json::{Map, Value};
use table::db::{Each, RefusedWrites};
use table::item::{Attribute, Item};
use table::{ItemKey, StoreError, StoreResult};

/// An answer that has one item or no items. It has the members of all such answers, and of such errors.
#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Reply {
    #[serde(alias = "Attributes")]
    item: Option<Map>,
    consumed_capacity: Option<Consumed>,
    /// Why a transaction is cancelled, write by write.
    pub(super) cancellation_reasons: Vec<Reason>,
    unprocessed_items: HashMap<String, Vec<UnprocessedPut>>,
    /// What became of each statement.
    responses: Vec<StatementReply>,
}

/// <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_CancellationReason.html>
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Reason {
    #[serde(default)]
    pub(super) code: String,
    item: Option<Map>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct UnprocessedPut {
    put_request: UnprocessedItem,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct UnprocessedItem {
    item: Map,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StatementReply {
    error: Option<IgnoredAny>,
}

/// What a request consumed, or its part in each table.
#[derive(Deserialize)]
#[serde(untagged)]
enum Consumed {
    Whole(Capacity),
    ByTable(Vec<Capacity>),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Capacity {
    capacity_units: Option<f64>,
}

impl Reply {
    pub(super) fn read(body: &[u8]) -> StoreResult<Self> {
        text(body).and_then(|text| serde_json::from_str(text).map_err(unreadable))
    }

    pub(super) fn units(&self) -> f64 {
        units(self.consumed_capacity.as_ref())
    }

    pub(super) fn into_item(self) -> Option<Item> {
        self.item.map(|Map(item)| item)
    }

    /// The keys of the puts that are left undone.
    pub(super) fn unprocessed(self) -> impl Iterator<Item = ItemKey> {
        let puts = self.unprocessed_items.into_values().flatten();
        puts.map(|put| ItemKey::of_item(&put.put_request.item.0))
    }

    /// Whether each statement succeeded.
    pub(super) fn successes(&self) -> impl Iterator<Item = bool> {
        self.responses.iter().map(|response| response.error.is_none())
    }
}

impl Reason {
    /// Whether a condition of this write does not hold.
    pub(super) fn is_refusal(&self) -> bool {
        self.code == "ConditionalCheckFailed"
    }
}

/// The writes whose conditions do not hold.
pub(super) fn refused(reasons: Vec<Reason>) -> RefusedWrites {
    let refused = reasons.into_iter().enumerate().filter(|(_, reason)| reason.is_refusal());
    refused.map(|(position, reason)| (position, reason.item.map(|Map(item)| item))).collect()
}

/// What an answer of many items has beside them.
#[derive(Default)]
pub(super) struct PageEnd {
    pub(super) last_key: Option<Item>,
    /// The keys that are not read yet.
    pub(super) unprocessed: Vec<ItemKey>,
    pub(super) units: f64,
}

/// Reads an answer of many items, and hands out the attributes of each while it is read.
pub(super) fn read_page(body: &[u8], each: Each<'_>) -> StoreResult<PageEnd> {
    let mut json = serde_json::Deserializer::from_str(text(body)?);
    let page = Page(each).deserialize(&mut json).map_err(unreadable)?;
    json.end().map_err(unreadable)?;
    Ok(page)
}

/// Checked once, and not text by text.
fn text(body: &[u8]) -> StoreResult<&str> {
    std::str::from_utf8(body).map_err(|error| StoreError::Unavailable(Box::new(error)))
}

fn unreadable(error: serde_json::Error) -> StoreError {
    StoreError::Unavailable(Box::new(error))
}

fn units(consumed: Option<&Consumed>) -> f64 {
    let units = |part: &Capacity| part.capacity_units.unwrap_or_default();
    match consumed {
        None => 0.0,
        Some(Consumed::Whole(whole)) => units(whole),
        Some(Consumed::ByTable(parts)) => parts.iter().map(units).sum(),
    }
}

/// <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Query.html#API_Query_ResponseSyntax>,
/// <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html#API_BatchGetItem_ResponseSyntax>
struct Page<'e>(Each<'e>);

impl<'de> DeserializeSeed<'de> for Page<'_> {
    type Value = PageEnd;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<PageEnd, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Page<'_> {
    type Value = PageEnd;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an answer")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PageEnd, A::Error> {
        let mut page = PageEnd::default();
        while let Some(member) = map.next_key::<String>()? {
            match member.as_str() {
                "Items" | "Responses" => map.next_value_seed(ManyItems(&mut *self.0))?,
                "LastEvaluatedKey" => {
                    page.last_key = map.next_value::<Option<Map>>()?.map(|Map(key)| key);
                }
                "UnprocessedKeys" => page.unprocessed = unprocessed(map.next_value()?),
                "ConsumedCapacity" => page.units = units(map.next_value::<Option<_>>()?.as_ref()),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(page)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct UnprocessedKeys {
    keys: Vec<Map>,
}

fn unprocessed(tables: Option<HashMap<String, UnprocessedKeys>>) -> Vec<ItemKey> {
    let keys = tables.into_iter().flatten().flat_map(|(_, table)| table.keys);
    keys.map(|Map(key)| ItemKey::of_item(&key)).collect()
}

/// A list of items, or lists by table.
struct ManyItems<'e>(Each<'e>);

impl<'de> DeserializeSeed<'de> for ManyItems<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ManyItems<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(OneItem(&mut *self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut tables: A) -> Result<(), A::Error> {
        while tables.next_key::<IgnoredAny>()?.is_some() {
            tables.next_value_seed(ManyItems(&mut *self.0))?;
        }
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

struct OneItem<'e>(Each<'e>);

impl<'de> DeserializeSeed<'de> for OneItem<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for OneItem<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an item")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        let mut attributes = Attributes { map, broken: None };
        (self.0)(&mut attributes);

        // Who meets an error in an item reads no further.
        attributes.by_ref().for_each(drop);
        attributes.broken.map_or(Ok(()), Err)
    }
}

/// The attributes of an item, one by one. Ends at what is no JSON.
struct Attributes<A, E> {
    map: A,
    broken: Option<E>,
}

impl<'de, A: MapAccess<'de>> Iterator for Attributes<A, A::Error> {
    type Item = (String, Attribute);

    fn next(&mut self) -> Option<Self::Item> {
        if self.broken.is_some() {
            return None;
        }
        match self.map.next_entry::<String, Value>() {
            Ok(entry) => entry.map(|(name, Value(value))| (name, value)),
            Err(error) => {
                self.broken = Some(error);
                None
            }
        }
    }
}
