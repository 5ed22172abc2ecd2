//! Device and room ids: one allow-list for both. Does not know which ids exist.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Ids that name partitions of the table and therefore can be no device and no room, in any case.
///
/// A device called `ROOM` would write its readings into the room registry.
pub const RESERVED_IDS: [&str; 3] = ["DEVICE", "ROOM", "TOKEN"];

const MAX_LENGTH: usize = 128;

/// Why a text is no id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Nothing between the quotes.
    #[error("is empty")]
    Empty,
    /// More than 128 characters.
    #[error("is {0} characters long; at most 128 are allowed")]
    TooLong(usize),
    /// A character outside the allow-list.
    #[error("holds {0:?}; only letters, digits and - _ . : are allowed")]
    Character(char),
    /// A partition name of the table.
    #[error("{0:?} is a reserved name")]
    Reserved(String),
    /// `.` or `..`, which every client resolves away in a URL's path (RFC 3986, 5.2.4).
    #[error("{0:?} cannot be asked for in a URL")]
    DotSegment(String),
}

fn check(text: &str) -> Result<(), IdError> {
    let length = text.chars().count();
    match length {
        0 => return Err(IdError::Empty),
        1..=MAX_LENGTH => {}
        _ => return Err(IdError::TooLong(length)),
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if let Some(c) = text.chars().find(|c| !allowed(*c)) {
        return Err(IdError::Character(c));
    }
    if RESERVED_IDS.iter().any(|reserved| reserved.eq_ignore_ascii_case(text)) {
        return Err(IdError::Reserved(text.to_owned()));
    }
    if matches!(text, "." | "..") {
        return Err(IdError::DotSegment(text.to_owned()));
    }
    Ok(())
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// 1 to 128 letters, digits, `-`, `_`, `.` or `:`, none of [`RESERVED_IDS`] in any letter
        /// case, and neither `.` nor `..`: such a text is safe in a key, in a URL path and in a log.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                check(text).map(|()| Self(text.to_owned()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                check(&text).map(|()| Self(text))
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id! {
    /// A device: whatever posts readings under one name.
    DeviceId
}
id! {
    /// A room: it should survive moving house; what people see is its name in the registry.
    RoomId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_ids_are_taken() {
        for id in ["remo-e", "chiyoda1-a", "A4:CF:12:00:00:01", "x", "devices", &"d".repeat(128)] {
            assert_eq!(id.parse::<DeviceId>().expect(id).as_str(), id);
        }
    }

    #[test]
    fn every_other_text_is_refused_with_its_reason() {
        let cases = [
            ("", IdError::Empty),
            (&*"d".repeat(129), IdError::TooLong(129)),
            (&*"d".repeat(2048), IdError::TooLong(2048)),
            ("a#b", IdError::Character('#')),
            ("a b", IdError::Character(' ')),
            ("a/b", IdError::Character('/')),
            ("plug🔌", IdError::Character('🔌')),
            ("a\0", IdError::Character('\0')),
            ("DEVICE", IdError::Reserved("DEVICE".into())),
            ("room", IdError::Reserved("room".into())),
            ("Token", IdError::Reserved("Token".into())),
            (".", IdError::DotSegment(".".into())),
            ("..", IdError::DotSegment("..".into())),
        ];
        for (text, why) in cases {
            assert_eq!(text.parse::<DeviceId>(), Err(why.clone()));
            assert_eq!(text.parse::<RoomId>(), Err(why));
        }
    }
}
