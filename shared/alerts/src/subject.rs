//! What a rule is judged on: a device or a room. Knows no state.

use std::fmt;
use std::str::FromStr;

use domain::{DeviceId, IdError, RoomId, excerpt};
use serde::{Deserialize, Deserializer};

const DEVICE: &str = "device";
const ROOM: &str = "room";

/// The subject of a state: a rule on several devices has a state for each of them.
///
/// As text, a subject is `device:` or `room:` followed by the id. A device and a room may have the same id. An id may
/// contain a colon, so the first colon ends the kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AlertSubject {
    /// A device.
    Device(DeviceId),
    /// A room, for a rule about its mean.
    Room(RoomId),
}

/// Why a text is not a subject.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AlertSubjectError {
    /// The text does not begin with `device:` or `room:`.
    #[error("{0:?} is neither device:<id> nor room:<id>")]
    Kind(String),
    /// The text after the kind is not a valid id.
    #[error(transparent)]
    Id(#[from] IdError),
}

impl FromStr for AlertSubject {
    type Err = AlertSubjectError;

    fn from_str(text: &str) -> Result<Self, AlertSubjectError> {
        match text.split_once(':') {
            Some((DEVICE, id)) => Ok(Self::Device(id.parse()?)),
            Some((ROOM, id)) => Ok(Self::Room(id.parse()?)),
            _ => Err(AlertSubjectError::Kind(excerpt(text))),
        }
    }
}

impl<'de> Deserialize<'de> for AlertSubject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for AlertSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(id) => write!(f, "{DEVICE}:{id}"),
            Self::Room(id) => write!(f, "{ROOM}:{id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given::{device, room};

    #[test]
    fn a_subject_is_read_back_and_taken_for_no_other() {
        let ids = ["hall", "device:hall", "room:hall", ":", "a:b"];
        let devices = ids.map(|id| AlertSubject::Device(device(id)));
        let rooms = ids.map(|id| AlertSubject::Room(room(id)));
        let all: Vec<AlertSubject> = devices.into_iter().chain(rooms).collect();
        for (n, subject) in all.iter().enumerate() {
            let text = subject.to_string();
            assert_eq!(text.parse().as_ref(), Ok(subject));
            assert!(all[..n].iter().all(|other| other.to_string() != text), "{text}");
        }
        for (text, why) in [
            ("hall", "\"hall\" is neither device:<id> nor room:<id>"),
            ("Device:hall", "\"Device:hall\" is neither device:<id> nor room:<id>"),
            ("device:", "is empty"),
            ("room:a#b", "contains '#'; only letters, digits and - _ . : are allowed"),
        ] {
            assert_eq!(text.parse::<AlertSubject>().expect_err(text).to_string(), why);
        }
    }
}
