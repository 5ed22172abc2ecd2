//! Readings, devices, rooms and homes as the API shows them. Reads nothing.

use std::collections::BTreeMap;

use domain::{
    Annotated, Annotation, AnnotationId, AttributeName, AttributeValues, Decimal, Device, DeviceId,
    DeviceStay, HomeId, Label, MetricInfo, MetricKind, MetricName, NotOfRoom, Reading, Role, Room,
    RoomId, Stay, Timestamp, Unit, duration,
};
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use serde_json::json;

use crate::answer::latest_values::LatestValues;
use crate::answer::row::{Cell, Row};

/// A reading of a range, with the metrics asked for.
///
/// Always with device and room, so that a saved row can be sent to `POST /readings`.
#[derive(Debug)]
pub(crate) struct ReadingRow<'a> {
    pub(crate) reading: &'a Reading,
    pub(crate) metrics: Vec<(&'a MetricName, &'a Decimal)>,
}

impl<'a> ReadingRow<'a> {
    /// The row. Returns `None` if the reading has no metric that was asked for.
    pub(crate) fn of(reading: &'a Reading, wanted: Option<&[MetricName]>) -> Option<Self> {
        let wanted = |name: &MetricName| wanted.is_none_or(|wanted| wanted.contains(name));
        let metrics: Vec<_> = reading.metrics().iter().filter(|(name, _)| wanted(name)).collect();
        (!metrics.is_empty()).then_some(Self { reading, metrics })
    }
}

impl Serialize for ReadingRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("device_id", &self.reading.device)?;
        map.serialize_entry("timestamp", &self.reading.at)?;
        if let Some(room) = &self.reading.room {
            map.serialize_entry("room", room)?;
        }
        for (name, value) in &self.metrics {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// The columns of a reading in CSV, before its metrics.
pub(crate) const READING_COLUMNS: [&str; 3] = ["timestamp", "device_id", "room"];

impl Row for ReadingRow<'_> {
    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::text(self.reading.at.to_string()),
            Cell::text(self.reading.device.as_str()),
            Cell::text(self.reading.room.as_ref().map_or("", RoomId::as_str)),
        ]
    }

    fn values(&self) -> impl Iterator<Item = (&MetricName, &Decimal)> {
        self.metrics.iter().copied()
    }
}

/// A device of the registry.
#[derive(Debug, Serialize)]
pub(crate) struct DeviceRow<'a> {
    device_id: &'a DeviceId,
    name: Option<&'a Label>,
    room: Option<&'a RoomId>,
    /// Whether a person chose the room, so that no reading moves the device.
    room_pinned: bool,
    kind: Option<&'a Label>,
    tags: &'a [Label],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    attributes: &'a BTreeMap<AttributeName, AttributeValues>,
    /// The device behind whose meter it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<&'a DeviceId>,
    /// Whether the means of rooms have the device, where a person said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_room_means: Option<bool>,
    metrics: BTreeMap<&'a MetricName, MetricRow<'a>>,
    first_seen: Timestamp,
    #[serde(skip_serializing_if = "Latest::is_unasked")]
    pub(crate) latest: Latest,
}

/// The newest values beside a device.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Latest {
    /// Left out: nobody asked for them.
    Unasked,
    /// None where the device has no readings.
    Asked(Option<LatestValues>),
}

impl Latest {
    fn is_unasked(&self) -> bool {
        matches!(self, Self::Unasked)
    }
}

#[derive(Debug, Serialize)]
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
    net: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cycle: Option<&'a MetricName>,
    /// Whether the means of rooms have the metric, where a person said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_room_means: Option<bool>,
    /// The time until which there are hourly means only.
    #[serde(skip_serializing_if = "Option::is_none")]
    hourly_until: Option<Timestamp>,
    /// Why they do not have it, whoever or whatever says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_of_room: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct ExchangeRow<'a> {
    timestamp: Timestamp,
    old: &'a Decimal,
    new: &'a Decimal,
}

#[derive(Debug, Serialize)]
struct VerdictRow {
    timestamp: Timestamp,
    verdict: &'static str,
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
                .map(|(at, verdict)| VerdictRow { timestamp: *at, verdict: verdict.as_str() })
                .collect(),
            role: info.role,
            net: info.is_net,
            cycle: info.cycle.as_ref(),
            in_room_means: info.in_room_means,
            hourly_until: info.hourly_until,
            not_of_room: device.not_of_room(name).map(NotOfRoom::as_str),
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

/// The columns of a device in CSV: those of its newest values are the last, and are there if these are asked for.
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

impl Row for DeviceRow<'_> {
    fn cells(&self) -> Vec<Cell> {
        let metrics: Vec<&str> = self.metrics.keys().map(|name| name.as_str()).collect();
        let mut cells = vec![
            Cell::text(self.device_id.as_str()),
            Cell::text(self.name.map_or("", Label::as_str)),
            Cell::text(self.room.map_or("", RoomId::as_str)),
            Cell::text(self.kind.map_or("", Label::as_str)),
            // JSON, because a tag may contain any separator.
            Cell::text(json!(self.tags).to_string()),
            Cell::text(json!(self.attributes).to_string()),
            Cell::text(metrics.join(" ")),
            Cell::text(self.first_seen.to_string()),
            Cell::flag(Some(self.room_pinned)),
            Cell::text(self.behind.map_or("", DeviceId::as_str)),
            Cell::flag(self.in_room_means),
        ];
        match &self.latest {
            Latest::Unasked => {}
            Latest::Asked(None) => cells.extend([Cell::empty(), Cell::empty()]),
            Latest::Asked(Some(LatestValues { timestamp, as_of, .. })) => {
                cells.extend([timestamp, as_of].map(|at| Cell::text(at.to_string())));
            }
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
pub(crate) struct RoomRow<'a> {
    room_id: &'a RoomId,
    name: Option<&'a Label>,
    home: Option<&'a HomeId>,
    /// Whether it is outside, where a person said so.
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

impl Row for RoomRow<'_> {
    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::text(self.room_id.as_str()),
            Cell::text(self.name.map_or("", Label::as_str)),
            Cell::text(self.home.map_or("", HomeId::as_str)),
            Cell::flag(self.outside),
            Cell::text(self.first_seen.to_string()),
        ]
    }

    fn values(&self) -> impl Iterator<Item = (&MetricName, &Decimal)> {
        std::iter::empty()
    }
}

/// A home: the rooms that name it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct HomeRow<'a> {
    home_id: &'a HomeId,
    /// The number of its rooms.
    rooms: usize,
    /// The timestamp of the earliest reading of its rooms.
    first_seen: Timestamp,
}

impl<'a> HomeRow<'a> {
    /// The row; none where the home has no room, because then it is no home.
    pub(crate) fn of<'r>(
        home_id: &'a HomeId,
        rooms: impl IntoIterator<Item = &'r Room>,
    ) -> Option<Self> {
        let seen: Vec<Timestamp> = rooms.into_iter().map(|room| room.first_seen).collect();
        let first_seen = seen.iter().copied().min()?;
        Some(Self { home_id, rooms: seen.len(), first_seen })
    }

    /// The id.
    pub(crate) fn id(&self) -> &str {
        self.home_id.as_str()
    }
}

/// The columns of a home in CSV.
pub(crate) const HOME_COLUMNS: [&str; 3] = ["home_id", "rooms", "first_seen"];

impl Row for HomeRow<'_> {
    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::text(self.id()),
            Cell::number(&self.rooms),
            Cell::text(self.first_seen.to_string()),
        ]
    }

    fn values(&self) -> impl Iterator<Item = (&MetricName, &Decimal)> {
        std::iter::empty()
    }
}

/// A stay of a device in a room.
#[derive(Debug, Serialize)]
pub(crate) struct StayRow<'a> {
    device_id: &'a DeviceId,
    room: &'a RoomId,
    since: Timestamp,
    /// None while it lasts.
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

impl Row for StayRow<'_> {
    fn cells(&self) -> Vec<Cell> {
        let until = self.until.map(|until| until.to_string());
        vec![
            Cell::text(self.device_id.as_str()),
            Cell::text(self.room.as_str()),
            Cell::text(self.since.to_string()),
            Cell::text(until.unwrap_or_default()),
        ]
    }

    fn values(&self) -> impl Iterator<Item = (&MetricName, &Decimal)> {
        std::iter::empty()
    }
}

/// A person's note of a time.
#[derive(Debug, Serialize)]
pub(crate) struct AnnotationRow<'a> {
    annotation_id: &'a AnnotationId,
    from: Timestamp,
    /// Absent where it is of a single moment.
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

impl Row for AnnotationRow<'_> {
    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::text(self.annotation_id.to_string()),
            Cell::text(self.from.to_string()),
            Cell::text(self.to.map(|to| to.to_string()).unwrap_or_default()),
            Cell::text(self.device.map_or("", DeviceId::as_str)),
            Cell::text(self.room.map_or("", RoomId::as_str)),
            Cell::text(self.home.map_or("", HomeId::as_str)),
            Cell::text(self.text.as_str()),
        ]
    }

    fn values(&self) -> impl Iterator<Item = (&MetricName, &Decimal)> {
        std::iter::empty()
    }
}

/// The newest values of one device, by themselves.
#[derive(Debug, Serialize)]
pub(crate) struct LatestRow<'a> {
    pub(crate) device_id: &'a DeviceId,
    #[serde(flatten)]
    pub(crate) values: LatestValues,
}
