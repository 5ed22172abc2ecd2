//! Maps a line to devices and metrics, as a pure function of the line and the sender's settings.
//! docs/connect/influxdb-clients.md has the rule in three sentences.

mod home_assistant;
mod metric_name;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use domain::text_id::{are_readable, digest, finish, id_of, parts};
use domain::{
    About, AboutMetric, Decimal, DecimalError, DeviceId, IdError, Label, MAX_FIELDS, MetricName,
    RoomId, SourceField,
};

use super::{LineValue, ProtocolLine, decimal};
use crate::formats::units::UnitConversion;
use crate::formats::{units, vocabulary};
use home_assistant::{HomeAssistantEntity, string, tag};
pub(crate) use metric_name::metric_name;

/// Tags whose value may begin a device's id. A line uses the first of these that it has.
const HOST_TAGS: [&str; 6] = ["host", "hostname", "device_id", "device", "entity_id", "sensor_id"];
/// Tags that may name a room. A line uses the first of these that it has.
const ROOM_TAGS: [&str; 3] = ["room", "area", "location"];

/// Tags that describe a device or its state and are not part of its id, by measurement. An empty name stands for all
/// measurements, `docker` for measurements with this prefix. An additional tag would change ids that are in use.
const DESCRIBING_TAGS: &[(&str, &[&str])] = &[
    ("", &["friendly_name", "firmware", "firmware_version", "fw_version", "sw_version"]),
    ("disk", &["fstype", "mode"]),
    (
        "docker",
        &[
            "container_image",
            "container_version",
            "container_status",
            "engine_host",
            "server_version",
        ],
    ),
    ("http_response", &["result", "status_code"]),
    ("net_response", &["result"]),
    ("dns_query", &["result", "rcode"]),
    ("systemd_units", &["load", "active", "sub"]),
    ("procstat", &["pid"]),
    ("apcupsd", &["status"]),
    ("weather", &["condition_id", "condition_main"]),
    ("smart_device", &["model", "power", "enabled", "capacity"]),
];

/// Measurements from inside a computer, whose temperatures are not room temperatures. Units in the names of their
/// metrics are not read.
const MACHINES: [&str; 6] =
    ["hddtemp", "ipmi_sensor", "nvidia_smi", "sensors", "smart_device", "temp"];

/// The sender's settings for the mapping.
#[derive(Debug, Clone, Default)]
pub(crate) struct MappingRules {
    /// The device whose id is used in place of the tag that would begin an id.
    pub(crate) device: Option<DeviceId>,
    /// The prefix of every id.
    pub(crate) prefix: Option<DeviceId>,
    /// The tags that identify a device, in this order; if empty, all tags that do not describe the device.
    pub(crate) device_tags: Vec<String>,
    /// The tag that names a room.
    pub(crate) room_tag: Option<String>,
}

/// The reason why a line has no device, or a field no metric.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MappingError {
    #[error("field {0:?}: {1}")]
    Number(String, DecimalError),
    #[error("fields {0:?} and {1:?} are both called {2}")]
    SameMetric(String, String, MetricName),
    #[error("the device's id {0}")]
    Device(IdError),
}

/// A line, mapped to devices and metrics.
#[derive(Debug)]
pub(crate) struct Mapped<'a> {
    /// The devices of the line, at most two, each with its metrics.
    pub(crate) points: Vec<LineDevice<'a>>,
    /// The room, with its exact name if the id differs from it.
    pub(crate) room: Option<(RoomId, Option<Label>)>,
    /// The number of string fields, which are not stored.
    pub(crate) strings: usize,
    /// The refusals of single fields; the line's other fields are taken.
    pub(crate) refused: Vec<MappingError>,
    tags: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    measurement: Cow<'a, str>,
    name: Option<Label>,
    entity: Option<HomeAssistantEntity>,
}

/// A metric with its value, and the field that it comes from.
#[derive(Debug, Clone)]
pub(crate) struct MappedMetric<'a> {
    pub(crate) name: MetricName,
    pub(crate) value: Decimal,
    pub(crate) field: Cow<'a, str>,
}

/// The prefix in the field of a converted metric, which is added beside the sender's own metric. No sender's field
/// begins with this character.
const CONVERTED: char = '\u{0}';

/// One device of a line.
#[derive(Debug)]
pub(crate) struct LineDevice<'a> {
    pub(crate) device: DeviceId,
    pub(crate) metrics: Vec<MappedMetric<'a>>,
}

/// The fields of a line as metrics.
#[derive(Default)]
struct MappedFields<'a> {
    /// The metrics of the device that the tags name.
    of_tags: Vec<MappedMetric<'a>>,
    /// The metrics of the device whose id also has the measurement.
    of_measurement: Vec<MappedMetric<'a>>,
    strings: usize,
}

/// The devices and metrics of a line.
pub(crate) fn map<'a>(
    line: &ProtocolLine<'a>,
    rules: &MappingRules,
) -> Result<Mapped<'a>, MappingError> {
    let measurement = line.measurement.unescaped();
    let tags = line.sorted_tags();
    let entity = HomeAssistantEntity::of(line, &tags, &measurement);
    let identity = Identity::of(&tags, &measurement, entity.as_ref(), rules);

    let mut fields = MappedFields::default();
    let mut refused = Vec::new();
    for (n, (key, value)) in line.fields.iter().enumerate() {
        // If a key occurs twice, the last field counts.
        if line.fields[n + 1..].iter().all(|(later, _)| later != key) {
            let added = fields.add(key.unescaped(), *value, &measurement, entity.as_ref());
            refused.extend(added.err());
        }
    }

    let MappedFields { of_tags, of_measurement, strings } = fields;
    let mut points = Vec::with_capacity(2);
    for (mut metrics, of) in [(of_tags, None), (of_measurement, Some(&*measurement))] {
        if entity.is_none() && !MACHINES.contains(&&*measurement) {
            add_units(&mut metrics, &measurement);
        }
        if !metrics.is_empty() {
            points.push(LineDevice { device: identity.device(of)?, metrics });
        }
    }

    let room = room(&tags, rules);
    let name = described_name(line, &tags).or_else(|| identity.exact_name(&measurement));
    Ok(Mapped { points, room, strings, refused, tags, measurement, name, entity })
}

impl<'a> MappedFields<'a> {
    /// Adds a field as a metric, or refuses it. A string is only counted.
    fn add(
        &mut self,
        field: Cow<'a, str>,
        value: LineValue<'_>,
        measurement: &str,
        entity: Option<&HomeAssistantEntity>,
    ) -> Result<(), MappingError> {
        let value = match value {
            LineValue::Number(text) => decimal(text),
            LineValue::Boolean(is) => decimal(if is { "1" } else { "0" }),
            LineValue::String(_) => {
                self.strings += 1;
                return Ok(());
            }
        };
        let value = value.map_err(|why| MappingError::Number(domain::excerpt(&field), why))?;

        let (metrics, name) = match entity {
            Some(entity) => (&mut self.of_tags, metric_name(&entity.metric(&field))),
            None if field == "value" => (&mut self.of_tags, metric_name(measurement)),
            None => (&mut self.of_measurement, metric_name(&field)),
        };
        if let Some(earlier) = metrics.iter().find(|metric| metric.name == name) {
            let (earlier, later) = (domain::excerpt(&earlier.field), domain::excerpt(&field));
            return Err(MappingError::SameMetric(earlier, later, name));
        }

        metrics.push(MappedMetric { name, value, field });
        Ok(())
    }
}

/// Renames metrics whose names contain a unit to the vocabulary's names. If the units differ, a converted metric is
/// added, and the sender's metric stays for queries in the sender's words. Each name of the vocabulary is given once. A
/// metric that already has the name keeps it; else the first metric in the order of names gets it.
fn add_units(metrics: &mut Vec<MappedMetric<'_>>, measurement: &str) {
    let mut order: Vec<usize> = (0..metrics.len()).collect();
    order.sort_by(|a, b| metrics[*a].name.cmp(&metrics[*b].name));

    for n in order {
        let MappedMetric { name, value, field } = metrics[n].clone();
        let written = if field == "value" { measurement } else { &*field };
        let Some((metric, conversion)) = units::of_name(name.as_str(), written) else { continue };
        if metrics.iter().any(|known| known.name.as_str() == metric) {
            continue;
        }

        let name = metric.parse().expect("the vocabulary has names");
        if matches!(conversion, UnitConversion::Same) {
            metrics[n].name = name;
        } else if let Ok(value) = conversion.apply(value)
            && metrics.len() < MAX_FIELDS
        {
            let field = format!("{CONVERTED}{field}").into();
            metrics.push(MappedMetric { name, value, field });
        }
    }
}

impl Mapped<'_> {
    /// The facts that the line states about one of its devices.
    pub(crate) fn about(&self, point: &LineDevice<'_>) -> About {
        let tags = self.tags.iter().map(|(key, value)| (key.to_string(), value.to_string()));
        let metrics = point.metrics.iter();
        About {
            name: self.name.clone(),
            room_name: self.room.as_ref().and_then(|(_, name)| name.clone()),
            tags: tags.collect(),
            metrics: metrics
                .map(|metric| (metric.name.clone(), self.about_metric(metric)))
                .collect(),
            ..About::default()
        }
    }

    fn about_metric(&self, MappedMetric { name, field, .. }: &MappedMetric<'_>) -> AboutMetric {
        let measurement = self.measurement.to_string();
        let meaning = match &self.entity {
            Some(entity) if field == "value" => entity.about_value(),
            Some(_) => AboutMetric::default(),
            None => of_vocabulary(name, &measurement, field),
        };

        let is_sent = !field.starts_with(CONVERTED);
        let source = SourceField { measurement, field: field.to_string() };
        AboutMetric { field: is_sent.then_some(source), ..meaning }
    }
}

/// Kind and unit of a metric that was renamed to a name of the vocabulary; empty for other metrics.
fn of_vocabulary(metric: &MetricName, measurement: &str, field: &str) -> AboutMetric {
    let named = if field == "value" { measurement } else { field.trim_start_matches(CONVERTED) };
    if metric_name(named) == *metric {
        return AboutMetric::default();
    }
    let meaning = vocabulary::meaning(metric.as_str());
    let (kind, unit) = meaning.map_or((None, None), |(kind, unit)| (Some(kind), unit));
    AboutMetric { kind, unit, ..AboutMetric::default() }
}

/// The values of tags that identify a device.
#[derive(Debug)]
struct Identity<'a> {
    /// Ids from the sender's settings, used unchanged.
    given: Vec<&'a str>,
    /// The exact values of the identifying tags, in the order of the id.
    values: Vec<Cow<'a, str>>,
    /// Whether `values` is the measurement, because no tag identifies the device.
    is_measurement: bool,
    /// Whether the same parts could come from different values.
    is_ambiguous: bool,
}

impl<'a> Identity<'a> {
    fn of(
        tags: &'a [(Cow<'_, str>, Cow<'_, str>)],
        measurement: &'a str,
        entity: Option<&'a HomeAssistantEntity>,
        rules: &'a MappingRules,
    ) -> Self {
        let given = rules.prefix.iter().chain(&rules.device).map(DeviceId::as_str).collect();
        let mut values: Vec<Cow<'_, str>> = Vec::with_capacity(tags.len());
        let mut first = HOST_TAGS.into_iter().find(|name| tag(tags, name).is_some());

        if let Some(entity) = entity {
            values.push(entity.id().into());
            first = None;
        } else if rules.device_tags.is_empty() && rules.device.is_none() {
            values.extend(first.and_then(|name| tag(tags, name)).map(Cow::from));
        }

        if rules.device_tags.is_empty() {
            let others = tags.iter().filter(|(key, _)| {
                let is_of_entity = entity.is_some() && HomeAssistantEntity::has_tag(key);
                Some(&**key) != first && !is_of_entity && !describes(key, measurement)
            });
            values.extend(others.map(|(_, value)| Cow::from(&**value)));
        } else if entity.is_none() {
            let named = rules.device_tags.iter().filter_map(|name| tag(tags, name));
            values.extend(named.map(Cow::from));
        }

        let is_measurement =
            rules.device.is_none() && values.iter().all(|value| parts(value).next().is_none());
        if is_measurement {
            values = vec![measurement.into()];
        }
        let is_ambiguous = entity.is_some_and(HomeAssistantEntity::is_ambiguous);
        Self { given, values, is_measurement, is_ambiguous }
    }

    /// The parts of the id that come from the tags' values, then the parts that come from the measurement.
    fn parts<'b>(&'b self, measurement: Option<&'b str>) -> [Vec<Cow<'b, str>>; 2] {
        let measurement = measurement.filter(|_| !self.is_measurement).unwrap_or_default();
        [self.values.iter().flat_map(|value| parts(value)).collect(), parts(measurement).collect()]
    }

    fn is_readable(&self, parts: &[Vec<Cow<'_, str>>; 2]) -> bool {
        !self.is_ambiguous && are_readable(parts.iter().flatten())
    }

    /// The id of the device. With a measurement, the id of the device that has the measurement's fields.
    fn device(&self, measurement: Option<&str>) -> Result<DeviceId, MappingError> {
        let parts = self.parts(measurement);
        let [values, of_measurement] = parts.each_ref().map(|parts| parts.join(":"));
        let mut id = self.given.join(":");
        if !id.is_empty() && !values.is_empty() {
            id.push(':');
        }

        id.push_str(&values);
        if !of_measurement.is_empty() {
            id.push_str("::");
            id.push_str(&of_measurement);
        }

        finish(&id, self.is_readable(&parts), || {
            let given = self.given.iter().map(|name| Cow::from(*name));
            digest([given.collect(), parts[0].clone(), parts[1].clone()].iter())
        })
        .map_err(MappingError::Device)
    }

    /// The exact values as a name, if they cannot be read back from the id.
    fn exact_name(&self, measurement: &str) -> Option<Label> {
        let is_readable = |of: Option<&str>| self.is_readable(&self.parts(of));
        (!is_readable(None) || !is_readable(Some(measurement)))
            .then(|| self.values.join(" ").parse().ok())
            .flatten()
    }
}

fn describes(tag: &str, measurement: &str) -> bool {
    DESCRIBING_TAGS.iter().any(|(of, tags)| {
        let is_of = match *of {
            "docker" => measurement.starts_with(of),
            of => of.is_empty() || of == measurement,
        };
        is_of && tags.contains(&tag)
    })
}

fn room(
    tags: &[(Cow<'_, str>, Cow<'_, str>)],
    rules: &MappingRules,
) -> Option<(RoomId, Option<Label>)> {
    let text = match &rules.room_tag {
        Some(name) => tag(tags, name)?,
        None => ROOM_TAGS.into_iter().find_map(|name| tag(tags, name))?,
    };
    id_of(text).ok()
}

/// The device's name in a line: Home Assistant's tag `friendly_name` or field `friendly_name_str`.
fn described_name(line: &ProtocolLine<'_>, tags: &[(Cow<'_, str>, Cow<'_, str>)]) -> Option<Label> {
    let name = tag(tags, "friendly_name").map(Cow::from);
    name.or_else(|| string(line, "friendly_name_str"))?.parse().ok()
}
