//! The attributes of a state, as Home Assistant's InfluxDB integration writes them. Reads no database.
//!
//! An attribute is a number if its text parses as one. Otherwise the digits in a text make a number, as for the time in
//! `last_reset`. Lists and tables have no form in line protocol, and are left out.

use domain::Timestamp;
use serde_json::{Map, Value};

/// The text attributes from which a server learns what an entity is.
const TEACHING: [&str; 3] = ["device_class", "friendly_name", "state_class"];

/// The attributes of a state.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Attributes {
    pub(super) unit: Option<String>,
    /// The device class, friendly name and state class.
    pub(super) texts: Vec<(String, String)>,
    /// All other attributes that are numbers.
    pub(super) numbers: Vec<(String, f64)>,
    /// The start of the meter's cycle in seconds, and the number for it in `numbers`.
    pub(super) last_reset: Option<(i64, f64)>,
}

impl Attributes {
    /// Parses the JSON of the database; invalid JSON means no attributes.
    pub(super) fn of(json: &str) -> Self {
        let members: Map<String, Value> = serde_json::from_str(json).unwrap_or_default();
        let mut attributes = Self::default();
        for (key, value) in members {
            if key == "unit_of_measurement" {
                attributes.unit =
                    value.as_str().filter(|unit| !unit.is_empty()).map(ToOwned::to_owned);
                continue;
            }

            if let Some(text) = value.as_str().filter(|_| TEACHING.contains(&key.as_str())) {
                attributes.texts.push((key.clone(), text.to_owned()));
            }

            let reset = value.as_str().filter(|_| key == "last_reset");
            if let Some(number) = number(&value).filter(|number| number.is_finite()) {
                let at = reset.and_then(|text| Timestamp::parse_absolute(text).ok());
                attributes.last_reset = attributes
                    .last_reset
                    .or_else(|| Some((at?.as_millis().div_euclid(1_000), number)));
                attributes.numbers.push((key, number));
            }
        }

        attributes
    }

    /// Returns one of the attributes in `texts`.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.texts.iter().find(|(known, _)| known == key).map(|(_, text)| text.as_str())
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::Bool(is) => Some(f64::from(u8::from(*is))),
        Value::String(text) => float(text).or_else(|| digits(text)),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Parses a text as Python's `float` does.
pub(super) fn float(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

/// The number made of a text's digits, if the text has two digits in a row, or one on each side of its only point.
pub(super) fn digits(text: &str) -> Option<f64> {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let bytes = text.as_bytes();
    let has_number = match text.matches('.').count() {
        0 => bytes.windows(2).any(|two| two.iter().all(u8::is_ascii_digit)),
        1 => {
            let point = text.find('.').expect("there is one");
            is_digit(point.checked_sub(1).and_then(|before| bytes.get(before)))
                && is_digit(bytes.get(point + 1))
        }
        _ => false,
    };

    let kept: String = text.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
    has_number.then(|| kept.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_what_the_integration_writes() {
        let attributes = Attributes::of(
            r#"{"unit_of_measurement": "kWh", "device_class": "energy", "friendly_name": "Meter 12",
                "last_reset": "2024-01-01T00:00:00+00:00", "on": true, "level": "7", "x": [1, 2], "none": null,
                "version": "1.2.3", "ip": "host-12", "nan": "nan"}"#,
        );
        assert_eq!(attributes.unit.as_deref(), Some("kWh"));
        assert_eq!(attributes.text("device_class"), Some("energy"));
        assert_eq!(attributes.last_reset, Some((1_704_067_200, 202_401_010_000_000_000.0)));
        let mut numbers = attributes.numbers.clone();
        numbers.sort_by(|a, b| a.0.cmp(&b.0));
        let expected: Vec<(String, f64)> = [
            ("friendly_name", 12.0),
            ("ip", 12.0),
            ("last_reset", 202_401_010_000_000_000.0),
            ("level", 7.0),
            ("on", 1.0),
        ]
        .map(|(key, number)| (key.to_owned(), number))
        .into();
        assert_eq!(numbers, expected);
        assert_eq!(Attributes::of("no JSON"), Attributes::default());
    }

    /// As Python's `^[^\.]*\d+\.?\d+[^\.]*$`.
    #[test]
    fn digits_are_a_number_as_the_integration_s_expression_says() {
        for (text, number) in [
            ("a12b", Some(12.0)),
            ("1a2", None),
            ("v1.5", Some(1.5)),
            ("v.5", None),
            ("1.2.3", None),
            ("5", None),
            ("a1b2c34", Some(1_234.0)),
        ] {
            assert_eq!(digits(text), number, "{text}");
        }
    }
}
