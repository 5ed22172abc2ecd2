//! Many items in one transaction, without records of the stream: for items that come with everything that is made of
//! them. Makes no item.

use anyhow::Context as _;
use dynoxide::types::AttributeValue;
use dynoxide::{Database, ImportOptions};
use serde_json::Value;
use table::item::attribute::VERSION;
use table::item::{Attribute, Item};
use table::keys::{PK, SK};

use super::writer::Turns;

/// An item that another is to replace, and the version that it must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unchanged {
    pub(crate) pk: String,
    pub(crate) sk: String,
    /// `None` if the item must be absent.
    pub(crate) version: Option<u64>,
}

/// The engine's file, for whoever puts items into it past the protocol.
#[derive(Clone)]
pub(crate) struct Load {
    pub(super) database: Database,
    pub(super) turns: Turns,
    pub(super) table: &'static str,
}

impl Load {
    /// Puts items, all or none, if those of `unchanged` are as they were; returns whether they are. Blocks.
    pub(crate) fn put(&self, items: Vec<Item>, unchanged: &[Unchanged]) -> anyhow::Result<bool> {
        // Nobody else writes while this turn lasts.
        let turn = self.turns.blocking_lock();
        for known in unchanged {
            let key = |text: &str| AttributeValue::S(text.to_owned()).to_key_string();
            let keys = key(&known.pk).zip(key(&known.sk)).context("texts are keys")?;
            let stored = turn.item(self.table, &keys.0, &keys.1)?;
            let version = stored.map(|json| {
                let item: Value = serde_json::from_str(&json)?;
                anyhow::Ok(item[VERSION]["N"].as_str().and_then(|it| it.parse::<u64>().ok()))
            });
            if version.transpose()? != known.version.map(Some) {
                return Ok(false);
            }
        }
        let items = items.into_iter().map(to_engine).collect();
        self.database.import_items(self.table, items, ImportOptions::default())?;
        Ok(true)
    }
}

impl Unchanged {
    /// What must be where an item is put: the same of a version, or nothing.
    pub(crate) fn of(item: &Item, version: Option<u64>) -> Self {
        let text = |name| match item.get(name) {
            Some(Attribute::S(text)) => text.clone(),
            _ => String::new(),
        };
        Self { pk: text(PK), sk: text(SK), version }
    }
}

fn to_engine(item: Item) -> dynoxide::types::Item {
    item.into_iter().map(|(name, attribute)| (name, value(attribute))).collect()
}

fn value(attribute: Attribute) -> AttributeValue {
    match attribute {
        Attribute::S(text) => AttributeValue::S(text),
        Attribute::N(number) => AttributeValue::N(number),
        Attribute::B(bytes) => AttributeValue::B(bytes),
        Attribute::L(list) => AttributeValue::L(list.into_iter().map(value).collect()),
        Attribute::M(item) => AttributeValue::M(to_engine(item)),
        Attribute::Ss(set) => AttributeValue::SS(set),
        Attribute::Bool(flag) => AttributeValue::BOOL(flag),
        Attribute::Other => AttributeValue::NULL(true),
    }
}
