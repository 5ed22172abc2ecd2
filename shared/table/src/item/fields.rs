//! Reads the key of an item, and makes the errors of invalid keys and attributes. Knows no kind of item.

use super::{Attribute, Item, ItemError};
use crate::keys::{self, Key};

pub(super) fn parse_key(item: &Item) -> Result<Key, ItemError> {
    let (pk, sk) = key_parts(item)?;
    Key::parse(pk, sk).ok_or_else(|| foreign_key(pk, sk))
}

fn key_parts(item: &Item) -> Result<(&str, &str), ItemError> {
    let part = |name| match item.get(name) {
        Some(Attribute::S(text)) => Ok(text.as_str()),
        _ => Err(ItemError::Missing(name)),
    };
    Ok((part(keys::PK)?, part(keys::SK)?))
}

/// The error of an item that has the key of another kind of item.
pub(super) fn other_kind(item: &Item) -> ItemError {
    key_parts(item).map_or_else(|missing| missing, |(pk, sk)| foreign_key(pk, sk))
}

pub(super) fn foreign_key(pk: &str, sk: &str) -> ItemError {
    ItemError::Key(domain::excerpt(pk), domain::excerpt(sk))
}

pub(super) fn invalid<E: std::error::Error + Send + Sync + 'static>(
    attribute: &'static str,
) -> impl Fn(E) -> ItemError {
    move |why| ItemError::Invalid { attribute, why: Box::new(why) }
}
