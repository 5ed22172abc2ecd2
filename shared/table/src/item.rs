//! The items of the table: encodes each kind as attributes, and decodes it. Uses neither the SDK nor events.

mod alert_channel;
mod alert_message;
mod alert_recheck;
mod alert_rule;
mod alert_state;
mod annotation;
pub mod attribute;
mod conditions;
mod device;
mod error;
mod fields;
mod form;
mod json;
mod kind;
mod late;
mod reading;
mod rollup;
mod room;
mod search_entry;
mod seen;
mod shards;
mod source;
mod stay;
mod tariff;
#[cfg(test)]
mod tests;
mod token;

use std::collections::BTreeMap;
use std::fmt::Display;

use smol_str::{SmolStr, format_smolstr};

pub(crate) use self::device::{Described, Labels};
pub use self::device::{DeviceItem, description, from_device, tombstone_expires};
pub use self::error::{ItemError, UnreadableItem};
pub use self::form::flag;
pub(crate) use self::form::{
    ByPresence, Form, List, Members, OrDefault, Said, Seconds, Text, listed, part,
};
pub(crate) use self::json::JsonText;
pub use self::reading::{Arrival, expires, expiry, from_about, from_arrival, from_reading};
pub use self::rollup::group_name;
pub use self::search_entry::from_search_entry;
pub use self::seen::seen_of;
pub use self::stay::from_stay;
use crate::keys::{self, ItemKey, Key};

/// An item's attributes by name.
pub type Item = BTreeMap<String, Attribute>;

/// The types of attributes that the table holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Attribute {
    /// A string.
    S(String),
    /// A number, as text.
    N(SmolStr),
    /// Bytes.
    B(Vec<u8>),
    /// A list.
    L(Vec<Attribute>),
    /// A map.
    M(Item),
    /// A set of strings, never empty.
    Ss(Vec<String>),
    /// True or false.
    Bool(bool),
    /// Any other type; no item of Roomtide has one.
    Other,
}

impl Attribute {
    /// A number.
    pub fn number(number: impl Display) -> Self {
        Self::N(format_smolstr!("{number}"))
    }

    /// The text of a value, such as a timestamp or an id.
    pub fn text(value: &impl ToString) -> Self {
        Self::S(value.to_string())
    }
}

/// A value that can be decoded from one item of the table.
pub trait Decode: Sized {
    /// Reads the attributes of an item, in any order.
    fn decode(attributes: impl IntoIterator<Item = (String, Attribute)>)
    -> Result<Self, ItemError>;
}

/// A value that is decoded from the whole map of an item's attributes.
pub trait FromItem: Sized {
    /// Takes the value out of an item.
    fn from_item(item: Item) -> Result<Self, ItemError>;
}

impl<T: FromItem> Decode for T {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        Self::from_item(attributes.into_iter().collect())
    }
}

/// Reads an item. The error has the item's key.
pub fn read<T: Decode>(
    attributes: impl IntoIterator<Item = (String, Attribute)>,
) -> Result<T, UnreadableItem> {
    let (mut pk, mut sk) = (String::new(), String::new());
    let watched = attributes.into_iter().inspect(|(name, value)| match (name.as_str(), value) {
        (keys::PK, Attribute::S(text)) => pk.clone_from(text),
        (keys::SK, Attribute::S(text)) => sk.clone_from(text),
        _ => {}
    });
    T::decode(watched).map_err(|why| UnreadableItem { pk, sk, why })
}

/// A value, or the error of reading its item. Lists use this to name unreadable items.
impl<T: Decode> Decode for Result<T, UnreadableItem> {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        Ok(read(attributes))
    }
}

/// The name of an attribute and its value; `None` if the item does not have the attribute.
pub(crate) type NamedAttribute = (&'static str, Option<Attribute>);

/// A value that is stored in attributes of an item, apart from the item's key.
pub trait Attributes {
    /// The attributes. Those with `None` are absent from the item.
    fn attributes(&self) -> Vec<NamedAttribute>;
}

/// A value that is stored in several attributes of an item, or in several members of a map.
pub(crate) trait Group: Attributes + Sized {
    /// Takes the value out of an item.
    fn take(item: &mut Item) -> Result<Self, ItemError>;
}

/// A value that is a whole item.
pub trait Kind: Attributes + Decode {
    /// The key of the item.
    fn key(&self) -> Key;

    /// All attributes of the item, including its key.
    fn item(&self) -> Item {
        with_key(&self.key(), self.attributes())
    }
}

/// An item with this key and these attributes. Attributes with `None` are absent from the item.
pub(crate) fn with_key(under: &Key, attributes: impl IntoIterator<Item = NamedAttribute>) -> Item {
    let mut item = key(under);
    item.extend(present(attributes));
    item
}

/// The attributes that have a value.
fn present(
    attributes: impl IntoIterator<Item = NamedAttribute>,
) -> impl Iterator<Item = (String, Attribute)> {
    attributes.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)))
}

/// The key attributes of an item.
pub fn key(key: &Key) -> Item {
    ItemKey::of(key).into_item()
}
