//! The secret part of a channel: addresses, tokens and keys. Written by whoever may, shown to nobody.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::address::Reach;
use crate::channel_kind::ChannelKind;
use crate::members::{MemberError, Members, string, wrong};
use crate::url::Url;

const NTFY: &str = "https://ntfy.sh";
const TELEGRAM: &str = "https://api.telegram.org";
/// How Standard Webhooks writes keys, and how many bytes they have.
const KEY_PREFIX: &str = "whsec_";
const KEY_LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;

/// What a channel's messages are sent to and with.
///
/// The address of a webhook is a password, so all of it is secret. `Debug` and `Display` show nothing of it, and no
/// error repeats it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub(crate) Destination);

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    Ntfy { server: Url, topic: String, token: Option<String> },
    Telegram { server: Url, token: String, chat: String },
    Slack { address: Url },
    Discord { address: Url },
    HomeAssistant { address: Url },
    Webhook { address: Url, key: Vec<u8> },
    Email { topic_arn: String },
}

impl Secret {
    /// The kind of channel that it is for.
    #[must_use]
    pub const fn kind(&self) -> ChannelKind {
        match self.0 {
            Destination::Ntfy { .. } => ChannelKind::Ntfy,
            Destination::Telegram { .. } => ChannelKind::Telegram,
            Destination::Slack { .. } => ChannelKind::Slack,
            Destination::Discord { .. } => ChannelKind::Discord,
            Destination::HomeAssistant { .. } => ChannelKind::HomeAssistant,
            Destination::Webhook { .. } => ChannelKind::Webhook,
            Destination::Email { .. } => ChannelKind::Email,
        }
    }

    /// The topic of Amazon SNS, of e-mail.
    #[must_use]
    pub fn topic_arn(&self) -> Option<&str> {
        match &self.0 {
            Destination::Email { topic_arn } => Some(topic_arn),
            _ => None,
        }
    }

    /// The error of a channel that has no secret of its kind.
    #[must_use]
    pub fn missing(kind: ChannelKind) -> MemberError {
        let needed = match kind {
            ChannelKind::Ntfy => "topic",
            ChannelKind::Telegram => "token",
            ChannelKind::Email => "topic_arn",
            _ => "address",
        };
        wrong(needed, "is missing")
    }

    /// The text that is stored where nobody but the sender reads it.
    #[must_use]
    pub fn to_stored(&self) -> String {
        let mut members = Map::new();
        let mut set = |field: &str, value: &str| members.insert(field.to_owned(), value.into());
        set("kind", self.kind().as_str());
        match &self.0 {
            Destination::Ntfy { server, topic, token } => {
                set("server", &server.text());
                set("topic", topic);
                token.as_ref().map(|token| set("token", token));
            }
            Destination::Telegram { server, token, chat } => {
                set("server", &server.text());
                set("token", token);
                set("chat", chat);
            }
            Destination::Slack { address }
            | Destination::Discord { address }
            | Destination::HomeAssistant { address } => {
                set("address", &address.text());
            }
            Destination::Webhook { address, key } => {
                set("address", &address.text());
                set("key", &format!("{KEY_PREFIX}{}", STANDARD.encode(key)));
            }
            Destination::Email { topic_arn } => {
                set("topic_arn", topic_arn);
            }
        }
        Value::Object(members).to_string()
    }

    /// Reads what was stored. Where it leads to is checked when it is sent to.
    pub fn from_stored(text: &str) -> Result<Self, MemberError> {
        let value = serde_json::from_str(text).map_err(|_| wrong("secret", "is not JSON"))?;
        let mut members = Members::of(value, "secret")?;
        let kind = ChannelKind::read(&mut members)?;
        Self::read(kind, &mut members, Reach::Local)?.ok_or_else(|| Self::missing(kind))
    }

    /// The members of a kind's secret.
    pub(crate) const fn members(kind: ChannelKind) -> &'static [&'static str] {
        match kind {
            ChannelKind::Ntfy => &["topic", "server", "token"],
            ChannelKind::Telegram => &["token", "chat", "server"],
            ChannelKind::Slack | ChannelKind::Discord | ChannelKind::HomeAssistant => &["address"],
            ChannelKind::Webhook => &["address", "key"],
            ChannelKind::Email => &["topic_arn"],
        }
    }

    /// Reads the members of a kind's secret: all that it needs, or nothing where there is no member of it.
    pub(crate) fn read(
        kind: ChannelKind,
        members: &mut Members,
        reach: Reach,
    ) -> Result<Option<Self>, MemberError> {
        if !Self::members(kind).iter().any(|member| members.has(member)) {
            return Ok(None);
        }
        let address = |members: &mut Members| needed("address", url(members, "address", reach)?);
        let server = |members: &mut Members, default: &str| {
            let fixed = || Url::parse(default, Reach::Public).expect("a maker's address is valid");
            Ok(url(members, "server", reach)?.unwrap_or_else(fixed))
        };
        let destination = match kind {
            ChannelKind::Ntfy => {
                let topic = needed("topic", members.take("topic", topic)?)?;
                let token = members.take("token", |value| bearer(string(value)?))?;
                let server = server(members, NTFY)?;
                Destination::Ntfy { server, topic, token }
            }
            ChannelKind::Telegram => {
                let token = needed("token", members.take("token", bot_token)?)?;
                let chat = needed("chat", members.take("chat", chat)?)?;
                let server = server(members, TELEGRAM)?;
                Destination::Telegram { server, token, chat }
            }
            ChannelKind::Slack => Destination::Slack { address: address(members)? },
            ChannelKind::Discord => Destination::Discord { address: address(members)? },
            ChannelKind::HomeAssistant => Destination::HomeAssistant { address: address(members)? },
            ChannelKind::Webhook => {
                let address = address(members)?;
                let key = needed("key", members.take("key", signing_key)?)?;
                Destination::Webhook { address, key }
            }
            ChannelKind::Email => {
                let topic_arn = needed("topic_arn", members.take("topic_arn", topic_arn)?)?;
                Destination::Email { topic_arn }
            }
        };
        Ok(Some(Self(destination)))
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

fn url(members: &mut Members, field: &str, reach: Reach) -> Result<Option<Url>, MemberError> {
    members.take(field, |value| Url::parse(string(value)?, reach).map_err(|why| why.to_string()))
}

fn needed<T>(field: &str, value: Option<T>) -> Result<T, MemberError> {
    value.ok_or_else(|| wrong(field, "is missing"))
}

/// <https://docs.ntfy.sh/publish/>: the server refuses other topics.
fn topic(value: &Value) -> Result<String, String> {
    let text = string(value)?;
    let is_topic = (1..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    let why = "must be 1 to 64 letters, digits, - and _, without the server's address";
    is_topic.then(|| text.to_owned()).ok_or_else(|| why.to_owned())
}

fn bearer(text: &str) -> Result<String, String> {
    let is_token = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    let why = "must be an access token like tk_..., without spaces";
    is_token.then(|| text.to_owned()).ok_or_else(|| why.to_owned())
}

/// <https://core.telegram.org/bots/api#authorizing-your-bot>.
fn bot_token(value: &Value) -> Result<String, String> {
    let text = string(value)?;
    let is_token = text.split_once(':').is_some_and(|(bot, rest)| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !bot.is_empty()
            && bot.bytes().all(|byte| byte.is_ascii_digit())
            && !rest.is_empty()
            && rest.bytes().all(is_plain)
    });
    let why = "must be the token that BotFather gives, like 123456:ABC-DEF";
    is_token.then(|| text.to_owned()).ok_or_else(|| why.to_owned())
}

/// A number, or the name of a public channel.
fn chat(value: &Value) -> Result<String, String> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        value => value.as_str().unwrap_or_default().to_owned(),
    };
    let is_chat = text.parse::<i64>().is_ok_and(|number| number != 0)
        || text.strip_prefix('@').is_some_and(|name| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        });
    let why = "must be the number of a chat like -1001234567890, or a public channel like @name";
    is_chat.then_some(text).ok_or_else(|| why.to_owned())
}

/// <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>: the key's form.
fn signing_key(value: &Value) -> Result<Vec<u8>, String> {
    let key = string(value)?.strip_prefix(KEY_PREFIX).and_then(|key| STANDARD.decode(key).ok());
    key.filter(|key| KEY_LENGTHS.contains(&key.len())).ok_or_else(|| {
        let (least, most) = (KEY_LENGTHS.start(), KEY_LENGTHS.end());
        format!(
            "must be {KEY_PREFIX} and {least} to {most} random bytes in base64; `openssl rand -base64 32` makes some"
        )
    })
}

/// <https://docs.aws.amazon.com/sns/latest/api/API_CreateTopic.html>.
fn topic_arn(value: &Value) -> Result<String, String> {
    let text = string(value)?;
    let parts: Vec<&str> = text.split(':').collect();
    let is_word = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let is_arn = match parts[..] {
        ["arn", partition, "sns", region, account, name] => {
            partition.starts_with("aws")
                && account.len() == 12
                && account.bytes().all(|byte| byte.is_ascii_digit())
                && (1..=256).contains(&name.len())
                && !region.is_empty()
                && [partition, region, name].into_iter().all(is_word)
        }
        _ => false,
    };
    let why = "must be the ARN of a topic like arn:aws:sns:eu-central-1:123456789012:alerts";
    is_arn.then(|| text.to_owned()).ok_or_else(|| why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::cases;

    fn read(kind: &str, text: &str, reach: Reach) -> Result<Option<Secret>, String> {
        let kind = ChannelKind::of(kind).expect("a kind");
        let value = serde_json::from_str(text).expect("JSON");
        let mut members = Members::of(value, "secret").expect("an object");
        Secret::read(kind, &mut members, reach).map_err(|why| why.to_string())
    }

    #[test]
    fn each_kind_is_stored_and_read_back_and_shows_nothing() {
        for (kind, text) in [
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
        ] {
            let secret = read(kind, text, Reach::Local).expect(text).expect("a secret");
            let stored = secret.to_stored();
            assert_eq!(Secret::from_stored(&stored), Ok(secret.clone()), "{text}");
            assert_eq!(secret.kind().as_str(), kind);
            assert_eq!(format!("{secret:?} {secret}"), "Secret (secret)");
            assert!(stored.contains("geheim") || kind == "webhook");
        }
        assert_eq!(read("ntfy", "{}", Reach::Public), Ok(None));
    }

    #[test]
    fn stored_text_that_is_not_ours_is_refused() {
        for (text, why) in [
            ("", "secret: is not JSON"),
            ("5", "secret: must be an object"),
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
