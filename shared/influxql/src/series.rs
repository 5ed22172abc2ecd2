//! Maps devices to series of InfluxQL: measurements, tags and fields. Reads no reading.

use std::collections::{BTreeMap, BTreeSet};

use domain::text_id::before_digest;
use domain::{Device, MetricName, RoomId};

use crate::ast::Name;
use crate::room_tag::{ROOM, RoomTag, RoomTexts};

/// The tag and the field of metrics that line protocol did not write.
const DEVICE: &str = "device";
const VALUE: &str = "value";
/// The separator before the measurement in some device ids: such a device has all fields of the measurement except
/// `value`.
const OF_MEASUREMENT: &str = "::";

/// The points of one measurement with the same tags. If a measurement has fields beside `value`, line protocol makes a
/// second device for them; a series joins both devices again.
#[derive(Debug)]
pub(crate) struct TaggedSeries<'a> {
    pub(crate) devices: Vec<&'a Device>,
    pub(crate) measurement: String,
    /// The tags that are the same for all points.
    pub(crate) tags: BTreeMap<String, String>,
    /// Whether line protocol wrote the series.
    is_written: bool,
    pub(crate) fields: BTreeMap<String, SeriesField<'a>>,
    pub(crate) room_tag: RoomTag<'a>,
}

/// A field: a metric of a device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeriesField<'a> {
    pub(crate) device: &'a Device,
    pub(crate) metric: &'a MetricName,
}

/// The series of devices in the measurements that `sources` name, sorted by measurement. Empty `sources` mean all
/// measurements.
pub(crate) fn series_of_all<'a>(
    devices: impl Iterator<Item = &'a Device>,
    sources: &[Name],
    rooms: &'a RoomTexts<'a>,
) -> Vec<TaggedSeries<'a>> {
    let is_meant = |series: &TaggedSeries<'_>| {
        sources.is_empty() || sources.iter().any(|name| name.is_of(&series.measurement))
    };
    let series = devices.flat_map(|device| series_of(device, rooms)).filter(is_meant).collect();
    let mut series = joined(series);
    series.sort_by(|a, b| a.measurement.cmp(&b.measurement));
    series
}

/// The series of a device. Metrics that line protocol wrote keep the names of their lines. Other metrics are
/// measurements of their own, with the field `value` and the tags `device` and `room`.
fn series_of<'a>(device: &'a Device, rooms: &'a RoomTexts<'a>) -> Vec<TaggedSeries<'a>> {
    let mut written: BTreeMap<&str, TaggedSeries<'_>> = BTreeMap::new();
    let mut native = Vec::new();
    let has_rooms = RoomTag::of(device, rooms).is_of_readings();
    let tags = || {
        let taught = device.source().tags.iter().filter(|(name, _)| !has_rooms || *name != ROOM);
        taught.map(|(name, value)| (name.clone(), value.clone())).collect()
    };

    for metric in device.metrics().keys() {
        let field = SeriesField { device, metric };
        if let Some(from) = device.source().fields.get(metric) {
            let series = written.entry(&from.measurement).or_insert_with(|| TaggedSeries {
                devices: vec![device],
                measurement: from.measurement.clone(),
                tags: tags(),
                is_written: true,
                fields: BTreeMap::new(),
                room_tag: RoomTag::of(device, rooms),
            });
            // A field has two metrics if a unit has changed the metric's name. The metric with the field's name is old.
            let known = series.fields.entry(from.field.clone()).or_insert(field);
            if known.metric.as_str() == from.field.to_lowercase() {
                *known = field;
            }
        } else {
            native.push(TaggedSeries {
                devices: vec![device],
                measurement: metric.to_string(),
                tags: [(DEVICE.to_owned(), device.id().to_string())].into(),
                is_written: false,
                fields: [(VALUE.to_owned(), field)].into(),
                room_tag: RoomTag::ById,
            });
        }
    }

    written.into_values().chain(native).collect()
}

/// Joins the field `value` of a measurement with its other fields. Line protocol stores the other fields as another
/// device.
fn joined(series: Vec<TaggedSeries<'_>>) -> Vec<TaggedSeries<'_>> {
    let has_value =
        |series: &TaggedSeries<'_>| series.is_written && series.fields.contains_key(VALUE);
    let (values, mut series): (Vec<_>, Vec<_>) = series.into_iter().partition(has_value);

    let mut others = BTreeMap::new();
    for (n, series) in series.iter().enumerate().filter(|(_, series)| series.is_written) {
        let (id, tags) = origin(series);
        if let Some((of, _)) = id.rsplit_once(OF_MEASUREMENT) {
            others.insert((of, tags, &series.measurement), n);
        }
    }

    let index = |series: &TaggedSeries<'_>| {
        let (id, tags) = origin(series);
        others.get(&(id, tags, &series.measurement)).copied()
    };
    let indices: Vec<_> = values.iter().map(index).collect();

    for (value, index) in values.into_iter().zip(indices) {
        // The joined series gets the tags of the device that has only this measurement. The device of `value` may have
        // tags of other measurements.
        match index.map(|index| &mut series[index]) {
            Some(other) if other.devices.len() == 1 => {
                other.devices.extend(value.devices);
                other.room_tag.join(value.room_tag);
                other.fields.extend(value.fields);
            }
            _ => series.push(value),
        }
    }

    series
}

/// The facts that join the two devices of a series: the id without its digest; if there is a digest, also the tags.
fn origin<'s>(series: &'s TaggedSeries<'_>) -> (&'s str, Option<&'s BTreeMap<String, String>>) {
    match before_digest(series.devices[0].id().as_str()) {
        Some(text) => (text, Some(&series.tags)),
        None => (series.devices[0].id().as_str(), None),
    }
}

impl<'a> TaggedSeries<'a> {
    /// The names of the series' tags.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let room = self.has_rooms().then_some(ROOM);
        self.tags.keys().map(String::as_str).chain(room)
    }

    /// Whether the points have the tag `room`, each with the room of its reading.
    pub(crate) const fn has_rooms(&self) -> bool {
        self.room_tag.is_of_readings()
    }

    /// The value of a tag for points in a room; empty without such a tag.
    pub(crate) fn tag<'t>(&'t self, name: &str, room: Option<&'t RoomId>) -> &'t str {
        let room = room.filter(|_| name == ROOM).and_then(|room| self.room_tag.text(room));
        room.unwrap_or_else(|| self.tags.get(name).map_or("", String::as_str))
    }

    /// The metric of a field. Fields that differ only in case share one metric, listed under the first field's name. So
    /// another spelling is searched without regard to case.
    pub(crate) fn field(&self, name: &str) -> Option<SeriesField<'a>> {
        let exact = self.fields.get(name);
        let mut fields = self.fields.iter();
        let like =
            || fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, field)| field);
        exact.or_else(like).copied()
    }

    /// The room of the device in the registry; `None` if the tag `room` does not show the rooms of readings.
    pub(crate) fn room_now(&self) -> Option<&RoomId> {
        self.devices[0].place().room().filter(|_| self.has_rooms())
    }
}

/// The names of fields and tags that a `SELECT` may name.
#[derive(Debug, Default)]
pub(crate) struct SelectNames {
    pub(crate) fields: BTreeSet<String>,
    pub(crate) tags: BTreeSet<String>,
}

impl SelectNames {
    pub(crate) fn of(series: &[TaggedSeries<'_>]) -> Self {
        let fields = series.iter().flat_map(|series| series.fields.keys().cloned()).collect();
        let tags = series.iter().flat_map(|series| series.keys().map(str::to_owned)).collect();
        Self { fields, tags }
    }

    /// Whether a name is the name of a field; see [`TaggedSeries::field`].
    pub(crate) fn has_field(&self, name: &str) -> bool {
        self.fields.contains(name)
            || !self.tags.contains(name)
                && self.fields.iter().any(|field| field.eq_ignore_ascii_case(name))
    }
}
