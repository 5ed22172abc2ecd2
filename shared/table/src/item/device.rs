//! The item of a device: its place, tags, metrics and settings. Has nothing of its readings.

use std::collections::BTreeMap;

use super::attribute::{
    ATTRIBUTES, BEHIND, BEHIND_IT, CHANGES, CYCLE, DELETED, DESCRIBED, DEVICE_VERSION, ENDED,
    EXCHANGES, FIELDS, FIRST_SEEN, FOUND, HOLD, HOURLY_UNTIL, IN_ROOM_MEANS, INTRODUCED_BY,
    INTRODUCED_ROOMS, KIND, MAX_W, METRICS, MODULUS, NAME, NET, ROLE, ROOM_AT, SETTINGS, SOURCE,
    STAY, TAGS, TOLERANCE, UNIT, VERDICTS,
};
use super::fields::{invalid, other_kind, parse_key};
use super::form::{
    At, ByPresence, ByText, Damage, Form, List, Listed, Maybe, Members, Millis, Number, OrDefault,
    Readable, Said, Text, TextSet, Whole, element, list, listed, members, part, text,
};
use super::kind::{group, kind, take};
use super::{Attribute, Attributes, FromItem, Group, Item, ItemError, NamedAttribute, with_key};
use crate::keys::{self, Key};
use crate::layout::Layout;
use chrono::TimeDelta;
use domain::{
    AttributeValue, AttributeValues, DeletedDevice, Deletion, Device, DeviceError, DeviceParts,
    Exchange, Extent, FoldSettings, MetricInfo, MetricKind, MetricName, Place, Role, Source,
    SourceField, Tags, Timestamp, Verdict,
};

/// The item of a device, in its partition.
pub fn from_device(device: &Device, layout: Layout) -> Item {
    with_key(&layout.device_key(device.id()), device.parts().attributes())
}

kind! { DeviceParts = Device(id, _) {
    first_seen: At = FIRST_SEEN,
    name: Maybe<Text> = NAME,
    place: Place,
    kind: Maybe<Text> = KIND,
    tags: OrDefault<Labels> = TAGS,
    attributes: OrDefault<Described> = ATTRIBUTES,
    metrics: Metrics = METRICS,
    source: OrDefault<Members> = SOURCE,
    introduced_rooms: TextSet = INTRODUCED_ROOMS,
    behind: Maybe<Text> = BEHIND,
    behind_it: TextSet = BEHIND_IT,
    in_room_means: Maybe<Said> = IN_ROOM_MEANS,
    fold_settings: FoldSettings,
    stay: Maybe<Members> = STAY,
    version: OrDefault<Whole> = DEVICE_VERSION,
} }

group! { Deletion {
    begun: At = DELETED,
    found: At = FOUND,
    ended: Maybe<At> = ENDED,
    settings: OrDefault<Whole> = SETTINGS,
} }

group! { Source {
    name: Maybe<Text> = NAME,
    introduced_by: Maybe<Text> = INTRODUCED_BY,
    tags: Readable<Text, Text> = TAGS,
    fields: Readable<Text, List> = FIELDS,
} }

group! { MetricInfo {
    kind: Word = KIND,
    unit: Maybe<Text> = UNIT,
    modulus: Maybe<Number> = MODULUS,
    max_w: Maybe<Number> = MAX_W,
    tolerance: Maybe<Number> = TOLERANCE,
    hold: Maybe<Millis> = HOLD,
    exchanges: OrDefault<ByText<At, List>> = EXCHANGES,
    verdicts: OrDefault<ByText<At, Word>> = VERDICTS,
    role: KnownWord = ROLE,
    is_net: ByPresence = NET,
    cycle: Maybe<Text> = CYCLE,
    in_room_means: Maybe<Said> = IN_ROOM_MEANS,
    hourly_until: Maybe<At> = HOURLY_UNTIL,
    is_described: ByPresence = DESCRIBED,
} }

list! { Exchange { old: Number, new: Number } }
list! { Extent { first: Millis, last: Millis } }
list! { SourceField { measurement: Text, field: Text } }

/// The fold settings of a device. A change that is missing or unreadable is read as a change of everything.
impl Attributes for FoldSettings {
    fn attributes(&self) -> Vec<NamedAttribute> {
        let is_default = *self == Self::default();
        let number = Whole::attribute(&self.number);
        let changes = part::<Readable<Text, List>, _>(&self.changes);
        vec![(SETTINGS, number.filter(|_| !is_default)), (CHANGES, changes.filter(|_| !is_default))]
    }
}

impl Group for FoldSettings {
    fn take(item: &mut Item) -> Result<Self, ItemError> {
        let number = take::<OrDefault<Whole>, _>(item, SETTINGS)?;
        let changes = take::<Readable<Text, List>, _>(item, CHANGES).unwrap_or_default();
        Ok(Self { number, changes })
    }
}

/// The time that is stored with a room that a person chose. It is later than the time of any reading.
const CHOSEN: Timestamp = Timestamp::MAX;

/// The device's room, and when a reading named it.
impl Attributes for Place {
    fn attributes(&self) -> Vec<NamedAttribute> {
        let (room, at) = match self {
            Self::Unknown => (None, None),
            Self::Learned(room, at) => (Some(room), Some(*at)),
            Self::Chosen(room) => (Some(room), Some(CHOSEN)),
        };
        vec![(keys::ROOM, room.map(Attribute::text)), (ROOM_AT, part::<Maybe<At>, _>(&at))]
    }
}

impl Group for Place {
    fn take(item: &mut Item) -> Result<Self, ItemError> {
        let room = take::<Maybe<Text>, _>(item, keys::ROOM)?;
        let at = take::<Maybe<At>, _>(item, ROOM_AT)?;
        match (room, at) {
            (None, None) => Ok(Self::Unknown),
            (Some(room), Some(CHOSEN)) => Ok(Self::Chosen(room)),
            (Some(room), Some(at)) => Ok(Self::Learned(room, at)),
            (Some(_), None) => Err(ItemError::Missing(ROOM_AT)),
            (None, Some(_)) => Err(ItemError::Missing(keys::ROOM)),
        }
    }
}

/// The attributes that are removed when a device's deletion begins. The version and the number of the fold settings
/// stay, because a later device with the same id must not use the same numbers again.
pub fn description(device: &Device) -> impl Iterator<Item = &'static str> {
    let names = device.parts().attributes().into_iter().map(|(name, _)| name);
    names.filter(|name| ![SETTINGS, DEVICE_VERSION].contains(name))
}

/// How long a deleted device is remembered. The stream keeps records of its readings for a day, which is shorter.
const TOMBSTONE_DAYS: i64 = 7;

/// When the item of a deleted device expires.
pub fn tombstone_expires(ended: Timestamp) -> Timestamp {
    ended.saturating_add(TimeDelta::days(TOMBSTONE_DAYS))
}

/// An item of the registry's devices, deleted or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceItem {
    /// The device.
    Device(Box<Device>),
    /// The deletion mark.
    Deleted(DeletedDevice),
}

impl DeviceItem {
    /// The deletion, if the device is deleted.
    pub fn deletion(self) -> Option<Deletion> {
        match self {
            Self::Device(_) => None,
            Self::Deleted(device) => Some(device.deletion),
        }
    }
}

impl FromItem for DeviceItem {
    fn from_item(item: Item) -> Result<Self, ItemError> {
        match Device::from_item(item) {
            Ok(device) => Ok(Self::Device(Box::new(device))),
            Err(ItemError::Deleted(device)) => Ok(Self::Deleted(*device)),
            Err(error) => Err(error),
        }
    }
}

impl FromItem for Device {
    fn from_item(mut item: Item) -> Result<Self, ItemError> {
        if item.contains_key(DELETED) {
            let Key::Device(id, _) = parse_key(&item)? else { return Err(other_kind(&item)) };
            let deletion = Deletion::take(&mut item)?;
            return Err(ItemError::Deleted(Box::new(DeletedDevice { id, deletion })));
        }

        let mut parts = DeviceParts::from_item(item)?;
        // If a damaged item says that a device is behind itself, the device is read as behind no meter.
        parts.behind = parts.behind.filter(|meter| *meter != parts.id);
        parts.behind_it.remove(&parts.id);
        Self::new(parts).map_err(|why| {
            let attribute = match why {
                DeviceError::BehindItself => BEHIND,
                DeviceError::TooManyRooms(_) => INTRODUCED_ROOMS,
                DeviceError::TooManyBehind(_) => BEHIND_IT,
            };
            invalid(attribute)(why)
        })
    }
}

/// The tags of a device.
pub(crate) struct Labels;

impl Form<Tags> for Labels {
    fn attribute(tags: &Tags) -> Option<Attribute> {
        Some(listed::<Text, _>(&**tags))
    }

    fn value(attribute: Option<Attribute>) -> Result<Tags, Damage> {
        let labels: Vec<_> = Listed::<Text>::value(attribute)?;
        labels.try_into().map_err(Damage::of)
    }
}

/// The attributes that people give a device. Each has a name and a list of texts and numbers.
pub(crate) type Described = ByText<Text, TextsAndNumbers>;

pub(crate) struct TextsAndNumbers;

impl Form<AttributeValues> for TextsAndNumbers {
    fn attribute(values: &AttributeValues) -> Option<Attribute> {
        let value = |value: &AttributeValue| match value {
            AttributeValue::Text(text) => Attribute::text(text),
            AttributeValue::Number(number) => Attribute::number(number),
        };
        Some(Attribute::L(values.iter().map(value).collect()))
    }

    fn value(attribute: Option<Attribute>) -> Result<AttributeValues, Damage> {
        let Some(Attribute::L(list)) = attribute else { return Err(Damage::Missing) };
        let value = |value: Attribute| match value {
            Attribute::N(_) => element::<Number, _>(value).map(AttributeValue::Number),
            text => element::<Text, _>(text).map(AttributeValue::Text),
        };
        let values: Vec<AttributeValue> = list.into_iter().map(value).collect::<Result<_, _>>()?;
        values.try_into().map_err(Damage::of)
    }
}

/// A device's metrics by name. An empty map is stored too, because DynamoDB sets a member only in an existing map.
pub(crate) struct Metrics;

impl Form<BTreeMap<MetricName, MetricInfo>> for Metrics {
    fn attribute(metrics: &BTreeMap<MetricName, MetricInfo>) -> Option<Attribute> {
        part::<ByText<Text, Members>, _>(metrics)
    }

    /// Skips metrics whose names are no longer valid. If the kind of a metric is unknown, it is taken from the name.
    fn value(attribute: Option<Attribute>) -> Result<BTreeMap<MetricName, MetricInfo>, Damage> {
        let metric = |(name, info): (String, Attribute)| {
            let name = MetricName::try_from(name).ok()?;
            Some(to_metric(&name, info).map(|info| (name, info)))
        };
        members(attribute).unwrap_or_default().into_iter().filter_map(metric).collect()
    }
}

fn to_metric(name: &MetricName, info: Attribute) -> Result<MetricInfo, Damage> {
    let mut members = members(Some(info))?;
    let kind: Result<MetricKind, Damage> = Word::value(members.get(KIND).cloned());
    if kind.is_err() {
        let (kind, _) = name.well_known();
        members.extend(Word::attribute(&kind).map(|kind| (KIND.to_owned(), kind)));
    }
    MetricInfo::take(&mut members).map_err(Damage::Inner)
}

/// A word of a fixed list, such as the kind of a metric.
pub(crate) struct Word;

/// An optional word of a fixed list. An unknown word, which a later version may have added, is read as absent.
pub(crate) struct KnownWord;

macro_rules! words {
    ($($type:ty),+) => { $(
        impl Form<$type> for Word {
            fn attribute(word: &$type) -> Option<Attribute> {
                Some(Attribute::S(word.as_str().to_owned()))
            }

            fn value(attribute: Option<Attribute>) -> Result<$type, Damage> {
                <$type>::parse(&text(attribute)?).ok_or(Damage::Missing)
            }
        }
    )+ };
}

words! { MetricKind, Role, Verdict }

impl<T> Form<Option<T>> for KnownWord
where
    Word: Form<T>,
{
    fn attribute(word: &Option<T>) -> Option<Attribute> {
        word.as_ref().and_then(Word::attribute)
    }

    fn value(attribute: Option<Attribute>) -> Result<Option<T>, Damage> {
        Ok(Word::value(attribute).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Decode as _;
    use domain::{Decimal, DeviceObservation, Reading};

    fn device() -> Device {
        let metrics = [("t".parse().expect("a name"), Decimal::parse("1").expect("a number"))];
        let reading =
            Reading::new("d".parse().expect("an id"), Timestamp::MIN, None, metrics.into());
        DeviceObservation::of(&reading.expect("a reading"))
            .new_device("d".parse().expect("an id"), |_| false)
    }

    #[test]
    fn of_a_deleted_device_key_version_and_settings_number_stay() {
        let fold_settings = FoldSettings { number: 7, changes: [(7, Extent::ALL)].into() };
        let device = device().changed(|parts| {
            parts.version = 3;
            parts.fold_settings = fold_settings;
        });
        let device = device.expect("a device");
        let mut tombstone = from_device(&device, Layout::default());
        tombstone.retain(|name, _| !description(&device).any(|lost| lost == name));
        let names: Vec<&str> = tombstone.keys().map(String::as_str).collect();
        assert_eq!(names, [DEVICE_VERSION, keys::PK, SETTINGS, keys::SK]);
    }

    #[test]
    fn a_device_behind_itself_is_behind_nothing_and_stays_readable() {
        let mut item = from_device(&device(), Layout::default());
        item.insert(BEHIND.to_owned(), Attribute::S("d".to_owned()));
        item.insert(BEHIND_IT.to_owned(), Attribute::Ss(vec!["d".to_owned()]));
        assert_eq!(Device::decode(item).expect("a device"), device());
    }

    #[test]
    fn a_metric_of_a_name_or_a_kind_that_is_not_known_leaves_the_device_readable() {
        let mut item = from_device(&device(), Layout::default());
        let Some(Attribute::M(metrics)) = item.get_mut(METRICS) else { panic!("metrics") };
        metrics.insert("No name".to_owned(), Attribute::M(Item::new()));
        let kind = Attribute::S("of a later version".to_owned());
        metrics.insert("t".to_owned(), Attribute::M([(KIND.to_owned(), kind)].into()));
        let read = Device::decode(item).expect("a device");
        assert_eq!(read.metrics().keys().map(MetricName::as_str).collect::<Vec<_>>(), ["t"]);
    }
}
