//! The item that stores how many partitions the registry's devices are in. Compares this number with nothing.

use super::attribute::SHARDS;
use super::fields::{other_kind, parse_key};
use super::form::{Whole, part};
use super::kind::take;
use super::{Attributes, FromItem, Item, ItemError, Kind, NamedAttribute};
use crate::keys::Key;
use crate::shards::Shards;

impl Kind for Shards {
    fn key(&self) -> Key {
        Key::Shards
    }
}

impl Attributes for Shards {
    fn attributes(&self) -> Vec<NamedAttribute> {
        vec![(SHARDS, part::<Whole, _>(self))]
    }
}

impl FromItem for Shards {
    fn from_item(mut item: Item) -> Result<Self, ItemError> {
        let Key::Shards = parse_key(&item)? else { return Err(other_kind(&item)) };
        take::<Whole, _>(&mut item, SHARDS)
    }
}
