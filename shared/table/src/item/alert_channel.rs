//! A channel's two items: what everybody may see, and what is secret. Knows no kind of channel.

use super::attribute::{CREATED, FAILING_SINCE, NEXT, QUIET_HOURS, SECRET, SETTINGS, VERSION};
use super::fields::{invalid, other_kind, parse_key, put, text, timestamp, whole_number};
use super::json::{members, put_object};
use super::{Attribute, Decode, Item, ItemError, key};
use crate::keys::Key;
use crate::{ChannelSecret, Failing, StoredChannel};
use domain::ChannelId;

/// The item of a channel, without its secret.
#[must_use]
pub fn from_channel(channel: &StoredChannel) -> Item {
    let mut item = key(&Key::AlertChannel(channel.id.clone()));
    item.insert(VERSION.to_owned(), Attribute::number(channel.version));
    put_object(&mut item, SETTINGS, &channel.settings);
    put(&mut item, QUIET_HOURS, channel.quiet_hours.map(|it| it.to_string()));
    put(&mut item, CREATED, channel.created.map(|created| created.to_string()));
    let failing = from_failing(channel.failing);
    item.extend(failing.into_iter().filter_map(|(name, it)| Some((name.to_owned(), it?))));
    item
}

/// The attributes that tell whether a channel fails. What has no value is absent from the item.
#[must_use]
pub fn from_failing(failing: Option<Failing>) -> [(&'static str, Option<Attribute>); 2] {
    let text = |at: domain::Timestamp| Attribute::S(at.to_string());
    [(FAILING_SINCE, failing.map(|it| text(it.since))), (NEXT, failing.map(|it| text(it.next)))]
}

impl Decode for StoredChannel {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        let mut item: Item = attributes.into_iter().collect();
        let Key::AlertChannel(id) = parse_key(&item)? else { return Err(other_kind(&item)) };
        let failing = match (timestamp(&mut item, FAILING_SINCE)?, timestamp(&mut item, NEXT)?) {
            (None, None) => None,
            (Some(since), Some(next)) => Some(Failing { since, next }),
            (None, Some(_)) => return Err(ItemError::Missing(FAILING_SINCE)),
            (Some(_), None) => return Err(ItemError::Missing(NEXT)),
        };
        let quiet_hours = text(&mut item, QUIET_HOURS).map(|it| it.parse()).transpose();
        Ok(Self {
            id,
            version: whole_number(&mut item, VERSION)?.ok_or(ItemError::Missing(VERSION))?,
            settings: members(&mut item, SETTINGS)?,
            quiet_hours: quiet_hours.map_err(invalid(QUIET_HOURS))?,
            failing,
            created: timestamp(&mut item, CREATED)?,
        })
    }
}

/// The item of what is secret of a channel. No export has it.
#[must_use]
pub fn from_channel_secret(id: &ChannelId, secret: &ChannelSecret) -> Item {
    let mut item = key(&Key::AlertSecret(id.clone()));
    put_object(&mut item, SECRET, &secret.0);
    item
}

impl Decode for ChannelSecret {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        let mut item: Item = attributes.into_iter().collect();
        let Key::AlertSecret(_) = parse_key(&item)? else { return Err(other_kind(&item)) };
        members(&mut item, SECRET).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::given;

    #[test]
    fn a_channel_comes_back_without_its_secret() {
        for (failing, quiet_hours) in [
            (None, None),
            (Some(Failing { since: Timestamp::MIN, next: Timestamp::MAX }), Some("22:00-07:00")),
        ] {
            let quiet_hours = quiet_hours.map(|it| it.parse().expect("quiet hours"));
            let channel = StoredChannel { quiet_hours, failing, ..given::channel("c") };
            let item = from_channel(&channel);
            assert!(!item.contains_key(SECRET));
            let mut older = item.clone();
            older.remove(CREATED);
            let without = StoredChannel { created: None, ..channel.clone() };
            assert_eq!(StoredChannel::decode(older).expect("an older channel"), without);
            assert_eq!(StoredChannel::decode(item.clone()).expect("a channel"), channel);
            for name in [VERSION, SETTINGS].into_iter().chain(failing.map(|_| NEXT)) {
                let mut item = item.clone();
                item.remove(name);
                let why = StoredChannel::decode(item).expect_err(name).to_string();
                assert!(why.contains(name), "{why}");
            }
        }
    }

    #[test]
    fn a_secret_comes_back_and_is_shown_to_nobody() {
        let members = json!({"url": "https://例え.jp/?token=s3cret", "headers": {"a": "b"}});
        let secret = ChannelSecret(members.as_object().expect("an object").clone());
        let item = from_channel_secret(&given::channel_id("c"), &secret);
        assert_eq!(ChannelSecret::decode(item.clone()).expect("a secret"), secret);
        assert_eq!(format!("{secret:?}"), "ChannelSecret(..)");
        assert!(StoredChannel::decode(item).is_err());
    }
}
