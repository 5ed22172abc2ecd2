//! The secret part of a channel: addresses, tokens and keys. People who may edit can write it, but no answer shows it.

use std::fmt;

use serde_json::{Map, Value};

use crate::body::{Outgoing, Post};
use crate::channel_kind::{ChannelDelivery, ChannelKind};
use crate::channel_member::{Need, SecretValues};
use domain::MemberError;
use outgoing::Reach;

/// The address and the credentials for a channel's messages.
///
/// The address of a webhook works as a password, so everything here is secret. `Debug`, `Display` and errors show
/// nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    kind: &'static ChannelKind,
    values: SecretValues,
}

impl Secret {
    /// The kind of channel that the secret belongs to.
    pub const fn kind(&self) -> &'static ChannelKind {
        self.kind
    }

    /// The Amazon SNS topic of an e-mail channel.
    pub fn topic_arn(&self) -> Option<&str> {
        self.values.find("topic_arn")
    }

    /// The error for a channel without a secret of its kind.
    pub fn missing(kind: &ChannelKind) -> MemberError {
        let needed = kind.members.iter().find(|member| member.need == Need::Always);
        MemberError::of(needed.map_or("kind", |member| member.name), "is missing")
    }

    /// The stored form. Only the function that sends may read the item with this text.
    pub fn to_stored(&self) -> String {
        let kind = [("kind", self.kind.name.to_owned())];
        let members = kind.into_iter().chain(self.values.to_texts());
        let members = members.map(|(name, text)| (name.to_owned(), text.into()));
        Value::Object(members.collect::<Map<_, _>>()).to_string()
    }

    /// Reads the stored form. The address is checked again when a message is sent.
    pub fn from_stored(text: &str) -> Result<Self, MemberError> {
        let members = serde_json::from_str::<Map<String, Value>>(text);
        let mut members = members.map_err(|_| MemberError::of("secret", "is not a JSON object"))?;
        let kind = ChannelKind::named(members.get("kind").and_then(Value::as_str))?;
        Self::read(kind, &mut members, Reach::Local)?.ok_or_else(|| Self::missing(kind))
    }

    /// Reads the secret members that a kind requires. `None` if the body has no secret member.
    pub(crate) fn read(
        kind: &'static ChannelKind,
        members: &mut Map<String, Value>,
        reach: Reach,
    ) -> Result<Option<Self>, MemberError> {
        if !kind.members.iter().any(|member| members.contains_key(member.name)) {
            return Ok(None);
        }

        let values = SecretValues::read(kind.members, members, reach)?;
        Ok(Some(Self { kind, values }))
    }
}

impl Post<'_> {
    /// The delivery of the post to the channel with this secret.
    pub fn by(&self, Secret { kind, values }: &Secret) -> Outgoing {
        match kind.delivery {
            ChannelDelivery::Http(request) => Outgoing::Http(request(self, values)),
            ChannelDelivery::Email(email) => Outgoing::Email(email(self, values)),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::CHANNEL_KINDS;
    use domain::given::cases;

    fn read(kind: &str, text: &str, reach: Reach) -> Result<Option<Secret>, String> {
        let kind = ChannelKind::of(kind).expect("a kind");
        let mut members = serde_json::from_str(text).expect("an object");
        Secret::read(kind, &mut members, reach).map_err(|why| why.to_string())
    }

    #[test]
    fn each_kind_is_stored_and_read_back_and_shows_nothing() {
        let secrets = [
            ("ntfy", r#"{"topic": "geheim"}"#),
            (
                "ntfy",
                r#"{"topic": "geheim", "token": "tk_geheim", "server": "http://10.0.0.5:8080/geheim"}"#,
            ),
            ("telegram", r#"{"token": "123:geheim-_", "chat": -1001234567890}"#),
            (
                "telegram",
                r#"{"token": "123:geheim", "chat": "@geheim_1", "server": "http://localhost:8081"}"#,
            ),
            ("slack", r#"{"address": "https://hooks.slack.com/services/T/B/geheim"}"#),
            ("discord", r#"{"address": "https://discord.com/api/webhooks/1/geheim?thread_id=5"}"#),
            ("home_assistant", r#"{"address": "http://192.168.1.20:8123/api/webhook/geheim"}"#),
            (
                "webhook",
                r#"{"address": "https://example.org/geheim", "key": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}"#,
            ),
            ("email", r#"{"topic_arn": "arn:aws-cn:sns:cn-north-1:123456789012:geheim"}"#),
        ];
        let kinds: BTreeSet<&str> = secrets.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, CHANNEL_KINDS.iter().map(|kind| kind.name).collect());
        for (kind, text) in secrets {
            let secret = read(kind, text, Reach::Local).expect(text).expect("a secret");
            let stored = secret.to_stored();
            assert_eq!(Secret::from_stored(&stored), Ok(secret.clone()), "{text}");
            assert_eq!(secret.kind().name, kind);
            assert_eq!(format!("{secret:?} {secret}"), "Secret (secret)");
            assert!(stored.contains("geheim") || kind == "webhook");
        }
        assert_eq!(read("ntfy", "{}", Reach::Public), Ok(None));
    }

    #[test]
    fn stored_text_that_is_not_ours_is_refused() {
        for (text, why) in [
            ("", "secret: is not a JSON object"),
            ("5", "secret: is not a JSON object"),
            ("{}", "kind: is missing"),
            (r#"{"kind": "ntfy"}"#, "topic: is missing"),
            (r#"{"kind": "telegram"}"#, "token: is missing"),
            (r#"{"kind": "email"}"#, "topic_arn: is missing"),
            (r#"{"kind": "slack"}"#, "address: is missing"),
        ] {
            let refused = Secret::from_stored(text).expect_err(text).to_string();
            assert!(refused.starts_with(why), "{text}: {refused}");
        }
    }

    #[test]
    fn every_other_secret_is_refused_with_its_field_and_without_the_secret() {
        for case in cases(include_str!("refused/secrets.txt")) {
            let (kind, text) = case.given.split_once(' ').expect("a kind and its members");
            let refused = read(kind, text, Reach::Public).expect_err(text);
            assert!(refused.starts_with(case.answer()), "{case}: {refused}");
            assert!(!refused.contains("geheim"), "{refused}");
        }
    }
}
