//! A device's item, with its place, tags and metrics. Says nothing of its readings.

use std::collections::BTreeMap;

use super::attribute::{
    ATTRIBUTES, BEHIND, BEHIND_IT, CHANGES, CYCLE, DELETED, DESCRIBED, DEVICE_VERSION, ENDED,
    EXCHANGES, FIELDS, FIRST_SEEN, FOUND, HOLD, HOURLY_UNTIL, IN_ROOM_MEANS, INTRODUCED_BY,
    INTRODUCED_ROOMS, KIND, MAX_W, METRICS, MODULUS, NAME, NET, ROLE, ROOM_AT, SETTINGS, SOURCE,
    STAY, TAGS, TOLERANCE, UNIT, VERDICTS,
};
use super::fields::{
    invalid, other_kind, parse_key, parsed, put, said, string, text, timestamp, to_said,
    whole_number,
};
use super::stay::{newest_stay, to_newest_stay};
use super::{Attribute, Decode, Item, ItemError, mark, with_key};
use crate::keys::{self, Key};
use crate::layout::Layout;
use chrono::TimeDelta;
use domain::{
    AttributeName, AttributeValue, AttributeValues, Decimal, DeletedDevice, Deletion, Device,
    DeviceError, DeviceId, DeviceParts, Exchange, Extent, FoldSettings, Label, MetricInfo,
    MetricKind, MetricName, Place, Role, RoomId, Source, SourceField, Tags, Timestamp, Verdict,
};

/// The item of a device, in its partition.
#[must_use]
pub fn from_device(device: &Device, layout: Layout) -> Item {
    with_key(&layout.device_key(device.id()), device_attributes(device))
}

/// Every attribute that a device's item may have, under its key. What has no value is absent from the item.
fn device_attributes(device: &Device) -> Vec<(&'static str, Option<Attribute>)> {
    let text = |text: String| Attribute::S(text);
    let rooms = device.introduced_rooms().iter().map(RoomId::to_string).collect();
    let behind_it = device.behind_it().iter().map(DeviceId::to_string).collect();
    let metrics = device.metrics().iter().map(|(name, info)| (name.to_string(), metric(info)));
    let is_folded_as_ever = *device.fold_settings() == FoldSettings::default();
    let fold_settings = from_fold_settings(device.fold_settings());

    let mut attributes = vec![
        (NAME, device.name().cloned().map(String::from).map(text)),
        (KIND, device.kind().cloned().map(String::from).map(text)),
        (FIRST_SEEN, Some(text(device.first_seen().to_string()))),
        (TAGS, (!device.tags().is_empty()).then(|| tags(device.tags()))),
        (INTRODUCED_ROOMS, (!device.introduced_rooms().is_empty()).then_some(Attribute::Ss(rooms))),
        (ATTRIBUTES, (!device.attributes().is_empty()).then(|| attributes(device.attributes()))),
        // Always there, even empty: a nested attribute can be set only where its parent exists.
        (METRICS, Some(Attribute::M(metrics.collect()))),
        (SOURCE, (!device.source().is_empty()).then(|| source(device.source()))),
        (BEHIND, device.behind().map(|meter| text(meter.to_string()))),
        (BEHIND_IT, (!device.behind_it().is_empty()).then_some(Attribute::Ss(behind_it))),
        (IN_ROOM_MEANS, device.in_room_means().map(|is_in| said(&is_in))),
        (STAY, device.stay().map(newest_stay)),
        (DEVICE_VERSION, (device.version() > 0).then(|| Attribute::number(device.version()))),
    ];
    attributes.extend(from_place(device.place()));
    attributes
        .extend(fold_settings.map(|(name, value)| (name, (!is_folded_as_ever).then_some(value))));
    attributes
}

/// The attributes of the settings that rollups are folded with.
#[must_use]
pub fn from_fold_settings(settings: &FoldSettings) -> [(&'static str, Attribute); 2] {
    let millis = |at: Timestamp| Attribute::number(at.as_millis());
    let change = |(number, extent): (&u64, &Extent)| {
        (number.to_string(), Attribute::L(vec![millis(extent.first), millis(extent.last)]))
    };
    [
        (SETTINGS, Attribute::number(settings.number)),
        (CHANGES, Attribute::M(settings.changes.iter().map(change).collect())),
    ]
}

/// A change that cannot be read concerns everything, as one that is not there.
fn to_fold_settings(item: &mut Item) -> Result<FoldSettings, ItemError> {
    let number = whole_number(item, SETTINGS)?.unwrap_or_default();
    let changes = match item.remove(CHANGES) {
        Some(Attribute::M(changes)) => changes,
        _ => Item::new(),
    };
    let change = |(number, extent): (String, Attribute)| {
        let Attribute::L(ends) = extent else { return None };
        let ends: Option<Vec<Timestamp>> = ends.into_iter().map(to_millis).collect();
        let [first, last] = ends?[..] else { return None };
        Some((number.parse().ok()?, Extent { first, last }))
    };
    Ok(FoldSettings { number, changes: changes.into_iter().filter_map(change).collect() })
}

fn to_millis(attribute: Attribute) -> Option<Timestamp> {
    let Attribute::N(text) = attribute else { return None };
    Timestamp::from_millis(text.parse().ok()?).ok()
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

/// The attributes that a device loses when its deletion begins: all but the version and the number of the fold
/// settings, which a device of the same id must never use again.
pub fn description(device: &Device) -> impl Iterator<Item = &'static str> {
    let names = device_attributes(device).into_iter().map(|(name, _)| name);
    names.filter(|name| ![SETTINGS, DEVICE_VERSION].contains(name))
}

/// How long a deleted device is remembered: longer than the stream keeps records of its readings, a day.
const TOMBSTONE_DAYS: i64 = 7;

/// When the item of a device whose deletion ended expires.
#[must_use]
pub fn tombstone_expiry(ended: Timestamp) -> Attribute {
    let expires = ended.saturating_add(TimeDelta::days(TOMBSTONE_DAYS));
    Attribute::number(expires.as_millis() / 1_000)
}

/// An item of the registry's devices, whether or not the device is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceItem {
    /// The device.
    Device(Box<Device>),
    /// The mark of a deletion.
    Deleted(DeletedDevice),
}

impl DeviceItem {
    /// The deletion, if the device is deleted.
    #[must_use]
    pub fn deletion(self) -> Option<Deletion> {
        match self {
            Self::Device(_) => None,
            Self::Deleted(device) => Some(device.deletion),
        }
    }
}

impl Decode for DeviceItem {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        match Device::decode(attributes) {
            Ok(device) => Ok(Self::Device(Box::new(device))),
            Err(ItemError::Deleted(device)) => Ok(Self::Deleted(*device)),
            Err(error) => Err(error),
        }
    }
}

fn to_deletion(item: &mut Item) -> Result<Option<Deletion>, ItemError> {
    let Some(begun) = timestamp(item, DELETED)? else { return Ok(None) };
    Ok(Some(Deletion {
        begun,
        found: timestamp(item, FOUND)?.ok_or(ItemError::Missing(FOUND))?,
        ended: timestamp(item, ENDED)?,
        settings: whole_number(item, SETTINGS)?.unwrap_or_default(),
    }))
}

impl Decode for Device {
    fn decode(
        attributes: impl IntoIterator<Item = (String, Attribute)>,
    ) -> Result<Self, ItemError> {
        to_device(attributes.into_iter().collect())
    }
}

fn to_device(mut item: Item) -> Result<Device, ItemError> {
    let Key::Device(id, _) = parse_key(&item)? else { return Err(other_kind(&item)) };
    if let Some(deletion) = to_deletion(&mut item)? {
        return Err(ItemError::Deleted(Box::new(DeletedDevice { id, deletion })));
    }
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
    let behind_it = match item.remove(BEHIND_IT) {
        Some(Attribute::Ss(devices)) => devices,
        _ => Vec::new(),
    };
    let attributes = match item.remove(ATTRIBUTES) {
        Some(Attribute::M(attributes)) => attributes,
        _ => Item::new(),
    };
    let fold_settings = to_fold_settings(&mut item)?;
    let stay = to_newest_stay(&mut item)?;
    let version = whole_number(&mut item, DEVICE_VERSION)?.unwrap_or_default();
    let behind: Option<DeviceId> = parsed(&mut item, BEHIND)?;
    let own = id.to_string();
    let parts = DeviceParts {
        // One behind itself is behind nothing, and stays readable.
        behind: behind.filter(|it| *it != id),
        id,
        behind_it: behind_it
            .into_iter()
            .filter(|it| *it != own)
            .map(DeviceId::try_from)
            .collect::<Result<_, _>>()
            .map_err(invalid(BEHIND_IT))?,
        in_room_means: to_said(&mut item, IN_ROOM_MEANS),
        fold_settings,
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
        attributes: attributes.into_iter().map(to_attribute).collect::<Result<_, _>>()?,
        metrics: metrics
            .into_iter()
            .filter_map(|(name, info)| Some((MetricName::try_from(name).ok()?, info)))
            .map(|(name, info)| to_metric(&name, info).map(|info| (name, info)))
            .collect::<Result<_, _>>()?,
        source: to_source(&mut item)?,
        first_seen,
        introduced_rooms: introduced_rooms
            .into_iter()
            .map(RoomId::try_from)
            .collect::<Result<_, _>>()
            .map_err(invalid(INTRODUCED_ROOMS))?,
        stay,
        version,
    };
    Device::new(parts).map_err(|why| {
        let attribute = match why {
            DeviceError::BehindItself => BEHIND,
            DeviceError::TooManyRooms(_) => INTRODUCED_ROOMS,
            DeviceError::TooManyBehind(_) => BEHIND_IT,
        };
        invalid(attribute)(why)
    })
}

/// The attribute of a device's labels.
#[must_use]
pub fn tags(tags: &Tags) -> Attribute {
    Attribute::L(tags.iter().map(|tag| Attribute::S(tag.to_string())).collect())
}

/// The attribute of what people say of a device in words of their own.
#[must_use]
pub fn attributes(attributes: &BTreeMap<AttributeName, AttributeValues>) -> Attribute {
    let value = |value: &AttributeValue| match value {
        AttributeValue::Text(text) => Attribute::S(text.to_string()),
        AttributeValue::Number(number) => Attribute::number(number),
    };
    let values = |values: &AttributeValues| Attribute::L(values.iter().map(value).collect());
    Attribute::M(attributes.iter().map(|(name, it)| (name.to_string(), values(it))).collect())
}

fn to_attribute(
    (name, values): (String, Attribute),
) -> Result<(AttributeName, AttributeValues), ItemError> {
    let value = |value| match value {
        Attribute::S(text) => {
            Label::try_from(text).map(AttributeValue::Text).map_err(invalid(ATTRIBUTES))
        }
        Attribute::N(text) => {
            Decimal::parse(&text).map(AttributeValue::Number).map_err(invalid(ATTRIBUTES))
        }
        _ => Err(ItemError::Missing(ATTRIBUTES)),
    };
    let Attribute::L(values) = values else { return Err(ItemError::Missing(ATTRIBUTES)) };
    let values: Vec<AttributeValue> = values.into_iter().map(value).collect::<Result<_, _>>()?;
    let name = name.try_into().map_err(invalid(ATTRIBUTES))?;
    Ok((name, values.try_into().map_err(invalid(ATTRIBUTES))?))
}

/// The attribute of what senders teach of a device.
#[must_use]
pub fn source(source: &Source) -> Attribute {
    let text = |text: &String| Attribute::S(text.clone());
    let field = |it: &SourceField| Attribute::L(vec![text(&it.measurement), text(&it.field)]);
    let tags = source.tags.iter().map(|(name, value)| (name.clone(), text(value)));
    let fields = source.fields.iter().map(|(name, it)| (name.to_string(), field(it)));
    let mut item = Item::new();
    put(&mut item, NAME, source.name.clone().map(String::from));
    put(&mut item, INTRODUCED_BY, source.introduced_by.clone());
    item.insert(TAGS.to_owned(), Attribute::M(tags.collect()));
    item.insert(FIELDS.to_owned(), Attribute::M(fields.collect()));
    Attribute::M(item)
}

fn to_source(item: &mut Item) -> Result<Source, ItemError> {
    let mut item = match item.remove(SOURCE) {
        None => return Ok(Source::default()),
        Some(Attribute::M(item)) => item,
        Some(_) => return Err(ItemError::Missing(SOURCE)),
    };
    let mut map = |name| match item.remove(name) {
        Some(Attribute::M(entries)) => Ok(entries),
        _ => Err(ItemError::Missing(name)),
    };
    let (tags, fields) = (map(TAGS)?, map(FIELDS)?);
    let field = |(name, it): (String, Attribute)| {
        let Attribute::L(texts) = it else { return None };
        let texts: Option<Vec<String>> = texts.into_iter().map(string).collect();
        let [measurement, field] = texts?.try_into().ok()?;
        Some((name.try_into().ok()?, SourceField { measurement, field }))
    };
    let tag = |(name, value): (String, Attribute)| Some((name, string(value)?));
    Ok(Source {
        name: parsed(&mut item, NAME)?,
        tags: tags.into_iter().filter_map(tag).collect(),
        fields: fields.into_iter().filter_map(field).collect(),
        introduced_by: text(&mut item, INTRODUCED_BY),
    })
}

/// The attribute of what is known of a metric.
#[must_use]
pub fn metric(info: &MetricInfo) -> Attribute {
    let mut item = Item::new();
    put(&mut item, KIND, Some(info.kind.as_str().to_owned()));
    put(&mut item, UNIT, info.unit.clone().map(String::from));
    let numbers = [(MODULUS, &info.modulus), (MAX_W, &info.max_w), (TOLERANCE, &info.tolerance)];
    for (name, value) in numbers {
        if let Some(value) = value {
            item.insert(name.to_owned(), Attribute::number(value));
        }
    }
    if let Some(time) = info.hold {
        item.insert(HOLD.to_owned(), hold(&time));
    }
    item.extend(info.in_room_means.map(|it| (IN_ROOM_MEANS.to_owned(), said(&it))));
    put(&mut item, HOURLY_UNTIL, info.hourly_until.map(|at| at.to_string()));
    if info.is_described {
        item.insert(DESCRIBED.to_owned(), mark());
    }
    if !info.exchanges.is_empty() {
        item.insert(EXCHANGES.to_owned(), exchanges(&info.exchanges));
    }
    if !info.verdicts.is_empty() {
        item.insert(VERDICTS.to_owned(), verdicts(&info.verdicts));
    }
    put(&mut item, ROLE, info.role.map(|role| role.as_str().to_owned()));
    if info.is_net {
        item.insert(NET.to_owned(), mark());
    }
    put(&mut item, CYCLE, info.cycle.clone().map(String::from));
    Attribute::M(item)
}

/// The attribute of the time for which a power holds: milliseconds.
#[must_use]
pub fn hold(time: &TimeDelta) -> Attribute {
    Attribute::number(time.num_milliseconds())
}

/// The attribute of the exchanges of a meter.
#[must_use]
pub fn exchanges(exchanges: &BTreeMap<Timestamp, Exchange>) -> Attribute {
    let number = |number: &Decimal| Attribute::number(number);
    let exchange = |(at, it): (&Timestamp, &Exchange)| {
        (at.to_string(), Attribute::L(vec![number(&it.old), number(&it.new)]))
    };
    Attribute::M(exchanges.iter().map(exchange).collect())
}

/// The attribute of the verdicts on suspect steps.
#[must_use]
pub fn verdicts(verdicts: &BTreeMap<Timestamp, Verdict>) -> Attribute {
    let verdict =
        |(at, it): (&Timestamp, &Verdict)| (at.to_string(), Attribute::S(it.as_str().to_owned()));
    Attribute::M(verdicts.iter().map(verdict).collect())
}

fn to_metric(name: &MetricName, info: Attribute) -> Result<MetricInfo, ItemError> {
    let Attribute::M(mut item) = info else { return Err(ItemError::Missing(METRICS)) };
    let kind = text(&mut item, KIND).and_then(|kind| MetricKind::parse(&kind));
    let role = text(&mut item, ROLE).and_then(|role| Role::parse(&role));
    let mut number = |attribute| match item.remove(attribute) {
        Some(Attribute::N(value)) => Decimal::parse(&value).map(Some).map_err(invalid(attribute)),
        _ => Ok(None),
    };
    let (modulus, max_w, tolerance) = (number(MODULUS)?, number(MAX_W)?, number(TOLERANCE)?);
    Ok(MetricInfo {
        kind: kind.unwrap_or_else(|| name.well_known().0),
        unit: parsed(&mut item, UNIT)?,
        modulus,
        max_w,
        tolerance,
        hold: whole_number(&mut item, HOLD)?.map(TimeDelta::milliseconds),
        exchanges: by_timestamp(&mut item, EXCHANGES, to_exchange)?,
        verdicts: by_timestamp(&mut item, VERDICTS, |it| Verdict::parse(&string(it)?))?,
        role,
        is_net: item.contains_key(NET),
        cycle: parsed(&mut item, CYCLE)?,
        in_room_means: to_said(&mut item, IN_ROOM_MEANS),
        hourly_until: text(&mut item, HOURLY_UNTIL)
            .map(|at| Timestamp::parse_absolute(&at))
            .transpose()
            .map_err(invalid(HOURLY_UNTIL))?,
        is_described: item.contains_key(DESCRIBED),
    })
}

fn to_exchange(attribute: Attribute) -> Option<Exchange> {
    let Attribute::L(figures) = attribute else { return None };
    let number = |it: &Attribute| match it {
        Attribute::N(text) => Decimal::parse(text).ok(),
        _ => None,
    };
    let [old, new] = &figures[..] else { return None };
    Some(Exchange { old: number(old)?, new: number(new)? })
}

fn by_timestamp<T>(
    item: &mut Item,
    name: &'static str,
    read: impl Fn(Attribute) -> Option<T>,
) -> Result<BTreeMap<Timestamp, T>, ItemError> {
    let entries = match item.remove(name) {
        None => return Ok(BTreeMap::new()),
        Some(Attribute::M(entries)) => entries,
        Some(_) => return Err(ItemError::Missing(name)),
    };
    let entry = |(at, value): (String, Attribute)| {
        let at = Timestamp::parse_absolute(&at).map_err(invalid(name))?;
        Ok((at, read(value).ok_or(ItemError::Missing(name))?))
    };
    entries.into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{DeviceObservation, Reading, Stay};

    fn label(text: &str) -> Label {
        text.parse().expect("a label")
    }

    #[test]
    fn a_device_comes_back() {
        let reading = Reading::new(
            "remo-e".parse().expect("an id"),
            Timestamp::parse("2026-01-11T16:00:00Z", Timestamp::MIN).expect("a timestamp"),
            Some("chiyoda1-a".parse().expect("an id")),
            [("current_w".parse().expect("a name"), Decimal::parse("512").expect("a number"))]
                .into(),
        );
        let device = DeviceObservation::of(&reading.expect("a reading"))
            .new_device("remo-e".parse().expect("an id"), |_| false);
        assert_eq!(device.introduced_rooms().len(), 1);
        assert_eq!(
            Device::decode(from_device(&device, Layout::default())).expect("a device"),
            device
        );
        let mut parts = device.into_parts();
        parts.name = Some(label("Smart meter"));
        parts.kind = Some(label("power"));
        parts.tags = vec![label("meter"), label("B-route")].try_into().expect("tags");
        let attribute = |text| AttributeValue::Text(label(text));
        let figure = AttributeValue::Number(Decimal::parse("1.10").expect("a number"));
        for (name, values) in
            [("model", vec![attribute("x 1")]), ("serves", vec![attribute("4"), figure])]
        {
            let values = values.try_into().expect("values");
            parts.attributes.insert(name.parse().expect("a name"), values);
        }
        parts.place = Place::Chosen("hall".parse().expect("an id"));
        let info = parts.metrics.values_mut().next().expect("one");
        let number = |text: &str| Decimal::parse(text).expect("a number");
        info.modulus = Some(number("100000"));
        info.max_w = Some(number("6000"));
        info.tolerance = Some(number("0.2"));
        info.hold = Some(TimeDelta::minutes(5));
        info.in_room_means = Some(true);
        info.hourly_until = Some(parts.first_seen);
        let exchange = Exchange { old: number("812.3"), new: number("0.1") };
        info.exchanges.insert(parts.first_seen, exchange);
        info.verdicts.insert(parts.first_seen, Verdict::Accept);
        info.verdicts.insert(Timestamp::MAX, Verdict::Discard);
        info.role = Some(Role::Storage);
        info.is_net = true;
        info.cycle = Some("attr_last_reset".parse().expect("a name"));
        parts.metrics.values_mut().for_each(|info| info.is_described = true);
        let field = SourceField { measurement: "meter".to_owned(), field: "W now".to_owned() };
        parts.source = Source {
            name: Some(label("Meter")),
            tags: [("host".to_owned(), String::new())].into(),
            fields: [("current_w".parse().expect("a name"), field)].into(),
            introduced_by: Some("0123456789ab".to_owned()),
        };
        parts.behind = Some("main".parse().expect("an id"));
        parts.behind_it = ["plug-1", "plug-2"].map(|id| id.parse().expect("an id")).into();
        parts.in_room_means = Some(false);
        parts.version = 3;
        parts.stay = Some(Stay::begun("hall".parse().expect("an id"), parts.first_seen));
        let mut device = Device::new(parts).expect("a device");
        assert_eq!(
            Device::decode(from_device(&device, Layout::default())).expect("a device"),
            device
        );
        let extent = Extent { first: device.first_seen(), last: Timestamp::MAX };
        let changed = device.changed(|it| {
            it.stay = it.stay.take().map(|stay| stay.ended(Timestamp::MAX));
            it.fold_settings =
                FoldSettings { number: 7, changes: [(6, extent), (7, Extent::ALL)].into() };
        });
        device = changed.expect("a device");
        let mut item = from_device(&device, Layout::default());
        assert_eq!(Device::decode(item.clone()).expect("a device"), device);
        let mut tombstone = item.clone();
        tombstone.retain(|name, _| !description(&device).any(|lost| lost == name));
        let names: Vec<&str> = tombstone.keys().map(String::as_str).collect();
        assert_eq!(names, [DEVICE_VERSION, keys::PK, SETTINGS, keys::SK]);
        let own = device.id().to_string();
        item.insert(BEHIND.to_owned(), Attribute::S(own.clone()));
        item.insert(BEHIND_IT.to_owned(), Attribute::Ss(vec![own]));
        let decoded = Device::decode(item).expect("it stays readable");
        assert_eq!((decoded.behind(), decoded.behind_it().len()), (None, 0));
    }
}
