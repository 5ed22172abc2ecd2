//! Lines of Home Assistant: an entity, its device class and its unit. Reads no other sender's lines.
//!
//! Sources: <https://www.home-assistant.io/integrations/influxdb/>, and for the meaning of state classes
//! <https://developers.home-assistant.io/docs/core/entity/sensor/>

use std::borrow::Cow;

use domain::{AboutMetric, MetricKind, MetricName, Role};

use crate::formats::line_protocol::{LineValue, ProtocolLine, Text};

/// The tags that describe an entity or are part of its id.
const TAGS: [&str; 8] = [
    "domain",
    "entity_id",
    "source",
    "icon",
    "device_class",
    "state_class",
    "unit_of_measurement",
    "attribution",
];

/// Device classes with their usual units.
const CLASSES: [(&str, &str); 24] = [
    ("apparent_power", "VA"),
    ("atmospheric_pressure", "hPa"),
    ("battery", "%"),
    ("carbon_dioxide", "ppm"),
    ("carbon_monoxide", "ppm"),
    ("current", "A"),
    ("data_rate", "Mbit/s"),
    ("data_size", "GiB"),
    ("distance", "m"),
    ("duration", "s"),
    ("energy", "kWh"),
    ("frequency", "Hz"),
    ("gas", "m³"),
    ("humidity", "%"),
    ("illuminance", "lx"),
    ("irradiance", "W/m²"),
    ("power", "W"),
    ("power_factor", "%"),
    ("precipitation", "mm"),
    ("pressure", "hPa"),
    ("reactive_power", "var"),
    ("temperature", "°C"),
    ("voltage", "V"),
    ("water", "m³"),
];

/// Units that belong to a single device class, with this class.
const QUANTITIES: [(&str, &str); 25] = [
    ("°C", "temperature"),
    ("°F", "temperature"),
    ("K", "temperature"),
    ("mW", "power"),
    ("W", "power"),
    ("kW", "power"),
    ("MW", "power"),
    ("Wh", "energy"),
    ("kWh", "energy"),
    ("MWh", "energy"),
    ("mV", "voltage"),
    ("V", "voltage"),
    ("mA", "current"),
    ("A", "current"),
    ("hPa", "pressure"),
    ("kPa", "pressure"),
    ("mbar", "pressure"),
    ("inHg", "pressure"),
    ("lx", "illuminance"),
    ("Hz", "frequency"),
    ("VA", "apparent_power"),
    ("var", "reactive_power"),
    ("W/m²", "irradiance"),
    ("Mbit/s", "data_rate"),
    ("GiB", "data_size"),
];

/// Device classes that Roomtide calls by another name, with this name.
const NAMES: [(&str, &str); 2] = [("carbon_dioxide", "co2"), ("atmospheric_pressure", "pressure")];

/// The entity that a line describes.
#[derive(Debug, Clone)]
pub(super) struct HomeAssistantEntity {
    domain: String,
    id: String,
    class: Option<String>,
    unit: Option<String>,
    state_class: Option<String>,
    /// The id and the friendly name, with a space between.
    names: String,
}

/// The metric of the attribute `last_reset`: when the cycle of a meter began. Home Assistant sends the digits of the
/// date as a number.
const LAST_RESET: &str = "attr_last_reset";

impl HomeAssistantEntity {
    /// The entity of a line that has the tags `domain` and `entity_id`.
    pub(super) fn of(
        line: &ProtocolLine<'_>,
        tags: &[(Cow<'_, str>, Cow<'_, str>)],
        measurement: &str,
    ) -> Option<Self> {
        let tag = |name: &str| tag(tags, name).map(ToOwned::to_owned);
        let said = |name: &str| {
            tag(name).or_else(|| string(line, &format!("{name}_str")).map(Cow::into_owned))
        };
        let (domain, id) = (tag("domain")?, tag("entity_id")?);

        let is_class = |text: &str| CLASSES.iter().any(|(class, _)| *class == text);
        let (_, behind_domain) = measurement.split_once("__").unwrap_or(("", measurement));
        let class_of_measurement = Some(behind_domain).filter(|text| is_class(text));
        let is_unit = class_of_measurement.is_none()
            && !measurement.contains("__")
            && measurement != "units"
            && measurement != "state"
            && measurement != domain
            && measurement != id
            && measurement.split_once('.') != Some((&domain, &id));
        let unit = said("unit_of_measurement").or_else(|| is_unit.then(|| measurement.to_owned()));

        let class = said("device_class").or_else(|| class_of_measurement.map(ToOwned::to_owned));
        let quantity = || {
            let known = QUANTITIES.iter().find(|(known, _)| unit.as_deref() == Some(*known));
            known.map(|(_, class)| (*class).to_owned())
        };
        let class = class.or_else(quantity);

        let names = format!("{id} {}", said("friendly_name").unwrap_or_default());
        Some(Self { class, domain, id, unit, state_class: said("state_class"), names })
    }

    /// Whether a tag describes an entity or is part of its id.
    pub(super) fn has_tag(name: &str) -> bool {
        TAGS.contains(&name)
    }

    /// The id of the entity, as Home Assistant shows it.
    pub(super) fn id(&self) -> String {
        format!("{}.{}", self.domain, self.id)
    }

    /// Whether another entity may have the same id, because the domain contains `.`, which separates it from the rest.
    pub(super) fn is_ambiguous(&self) -> bool {
        self.domain.contains('.')
    }

    /// The text from which the name of a field's metric is made.
    pub(super) fn metric(&self, field: &str) -> String {
        if field != "value" {
            return format!("attr_{field}");
        }
        let Some(class) = &self.class else { return field.to_owned() };
        let name = NAMES.iter().find(|(theirs, _)| theirs == class).map(|(_, ours)| *ours);
        let name = name.unwrap_or(class);
        let usual = CLASSES.iter().find(|(known, _)| known == class).map(|(_, unit)| *unit);
        match (usual, self.unit.as_deref()) {
            (Some(usual), Some(unit)) if usual != unit => format!("{name}_{}", suffix(unit)),
            _ => name.to_owned(),
        }
    }

    /// The meaning of the metric of the field `value`.
    pub(super) fn about_value(&self) -> AboutMetric {
        let is_one_of =
            |known: &[&str]| self.unit.as_deref().is_some_and(|unit| known.contains(&unit));
        let is_class = |class: &str| self.class.as_deref() == Some(class);
        let is_energy = is_class("energy") && is_one_of(&["Wh", "kWh", "MWh"]);
        let is_power = is_class("power") && is_one_of(&["W", "kW", "MW"]);
        // A value of the state class `total` may fall, as that of a net meter. Only a new `last_reset` begins a cycle.
        let is_net = is_energy && self.state_class.as_deref() == Some("total");
        let is_counter = is_net || self.state_class.as_deref() == Some("total_increasing");
        let cycle = || LAST_RESET.parse::<MetricName>().expect("a name");

        AboutMetric {
            kind: is_counter.then_some(MetricKind::Counter),
            unit: self.unit.as_deref().and_then(|unit| unit.parse().ok()),
            role: Role::of_name(&self.names).filter(|_| is_energy || is_power),
            is_net,
            cycle: is_net.then(cycle),
            ..AboutMetric::default()
        }
    }
}

/// The suffix of a metric's name for its unit: the unit's letters and digits. `M` becomes `mega`, since a small `m` is
/// another unit.
fn suffix(unit: &str) -> String {
    let (mega, unit) = match unit.strip_prefix('M') {
        Some(rest) if !rest.is_empty() => ("mega", rest),
        _ => ("", unit),
    };

    let letters = unit.chars().filter_map(|c| match c {
        'µ' | 'μ' => Some('u'),
        '²' => Some('2'),
        '³' => Some('3'),
        '%' => Some('p'),
        '/' | ' ' => Some('_'),
        c => c.is_ascii_alphanumeric().then(|| c.to_ascii_lowercase()),
    });
    mega.chars().chain(letters).collect()
}

/// The value of a tag.
pub(super) fn tag<'t>(tags: &'t [(Cow<'_, str>, Cow<'_, str>)], name: &str) -> Option<&'t str> {
    tags.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
}

/// The text of a string field.
pub(super) fn string<'a>(line: &ProtocolLine<'a>, field: &str) -> Option<Cow<'a, str>> {
    line.fields.iter().find_map(|(key, value)| match value {
        LineValue::String(text) if key.unescaped() == field => Some(Text::unescaped(*text)),
        _ => None,
    })
}
