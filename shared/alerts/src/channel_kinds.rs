//! The services that receive messages, one value each. The parser, the schema, the stored form, the page's form and the
//! guide's table are made from these values.

mod discord;
mod email;
mod ntfy;
mod slack;
mod telegram;
pub(crate) mod webhook;

use domain::excerpt;

use crate::channel_kind::ChannelKind;
use domain::MemberError;

/// All kinds, in the order in which texts list them.
pub const CHANNEL_KINDS: &[&ChannelKind] = &[
    &ntfy::NTFY,
    &telegram::TELEGRAM,
    &slack::SLACK,
    &discord::DISCORD,
    &webhook::HOME_ASSISTANT,
    &webhook::WEBHOOK,
    &email::EMAIL,
];

impl ChannelKind {
    /// The kind with this name.
    pub fn of(text: &str) -> Option<&'static Self> {
        CHANNEL_KINDS.iter().find(|kind| kind.name == text).copied()
    }

    /// The kind that the member `kind` of a channel names.
    pub(crate) fn named(text: Option<&str>) -> Result<&'static Self, MemberError> {
        text.and_then(Self::of).ok_or_else(|| {
            let is = text.map_or("missing".to_owned(), |text| format!("{:?}", excerpt(text)));
            let names: Vec<_> = CHANNEL_KINDS.iter().map(|kind| kind.name).collect();
            MemberError::of("kind", format!("is {is}; expected one of {}", names.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::channel::Channel;
    use crate::channel_member::Need;
    use crate::secret::Secret;
    use outgoing::Reach;

    #[test]
    fn a_name_is_read_back() {
        for kind in CHANNEL_KINDS {
            assert_eq!(ChannelKind::of(kind.name), Some(*kind));
        }
        assert_eq!(ChannelKind::of("sms"), None);
    }

    /// The guide's own lines are channels, and no kind shows or forgets a member of its own.
    #[test]
    fn each_sample_is_a_channel_whose_secret_is_stored_and_shown_nowhere() {
        for kind in CHANNEL_KINDS {
            let sample = serde_json::from_str(kind.sample).expect(kind.sample);
            let read = Channel::from_json(sample, Reach::Public).expect(kind.sample);
            let (channel, Some(secret)) = read else { panic!("{kind:?}") };
            assert_eq!(channel.kind, *kind);
            assert_eq!(format!("{secret:?} {secret}"), "Secret (secret)");

            let stored = secret.to_stored();
            assert_eq!(Secret::from_stored(&stored), Ok(secret));
            let stored: Value = serde_json::from_str(&stored).expect("JSON");
            for member in kind.members {
                assert_eq!(channel.to_json().get(member.name), None, "{kind:?}");
                let is_there = stored.get(member.name).is_some();
                assert!(is_there || member.need == Need::Optional, "{kind:?} {}", member.name);
            }

            let missing = Secret::missing(kind);
            let without = Secret::from_stored(&format!(r#"{{"kind": "{}"}}"#, kind.name));
            assert_eq!(without, Err(missing));
        }
    }
}
