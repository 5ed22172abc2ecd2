//! A channel as people write it: the members of `PUT /channels/{id}`. The secret of a channel has a type of its own.

use domain::Label;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::channel_kind::ChannelKind;
use crate::quiet::QuietHours;
use crate::secret::Secret;
use domain::MemberError;
use outgoing::Reach;

/// Members that an answer about a channel adds. A request may repeat them, so that an answer can be sent back
/// unchanged.
const OF_ANSWERS: [&str; 5] = ["id", "failing_since", "next", "waiting", "waiting_since"];

/// Where messages go, without the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// The service that receives the messages.
    pub kind: &'static ChannelKind,
    /// The name of the channel.
    pub name: Label,
    /// The hours in which messages wait, in the system's time zone.
    pub quiet_hours: Option<QuietHours>,
}

/// A channel as people write it.
#[derive(Deserialize)]
pub struct ChannelBody {
    kind: Option<String>,
    name: Label,
    quiet_hours: Option<QuietHours>,
    /// The secret members, which depend on the kind.
    #[serde(flatten)]
    members: Map<String, Value>,
}

impl ChannelBody {
    /// The channel, and its secret if the body has a secret member.
    ///
    /// A body without a secret member leaves the stored secret as it is, because a person who renames a channel cannot
    /// read the secret to send it again. If no secret of this kind is stored, the caller answers [`Secret::missing`].
    pub fn channel(self, reach: Reach) -> Result<(Channel, Option<Secret>), MemberError> {
        let Self { kind, name, quiet_hours, mut members } = self;
        let kind = ChannelKind::named(kind.as_deref())?;
        if kind.is_deployed_only() && reach == Reach::Local {
            let why = "which Amazon SNS sends for a deployed server; use another kind here";
            return Err(MemberError::of("kind", format!("is {}, {why}", kind.name)));
        }

        let secret = Secret::read(kind, &mut members, reach)?;
        if let Some(unknown) = members.keys().find(|name| !OF_ANSWERS.contains(&name.as_str())) {
            let own: Vec<_> = kind.members.iter().map(|member| member.name).collect();
            let why = format!(
                "is not known or not for this kind of channel; known are kind, name, quiet_hours and, for {}, {}",
                kind.name,
                own.join(", ")
            );
            return Err(MemberError::of(unknown, why));
        }

        Ok((Channel { kind, name, quiet_hours }, secret))
    }
}

impl Channel {
    /// Reads a channel, as [`ChannelBody::channel`] does.
    pub fn from_json(value: Value, reach: Reach) -> Result<(Self, Option<Secret>), MemberError> {
        let body: ChannelBody =
            serde_json::from_value(value).map_err(|why| MemberError::of("channel", why))?;
        body.channel(reach)
    }

    /// The channel as [`from_json`](Self::from_json) reads it, without its secret.
    pub fn to_json(&self) -> Value {
        let mut members = json!({ "kind": self.kind.name, "name": self.name });
        if let Some(quiet_hours) = self.quiet_hours {
            members["quiet_hours"] = quiet_hours.to_string().into();
        }
        members
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, reach: Reach) -> Result<(Channel, Option<Secret>), String> {
        let value = serde_json::from_str(text).expect("JSON");
        Channel::from_json(value, reach).map_err(|why| why.to_string())
    }

    #[test]
    fn the_public_part_is_read_back_and_has_no_secret() {
        for (text, reach) in [
            (r#"{"kind": "ntfy", "name": "Phone", "topic": "geheim"}"#, Reach::Public),
            (
                r#"{"kind": "home_assistant", "name": "Home", "quiet_hours": "22:00-07:00",
                    "address": "http://homeassistant.local:8123/api/webhook/geheim"}"#,
                Reach::Local,
            ),
            (
                r#"{"kind": "email", "name": "Mail", "topic_arn": "arn:aws:sns:eu-central-1:123456789012:geheim"}"#,
                Reach::Public,
            ),
        ] {
            let (channel, secret) = read(text, reach).expect(text);
            assert!(secret.is_some());
            let public = channel.to_json();
            assert!(!public.to_string().contains("geheim"), "{public}");
            assert_eq!(Channel::from_json(public, reach), Ok((channel, None)));
        }
    }

    #[test]
    fn every_other_channel_is_refused_with_its_field_and_what_is_allowed() {
        for (text, why) in [
            (r#"{"name": "a"}"#, "kind: is missing; expected one of ntfy, telegram, slack"),
            (r#"{"kind": "sms", "name": "a"}"#, "kind: is \"sms\"; expected one of ntfy"),
            (r#"{"kind": "email", "name": "a"}"#, "kind: is email, which Amazon SNS sends"),
            (
                r#"{"kind": "slack", "name": "a", "topic": "b"}"#,
                "topic: is not known or not for this kind of channel; known are kind, name, quiet_hours \
                 and, for slack, address",
            ),
        ] {
            let refused = read(text, Reach::Local).expect_err(text);
            assert!(refused.starts_with(why), "{text}: {refused}");
        }
    }
}
