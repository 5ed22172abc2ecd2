//! The member `about` of a reading: facts about its device that a sender adds to the values. Knows no device.

use std::collections::BTreeMap;

use domain::{About, AboutMetric, Label, MemberError, MetricName};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::body;

/// The name of the member. A number of this name is a metric.
pub const ABOUT: &str = "about";
/// The largest number of bytes that the JSON of one member may have.
pub const MAX_ABOUT: usize = 8 << 10;

/// Facts about the device, its room and the metrics of the reading. The registry learns what it does not know yet.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "About", deny_unknown_fields))]
#[serde(default, deny_unknown_fields)]
pub struct AboutBody {
    /// The device's name, until a person sets another.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Label>,
    /// The name of the room that the reading names, if the room has no name yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    room_name: Option<Label>,
    /// What identifies the device elsewhere, such as the tags of InfluxDB.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tags: BTreeMap<String, String>,
    /// What the metrics of the reading mean.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metrics: BTreeMap<MetricName, AboutMetric>,
}

impl AboutBody {
    /// Reads the JSON of a member. An error names the wrong part by its path within the member.
    pub fn read(json: &RawValue) -> Result<Self, MemberError> {
        let length = json.get().len();
        if length > MAX_ABOUT {
            let why = format!("is {length} bytes long; at most {MAX_ABOUT} are taken");
            return Err(MemberError { field: String::new(), why });
        }

        let about: Self = body::value(json)?;
        about.check()?;
        Ok(about)
    }

    /// Refuses texts that a line of line protocol cannot have, and a modulus at which no counter wraps.
    fn check(&self) -> Result<(), MemberError> {
        for (name, value) in &self.tags {
            let is_text = check_name(name).and_then(|()| check_text(value));
            is_text.map_err(|why| MemberError::of(&format!("tags.{name}"), why))?;
        }

        for (name, metric) in &self.metrics {
            let wrong = |part: &str, why: &str| MemberError {
                field: format!("metrics.{name}.{part}"),
                why: why.to_owned(),
            };
            if metric.modulus.as_ref().is_some_and(|modulus| !modulus.is_positive()) {
                return Err(wrong("modulus", "must be above zero"));
            }
            if let Some(source) = &metric.field {
                let is_text = check_text(&source.measurement);
                is_text
                    .and_then(|()| check_name(&source.field))
                    .map_err(|why| wrong("field", why))?;
            }
        }

        Ok(())
    }
}

fn check_text(text: &str) -> Result<(), &'static str> {
    match text {
        "" => Err("has an empty text"),
        _ if text.contains('\n') => Err("has a text of several lines"),
        _ => Ok(()),
    }
}

/// Checks the name of a tag or of a field.
fn check_name(name: &str) -> Result<(), &'static str> {
    if name == "time" { Err("has the reserved name \"time\"") } else { check_text(name) }
}

impl From<AboutBody> for About {
    fn from(AboutBody { name, room_name, tags, metrics }: AboutBody) -> Self {
        Self { name, room_name, tags, metrics, ..Self::default() }
    }
}

/// Leaves out the facts that only the function `ingest` adds.
impl From<About> for AboutBody {
    fn from(About { name, room_name, tags, metrics, .. }: About) -> Self {
        Self { name, room_name, tags, metrics }
    }
}

/// Adds the schema of the member to the document of the API.
#[cfg(feature = "schema")]
pub fn add_schema_to(generator: &mut schemars::SchemaGenerator) {
    generator.subschema_for::<AboutBody>();
}

#[cfg(test)]
mod tests {
    use domain::given::cases;

    use super::*;

    fn read(json: &str) -> Result<About, String> {
        let json: &RawValue = serde_json::from_str(json).expect("JSON");
        AboutBody::read(json).map(About::from).map_err(|error| error.to_string())
    }

    #[test]
    fn what_a_sender_says_is_read_and_written_with_every_part() {
        let json = r#"{"name":"Meter","room_name":"Hall","tags":{"entity_id":"meter"},"metrics":{"energy":{"kind":"counter","unit":"kWh","modulus":100000.5,"hold":"30m","role":"import","net":true,"cycle":"last_reset","field":["kWh","value"]},"power":{}}}"#;
        let about = read(json).expect("an about");
        let written = serde_json::to_string(&AboutBody::from(about.clone())).expect("JSON");
        assert_eq!(written, json);

        let by_ingest =
            About { introduced_by: Some("token".to_owned()), introduces_room: true, ..about };
        let written = serde_json::to_string(&AboutBody::from(by_ingest)).expect("JSON");
        assert_eq!(written, json, "what ingest says is not written");
        assert_eq!(read("{}"), Ok(About::default()));
        assert_eq!(
            read(r#"{"name": null, "metrics": {"t": {"unit": null}}}"#).map(|about| about.name),
            Ok(None)
        );
    }

    #[test]
    fn every_wrong_part_is_named() {
        for case in cases(include_str!("about/refused.txt")) {
            let why = read(case.given).expect_err(case.given);
            assert!(why.starts_with(case.answer()), "{case}: {why}");
        }
    }

    #[test]
    fn so_many_metrics_as_a_reading_has_and_8_kib_are_taken() {
        let metrics: Vec<String> =
            (0..domain::MAX_FIELDS).map(|n| format!(r#""m{n}":{{"unit":"V"}}"#)).collect();
        let about =
            read(&format!(r#"{{"metrics": {{{}}}}}"#, metrics.join(","))).expect("an about");
        assert_eq!(about.metrics.len(), domain::MAX_FIELDS);

        let tags = |length: usize| format!(r#"{{"tags":{{"a":"{}"}}}}"#, "x".repeat(length - 17));
        assert!(read(&tags(MAX_ABOUT)).is_ok());
        let why = read(&tags(MAX_ABOUT + 1)).expect_err("too long");
        assert!(why.contains("is 8193 bytes long; at most 8192 are taken"), "{why}");
    }
}
