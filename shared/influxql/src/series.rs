//! The series of InfluxQL that a device has: measurements, tags and fields. Reads no reading.

use std::collections::{BTreeMap, BTreeSet};

use domain::{Device, MetricName, RoomId};

use crate::ast::Measurement;
use crate::error::QueryError;

/// The tag and the field of what was not written by line protocol.
const DEVICE: &str = "device";
/// The tag that each reading says for itself.
pub(crate) const ROOM: &str = "room";
const VALUE: &str = "value";

/// The points of one device in one measurement.
#[derive(Debug)]
pub(crate) struct Series<'a> {
    pub(crate) device: &'a Device,
    pub(crate) measurement: String,
    /// The tags that are the same for all points.
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) fields: BTreeMap<String, &'a MetricName>,
    /// Whether the points have the tag `room`, each with the room of its reading.
    pub(crate) has_rooms: bool,
}

/// The series of devices in some measurements, by measurement; all where none is named. `policy` is the retention
/// policy of measurements that name none.
pub(crate) fn series_of_all<'a>(
    devices: impl Iterator<Item = &'a Device>,
    policy: Option<&str>,
    sources: &[Measurement],
) -> Result<Vec<Series<'a>>, QueryError> {
    let policies = sources.iter().map(|source| source.policy.as_deref().or(policy));
    if let Some(unknown) = policies.chain([policy]).flatten().find(|it| *it != "autogen") {
        let unknown = domain::excerpt(unknown);
        return Err(QueryError::new(format!("retention policy not found: {unknown}")));
    }
    let is_meant = |series: &Series<'_>| {
        sources.is_empty() || sources.iter().any(|it| it.name.is_of(&series.measurement))
    };
    let mut series: Vec<Series<'a>> = devices.flat_map(series_of).filter(is_meant).collect();
    series.sort_by(|a, b| a.measurement.cmp(&b.measurement));
    Ok(series)
}

/// The series of a device. What line protocol wrote has the names with which it was written; of other metrics
/// the metric is the measurement, `value` its field, `device` and `room` its tags.
fn series_of(device: &Device) -> Vec<Series<'_>> {
    let mut written: BTreeMap<&str, Series<'_>> = BTreeMap::new();
    let mut native = Vec::new();
    for metric in device.metrics().keys() {
        if let Some(from) = device.source().fields.get(metric) {
            let series = written.entry(&from.measurement).or_insert_with(|| Series {
                device,
                measurement: from.measurement.clone(),
                tags: device.source().tags.clone(),
                fields: BTreeMap::new(),
                has_rooms: false,
            });
            series.fields.insert(from.field.clone(), metric);
        } else {
            native.push(Series {
                device,
                measurement: metric.to_string(),
                tags: [(DEVICE.to_owned(), device.id().to_string())].into(),
                fields: [(VALUE.to_owned(), metric)].into(),
                has_rooms: true,
            });
        }
    }
    written.into_values().chain(native).collect()
}

impl Series<'_> {
    /// The names of its tags.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let room = self.has_rooms.then_some(ROOM);
        self.tags.keys().map(String::as_str).chain(room)
    }

    /// A tag of the points of a room; empty where they lack it.
    pub(crate) fn tag<'t>(&'t self, name: &str, room: Option<&'t RoomId>) -> &'t str {
        match room {
            Some(room) if self.has_rooms && name == ROOM => room.as_str(),
            _ => self.tags.get(name).map_or("", String::as_str),
        }
    }

    /// The room in which the registry has the device.
    pub(crate) fn room_now(&self) -> Option<&RoomId> {
        self.device.place().room().filter(|_| self.has_rooms)
    }
}

/// The names of fields and tags of some series.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    pub(crate) fields: BTreeSet<String>,
    pub(crate) tags: BTreeSet<String>,
}

impl Schema {
    pub(crate) fn of(series: &[Series<'_>]) -> Self {
        let fields = series.iter().flat_map(|it| it.fields.keys().cloned()).collect();
        let tags = series.iter().flat_map(|it| it.keys().map(str::to_owned)).collect();
        Self { fields, tags }
    }
}
