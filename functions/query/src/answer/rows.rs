//! Readings, devices, rooms and homes as the API shows them. Reads nothing.

use std::collections::BTreeMap;

use domain::{
    Annotated, Annotation, AnnotationId, AttributeName, AttributeValues, Decimal, Device, DeviceId,
    DeviceStay, HomeId, Label, MetricInfo, MetricKind, MetricName, NotOfRoom, Reading, Role, Room,
    RoomId, Stay, Timestamp, Unit, Verdict, duration,
};
use serde::Serialize;
use serde_json::json;

use crate::answer::latest_values::LatestValues;
use crate::answer::row::{self, CsvCell, Entries, Row};

/// A reading of a range, with the requested metrics.
///
/// Device and room are always there, so that a saved row can be sent to `POST /readings`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StoredReading"))]
pub(crate) struct ReadingRow<'a> {
    device_id: &'a DeviceId,
    timestamp: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    room: Option<&'a RoomId>,
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<MetricName, Decimal>"))]
    metrics: Entries<&'a MetricName, &'a Decimal>,
    #[serde(skip)]
    pub(crate) reading: &'a Reading,
}

impl<'a> ReadingRow<'a> {
    /// The row of a reading. Returns `None` if the reading has no requested metric.
    pub(crate) fn of(reading: &'a Reading, wanted: Option<&[MetricName]>) -> Option<Self> {
        let wanted = |name: &MetricName| wanted.is_none_or(|wanted| wanted.contains(name));
        let metrics: Vec<_> = reading.metrics().iter().filter(|(name, _)| wanted(name)).collect();
        let Reading { device: device_id, at, room, .. } = reading;
        (!metrics.is_empty()).then_some(Self {
            device_id,
            timestamp: *at,
            room: room.as_ref(),
            metrics: Entries(metrics),
            reading,
        })
    }
}

/// The columns of a reading in CSV, before its metrics.
pub(crate) const READING_COLUMNS: [&str; 3] = ["timestamp", "device_id", "room"];

impl Row for ReadingRow<'_> {
    /// Made from the reading itself, without JSON in between: a page has up to 10,000 rows.
    fn cells(&self, _: &[&str]) -> Vec<CsvCell> {
        vec![
            CsvCell::text(self.timestamp.to_string()),
            CsvCell::text(self.device_id.as_str()),
            CsvCell::text(self.room.map_or("", RoomId::as_str)),
        ]
    }

    fn values(&self) -> impl Iterator<Item = (&MetricName, &Decimal)> {
        self.metrics.0.iter().copied()
    }
}

/// A device of the registry.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Device", deny_unknown_fields))]
pub(crate) struct DeviceRow<'a> {
    device_id: &'a DeviceId,
    name: Option<&'a Label>,
    room: Option<&'a RoomId>,
    /// Whether a person chose the room: then no reading moves the device.
    room_pinned: bool,
    kind: Option<&'a Label>,
    tags: &'a [Label],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    /// Free attributes that people set.
    attributes: &'a BTreeMap<AttributeName, AttributeValues>,
    /// The meter that also measures this device.
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<&'a DeviceId>,
    /// Whether means of rooms include the device, if a person said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_room_means: Option<bool>,
    metrics: BTreeMap<&'a MetricName, MetricRow<'a>>,
    first_seen: Timestamp,
    #[serde(skip_serializing_if = "Latest::is_unasked")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<LatestValues>", extend("nullable" = true)))]
    pub(crate) latest: Latest,
}

/// The newest values in the row of a device.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Latest {
    /// Not requested, so the member is left out.
    Unasked,
    /// Requested; `None` if the device has no readings.
    Asked(Option<LatestValues>),
}

impl Latest {
    fn is_unasked(&self) -> bool {
        matches!(self, Self::Unasked)
    }
}

/// A metric of a device.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
struct MetricRow<'a> {
    kind: MetricKind,
    unit: Option<&'a Unit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modulus: Option<&'a Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_w: Option<&'a Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tolerance: Option<&'a Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hold: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    exchanges: Vec<ExchangeRow<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    verdicts: Vec<VerdictRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    /// Whether the counter is a net meter, whose falls count as negative.
    net: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// The metric whose value, in the same readings, names the current cycle of the counter.
    cycle: Option<&'a MetricName>,
    /// Whether means of rooms include the metric, if a person said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_room_means: Option<bool>,
    /// The end of the time for which an import found hourly means only.
    #[serde(skip_serializing_if = "Option::is_none")]
    hourly_until: Option<Timestamp>,
    /// Why means of rooms leave the metric out, be it a person's choice or a default.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_of_room: Option<NotOfRoom>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline, deny_unknown_fields))]
struct ExchangeRow<'a> {
    timestamp: Timestamp,
    old: &'a Decimal,
    new: &'a Decimal,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline, deny_unknown_fields))]
struct VerdictRow {
    timestamp: Timestamp,
    verdict: Verdict,
}

impl<'a> MetricRow<'a> {
    fn of(device: &'a Device, name: &MetricName, info: &'a MetricInfo) -> Self {
        let exchanges = info.exchanges.iter();
        let verdicts = info.verdicts.iter();
        Self {
            kind: info.kind,
            unit: info.unit.as_ref(),
            modulus: info.modulus.as_ref(),
            max_w: info.max_w.as_ref(),
            tolerance: info.tolerance.as_ref(),
            hold: info.hold.map(duration::hold::text),
            exchanges: exchanges
                .map(|(at, exchange)| ExchangeRow {
                    timestamp: *at,
                    old: &exchange.old,
                    new: &exchange.new,
                })
                .collect(),
            verdicts: verdicts
                .map(|(at, verdict)| VerdictRow { timestamp: *at, verdict: *verdict })
                .collect(),
            role: info.role,
            net: info.is_net,
            cycle: info.cycle.as_ref(),
            in_room_means: info.in_room_means,
            hourly_until: info.hourly_until,
            not_of_room: device.not_of_room(name),
        }
    }
}

impl<'a> From<&'a Device> for DeviceRow<'a> {
    fn from(device: &'a Device) -> Self {
        let metrics = device.metrics().iter();
        let metrics = metrics.map(|(name, info)| (name, MetricRow::of(device, name, info)));
        Self {
            device_id: device.id(),
            name: device.shown_name(),
            room: device.place().room(),
            room_pinned: device.place().chosen_room().is_some(),
            kind: device.kind(),
            tags: device.tags(),
            attributes: device.attributes(),
            behind: device.behind(),
            in_room_means: device.in_room_means(),
            metrics: metrics.collect(),
            first_seen: device.first_seen(),
            latest: Latest::Unasked,
        }
    }
}

/// The columns of a device in CSV if newest values are requested.
pub(crate) const DEVICE_COLUMNS: [&str; 13] = [
    "device_id",
    "name",
    "room",
    "kind",
    "tags",
    "attributes",
    "metrics",
    "first_seen",
    "room_pinned",
    "behind",
    "in_room_means",
    "latest_timestamp",
    "latest_as_of",
];
/// The columns of a device in CSV without newest values.
pub(crate) const COLUMNS_WITHOUT_LATEST: &[&str] =
    DEVICE_COLUMNS.split_at(DEVICE_COLUMNS.len() - 2).0;

impl Row for DeviceRow<'_> {
    fn cells(&self, columns: &[&str]) -> Vec<CsvCell> {
        let mut cells = row::cells(self, columns);
        for (column, cell) in columns.iter().zip(&mut cells) {
            *cell = match *column {
                // JSON, because a tag may contain any separator.
                "tags" => CsvCell::text(json!(self.tags).to_string()),
                "attributes" => CsvCell::text(json!(self.attributes).to_string()),
                "metrics" => {
                    let names: Vec<&str> = self.metrics.keys().map(|name| name.as_str()).collect();
                    CsvCell::text(names.join(" "))
                }
                _ => continue,
            };
        }
        cells
    }

    fn values(&self) -> impl Iterator<Item = (&MetricName, &Decimal)> {
        let latest = match &self.latest {
            Latest::Asked(latest) => latest.as_ref(),
            Latest::Unasked => None,
        };
        latest.into_iter().flat_map(LatestValues::values)
    }
}

/// A room of the registry.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Room", deny_unknown_fields))]
pub(crate) struct RoomRow<'a> {
    room_id: &'a RoomId,
    name: Option<&'a Label>,
    home: Option<&'a HomeId>,
    /// Whether the room is outside; null if nobody said so.
    outside: Option<bool>,
    first_seen: Timestamp,
}

impl<'a> From<&'a Room> for RoomRow<'a> {
    fn from(room: &'a Room) -> Self {
        Self {
            room_id: &room.id,
            name: room.name.as_ref(),
            home: room.home.as_ref(),
            outside: room.outside,
            first_seen: room.first_seen,
        }
    }
}

/// The columns of a room in CSV.
pub(crate) const ROOM_COLUMNS: [&str; 5] = ["room_id", "name", "home", "outside", "first_seen"];

impl Row for RoomRow<'_> {}

/// A home: the set of rooms that name it. `PATCH /rooms/{id}` sets the home of a room.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Home", deny_unknown_fields))]
pub(crate) struct HomeRow<'a> {
    home_id: &'a HomeId,
    /// The number of rooms in the home.
    rooms: usize,
    /// The timestamp of the earliest reading in the home's rooms.
    first_seen: Timestamp,
}

impl<'a> HomeRow<'a> {
    /// The row of a home. Returns `None` without rooms, because a home exists only by its rooms.
    pub(crate) fn of<'r>(
        home_id: &'a HomeId,
        rooms: impl IntoIterator<Item = &'r Room>,
    ) -> Option<Self> {
        let seen: Vec<Timestamp> = rooms.into_iter().map(|room| room.first_seen).collect();
        let first_seen = seen.iter().copied().min()?;
        Some(Self { home_id, rooms: seen.len(), first_seen })
    }

    pub(crate) fn id(&self) -> &str {
        self.home_id.as_str()
    }
}

/// The columns of a home in CSV.
pub(crate) const HOME_COLUMNS: [&str; 3] = ["home_id", "rooms", "first_seen"];

impl Row for HomeRow<'_> {}

/// A stay of a device in a room.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Stay", deny_unknown_fields))]
pub(crate) struct StayRow<'a> {
    device_id: &'a DeviceId,
    room: &'a RoomId,
    since: Timestamp,
    /// The end of the stay; null while it lasts.
    until: Option<Timestamp>,
}

impl<'a> From<&'a DeviceStay> for StayRow<'a> {
    fn from(of: &'a DeviceStay) -> Self {
        let Stay { room, since, until } = &of.stay;
        Self { device_id: &of.device, room, since: *since, until: *until }
    }
}

/// The columns of a stay in CSV.
pub(crate) const STAY_COLUMNS: [&str; 4] = ["device_id", "room", "since", "until"];

impl Row for StayRow<'_> {}

/// A person's note of a time, about one device, room or home.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Annotation", deny_unknown_fields))]
pub(crate) struct AnnotationRow<'a> {
    /// The begin, a hyphen and up to 64 letters, digits or `-` `_` `.` `:`.
    annotation_id: &'a AnnotationId,
    from: Timestamp,
    /// The end, at most 31 days after the begin; null for a single moment.
    to: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<&'a DeviceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    room: Option<&'a RoomId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    home: Option<&'a HomeId>,
    text: &'a Label,
}

impl<'a> From<&'a Annotation> for AnnotationRow<'a> {
    fn from(Annotation { id, to, about, text }: &'a Annotation) -> Self {
        let (device, room, home) = match about {
            Annotated::Device(device) => (Some(device), None, None),
            Annotated::Room(room) => (None, Some(room), None),
            Annotated::Home(home) => (None, None, Some(home)),
        };
        Self { annotation_id: id, from: id.at(), to: *to, device, room, home, text }
    }
}

/// The columns of an annotation in CSV.
pub(crate) const ANNOTATION_COLUMNS: [&str; 7] =
    ["annotation_id", "from", "to", "device", "room", "home", "text"];

impl Row for AnnotationRow<'_> {}

/// The newest values of one device, as an answer of their own.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Latest"))]
pub(crate) struct LatestRow<'a> {
    pub(crate) device_id: &'a DeviceId,
    #[serde(flatten)]
    pub(crate) values: LatestValues,
}
