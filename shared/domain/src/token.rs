//! Access tokens as they are stored, and what they permit. Never contains a secret.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::{DeviceId, HomeId, Label, RoomId, Timestamp};

/// The SHA-256 of a token's secret. The secret itself is not stored.
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
    pub fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }

    /// The first 12 hexadecimal digits, by which people tell tokens apart.
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
    /// To look at some rooms and homes, and at nothing else.
    View(ViewScope),
    /// To do everything: read, store readings of any device, edit.
    Admin,
}

impl Scope {
    /// The scope as one word.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Write(_) => "write",
            Self::Read => "read",
            Self::View(_) => "view",
            Self::Admin => "admin",
        }
    }
}

/// The rooms and homes that a token shows. A home that is listed does not make its rooms visible.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ViewScope {
    /// The rooms.
    pub rooms: BTreeSet<RoomId>,
    /// The homes.
    pub homes: BTreeSet<HomeId>,
}

/// The largest number of rooms and homes that one token shows.
pub const MAX_VIEWED: usize = 100;

/// The reasons for which rooms and homes are not a [`ViewScope`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewScopeError {
    /// There is no room and no home.
    #[error("a view token needs at least one room or home")]
    Empty,
    /// There are more than [`MAX_VIEWED`] rooms and homes.
    #[error("a view token shows at most {MAX_VIEWED} rooms and homes, and these are {0}")]
    TooMany(usize),
}

impl ViewScope {
    /// The scope of some rooms and homes.
    pub fn new(rooms: BTreeSet<RoomId>, homes: BTreeSet<HomeId>) -> Result<Self, ViewScopeError> {
        match rooms.len() + homes.len() {
            0 => Err(ViewScopeError::Empty),
            1..=MAX_VIEWED => Ok(Self { rooms, homes }),
            number => Err(ViewScopeError::TooMany(number)),
        }
    }
}

/// The rooms and homes, for people: `the rooms a, b and the homes c`.
impl fmt::Display for ViewScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The text names at most this many rooms, and this many homes. The others are counted.
        const MAX_NAMED: usize = 5;
        let named = |what: &str, ids: Vec<&str>| {
            let more = ids.len().saturating_sub(MAX_NAMED);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            let plural = if ids.len() == 1 { "" } else { "s" };
            let shown = ids[..ids.len().min(MAX_NAMED)].join(", ");
            (!ids.is_empty()).then(|| format!("the {what}{plural} {shown}{more}"))
        };
        let rooms = named("room", self.rooms.iter().map(RoomId::as_str).collect());
        let homes = named("home", self.homes.iter().map(HomeId::as_str).collect());
        f.write_str(&[rooms, homes].into_iter().flatten().collect::<Vec<_>>().join(" and "))
    }
}

/// The permissions of a write token, and the tags by which line protocol sent with the token is divided into devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteScope {
    /// The devices whose readings the token stores.
    pub devices: WritableDevices,
    /// The tags of line protocol that identify a device. If the list is empty, all tags identify a device.
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
    /// This device and its parts. Every id made from line protocol begins with the device's id.
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
    /// The device, if there is exactly one.
    pub fn only(&self) -> Option<&DeviceId> {
        match self {
            Self::Only(devices) if devices.len() == 1 => devices.first(),
            _ => None,
        }
    }

    /// Whether the token may store readings of a device.
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
    /// The hash of the token's secret.
    pub hash: TokenHash,
    /// The permissions.
    pub scope: Scope,
    /// The purpose, in a person's words.
    pub name: Option<Label>,
    /// The time of creation.
    pub created: Timestamp,
    /// The time of revocation. A revoked token is refused like an unknown token.
    pub revoked: Option<Timestamp>,
    /// The first instant at which the token is refused; `None` if the token never expires.
    pub expires: Option<Timestamp>,
    /// The admin token with which the API made this token. `None` if the command line made it, or if the API required
    /// no token.
    pub issued_by: Option<TokenHash>,
}

impl Token {
    /// Whether the token has expired at `now`.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|at| now >= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::given::room;

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
    fn a_view_names_some_rooms_and_homes() {
        let rooms = |number: usize| (0..number).map(|n| room(&format!("r{n}")));
        let homes = || BTreeSet::from(["villa".parse().expect("an id")]);
        let view = |number: usize, homes| ViewScope::new(rooms(number).collect(), homes);
        assert_eq!(view(0, BTreeSet::new()), Err(ViewScopeError::Empty));
        assert_eq!(view(MAX_VIEWED, homes()), Err(ViewScopeError::TooMany(MAX_VIEWED + 1)));
        let said = |number, homes| view(number, homes).expect("a scope").to_string();
        assert_eq!(said(0, homes()), "the home villa");
        assert_eq!(said(2, homes()), "the rooms r0, r1 and the home villa");
        assert_eq!(said(7, BTreeSet::new()), "the rooms r0, r1, r2, r3, r4 and 2 more");
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
