//! Domain to item and back: one codec for ingest, query and the stream. Uses neither the SDK nor events.

use std::collections::BTreeMap;

use chrono::TimeDelta;

use self::attribute::{
    ARRIVAL, CREATED, DEVICES, DIP, FIRST_SEEN, INTRODUCED_ROOMS, KIND, MAX_W, METRICS, MODULUS,
    NAME, NAMED, NAMED_ROOM, REVOKED, ROOM_AT, SCOPE, TAGS, UNIT,
};
use super::keys::{self, Key};
use domain::{
    Decimal, Device, DeviceId, Label, MetricInfo, MetricKind, MetricName, Place, Reading, Room,
    RoomId, Scope, Tags, Timestamp, Token,
};

/// An item's attributes by name.
pub type Item = BTreeMap<String, Attribute>;

/// The types of attributes that the table holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attribute {
    /// A string.
    S(String),
    /// A number, as text.
    N(String),
    /// A list.
    L(Vec<Attribute>),
    /// A map.
    M(Item),
    /// A set of strings, never empty.
    Ss(Vec<String>),
    /// A type that no item of ours has.
    Other,
}

/// The error of an item that is not what its key says.
#[derive(Debug, thiserror::Error)]
pub enum ItemError {
    /// An attribute that has to be there is not, or has another type.
    #[error("{0} is missing or has another type")]
    Missing(&'static str),
    /// The key is not one of the table's, or belongs to another kind of item.
    #[error("the key {0:?}, {1:?} is not that of such an item")]
    Key(String, String),
    /// An attribute whose content cannot be.
    #[error("{attribute} is not valid")]
    Invalid {
        /// Which.
        attribute: &'static str,
        /// Why.
        #[source]
        why: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// An item that cannot be what its key says.
#[derive(Debug, thiserror::Error)]
#[error("the item {} {}", domain::excerpt(pk), domain::excerpt(sk))]
pub struct UnreadableItem {
    /// Its partition key.
    pub pk: String,
    /// Its sort key.
    pub sk: String,
    /// Why.
    #[source]
    pub why: ItemError,
}

/// What one item of the table holds.
pub trait Decode: Sized {
    /// Reads the attributes of an item, in any order.
    fn decode(attributes: impl IntoIterator<Item = (String, Attribute)>)
    -> Result<Self, ItemError>;
}

/// Reads an item; the error names it.
pub fn read<T: Decode>(
    attributes: impl IntoIterator<Item = (String, Attribute)>,
) -> Result<T, UnreadableItem> {
    let (mut pk, mut sk) = (String::new(), String::new());
    let watched = attributes.into_iter().inspect(|(name, value)| match (name.as_str(), value) {
        (keys::PK, Attribute::S(text)) => pk.clone_from(text),
        (keys::SK, Attribute::S(text)) => sk.clone_from(text),
        _ => {}
    });
    T::decode(watched).map_err(|why| UnreadableItem { pk, sk, why })
}

/// How long readings stay after their retention is over: whatever reads all of a day, or sums it up,
/// finds it whole until its last reading has expired.
const EXPIRY_GRACE: TimeDelta = TimeDelta::days(3);

/// The attributes of readings and registry items, for those who write some of them.
#[expect(missing_docs, reason = "most are the fields of the same names")]
pub mod attribute {
    /// A mark: the sender of a reading named its room; it was not filled in.
    pub const NAMED: &str = "_named";
    /// The room that the sender of a reading named where a person had chosen another.
    pub const NAMED_ROOM: &str = "_named_room";
    /// What tells the arrival of a reading without a timestamp from all others.
    pub const ARRIVAL: &str = "_arrival";
    /// The rooms that a device introduced.
    pub const INTRODUCED_ROOMS: &str = "_rooms";
    pub const NAME: &str = "name";
    pub const ROOM_AT: &str = "room_at";
    pub const KIND: &str = "kind";
    pub const TAGS: &str = "tags";
    pub const METRICS: &str = "metrics";
    pub const FIRST_SEEN: &str = "first_seen";
    pub const UNIT: &str = "unit";
    pub const MODULUS: &str = "modulus";
    pub const MAX_W: &str = "max_w";
    pub const DIP: &str = "dip";
    pub const SCOPE: &str = "scope";
    pub const DEVICES: &str = "devices";
    pub const CREATED: &str = "created";
    pub const REVOKED: &str = "revoked";
}

/// The key attributes of an item.
#[must_use]
pub fn key(key: &Key) -> Item {
    [(keys::PK.to_owned(), Attribute::S(key.pk())), (keys::SK.to_owned(), Attribute::S(key.sk()))]
        .into()
}

/// The attributes of a reading, to be deleted some days after its `retention` is over.
///
/// They are handed out one by one, so that whoever stores them makes the only map of them; the iterator
/// says exactly how many they are, so that the map is made once.
pub fn from_reading(
    reading: &Reading,
    retention: Option<TimeDelta>,
) -> impl Iterator<Item = (&str, Attribute)> {
    let text = |text: &str| Attribute::S(text.to_owned());
    let room = |id: &RoomId| text(id.as_str());
    let named = match &reading.named_room {
        Some(_) if reading.named_room == reading.room => Some((NAMED, mark())),
        other => other.as_ref().map(|other| (NAMED_ROOM, room(other))),
    };
    let expiry = retention.map(|retention| (keys::TTL, expiry(reading.at, retention)));
    let number = |value: &Decimal| Attribute::N(value.as_str().to_owned());
    let metrics = reading.metrics().iter();
    [
        (keys::PK, text(reading.device.as_str())),
        (keys::SK, Attribute::S(keys::reading_sk(reading.at))),
    ]
    .into_iter()
    .chain(reading.room.as_ref().map(|id| (keys::ROOM, room(id))))
    .chain(named)
    .chain(expiry)
    .chain(metrics.map(move |(name, value)| (name.as_str(), number(value))))
}

/// The attributes of a reading that arrived without a timestamp; `arrival` tells it from all others.
pub fn from_arrival<'a>(
    reading: &'a Reading,
    arrival: &str,
    retention: Option<TimeDelta>,
) -> impl Iterator<Item = (&'a str, Attribute)> {
    from_reading(reading, retention).chain([(ARRIVAL, Attribute::S(arrival.to_owned()))])
}

/// What tells the arrival of a stored reading from all others; none where it had a timestamp.
#[derive(Debug)]
pub struct Arrival(pub Option<String>);

impl Decode for Arrival {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        let found = attributes.into_iter().find(|(name, _)| name == ARRIVAL);
        Ok(Self(found.and_then(|(_, value)| string(value))))
    }
}

/// The attribute by which `DynamoDB` deletes a reading: epoch seconds.
#[must_use]
pub fn expiry(at: Timestamp, retention: TimeDelta) -> Attribute {
    let expires = at.saturating_add(retention + EXPIRY_GRACE);
    Attribute::N((expires.as_millis() / 1_000).to_string())
}

impl Decode for Reading {
    /// Attributes that are no metrics are skipped: other writers may add their own.
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        let (mut pk, mut sk, mut room, mut named_room) = (None, None, None, None);
        let (mut is_named, mut metrics) = (false, BTreeMap::new());
        for (name, value) in attributes {
            match (name.as_str(), value) {
                (keys::PK, value) => pk = string(value),
                (keys::SK, value) => sk = string(value),
                (keys::ROOM, value) => room = Some(to_room_id(value, keys::ROOM)?),
                (NAMED_ROOM, value) => named_room = Some(to_room_id(value, NAMED_ROOM)?),
                (NAMED, _) => is_named = true,
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
        Ok(reading)
    }
}

/// The value of an attribute that says something by being there: as short as any.
#[must_use]
pub fn mark() -> Attribute {
    Attribute::N("1".to_owned())
}

fn to_room_id(value: Attribute, attribute: &'static str) -> Result<RoomId, ItemError> {
    let id = string(value).ok_or(ItemError::Missing(attribute))?;
    RoomId::try_from(id).map_err(invalid(attribute))
}

/// The item of a device.
#[must_use]
pub fn from_device(device: &Device) -> Item {
    let mut item = key(&Key::Device(device.id.clone()));
    put(&mut item, NAME, device.name.clone().map(String::from));
    for (name, value) in from_place(&device.place) {
        item.extend(value.map(|value| (name.to_owned(), value)));
    }
    put(&mut item, KIND, device.kind.clone().map(String::from));
    put(&mut item, FIRST_SEEN, Some(device.first_seen.to_string()));
    if !device.tags.is_empty() {
        item.insert(TAGS.to_owned(), tags(&device.tags));
    }
    if !device.introduced_rooms.is_empty() {
        let rooms = device.introduced_rooms.iter().map(RoomId::to_string).collect();
        item.insert(INTRODUCED_ROOMS.to_owned(), Attribute::Ss(rooms));
    }
    // Always there, even empty: a nested attribute can be set only where its parent exists.
    let metrics = device.metrics.iter().map(|(name, info)| (name.to_string(), metric(info)));
    item.insert(METRICS.to_owned(), Attribute::M(metrics.collect()));
    item
}

/// When a room was learned, of one that a person chose: newer than any reading.
const CHOSEN: Timestamp = Timestamp::MAX;

/// The attributes of a device's place: its room, and the timestamp of the reading that named it. What
/// has no value is absent from the item.
#[must_use]
pub fn from_place(place: &Place) -> [(&'static str, Option<Attribute>); 2] {
    let (room, at) = match place {
        Place::Unknown => (None, None),
        Place::Learned(room, at) => (Some(room), Some(*at)),
        Place::Chosen(room) => (Some(room), Some(CHOSEN)),
    };
    let text = |text: String| Attribute::S(text);
    [
        (keys::ROOM, room.map(|room| text(room.to_string()))),
        (ROOM_AT, at.map(|at| text(at.to_string()))),
    ]
}

fn to_place(item: &mut Item) -> Result<Place, ItemError> {
    match (parsed(item, keys::ROOM)?, timestamp(item, ROOM_AT)?) {
        (None, None) => Ok(Place::Unknown),
        (Some(room), Some(CHOSEN)) => Ok(Place::Chosen(room)),
        (Some(room), Some(at)) => Ok(Place::Learned(room, at)),
        (Some(_), None) => Err(ItemError::Missing(ROOM_AT)),
        (None, Some(_)) => Err(ItemError::Missing(keys::ROOM)),
    }
}

impl Decode for Device {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        to_device(attributes.into_iter().collect())
    }
}

fn to_device(mut item: Item) -> Result<Device, ItemError> {
    let Key::Device(id) = parse_key(&item)? else { return Err(other_kind(&item)) };
    let first_seen = timestamp(&mut item, FIRST_SEEN)?.ok_or(ItemError::Missing(FIRST_SEEN))?;
    let metrics = match item.remove(METRICS) {
        Some(Attribute::M(metrics)) => metrics,
        _ => Item::new(),
    };
    let tags = match item.remove(TAGS) {
        Some(Attribute::L(tags)) => tags,
        _ => Vec::new(),
    };
    let introduced_rooms = match item.remove(INTRODUCED_ROOMS) {
        Some(Attribute::Ss(rooms)) => rooms,
        _ => Vec::new(),
    };
    Ok(Device {
        id,
        name: parsed(&mut item, NAME)?,
        place: to_place(&mut item)?,
        kind: parsed(&mut item, KIND)?,
        tags: tags
            .into_iter()
            .filter_map(string)
            .map(|tag| tag.try_into().map_err(invalid(TAGS)))
            .collect::<Result<Vec<Label>, _>>()?
            .try_into()
            .map_err(invalid(TAGS))?,
        metrics: metrics
            .into_iter()
            .filter_map(|(name, info)| Some((MetricName::try_from(name).ok()?, info)))
            .map(|(name, info)| to_metric(&name, info).map(|info| (name, info)))
            .collect::<Result<_, _>>()?,
        first_seen,
        introduced_rooms: introduced_rooms
            .into_iter()
            .map(RoomId::try_from)
            .collect::<Result<_, _>>()
            .map_err(invalid(INTRODUCED_ROOMS))?,
    })
}

/// The item of a room.
#[must_use]
pub fn from_room(room: &Room) -> Item {
    let mut item = key(&Key::Room(room.id.clone()));
    put(&mut item, NAME, room.name.clone().map(String::from));
    put(&mut item, FIRST_SEEN, Some(room.first_seen.to_string()));
    item
}

impl Decode for Room {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        to_room(attributes.into_iter().collect())
    }
}

fn to_room(mut item: Item) -> Result<Room, ItemError> {
    let Key::Room(id) = parse_key(&item)? else { return Err(other_kind(&item)) };
    let first_seen = timestamp(&mut item, FIRST_SEEN)?.ok_or(ItemError::Missing(FIRST_SEEN))?;
    Ok(Room { id, name: parsed(&mut item, NAME)?, first_seen })
}

/// The item of an access token.
#[must_use]
pub fn from_token(token: &Token) -> Item {
    let mut item = key(&Key::Token(token.hash));
    let scope = match &token.scope {
        Scope::Write(devices) => {
            let devices = devices.iter().map(|id| Attribute::S(id.to_string())).collect();
            item.insert(DEVICES.to_owned(), Attribute::L(devices));
            "write"
        }
        Scope::Read => "read",
        Scope::Admin => "admin",
    };
    put(&mut item, SCOPE, Some(scope.to_owned()));
    put(&mut item, NAME, token.name.clone().map(String::from));
    put(&mut item, CREATED, Some(token.created.to_string()));
    put(&mut item, REVOKED, token.revoked.map(|at| at.to_string()));
    item
}

impl Decode for Token {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        to_token(attributes.into_iter().collect())
    }
}

fn to_token(mut item: Item) -> Result<Token, ItemError> {
    let Key::Token(hash) = parse_key(&item)? else { return Err(other_kind(&item)) };
    let scope = match text(&mut item, SCOPE).as_deref() {
        Some("write") => {
            let Some(Attribute::L(devices)) = item.remove(DEVICES) else {
                return Err(ItemError::Missing(DEVICES));
            };
            let ids = devices.into_iter().filter_map(string).map(DeviceId::try_from);
            Scope::Write(ids.collect::<Result<_, _>>().map_err(invalid(DEVICES))?)
        }
        Some("read") => Scope::Read,
        Some("admin") => Scope::Admin,
        _ => return Err(ItemError::Missing(SCOPE)),
    };
    let created = timestamp(&mut item, CREATED)?.ok_or(ItemError::Missing(CREATED))?;
    let revoked = timestamp(&mut item, REVOKED)?;
    Ok(Token { hash, scope, name: parsed(&mut item, NAME)?, created, revoked })
}

/// The attribute of a device's labels.
#[must_use]
pub fn tags(tags: &Tags) -> Attribute {
    Attribute::L(tags.iter().map(|tag| Attribute::S(tag.to_string())).collect())
}

/// The attribute of what is known of a metric.
#[must_use]
pub fn metric(info: &MetricInfo) -> Attribute {
    let mut item = Item::new();
    put(&mut item, KIND, Some(info.kind.as_str().to_owned()));
    put(&mut item, UNIT, info.unit.clone().map(String::from));
    for (name, value) in [(MODULUS, &info.modulus), (MAX_W, &info.max_w), (DIP, &info.dip)] {
        if let Some(value) = value {
            item.insert(name.to_owned(), Attribute::N(value.to_string()));
        }
    }
    Attribute::M(item)
}

fn to_metric(name: &MetricName, info: Attribute) -> Result<MetricInfo, ItemError> {
    let Attribute::M(mut item) = info else { return Err(ItemError::Missing(METRICS)) };
    let kind = text(&mut item, KIND).and_then(|kind| MetricKind::parse(&kind));
    let mut number = |attribute| match item.remove(attribute) {
        Some(Attribute::N(value)) => Decimal::parse(&value).map(Some).map_err(invalid(attribute)),
        _ => Ok(None),
    };
    let (modulus, max_w, dip) = (number(MODULUS)?, number(MAX_W)?, number(DIP)?);
    let kind = kind.unwrap_or_else(|| name.well_known().0);
    Ok(MetricInfo { kind, unit: parsed(&mut item, UNIT)?, modulus, max_w, dip })
}

fn parse_key(item: &Item) -> Result<Key, ItemError> {
    let (pk, sk) = key_parts(item)?;
    Key::parse(pk, sk).ok_or_else(|| foreign_key(pk, sk))
}

fn key_parts(item: &Item) -> Result<(&str, &str), ItemError> {
    let part = |name| match item.get(name) {
        Some(Attribute::S(text)) => Ok(text.as_str()),
        _ => Err(ItemError::Missing(name)),
    };
    Ok((part(keys::PK)?, part(keys::SK)?))
}

/// The error of an item whose key is that of another kind of item.
fn other_kind(item: &Item) -> ItemError {
    key_parts(item).map_or_else(|missing| missing, |(pk, sk)| foreign_key(pk, sk))
}

fn foreign_key(pk: &str, sk: &str) -> ItemError {
    ItemError::Key(domain::excerpt(pk), domain::excerpt(sk))
}

fn put(item: &mut Item, name: &str, text: Option<String>) {
    if let Some(text) = text {
        item.insert(name.to_owned(), Attribute::S(text));
    }
}

fn string(attribute: Attribute) -> Option<String> {
    match attribute {
        Attribute::S(text) => Some(text),
        _ => None,
    }
}

fn text(item: &mut Item, name: &str) -> Option<String> {
    item.remove(name).and_then(string)
}

fn parsed<T: TryFrom<String>>(item: &mut Item, name: &'static str) -> Result<Option<T>, ItemError>
where
    T::Error: std::error::Error + Send + Sync + 'static,
{
    text(item, name).map(T::try_from).transpose().map_err(invalid(name))
}

fn timestamp(item: &mut Item, name: &'static str) -> Result<Option<Timestamp>, ItemError> {
    let parse = |text: String| Timestamp::parse(&text, Timestamp::MIN).map_err(invalid(name));
    text(item, name).map(parse).transpose()
}

fn invalid<E: std::error::Error + Send + Sync + 'static>(
    attribute: &'static str,
) -> impl Fn(E) -> ItemError {
    move |why| ItemError::Invalid { attribute, why: Box::new(why) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{DeviceObservation, TokenHash};

    fn label(text: &str) -> Label {
        text.parse().expect("a label")
    }

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

    #[test]
    fn registry_items_come_back() {
        let mut device = DeviceObservation::of(&reading())
            .new_device("remo-e".parse().expect("an id"), |_| false);
        assert_eq!(device.introduced_rooms.len(), 1);
        assert_eq!(Device::decode(from_device(&device)).expect("a device"), device);
        device.name = Some(label("Smart meter"));
        device.kind = Some(label("power"));
        device.tags = vec![label("meter"), label("B-route")].try_into().expect("tags");
        device.place = Place::Chosen("hall".parse().expect("an id"));
        let info = device.metrics.values_mut().next().expect("one");
        info.modulus = Some(Decimal::parse("100000").expect("a number"));
        assert_eq!(Device::decode(from_device(&device)).expect("a device"), device);

        let room = Room {
            id: "chiyoda1-a".parse().expect("an id"),
            name: Some(label("Bedroom")),
            first_seen: device.first_seen,
        };
        assert_eq!(Room::decode(from_room(&room)).expect("a room"), room);
    }

    #[test]
    fn tokens_come_back_and_broken_ones_permit_nothing() {
        let devices = ["a", "b"].map(|id| id.parse().expect("an id")).into();
        for scope in [Scope::Write(devices), Scope::Read, Scope::Admin] {
            let token = Token {
                hash: TokenHash::of("secret"),
                scope,
                name: Some(label("kitchen plug")),
                created: reading().at,
                revoked: Some(reading().at),
            };
            let item = from_token(&token);
            assert_eq!(Token::decode(item.clone()).expect("a token"), token);
            for missing in ["scope", "created"] {
                let mut item = item.clone();
                item.remove(missing);
                assert!(Token::decode(item).is_err(), "{missing}");
            }
        }
    }
}
