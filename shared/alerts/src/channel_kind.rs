//! A service that takes messages, as one value. Knows none by name.

use std::fmt;

use outgoing::Request;

use crate::body::{Email, Post};
use crate::channel_member::{ChannelMember, SecretValues};

/// A service that takes messages.
pub struct ChannelKind {
    /// The name of the kind, as it is written.
    pub name: &'static str,
    /// Who answers, as a text names it.
    pub title: &'static str,
    /// The members of a channel beside those that every kind has. All of them are secret: no answer has them.
    pub members: &'static [ChannelMember],
    /// A channel of the kind, as the guide writes it.
    pub sample: &'static str,
    pub(crate) delivery: ChannelDelivery,
}

/// The way of a message to a service.
#[derive(Clone, Copy)]
pub(crate) enum ChannelDelivery {
    /// A request of ours.
    Http(fn(&Post<'_>, &SecretValues) -> Request),
    /// A publication to a topic of Amazon SNS, which a deployed server alone can make.
    Email(fn(&Post<'_>, &SecretValues) -> Email),
}

impl ChannelKind {
    /// Whether only a deployed server can send to it.
    pub(crate) const fn is_deployed_only(&self) -> bool {
        matches!(self.delivery, ChannelDelivery::Email(_))
    }
}

impl PartialEq for ChannelKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ChannelKind {}

impl fmt::Debug for ChannelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
