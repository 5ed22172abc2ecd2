//! The table's names and keys: the only place that writes or reads `#`. Knows no attributes but keys.

use domain::{DeviceId, RoomId, TimeRange, Timestamp, TokenHash};

/// The partition key attribute.
pub const PK: &str = "pk";
/// The sort key attribute.
pub const SK: &str = "sk";
/// The attribute by which `DynamoDB` deletes items: epoch seconds.
pub const TTL: &str = "exp";
/// The attribute that names the room of a reading or a device.
pub const ROOM: &str = "room";
/// What the sort key of every reading begins with. The stream's filter and the index by room tell
/// readings from everything else by it.
pub const READING_PREFIX: &str = "TS#";
/// The partition of the registry's devices.
pub const DEVICES: &str = "DEVICE";
/// The partition of the registry's rooms.
pub const ROOMS: &str = "ROOM";
/// The partition of the access tokens.
pub const TOKENS: &str = "TOKEN";

/// The key of one item.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// A reading.
    Reading(DeviceId, Timestamp),
    /// A device of the registry.
    Device(DeviceId),
    /// A room of the registry.
    Room(RoomId),
    /// An access token.
    Token(TokenHash),
}

impl Key {
    /// The partition key.
    #[must_use]
    pub fn pk(&self) -> String {
        match self {
            Self::Reading(device, _) => device.to_string(),
            Self::Device(_) => DEVICES.to_owned(),
            Self::Room(_) => ROOMS.to_owned(),
            Self::Token(_) => TOKENS.to_owned(),
        }
    }

    /// The sort key. Among the readings of a device its order is the order of their timestamps, because
    /// every timestamp is written with the same width.
    #[must_use]
    pub fn sk(&self) -> String {
        match self {
            Self::Reading(_, at) => reading_sk(*at),
            Self::Device(id) => id.to_string(),
            Self::Room(id) => id.to_string(),
            Self::Token(hash) => hash.to_string(),
        }
    }

    /// Reads back what [`pk`](Self::pk) and [`sk`](Self::sk) write; nothing else is a key.
    #[must_use]
    pub fn parse(pk: &str, sk: &str) -> Option<Self> {
        match pk {
            DEVICES => sk.parse().ok().map(Self::Device),
            ROOMS => sk.parse().ok().map(Self::Room),
            TOKENS => sk.parse().ok().map(Self::Token),
            device => {
                let text = sk.strip_prefix(READING_PREFIX)?;
                let at = Timestamp::parse(text, Timestamp::MIN).ok()?;
                // One timestamp has one key: any other writing of it would sort elsewhere.
                (at.to_string() == text).then_some(Self::Reading(device.parse().ok()?, at))
            }
        }
    }
}

/// The sort key of a reading.
#[must_use]
pub fn reading_sk(at: Timestamp) -> String {
    format!("{READING_PREFIX}{at}")
}

/// Bounds for `BETWEEN`: all readings of a range lie between them, and no others. Neither bound is itself
/// a reading's key.
///
/// `DynamoDB` Local ends a query of an index at the first of several entries at the last key of a
/// BETWEEN, and refuses to go on from there.
#[must_use]
pub fn reading_range(range: TimeRange) -> (String, String) {
    let first = reading_sk(range.from());
    let below = first.strip_suffix('Z').unwrap_or(&first).to_owned();
    (below, reading_sk(range.last()) + "~")
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::RESERVED_IDS;
    use proptest::prelude::*;

    fn id() -> impl Strategy<Value = String> {
        "[A-Za-z0-9._:-]{1,128}".prop_filter("reserved", |id| id.parse::<DeviceId>().is_ok())
    }

    fn timestamp() -> impl Strategy<Value = Timestamp> {
        (Timestamp::MIN.as_millis()..=Timestamp::MAX.as_millis())
            .prop_map(|millis| Timestamp::from_millis(millis).expect("in range"))
    }

    fn key() -> impl Strategy<Value = Key> {
        prop_oneof![
            (id(), timestamp()).prop_map(|(id, at)| Key::Reading(id.parse().expect("an id"), at)),
            id().prop_map(|id| Key::Device(id.parse().expect("an id"))),
            id().prop_map(|id| Key::Room(id.parse().expect("an id"))),
            id().prop_map(|secret| Key::Token(TokenHash::of(&secret))),
        ]
    }

    proptest! {
        #[test]
        fn the_order_of_keys_is_the_order_of_timestamps(a in timestamp(), b in timestamp()) {
            prop_assert_eq!(reading_sk(a).cmp(&reading_sk(b)), a.cmp(&b));
        }

        #[test]
        fn keys_of_different_things_never_collide(a in key(), b in key()) {
            prop_assert_eq!((a.pk(), a.sk()) == (b.pk(), b.sk()), a == b);
        }

        #[test]
        fn a_key_is_read_back_as_it_was_written(key in key()) {
            prop_assert_eq!(Key::parse(&key.pk(), &key.sk()), Some(key));
        }

        #[test]
        fn a_range_holds_exactly_its_keys(a in timestamp(), b in timestamp(), t in timestamp()) {
            prop_assume!(a < b);
            let range = TimeRange::new(a, b).expect("a < b");
            let (first, last) = reading_range(range);
            prop_assert_eq!((first..=last).contains(&reading_sk(t)), range.contains(t));
        }

        #[test]
        fn no_id_of_a_device_lies_among_the_readings_of_a_room(id in id(), a in timestamp(), b in timestamp()) {
            prop_assume!(a < b);
            let (first, last) = reading_range(TimeRange::new(a, b).expect("a < b"));
            prop_assert!(!(first..=last).contains(&id));
        }
    }

    #[test]
    fn partitions_of_their_own_are_reserved_ids() {
        for partition in [DEVICES, ROOMS, TOKENS] {
            assert!(RESERVED_IDS.contains(&partition));
        }
    }

    #[test]
    fn foreign_keys_are_none() {
        for (pk, sk) in [
            ("d", "TS#2026-01-11T16:00:00Z"),
            ("d", "TS#yesterday"),
            ("d", "TS#1768147200"),
            ("d", "M15#2026-01-11T16:00:00.000Z"),
            ("a#b", "TS#2026-01-11T16:00:00.000Z"),
            ("DEVICE", "TS#2026-01-11T16:00:00.000Z"),
            ("device", "x"),
        ] {
            assert_eq!(Key::parse(pk, sk), None, "{pk} {sk}");
        }
    }
}
