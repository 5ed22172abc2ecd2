//! The services that take messages, by name. Knows none of their forms.

use crate::members::{MemberError, Members, name_of, wrong};

/// A service that takes messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelKind {
    /// ntfy.sh or one's own server of ntfy.
    Ntfy,
    /// A bot of Telegram.
    Telegram,
    /// An incoming webhook of Slack.
    Slack,
    /// A webhook of Discord.
    Discord,
    /// An automation of Home Assistant that a webhook starts.
    HomeAssistant,
    /// Any server, by signed JSON.
    Webhook,
    /// E-mail by a topic of Amazon SNS.
    Email,
}

const KINDS: [(&str, ChannelKind); 7] = [
    ("ntfy", ChannelKind::Ntfy),
    ("telegram", ChannelKind::Telegram),
    ("slack", ChannelKind::Slack),
    ("discord", ChannelKind::Discord),
    ("home_assistant", ChannelKind::HomeAssistant),
    ("webhook", ChannelKind::Webhook),
    ("email", ChannelKind::Email),
];

impl ChannelKind {
    /// The kind as it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        name_of(&KINDS, &self)
    }

    /// The kind that is written so.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        KINDS.iter().find(|(name, _)| *name == text).map(|(_, kind)| *kind)
    }

    pub(crate) fn read(members: &mut Members) -> Result<Self, MemberError> {
        let names = KINDS.map(|(name, _)| name).join(", ");
        let kind = members.one_of("kind", &KINDS)?;
        kind.ok_or_else(|| wrong("kind", format!("is missing; expected one of {names}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_back() {
        for (name, kind) in KINDS {
            assert_eq!((kind.as_str(), ChannelKind::of(name)), (name, Some(kind)));
        }
        assert_eq!(ChannelKind::of("sms"), None);
    }
}
