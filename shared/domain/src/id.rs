//! The ids of devices, rooms, homes, rules, channels, sources and tariffs, with one allow-list for all. Does not know
//! which ids exist.

use super::parsed_text::parsed_text;

/// Names of the table's partitions, which no device and no room may have, in any letter case.
///
/// Otherwise a device called `ROOM` would write its readings into the list of rooms.
pub const RESERVED_IDS: [&str; 3] = ["DEVICE", "ROOM", "TOKEN"];

/// The beginning of the sort key of every reading. No rule, channel, source or tariff may have this id, in any letter
/// case.
///
/// The sort keys of rules, channels, sources and tariffs begin with their ids, so the table's stream would take the
/// item of such an id for a reading.
pub const RESERVED_SORT_KEY: &str = "TS";

const MAX_LENGTH: usize = 128;

/// The reasons for which a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text is empty.
    #[error("is empty")]
    Empty,
    /// The text has more than 128 characters.
    #[error("is {0} characters long; at most 128 are allowed")]
    TooLong(usize),
    /// The text contains a character outside the allow-list.
    #[error("contains {0:?}; only letters, digits and - _ . : are allowed")]
    Character(char),
    /// The text is one of [`RESERVED_IDS`], or [`RESERVED_SORT_KEY`].
    #[error("{0:?} is a reserved name")]
    Reserved(String),
    /// The text is `.` or `..`, which clients remove from a URL's path (RFC 3986, 5.2.4).
    #[error("{0:?} cannot be part of a URL's path")]
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

fn check_of_sort_key(text: &str) -> Result<(), IdError> {
    check(text)?;
    if RESERVED_SORT_KEY.eq_ignore_ascii_case(text) {
        return Err(IdError::Reserved(text.to_owned()));
    }
    Ok(())
}

parsed_text! {
    /// The id of a device.
    ///
    /// 1 to 128 letters, digits, `-`, `_`, `.` or `:`; not one of [`RESERVED_IDS`] in any letter case, and
    /// neither `.` nor `..`. Such a text is safe in a key, in a URL path and in a log.
    DeviceId, check, IdError
}
parsed_text! {
    /// The id of a room, with the rules of a [`DeviceId`]. People see the room's name in the registry, so
    /// that the id can stay the same when the name changes.
    RoomId, check, IdError
}
parsed_text! {
    /// The id of a home, with the rules of a [`DeviceId`].
    HomeId, check, IdError
}
parsed_text! {
    /// The id of a rule of alerts, with the rules of a [`DeviceId`]; it is not [`RESERVED_SORT_KEY`] either.
    RuleId, check_of_sort_key, IdError
}
parsed_text! {
    /// The id of a channel that delivers alerts, with the rules of a [`RuleId`].
    ChannelId, check_of_sort_key, IdError
}
parsed_text! {
    /// The id of a polled source, with the rules of a [`RuleId`].
    PolledSourceId, check_of_sort_key, IdError
}
parsed_text! {
    /// The id of a tariff, with the rules of a [`RuleId`].
    TariffId, check_of_sort_key, IdError
}

impl DeviceId {
    /// Whether this device is `device` or a part of it. The id of a part begins with the device's id and a colon.
    pub fn is_part_of(&self, device: &Self) -> bool {
        let rest = self.as_str().strip_prefix(device.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    }

    /// Whether the device stands for a polled source; see [`PolledSourceId::device`].
    pub fn is_of_source(&self) -> bool {
        self.as_str().starts_with(SOURCE)
    }
}

/// The prefix of the devices that stand for polled sources.
const SOURCE: &str = "source:";

impl PolledSourceId {
    /// The device whose metric `failing` says whether the source fails.
    pub fn device(&self) -> Result<DeviceId, IdError> {
        format!("{SOURCE}{self}").parse()
    }
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
            assert_eq!(text.parse::<RoomId>(), Err(why.clone()));
            assert_eq!(text.parse::<RuleId>(), Err(why));
        }
        for text in ["TS", "ts"] {
            let why = IdError::Reserved(text.to_owned());
            assert_eq!(text.parse::<RuleId>(), Err(why.clone()));
            assert_eq!(text.parse::<ChannelId>(), Err(why.clone()));
            assert_eq!(text.parse::<PolledSourceId>(), Err(why));
            assert!(text.parse::<DeviceId>().is_ok(), "a device has readings under it");
        }
    }
}
