//! The members of a kind of channel and their secret values. Knows no kind.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use domain::MemberError;
use outgoing::{Reach, Request, Url};

/// A member of a kind of channel.
pub struct ChannelMember {
    /// The name of the member.
    pub name: &'static str,
    /// The description of the member for people.
    pub about: &'static str,
    /// The form of the value.
    pub form: MemberForm,
    /// Whether the member may be left out.
    pub need: Need,
}

/// The form of a member's value.
pub enum MemberForm {
    /// An HTTP address.
    Address,
    /// A text, with its check, and the words for a person whose text does not pass.
    Text(fn(&str) -> bool, &'static str),
    /// A text or a number, with a check and words as for `Text`.
    TextOrNumber(fn(&str) -> bool, &'static str),
    /// A text that alone gives access, so it is hidden while a person types it. It has a check and words as for `Text`.
    Password(fn(&str) -> bool, &'static str),
}

/// Whether a member may be left out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The member is required.
    Always,
    /// The member may be left out.
    Optional,
    /// The member may be left out; then this address is used.
    Default(&'static str),
}

/// The values of a channel's members, such as its address. Required members are always there.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SecretValues(BTreeMap<&'static str, SecretValue>);

#[derive(Clone, PartialEq, Eq)]
enum SecretValue {
    Address(Url),
    Text(String),
}

impl ChannelMember {
    /// A member for the address to which messages go.
    pub(crate) const fn address(about: &'static str) -> Self {
        Self { name: "address", about, form: MemberForm::Address, need: Need::Always }
    }

    /// A member for the server to which messages go; without the member, the maker's server.
    pub(crate) const fn server(about: &'static str, makers: &'static str) -> Self {
        Self { name: "server", about, form: MemberForm::Address, need: Need::Default(makers) }
    }

    fn read(&self, value: &Value, reach: Reach) -> Result<SecretValue, String> {
        let (is_valid, expected) = match self.form {
            MemberForm::Address => {
                let address = Url::parse(string(value)?, reach).map_err(|why| why.to_string())?;
                return Ok(SecretValue::Address(address));
            }
            MemberForm::Text(is_valid, expected)
            | MemberForm::TextOrNumber(is_valid, expected)
            | MemberForm::Password(is_valid, expected) => (is_valid, expected),
        };
        let text = match (&self.form, value) {
            (MemberForm::TextOrNumber(..), Value::Number(number)) => number.to_string(),
            _ => string(value)?.to_owned(),
        };
        is_valid(&text).then_some(SecretValue::Text(text)).ok_or_else(|| expected.to_owned())
    }
}

impl SecretValues {
    /// Reads the members of a kind from the body of a channel. A missing required member is an error.
    pub(crate) fn read(
        of_kind: &'static [ChannelMember],
        members: &mut Map<String, Value>,
        reach: Reach,
    ) -> Result<Self, MemberError> {
        let mut values = BTreeMap::new();
        for member in of_kind {
            let sent = members.remove(member.name).filter(|value| !value.is_null());
            let sent = sent.map(|value| member.read(&value, reach)).transpose();
            let sent = sent.map_err(|why| MemberError::of(member.name, why))?;
            let value = match (sent, member.need) {
                (Some(value), _) => value,
                (None, Need::Optional) => continue,
                (None, Need::Always) => return Err(MemberError::of(member.name, "is missing")),
                (None, Need::Default(address)) => {
                    let address = Url::parse(address, Reach::Public);
                    SecretValue::Address(address.expect("a maker's address is valid"))
                }
            };
            values.insert(member.name, value);
        }

        Ok(Self(values))
    }

    /// The stored form: each member's name with its value as text.
    pub(crate) fn to_texts(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.0.iter().map(|(name, value)| match value {
            SecretValue::Address(address) => (*name, address.text()),
            SecretValue::Text(text) => (*name, text.clone()),
        })
    }

    /// The text of an optional member.
    pub(crate) fn find(&self, name: &str) -> Option<&str> {
        match self.0.get(name)? {
            SecretValue::Text(text) => Some(text),
            SecretValue::Address(_) => None,
        }
    }

    /// The text of a required member.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.find(name).expect("a kind names its own members")
    }

    /// The address in a required member.
    pub(crate) fn address(&self, name: &str) -> &Url {
        match self.0.get(name) {
            Some(SecretValue::Address(address)) => address,
            _ => panic!("a kind names its own addresses"),
        }
    }

    /// The request that delivers `post`. Its address comes from the member `field`.
    pub(crate) fn post(
        &self,
        maker: &'static str,
        field: &'static str,
        url: Url,
        body: String,
    ) -> Request {
        Request::post(maker, field, url, body).with_secrets(self.texts())
    }

    /// All values except addresses.
    fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.keys().filter_map(|name| self.find(name))
    }
}

fn string(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| "must be a string".to_owned())
}

/// Whether a byte may stand in a name: a letter, a digit, - or _.
pub(crate) const fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}
