//! The item of an access token, under the hash of its secret. Never holds the secret.

use super::attribute::{
    CREATED, DEVICE_TAGS, DEVICES, EXPIRES, HOMES, ISSUED_BY, NAME, PREFIX, REVOKED, ROOM_TAG,
    ROOMS, SCOPE,
};
use super::form::{At, Listed, Maybe, OrDefault, Text, part};
use super::kind::{group, kind, take};
use super::{Attribute, Attributes, Group, Item, ItemError, NamedAttribute};
use domain::{Scope, Token, ViewScope, WritableDevices, WriteScope};

/// The stored scope of a token that writes for any device. A token for some devices has another scope. So an item that
/// has lost its list of devices permits nothing.
const ANY: &str = "write-any";

kind! { Token = Token(hash) {
    scope: Scope,
    name: Maybe<Text> = NAME,
    created: At = CREATED,
    revoked: Maybe<At> = REVOKED,
    expires: Maybe<At> = EXPIRES,
    issued_by: Maybe<Text> = ISSUED_BY,
} }

group! { ViewScope { rooms: Listed<Text> = ROOMS, homes: Listed<Text> = HOMES } }

impl Attributes for Scope {
    fn attributes(&self) -> Vec<NamedAttribute> {
        let (name, mut attributes) = match self {
            Self::Write(scope) if scope.devices == WritableDevices::Any => {
                (ANY, scope.attributes())
            }
            Self::Write(scope) => ("write", scope.attributes()),
            Self::Read => ("read", Vec::new()),
            Self::View(scope) => ("view", scope.attributes()),
            Self::Admin => ("admin", Vec::new()),
        };
        attributes.push((SCOPE, Some(Attribute::S(name.to_owned()))));
        attributes
    }
}

impl Group for Scope {
    fn take(item: &mut Item) -> Result<Self, ItemError> {
        match take::<Text, String>(item, SCOPE)?.as_str() {
            ANY => take_write_scope(item, WritableDevices::Any),
            "write" => {
                let devices = take::<Maybe<Listed<Text>>, _>(item, DEVICES)?;
                let prefix = take::<Maybe<Text>, _>(item, PREFIX)?;
                match (devices, prefix) {
                    (Some(only), None) => take_write_scope(item, WritableDevices::Only(only)),
                    (None, Some(prefix)) => take_write_scope(item, WritableDevices::Prefix(prefix)),
                    _ => Err(ItemError::Missing(DEVICES)),
                }
            }
            "read" => Ok(Self::Read),
            "view" => ViewScope::take(item).map(Self::View),
            "admin" => Ok(Self::Admin),
            _ => Err(ItemError::Missing(SCOPE)),
        }
    }
}

impl Attributes for WriteScope {
    fn attributes(&self) -> Vec<NamedAttribute> {
        let devices = match &self.devices {
            WritableDevices::Any => None,
            WritableDevices::Only(devices) => Some((DEVICES, part::<Listed<Text>, _>(devices))),
            WritableDevices::Prefix(prefix) => Some((PREFIX, part::<Text, _>(prefix))),
        };
        let tags = [
            (DEVICE_TAGS, part::<OrDefault<Listed<Text>>, _>(&self.device_tags)),
            (ROOM_TAG, part::<Maybe<Text>, _>(&self.room_tag)),
        ];
        devices.into_iter().chain(tags).collect()
    }
}

fn take_write_scope(item: &mut Item, devices: WritableDevices) -> Result<Scope, ItemError> {
    Ok(Scope::Write(WriteScope {
        devices,
        device_tags: take::<OrDefault<Listed<Text>>, _>(item, DEVICE_TAGS)?,
        room_tag: take::<Maybe<Text>, _>(item, ROOM_TAG)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::{Decode as _, Kind as _};
    use domain::{Timestamp, TokenHash};

    #[test]
    fn a_token_that_has_lost_what_limits_it_permits_nothing() {
        let only = WriteScope::from(["a".parse().expect("an id")]);
        let devices = WritableDevices::Prefix("cabin".parse().expect("an id"));
        let prefixed = WriteScope { devices, ..only.clone() };
        let view = ViewScope { rooms: ["hall".parse().expect("an id")].into(), homes: [].into() };
        for (scope, limits) in [
            (Scope::Write(only), &[SCOPE, DEVICES][..]),
            (Scope::Write(prefixed), &[SCOPE, PREFIX]),
            (Scope::View(view), &[SCOPE, ROOMS, HOMES]),
            (Scope::Read, &[SCOPE]),
        ] {
            let token = Token {
                hash: TokenHash::of("secret"),
                scope,
                name: None,
                created: Timestamp::MIN,
                revoked: None,
                expires: None,
                issued_by: None,
            };
            for limit in limits {
                let mut item = token.item();
                item.remove(*limit);
                assert!(Token::decode(item).is_err(), "{limit}");
            }
        }
    }
}
