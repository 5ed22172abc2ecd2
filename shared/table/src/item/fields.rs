//! One field of an item at a time: its key, texts and timestamps. Knows no kind of item.

use std::collections::BTreeSet;
use std::str::FromStr;

use super::attribute::ROOMS;
use super::{Attribute, Item, ItemError};
use crate::keys::{self, Key};
use domain::{Decimal, RoomId, Timestamp};

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

/// The error of an item whose key is that of another kind of item.
pub(super) fn other_kind(item: &Item) -> ItemError {
    key_parts(item).map_or_else(|missing| missing, |(pk, sk)| foreign_key(pk, sk))
}

pub(super) fn foreign_key(pk: &str, sk: &str) -> ItemError {
    ItemError::Key(domain::excerpt(pk), domain::excerpt(sk))
}

pub(super) fn put(item: &mut Item, name: &str, text: Option<String>) {
    if let Some(text) = text {
        item.insert(name.to_owned(), Attribute::S(text));
    }
}

pub(super) fn string(attribute: Attribute) -> Option<String> {
    match attribute {
        Attribute::S(text) => Some(text),
        _ => None,
    }
}

pub(super) fn text(item: &mut Item, name: &str) -> Option<String> {
    item.remove(name).and_then(string)
}

pub(super) fn parsed<T: TryFrom<String>>(
    item: &mut Item,
    name: &'static str,
) -> Result<Option<T>, ItemError>
where
    T::Error: std::error::Error + Send + Sync + 'static,
{
    text(item, name).map(T::try_from).transpose().map_err(invalid(name))
}

pub(super) fn timestamp(
    item: &mut Item,
    name: &'static str,
) -> Result<Option<Timestamp>, ItemError> {
    let parse = |text: String| Timestamp::parse(&text, Timestamp::MIN).map_err(invalid(name));
    text(item, name).map(parse).transpose()
}

/// A whole number.
pub(super) fn whole_number<T: FromStr>(
    item: &mut Item,
    name: &'static str,
) -> Result<Option<T>, ItemError>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    match item.remove(name) {
        None => Ok(None),
        Some(Attribute::N(text)) => text.parse().map(Some).map_err(invalid(name)),
        Some(_) => Err(ItemError::Missing(name)),
    }
}

/// The attribute of a person's yes or no.
#[must_use]
pub fn said(is_so: &bool) -> Attribute {
    Attribute::number(u8::from(*is_so))
}

pub(super) fn to_said(item: &mut Item, name: &str) -> Option<bool> {
    match item.remove(name) {
        Some(Attribute::N(number)) => Some(number != "0"),
        _ => None,
    }
}

/// A time in epoch seconds.
pub(super) fn epoch_seconds(
    item: &mut Item,
    name: &'static str,
) -> Result<Option<Timestamp>, ItemError> {
    let seconds: Option<i64> = whole_number(item, name)?;
    let timestamp = |seconds: i64| Timestamp::from_millis(seconds.saturating_mul(1_000));
    seconds.map(timestamp).transpose().map_err(invalid(name))
}

pub(super) fn invalid<E: std::error::Error + Send + Sync + 'static>(
    attribute: &'static str,
) -> impl Fn(E) -> ItemError {
    move |why| ItemError::Invalid { attribute, why: Box::new(why) }
}

/// The rooms of a rollup.
pub(super) fn rooms(item: &mut Item) -> Result<BTreeSet<Option<RoomId>>, ItemError> {
    let Some(Attribute::L(rooms)) = item.remove(ROOMS) else {
        return Err(ItemError::Missing(ROOMS));
    };
    let room = |it: Attribute| match string(it).ok_or(ItemError::Missing(ROOMS))? {
        text if text.is_empty() => Ok(None),
        text => text.parse().map(Some).map_err(invalid(ROOMS)),
    };
    rooms.into_iter().map(room).collect()
}

pub(super) fn to_decimal(attribute: &Attribute) -> Option<Decimal> {
    match attribute {
        Attribute::N(text) => Decimal::parse(text).ok(),
        _ => None,
    }
}
