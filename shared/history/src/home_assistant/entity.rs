//! The line that Home Assistant's InfluxDB integration writes for a state. Reads no database.

use super::attributes::{Attributes, float};
use super::storage::EntityEntry;
use crate::point::{
    COMMENT, Point, ROOM_TAG, Way, escaped, escaped_measurement, number, text_field,
};

/// States that stand for a number, as in `homeassistant.helpers.state.state_as_number`.
const ONE: [&str; 5] = ["on", "locked", "above_horizon", "open", "home"];
const ZERO: [&str; 5] = ["off", "unlocked", "below_horizon", "closed", "not_home"];
/// States that are not imported.
const NOTHING: [&str; 3] = ["unknown", "", "unavailable"];

/// The reason why a state becomes no point, as the report counts it.
pub(super) const UNAVAILABLE: &str = "states that are unknown or unavailable";
const NOT_FINITE: &str = "states that are not finite numbers";
const TEXT: &str = "states that are texts, without a number in their attributes";

/// An entity's id in its two parts, such as `sensor` and `kitchen`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EntityId {
    pub(super) domain: String,
    pub(super) object: String,
}

impl EntityId {
    /// Parses `sensor.kitchen`, or `tibber:cost` of external statistics. Further colons become `_`, because a colon
    /// divides the parts of a device's id.
    pub(super) fn of(text: &str) -> Option<Self> {
        let (domain, object) = text.split_once(':').or_else(|| text.split_once('.'))?;
        let object = object.replace(':', "_");
        Some(Self { domain: domain.to_owned(), object })
    }
}

/// Makes the point of a state. Returns the reason if the state becomes no point.
pub(super) fn point(
    id: &str,
    state: &str,
    attributes: &Attributes,
    nanos: i64,
    described: Option<&EntityEntry>,
) -> Result<Point, &'static str> {
    if NOTHING.contains(&state) {
        return Err(UNAVAILABLE);
    }

    let (value, is_word) = match float(state) {
        Some(value) => (Some(value), false),
        None if ONE.contains(&state) => (Some(1.0), true),
        None if ZERO.contains(&state) => (Some(0.0), true),
        None => (None, true),
    };

    // InfluxDB refuses a value that is not finite.
    if value.is_some_and(|value| !value.is_finite()) {
        return Err(NOT_FINITE);
    }

    let mut fields: Vec<(String, String)> = Vec::new();
    fields.extend(value.map(|value| ("value".to_owned(), number(value))));
    // Line protocol allows neither a field without a name nor a field `time`.
    let numbers = attributes.numbers.iter().filter(|(key, _)| !key.is_empty() && key != "time");
    for (key, number_of) in numbers {
        // An attribute with the name of a field of the state is renamed.
        let is_taken = key == "value" && value.is_some() || key == "state" && is_word;
        let key = if is_taken { format!("{key}_") } else { key.clone() };
        fields.push((escaped(&key), number(*number_of)));
    }

    if fields.is_empty() {
        return Err(TEXT);
    }

    fields.extend(
        attributes.texts.iter().map(|(key, text)| (format!("{key}_str"), text_field(text))),
    );

    Ok(line(id, attributes.unit.as_deref(), fields, nanos, described))
}

/// Makes the line of an entity, with these fields.
pub(super) fn line(
    id: &str,
    unit: Option<&str>,
    fields: Vec<(String, String)>,
    nanos: i64,
    described: Option<&EntityEntry>,
) -> Point {
    let EntityId { domain, object } = EntityId::of(id)
        .unwrap_or_else(|| EntityId { domain: "sensor".to_owned(), object: id.to_owned() });

    let area =
        described.and_then(|described| described.area.as_ref()).filter(|area| !area.is_empty());
    let area = area.map(|area| format!("{ROOM_TAG}={},", escaped(area))).unwrap_or_default();

    let whole = format!("{domain}.{object}");
    // A line that begins with this character would be a comment.
    let unit = unit.filter(|unit| !unit.starts_with(COMMENT));

    Point {
        measurement: escaped_measurement(unit.unwrap_or(&whole)),
        tags: format!("{area}domain={},entity_id={}", escaped(&domain), escaped(&object)),
        fields,
        nanos,
        line: 0,
        way: if area.is_empty() { Way::Plain } else { Way::Entity },
        hour: None,
    }
}
