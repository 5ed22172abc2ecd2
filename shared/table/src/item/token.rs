//! An access token's item, under the digest of its secret. Never holds the secret.

use super::attribute::{CREATED, DEVICES, NAME, REVOKED, SCOPE};
use super::fields::{invalid, other_kind, parse_key, parsed, put, string, text, timestamp};
use super::{Attribute, Decode, Item, ItemError, key};
use crate::keys::Key;
use domain::{DeviceId, Scope, Token};

/// The item of an access token.
#[must_use]
pub fn from_token(token: &Token) -> Item {
    let mut item = key(&Key::Token(token.hash));
    let scope = match &token.scope {
        Scope::Write(devices) => {
            let devices = devices.iter().map(|id| Attribute::S(id.to_string())).collect();
            item.insert(DEVICES.to_owned(), Attribute::L(devices));
            "write"
        }
        Scope::Read => "read",
        Scope::Admin => "admin",
    };
    put(&mut item, SCOPE, Some(scope.to_owned()));
    put(&mut item, NAME, token.name.clone().map(String::from));
    put(&mut item, CREATED, Some(token.created.to_string()));
    put(&mut item, REVOKED, token.revoked.map(|at| at.to_string()));
    item
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
            let Some(Attribute::L(devices)) = item.remove(DEVICES) else {
                return Err(ItemError::Missing(DEVICES));
            };
            let ids = devices.into_iter().filter_map(string).map(DeviceId::try_from);
            Scope::Write(ids.collect::<Result<_, _>>().map_err(invalid(DEVICES))?)
        }
        Some("read") => Scope::Read,
        Some("admin") => Scope::Admin,
        _ => return Err(ItemError::Missing(SCOPE)),
    };
    let created = timestamp(&mut item, CREATED)?.ok_or(ItemError::Missing(CREATED))?;
    let revoked = timestamp(&mut item, REVOKED)?;
    Ok(Token { hash, scope, name: parsed(&mut item, NAME)?, created, revoked })
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{Timestamp, TokenHash};

    #[test]
    fn tokens_come_back_and_broken_ones_permit_nothing() {
        let devices = ["a", "b"].map(|id| id.parse().expect("an id")).into();
        let at = Timestamp::parse("2026-01-11T16:00:00Z", Timestamp::MIN).expect("a timestamp");
        for scope in [Scope::Write(devices), Scope::Read, Scope::Admin] {
            let token = Token {
                hash: TokenHash::of("secret"),
                scope,
                name: Some("kitchen plug".parse().expect("a label")),
                created: at,
                revoked: Some(at),
            };
            let item = from_token(&token);
            assert_eq!(Token::decode(item.clone()).expect("a token"), token);
            for missing in ["scope", "created"] {
                let mut item = item.clone();
                item.remove(missing);
                assert!(Token::decode(item).is_err(), "{missing}");
            }
        }
    }
}
