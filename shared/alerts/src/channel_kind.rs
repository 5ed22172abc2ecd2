//! A kind of channel: one value that describes a service for messages. Knows no service by name.

use std::fmt;

use outgoing::Request;

use crate::body::{Email, Post};
use crate::channel_member::{ChannelMember, SecretValues};

/// A service that takes messages.
pub struct ChannelKind {
    /// The name of the kind in requests and answers.
    pub name: &'static str,
    /// The name of the service in texts, such as errors.
    pub title: &'static str,
    /// The members that only this kind has. All are secret: no answer contains them.
    pub members: &'static [ChannelMember],
    /// A sample channel of the kind, as the guide shows it.
    pub sample: &'static str,
    pub(crate) delivery: ChannelDelivery,
}

/// How a message reaches the service.
#[derive(Clone, Copy)]
pub(crate) enum ChannelDelivery {
    /// An HTTP request that Roomtide sends.
    Http(fn(&Post<'_>, &SecretValues) -> Request),
    /// A publication to a topic of Amazon SNS. Only a deployed server can publish.
    Email(fn(&Post<'_>, &SecretValues) -> Email),
}

impl ChannelKind {
    /// Whether only a deployed server can send to such a channel.
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
