//! An access token's item, under the digest of its secret. Never holds the secret.

use super::attribute::{
    CREATED, DEVICE_TAGS, DEVICES, EXPIRES, HOMES, ISSUED_BY, NAME, PREFIX, REVOKED, ROOM_TAG,
    ROOMS, SCOPE,
};
use super::fields::{invalid, other_kind, parse_key, parsed, put, string, text, timestamp};
use super::{Attribute, Decode, Item, ItemError, key};
use crate::keys::Key;
use std::collections::BTreeSet;
use std::str::FromStr;

use domain::{IdError, Scope, Token, ViewScope, WritableDevices, WriteScope};

/// The scope of a token that writes for any device. It differs from that of the others, so that an item which
/// lost its devices permits nothing.
const ANY: &str = "write-any";

/// The item of an access token.
#[must_use]
pub fn from_token(token: &Token) -> Item {
    let mut item = key(&Key::Token(token.hash));
    let scope = match &token.scope {
        Scope::Write(WriteScope { devices, device_tags, room_tag }) => {
            match devices {
                WritableDevices::Any => {}
                WritableDevices::Only(devices) => {
                    put_all(&mut item, DEVICES, devices);
                }
                WritableDevices::Prefix(prefix) => {
                    put(&mut item, PREFIX, Some(prefix.to_string()));
                }
            }
            if !device_tags.is_empty() {
                let tags = device_tags.iter().cloned().map(Attribute::S).collect();
                item.insert(DEVICE_TAGS.to_owned(), Attribute::L(tags));
            }
            put(&mut item, ROOM_TAG, room_tag.clone());
            if *devices == WritableDevices::Any { ANY } else { "write" }
        }
        Scope::Read => "read",
        Scope::View(ViewScope { rooms, homes }) => {
            put_all(&mut item, ROOMS, rooms);
            put_all(&mut item, HOMES, homes);
            "view"
        }
        Scope::Admin => "admin",
    };
    put(&mut item, SCOPE, Some(scope.to_owned()));
    put(&mut item, NAME, token.name.clone().map(String::from));
    put(&mut item, CREATED, Some(token.created.to_string()));
    put(&mut item, REVOKED, token.revoked.map(|at| at.to_string()));
    put(&mut item, EXPIRES, token.expires.map(|at| at.to_string()));
    put(&mut item, ISSUED_BY, token.issued_by.map(|by| by.to_string()));
    item
}

/// Puts ids as a list.
fn put_all<T: ToString>(item: &mut Item, name: &str, ids: &BTreeSet<T>) {
    let ids = ids.iter().map(|id| Attribute::S(id.to_string())).collect();
    item.insert(name.to_owned(), Attribute::L(ids));
}

/// Takes out what [`put_all`] puts in.
fn all<T: FromStr<Err = IdError> + Ord>(
    item: &mut Item,
    name: &'static str,
) -> Result<Option<BTreeSet<T>>, ItemError> {
    let Some(Attribute::L(ids)) = item.remove(name) else { return Ok(None) };
    let ids = ids.into_iter().filter_map(string).map(|id| id.parse());
    ids.collect::<Result<_, _>>().map(Some).map_err(invalid(name))
}

impl Decode for Token {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        to_token(attributes.into_iter().collect())
    }
}

fn to_token(mut item: Item) -> Result<Token, ItemError> {
    let Key::Token(hash) = parse_key(&item)? else { return Err(other_kind(&item)) };
    let scope = match text(&mut item, SCOPE).as_deref() {
        Some("write") => {
            let devices = match (all(&mut item, DEVICES)?, parsed(&mut item, PREFIX)?) {
                (Some(devices), None) => WritableDevices::Only(devices),
                (None, Some(prefix)) => WritableDevices::Prefix(prefix),
                _ => return Err(ItemError::Missing(DEVICES)),
            };
            to_write_scope(&mut item, devices)
        }
        Some(ANY) => to_write_scope(&mut item, WritableDevices::Any),
        Some("read") => Scope::Read,
        Some("view") => {
            let rooms = all(&mut item, ROOMS)?.ok_or(ItemError::Missing(ROOMS))?;
            let homes = all(&mut item, HOMES)?.ok_or(ItemError::Missing(HOMES))?;
            Scope::View(ViewScope { rooms, homes })
        }
        Some("admin") => Scope::Admin,
        _ => return Err(ItemError::Missing(SCOPE)),
    };
    let created = timestamp(&mut item, CREATED)?.ok_or(ItemError::Missing(CREATED))?;
    let revoked = timestamp(&mut item, REVOKED)?;
    let expires = timestamp(&mut item, EXPIRES)?;
    let issued_by = text(&mut item, ISSUED_BY).map(|hash| hash.parse()).transpose();
    let (name, issued_by) = (parsed(&mut item, NAME)?, issued_by.map_err(invalid(ISSUED_BY))?);
    Ok(Token { hash, scope, name, created, revoked, expires, issued_by })
}

fn to_write_scope(item: &mut Item, devices: WritableDevices) -> Scope {
    let device_tags = match item.remove(DEVICE_TAGS) {
        Some(Attribute::L(tags)) => tags.into_iter().filter_map(string).collect(),
        _ => Vec::new(),
    };
    Scope::Write(WriteScope { devices, device_tags, room_tag: text(item, ROOM_TAG) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{Timestamp, TokenHash};

    #[test]
    fn tokens_come_back_and_broken_ones_permit_nothing() {
        let only = WriteScope::from(["a", "b"].map(|id| id.parse().expect("an id")));
        let tagged = WriteScope {
            devices: WritableDevices::Prefix("cabin".parse().expect("an id")),
            device_tags: vec!["host".to_owned(), "path".to_owned()],
            room_tag: Some("area".to_owned()),
        };
        let any = WriteScope { devices: WritableDevices::Any, ..only.clone() };
        let at = Timestamp::parse("2026-01-11T16:00:00Z", Timestamp::MIN).expect("a timestamp");
        let writing = [only, tagged, any].map(Scope::Write);
        let view = ViewScope {
            rooms: ["hall".parse().expect("an id")].into(),
            homes: ["villa".parse().expect("an id")].into(),
        };
        for scope in writing.into_iter().chain([Scope::Read, Scope::View(view), Scope::Admin]) {
            let token = Token {
                hash: TokenHash::of("secret"),
                scope,
                name: Some("kitchen plug".parse().expect("a label")),
                created: at,
                revoked: Some(at),
                expires: Some(at),
                issued_by: Some(TokenHash::of("admin")),
            };
            let item = from_token(&token);
            assert_eq!(Token::decode(item.clone()).expect("a token"), token);
            for missing in ["scope", "created"] {
                let mut item = item.clone();
                item.remove(missing);
                assert!(Token::decode(item).is_err(), "{missing}");
            }
            // Not in the index by room.
            assert!(!item.contains_key(crate::keys::ROOM));
            if token.scope.name() == "view" {
                for missing in ["rooms", "homes"] {
                    let mut item = item.clone();
                    item.remove(missing);
                    assert!(Token::decode(item).is_err(), "{missing}");
                }
            }
        }
    }
}
