//! Writes many items in one transaction, without stream records: for items that come together with everything derived
//! from them. Makes no item.

use anyhow::Context as _;
use dynoxide::types::AttributeValue;
use dynoxide::{Database, ImportOptions};
use serde_json::Value;
use table::ItemKey;
use table::item::attribute::{NAMED, NAMED_ROOM, VERSION};
use table::item::{Attribute, Item};
use table::keys::{ROOM, TTL};

use super::writer::{Turns, WriterConnection};

/// A precondition of a load: the item under this key has this version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unchanged {
    pub(crate) key: ItemKey,
    /// `None` if the item must be absent.
    pub(crate) version: Option<u64>,
}

/// Attributes of the stored item that a merge does not keep: the merged reading lacks them only if it has no room or
/// does not expire.
const MAY_LACK: [&str; 4] = [ROOM, NAMED, NAMED_ROOM, TTL];

/// An item to put.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NewItem {
    pub(crate) item: Item,
    /// Whether the stored item's further attributes are kept, as for a merged reading.
    pub(crate) keeps_others: bool,
}

/// Puts items into the engine's file, bypassing the protocol.
#[derive(Clone)]
pub(crate) struct Load {
    pub(super) database: Database,
    pub(super) turns: Turns,
    pub(super) table: &'static str,
}

impl Load {
    /// Puts all items if each of `unchanged` still holds; else returns `false` and stores nothing. Blocks.
    pub(crate) fn put(&self, items: Vec<NewItem>, unchanged: &[Unchanged]) -> anyhow::Result<bool> {
        // The turn keeps all other writers out.
        let turn = self.turns.blocking_lock();

        for known in unchanged {
            if !self.holds(&turn, known)? {
                return Ok(false);
            }
        }

        let items = items.into_iter().map(|item| self.completed(&turn, item));
        let items = items.collect::<anyhow::Result<_>>()?;
        self.database.import_items(self.table, items, ImportOptions::default())?;
        Ok(true)
    }

    /// Whether the stored item has the version that is known of it.
    fn holds(&self, turn: &WriterConnection, known: &Unchanged) -> anyhow::Result<bool> {
        let Some(json) = self.stored(turn, &known.key)? else { return Ok(known.version.is_none()) };
        let item: Value = serde_json::from_str(&json)?;
        let version = item[VERSION]["N"].as_str().and_then(|version| version.parse().ok());
        Ok(version.is_some() && version == known.version)
    }

    /// The item to put. If it keeps the stored item's further attributes, they are added.
    fn completed(
        &self,
        turn: &WriterConnection,
        NewItem { item, keeps_others }: NewItem,
    ) -> anyhow::Result<dynoxide::types::Item> {
        let key = ItemKey::of_item(&item);
        let mut all = to_engine(item);
        if keeps_others && let Some(json) = self.stored(turn, &key)? {
            let stored: dynoxide::types::Item = serde_json::from_str(&json)?;
            for (name, value) in stored {
                if !MAY_LACK.contains(&name.as_str()) {
                    all.entry(name).or_insert(value);
                }
            }
        }
        Ok(all)
    }

    /// The stored JSON of an item.
    fn stored(&self, turn: &WriterConnection, key: &ItemKey) -> anyhow::Result<Option<String>> {
        let in_engine = |text: &str| AttributeValue::S(text.to_owned()).to_key_string();
        let keys = in_engine(&key.pk).zip(in_engine(&key.sk));
        let (pk, sk) = keys.context("texts are keys")?;
        turn.item(self.table, &pk, &sk)
    }
}

fn to_engine(item: Item) -> dynoxide::types::Item {
    item.into_iter().map(|(name, attribute)| (name, value(attribute))).collect()
}

fn value(attribute: Attribute) -> AttributeValue {
    match attribute {
        Attribute::S(text) => AttributeValue::S(text),
        Attribute::N(number) => AttributeValue::N(number.into()),
        Attribute::B(bytes) => AttributeValue::B(bytes),
        Attribute::L(list) => AttributeValue::L(list.into_iter().map(value).collect()),
        Attribute::M(item) => AttributeValue::M(to_engine(item)),
        Attribute::Ss(set) => AttributeValue::SS(set),
        Attribute::Bool(flag) => AttributeValue::BOOL(flag),
        Attribute::Other => AttributeValue::NULL(true),
    }
}
