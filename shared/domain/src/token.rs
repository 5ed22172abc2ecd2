//! Access tokens as they are stored, and what they permit. Never contains a secret.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::{DeviceId, Label, Timestamp};

/// The SHA-256 of a token's secret, which is all that is stored of it.
///
/// The secret has 256 random bits, so no salt and no slow hash is needed: there is nothing to guess.
#[derive(Debug, Clone, Copy, Eq, PartialOrd, Ord)]
pub struct TokenHash([u8; 32]);

/// Compares in constant time.
impl PartialEq for TokenHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Hash for TokenHash {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// The text is not a SHA-256 in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is not 64 hexadecimal digits")]
pub struct TokenHashError;

impl TokenHash {
    /// The hash of the secret that a client sends.
    #[must_use]
    pub fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }

    /// The first 12 hexadecimal digits, by which people tell tokens apart.
    #[must_use]
    pub fn short(&self) -> String {
        self.to_string().chars().take(12).collect()
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for TokenHash {
    type Err = TokenHashError;

    fn from_str(text: &str) -> Result<Self, TokenHashError> {
        let mut bytes = [0; 32];
        let digits = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if text.len() != 64 || !digits {
            return Err(TokenHashError);
        }
        for (n, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * n..2 * n + 2], 16).map_err(|_| TokenHashError)?;
        }
        Ok(Self(bytes))
    }
}

/// The permissions of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// To store readings of some devices, and nothing else.
    Write(WriteScope),
    /// To read everything.
    Read,
    /// To do everything: read, store readings of any device, edit.
    Admin,
}

impl Scope {
    /// The scope in a word.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Write(_) => "write",
            Self::Read => "read",
            Self::Admin => "admin",
        }
    }
}

/// What a write token permits, and how its line protocol becomes devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteScope {
    /// The devices.
    pub devices: WritableDevices,
    /// The tags of line protocol that identify a device; without them all do.
    pub device_tags: Vec<String>,
    /// The tag of line protocol that names a room.
    pub room_tag: Option<String>,
}

/// The devices whose readings a token stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WritableDevices {
    /// Any device.
    Any,
    /// These devices and their parts.
    Only(BTreeSet<DeviceId>),
    /// The parts of this one, which the ids of line protocol begin with.
    Prefix(DeviceId),
}

impl From<BTreeSet<DeviceId>> for WriteScope {
    fn from(devices: BTreeSet<DeviceId>) -> Self {
        let devices = WritableDevices::Only(devices);
        Self { devices, device_tags: Vec::new(), room_tag: None }
    }
}

impl<const N: usize> From<[DeviceId; N]> for WriteScope {
    fn from(devices: [DeviceId; N]) -> Self {
        BTreeSet::from(devices).into()
    }
}

impl WritableDevices {
    /// Whether readings of a device may be stored.
    #[must_use]
    pub fn permit(&self, device: &DeviceId) -> bool {
        match self {
            Self::Any => true,
            Self::Only(devices) => devices.iter().any(|own| device.is_part_of(own)),
            Self::Prefix(own) => device.is_part_of(own),
        }
    }
}

/// A token as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The hash of its secret.
    pub hash: TokenHash,
    /// Its permissions.
    pub scope: Scope,
    /// The purpose, in a person's words.
    pub name: Option<Label>,
    /// The time of its creation.
    pub created: Timestamp,
    /// The time of its revocation; a revoked token is refused like an unknown one.
    pub revoked: Option<Timestamp>,
    /// The first instant at which it is refused; never without.
    pub expires: Option<Timestamp>,
}

impl Token {
    /// Whether it has expired by then.
    #[must_use]
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|at| now >= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_read_back_as_it_was_written() {
        let hash = TokenHash::of("secret");
        assert_eq!(hash.to_string().parse(), Ok(hash));
        assert_eq!(
            TokenHash::of("abc").to_string(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_ne!(hash, TokenHash::of("secret2"));
        for text in ["", "ba78", &"g".repeat(64), &"A".repeat(64), &"é".repeat(32)] {
            assert_eq!(text.parse::<TokenHash>(), Err(TokenHashError), "{text}");
        }
    }
    #[test]
    fn a_device_s_token_permits_its_parts_and_no_neighbour() {
        let id = |text: &str| text.parse::<DeviceId>().expect("an id");
        let (only, prefix) =
            (WritableDevices::Only([id("d")].into()), WritableDevices::Prefix(id("d")));
        for (device, permitted) in
            [("d", true), ("d:cpu0", true), ("d::mem", true), ("dd", false), ("e:d", false)]
        {
            assert_eq!(only.permit(&id(device)), permitted, "{device}");
            assert_eq!(prefix.permit(&id(device)), permitted, "{device}");
            assert!(WritableDevices::Any.permit(&id(device)));
        }
    }
}
