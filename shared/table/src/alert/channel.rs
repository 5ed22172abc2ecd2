//! The stored form of a channel that sends alerts, with the secret apart. Sends nothing.

use std::fmt;

use alerts::{Channel, QuietHours, Secret};
use domain::{ChannelId, MemberError, Timestamp};
use outgoing::Reach;
use serde_json::{Map, Value};

/// A channel, as every reader may see it.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct StoredChannel {
    /// The id of the channel.
    pub id: ChannelId,
    /// The number of times that the channel was saved. Recording a failure does not count.
    pub version: u64,
    /// The kind and the other settings, without the secret. Only the sender interprets them. A member with the value
    /// `null` is not stored.
    pub settings: Map<String, Value>,
    /// The hours of the local day in which messages wait.
    pub quiet_hours: Option<QuietHours>,
    /// The failure of the channel, if it fails.
    pub failing: Option<Failing>,
    /// When the channel was created. Earlier messages belong to a deleted channel of the same id. `None` for a channel
    /// that an earlier version of Roomtide created.
    pub created: Option<Timestamp>,
}

/// A channel's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failing {
    /// When the failure began.
    pub since: Timestamp,
    /// When the channel is tried next.
    pub next: Timestamp,
}

/// The member of a channel's JSON with the quiet hours. In the item, they have an attribute of their own.
const QUIET_HOURS: &str = "quiet_hours";

impl StoredChannel {
    /// The version of a channel that follows `before`, or the first version.
    pub fn new(id: ChannelId, before: Option<&Self>, channel: &Channel, now: Timestamp) -> Self {
        let mut settings = object(channel.to_json());
        settings.remove(QUIET_HOURS);
        let quiet_hours = channel.quiet_hours;
        let version = before.map_or(0, |before| before.version) + 1;
        let created = before.map_or(Some(now), |before| before.created);
        Self { id, version, settings, quiet_hours, failing: None, created }
    }

    /// Whether a message that was judged at `judged` is older than this channel. Such a message was for a deleted
    /// channel with the same id, which had another address. A `created` in the future comes from a wrong clock and is
    /// ignored, because all messages until that time would be dropped.
    pub fn is_younger_than(&self, judged: Timestamp, now: Timestamp) -> bool {
        self.created.is_some_and(|created| judged < created && created <= now)
    }

    /// The channel, as a person wrote it.
    pub fn channel(&self) -> Result<Channel, MemberError> {
        let mut members = self.settings.clone();
        members.extend(
            self.quiet_hours.map(|hours| (QUIET_HOURS.to_owned(), hours.to_string().into())),
        );
        // Whether the address and e-mail are allowed was checked when the channel was saved.
        Channel::from_json(Value::Object(members), Reach::Public).map(|(channel, _)| channel)
    }
}

/// The secret of a channel: its address and its keys. `Debug` hides the secret, so that no log has it.
#[derive(Clone, PartialEq)]
pub struct ChannelSecret(pub Map<String, Value>);

impl ChannelSecret {
    /// The secret, as it is stored.
    pub fn of(secret: &Secret) -> Self {
        let text = secret.to_stored();
        Self(object(serde_json::from_str(&text).unwrap_or_default()))
    }

    /// Decodes the stored secret.
    pub fn secret(&self) -> Result<Secret, MemberError> {
        Secret::from_stored(&Value::Object(self.0.clone()).to_string())
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

impl fmt::Debug for ChannelSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChannelSecret(..)")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::given;

    #[test]
    fn a_channel_and_its_secret_come_back() {
        for (members, reach) in [
            (
                json!({"kind": "ntfy", "name": "Phone", "topic": "geheim", "quiet_hours": "22:00-07:00"}),
                Reach::Local,
            ),
            (
                json!({"kind": "email", "name": "Mail",
                    "topic_arn": "arn:aws:sns:eu-central-1:123456789012:geheim"}),
                Reach::Public,
            ),
        ] {
            let (channel, secret) = Channel::from_json(members, reach).expect("a channel");
            let secret = secret.expect("a secret");
            let id = || given::channel_id("c");
            let first = StoredChannel::new(id(), None, &channel, Timestamp::MAX);
            assert_eq!((first.version, first.created), (1, Some(Timestamp::MAX)));
            let before = StoredChannel { version: 2, ..given::channel("c") };
            let stored = StoredChannel::new(id(), Some(&before), &channel, Timestamp::MAX);
            assert_eq!((stored.version, stored.failing), (3, None));
            assert_eq!(stored.created, before.created, "an edit makes no other channel");
            let [early, late] = [0, 1].map(|at| Timestamp::from_millis(at).expect("in range"));
            let made = StoredChannel { created: Some(late), ..stored.clone() };
            assert!(made.is_younger_than(early, late) && !made.is_younger_than(late, late));
            assert!(!made.is_younger_than(early, early), "its clock was ahead");
            let older = StoredChannel { created: None, ..stored.clone() };
            assert!(!older.is_younger_than(Timestamp::MIN, late));
            assert!(!stored.settings.contains_key(QUIET_HOURS));
            assert!(!format!("{stored:?}").contains("geheim"));
            assert_eq!(stored.channel(), Ok(channel));
            assert_eq!(ChannelSecret::of(&secret).secret(), Ok(secret));
        }
    }
}
