//! The item of a reading, encoded attribute by attribute and decoded. Does not make a map when it encodes.

use std::collections::BTreeMap;

use chrono::TimeDelta;

use super::attribute::{ARRIVAL, METRICS, NAMED, NAMED_ROOM, SAID_ABOUT};
use super::fields::{foreign_key, invalid};
use super::form::{flag, text};
use super::{Attribute, Decode, ItemError};
use crate::keys::{self, Key};
use domain::{About, Decimal, MetricName, Reading, RoomId, Timestamp};

/// How long readings are kept after the end of their retention. So all readings of a day are still stored when the
/// retention of its last reading ends.
const EXPIRY_GRACE: TimeDelta = TimeDelta::days(3);

/// The attributes of a reading, which expires some days after its `retention` has ended.
///
/// They are an iterator, so that a batch of readings is written as JSON without a map for each reading.
pub fn from_reading(
    reading: &Reading,
    retention: Option<TimeDelta>,
) -> impl Iterator<Item = (&str, Attribute)> {
    let text = |text: &str| Attribute::S(text.to_owned());
    let room = |id: &RoomId| text(id.as_str());
    let named = match &reading.named_room {
        Some(_) if reading.named_room == reading.room => Some((NAMED, flag())),
        other => other.as_ref().map(|other| (NAMED_ROOM, room(other))),
    };
    let expiry = retention.map(|retention| (keys::TTL, expiry(reading.at, retention)));
    let number = |value: &Decimal| Attribute::N(value.as_str().into());
    let metrics = reading.metrics().iter();

    [
        (keys::PK, text(reading.device.as_str())),
        (keys::SK, Attribute::S(keys::reading_sk(reading.at))),
    ]
    .into_iter()
    .chain(reading.room.as_ref().map(|id| (keys::ROOM, room(id))))
    .chain(named)
    .chain(reading.about.as_ref().map(|about| (SAID_ABOUT, from_about(about))))
    .chain(expiry)
    .chain(metrics.map(move |(name, value)| (name.as_str(), number(value))))
}

/// The attribute with facts of its device that a sender gives with a reading.
pub fn from_about(about: &About) -> Attribute {
    Attribute::S(serde_json::to_string(about).expect("texts, numbers and flags"))
}

/// The attributes of a reading that arrived without a timestamp. `arrival` is unique to it.
pub fn from_arrival<'a>(
    reading: &'a Reading,
    arrival: &str,
    retention: Option<TimeDelta>,
) -> impl Iterator<Item = (&'a str, Attribute)> {
    from_reading(reading, retention).chain([(ARRIVAL, Attribute::S(arrival.to_owned()))])
}

/// The text that is unique to the arrival of a stored reading; `None` if the sender gave a timestamp.
#[derive(Debug)]
pub struct Arrival(pub Option<String>);

impl Decode for Arrival {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        let found = attributes.into_iter().find(|(name, _)| name == ARRIVAL);
        Ok(Self(found.and_then(|(_, value)| text(Some(value)).ok())))
    }
}

/// The attribute by which `DynamoDB` deletes a reading: epoch seconds.
pub fn expiry(at: Timestamp, retention: TimeDelta) -> Attribute {
    Attribute::number(expires(at, retention).as_millis() / 1_000)
}

/// When an item with this timestamp expires.
pub fn expires(at: Timestamp, retention: TimeDelta) -> Timestamp {
    at.saturating_add(retention + EXPIRY_GRACE)
}

impl Decode for Reading {
    /// Skips attributes that are not metrics, because other writers may add their own.
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        let (mut pk, mut sk, mut room, mut named_room) = (None, None, None, None);
        let (mut is_named, mut about, mut metrics) = (false, None, BTreeMap::new());
        for (name, value) in attributes {
            match (name.as_str(), value) {
                (keys::PK, value) => pk = text(Some(value)).ok(),
                (keys::SK, value) => sk = text(Some(value)).ok(),
                (keys::ROOM, value) => room = Some(to_room_id(value, keys::ROOM)?),
                (NAMED_ROOM, value) => named_room = Some(to_room_id(value, NAMED_ROOM)?),
                (NAMED, _) => is_named = true,
                // A later version may store more facts. If they cannot be read, the reading is read without them.
                (SAID_ABOUT, Attribute::S(text)) => about = serde_json::from_str(&text).ok(),
                (_, Attribute::N(value)) => {
                    if let (Ok(name), Ok(value)) =
                        (MetricName::try_from(name), Decimal::parse(&value))
                    {
                        metrics.insert(name, value);
                    }
                }
                _ => {}
            }
        }

        let pk = pk.ok_or(ItemError::Missing(keys::PK))?;
        let sk = sk.ok_or(ItemError::Missing(keys::SK))?;
        let Some(Key::Reading(device, at)) = Key::parse(&pk, &sk) else {
            return Err(foreign_key(&pk, &sk));
        };

        let named_room = named_room.or_else(|| room.clone().filter(|_| is_named));
        let mut reading = Self::stored(device, at, room, metrics).map_err(invalid(METRICS))?;
        reading.named_room = named_room;
        reading.about = about;
        Ok(reading)
    }
}

fn to_room_id(value: Attribute, attribute: &'static str) -> Result<RoomId, ItemError> {
    let id = text(Some(value)).map_err(|damage| damage.in_attribute(attribute))?;
    RoomId::try_from(id).map_err(invalid(attribute))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Item;

    fn reading() -> Reading {
        Reading::new(
            "remo-e".parse().expect("an id"),
            Timestamp::parse("2026-01-11T16:00:00Z", Timestamp::MIN).expect("a timestamp"),
            Some("chiyoda1-a".parse().expect("an id")),
            [("current_w".parse().expect("a name"), Decimal::parse("512").expect("a number"))]
                .into(),
        )
        .expect("a reading")
    }

    fn item_of(reading: &Reading, retention: Option<TimeDelta>) -> Item {
        from_reading(reading, retention).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    #[test]
    fn a_reading_is_one_item_and_comes_back() {
        let item = item_of(&reading(), Some(TimeDelta::days(1)));
        let expected: Item = [
            ("pk", Attribute::S("remo-e".into())),
            ("sk", Attribute::S("TS#2026-01-11T16:00:00.000Z".into())),
            ("room", Attribute::S("chiyoda1-a".into())),
            ("_named", Attribute::N("1".into())),
            ("current_w", Attribute::N("512".into())),
            // A day of retention, and three of grace.
            ("exp", Attribute::N("1768492800".into())),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        assert_eq!(item, expected);
        assert_eq!(Reading::decode(item).expect("a reading"), reading());
    }

    /// A metric of such a name would take the place of what the item says of itself.
    #[test]
    fn no_metric_is_called_like_an_attribute_of_a_reading() {
        let mut full = reading();
        let own = |reading: &Reading| -> Vec<String> {
            let of_item = from_arrival(reading, "arrival", Some(TimeDelta::days(1)));
            of_item.map(|(name, _)| name.to_owned()).filter(|name| name != "current_w").collect()
        };
        let mut names = own(&full);
        full.named_room = Some("study".parse().expect("an id"));
        names.extend(own(&full));
        for name in [keys::PK, keys::SK, keys::ROOM, keys::TTL, NAMED, NAMED_ROOM, ARRIVAL] {
            assert!(names.iter().any(|it| it == name), "{name}");
        }
        for name in names {
            assert!(name.parse::<MetricName>().is_err(), "{name}");
        }
    }

    #[test]
    fn a_filled_in_room_is_not_one_that_the_sender_named() {
        let mut filled = reading();
        filled.named_room = None;
        let item = item_of(&filled, None);
        assert!(item.contains_key("room") && !item.contains_key("_named"));
        assert_eq!(Reading::decode(item).expect("a reading"), filled);
        // Named, and a person has chosen another.
        filled.named_room = Some("study".parse().expect("an id"));
        assert_eq!(Reading::decode(item_of(&filled, None)).expect("a reading"), filled);
    }

    #[test]
    fn a_reading_that_merging_made_larger_than_any_request_is_a_reading() {
        let mut item = item_of(&reading(), None);
        for n in 0..300 {
            item.insert(format!("m{n}"), Attribute::N("1".into()));
        }
        assert_eq!(Reading::decode(item).expect("a reading").metrics().len(), 301);
    }

    #[test]
    fn attributes_of_others_are_passed_over() {
        let mut item = item_of(&reading(), None);
        item.insert("note".into(), Attribute::S("hello".into()));
        item.insert("Upper".into(), Attribute::N("1".into()));
        item.insert("_ver".into(), Attribute::N("1".into()));
        assert_eq!(Reading::decode(item).expect("a reading"), reading());
    }

    #[test]
    fn an_item_that_is_no_reading_says_why() {
        let broken = |change: &dyn Fn(&mut Item)| {
            let mut item = item_of(&reading(), None);
            change(&mut item);
            let error = Reading::decode(item).expect_err("broken");
            let why = std::error::Error::source(&error).map(ToString::to_string);
            format!("{error}: {}", why.unwrap_or_default())
        };
        let set = |name: &'static str, value: Attribute| {
            move |item: &mut Item| drop(item.insert(name.to_owned(), value.clone()))
        };
        assert!(broken(&set("pk", Attribute::S("DEVICE".into()))).contains("DEVICE"));
        assert!(broken(&set("sk", Attribute::S("TS#now".into()))).contains("TS#now"));
        assert!(broken(&set("room", Attribute::N("1".into()))).contains("room is missing or"));
        assert!(broken(&set("room", Attribute::S("a#b".into()))).contains("contains '#'"));
        assert!(broken(&|item| drop(item.remove("pk"))).contains("pk is missing"));
        assert!(broken(&|item| drop(item.remove("current_w"))).contains("no metric"));
    }
}
