//! A device's own payload, read by tables from its keys to metrics. Knows no format by name, no sender and no
//! clock.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use api::json::{Kind, WrongKind};
use domain::{Decimal, MetricName};
use serde_json::value::{RawValue, Value};

use super::vocabulary;
use crate::formats::draft::{Fault, Refusal};
use crate::formats::moment::Moment;

/// A payload that is not its format's: what was looked for, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unknown(pub(crate) &'static str);

/// What one device says at one moment; nothing where it has no numbers to tell.
#[derive(Debug)]
pub(crate) struct Payload {
    /// The device, if the payload names it.
    pub(crate) device: Option<String>,
    /// The name that people gave it.
    pub(crate) name: Option<String>,
    pub(crate) moment: Moment,
    /// The values of each part that has some; the part without a name is the device itself.
    pub(crate) parts: BTreeMap<String, BTreeMap<MetricName, Measured>>,
    /// The values that cannot be read.
    pub(crate) refused: Vec<Refusal>,
}

/// A value of one metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Measured {
    pub(crate) value: Decimal,
    /// The value at which a counter wraps to zero, where the payload tells it.
    pub(crate) modulus: Option<Decimal>,
}

/// A line of a format's table: a key, with `/` between levels, its metric, and the way to the metric's unit.
pub(crate) type Row = (&'static str, &'static str, Scale);

/// The way from a payload's unit to the metric's.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scale {
    /// It is the same.
    Same,
    /// Times this number, exactly.
    Times(&'static str),
    /// By a formula, rounded to so many decimals.
    By(fn(f64) -> f64, usize),
    /// The same, but these numbers say that there is no sensor.
    Unless(&'static [&'static str]),
    /// On and off, or true and false: 1 and 0. Any other word is left out.
    Switch,
    /// Open and closed: 1 and 0. Any other word is left out.
    Opening,
}

/// Wh to kWh, mA to A, mV to V.
pub(crate) const MILLI: Scale = Scale::Times("0.001");
/// °F to °C.
pub(crate) const FAHRENHEIT: Scale = Scale::By(|degrees| (degrees - 32.0) / 1.8, 3);

/// The depth of a tree, as `serde_json` limits it.
const MAX_DEPTH: usize = 128;

const ON: [&str; 4] = ["on", "true", "detected", "1"];
const OFF: [&str; 4] = ["off", "false", "not_detected", "0"];
const OPEN: [&str; 1] = ["open"];
const CLOSED: [&str; 2] = ["close", "closed"];

impl Payload {
    /// A payload before anything is read from it.
    pub(crate) fn new(device: Option<&str>, moment: Moment) -> Self {
        let device = device.map(str::to_owned);
        Self { device, name: None, moment, parts: BTreeMap::new(), refused: Vec::new() }
    }

    /// Takes the values of an object's keys by a table. Returns whether the object has one of the keys.
    pub(crate) fn take(&mut self, part: &str, object: &Value, rows: &[Row]) -> bool {
        let mut is_known = false;
        for (key, metric, scale) in rows {
            if let Some(value) = object.pointer(&format!("/{key}")) {
                is_known = true;
                self.put(part, key, metric, value, *scale);
            }
        }
        is_known
    }

    /// Takes a value, or names it where it cannot be read. An array is the values of phases; `null` is no value.
    pub(crate) fn put(&mut self, part: &str, key: &str, metric: &str, value: &Value, scale: Scale) {
        let phases = value.as_array().filter(|_| vocabulary::is_whole(metric));
        let Some(phases) = phases else {
            return self.put_one(part, key, metric, value, scale);
        };
        for (phase, value) in phases.iter().enumerate() {
            match vocabulary::of_phase(metric, phase) {
                Some(metric) => self.put_one(part, key, &metric, value, scale),
                None => return self.refused.push(Refusal::of(key, Fault::TooManyPhases)),
            }
        }
    }

    fn put_one(&mut self, part: &str, key: &str, metric: &str, value: &Value, scale: Scale) {
        match scale.apply(value) {
            Ok(Some(value)) => self.insert(part, metric, Measured { value, modulus: None }),
            Ok(None) => {}
            Err(fault) => self.refused.push(Refusal::of(key, fault)),
        }
    }

    /// Adds the values of one component, except those of a metric that the part has from another.
    pub(crate) fn unite(&mut self, component: &str, one: Self) {
        self.refused.extend(one.refused);
        for (part, values) in one.parts {
            let known = self.parts.entry(part).or_default();
            for (metric, measured) in values {
                match known.entry(metric) {
                    Entry::Vacant(slot) => drop(slot.insert(measured)),
                    Entry::Occupied(slot) => {
                        let fault = Fault::SharedMetric(slot.key().clone());
                        self.refused.push(Refusal::of(component, fault));
                    }
                }
            }
        }
    }

    /// Adds a value that is read.
    pub(crate) fn insert(&mut self, part: &str, metric: &str, measured: Measured) {
        debug_assert!(vocabulary::meaning(metric).is_some(), "{metric} is not in the vocabulary");
        let metric = metric.parse().expect("tables and phases have names of metrics");
        self.parts.entry(part.to_owned()).or_default().insert(metric, measured);
    }
}

impl Scale {
    /// The value in the metric's unit. Returns `None` for `null` and for a word that tells no state.
    fn apply(self, value: &Value) -> Result<Option<Decimal>, Fault> {
        let text = match value {
            Value::Null => return Ok(None),
            Value::Number(number) => number.to_string(),
            Value::String(text) if text.trim().is_empty() => return Ok(None),
            Value::String(text) => text.trim().to_owned(),
            Value::Bool(state) if matches!(self, Self::Switch) => state.to_string(),
            Value::Bool(_) => return Err(not_a_number(Kind::Boolean)),
            Value::Array(_) => return Err(not_a_number(Kind::Array)),
            Value::Object(_) => return Err(not_a_number(Kind::Object)),
        };
        let is_word = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(&text));
        Ok(Some(match self {
            Self::Switch if is_word(&ON) => Decimal::parse("1")?,
            Self::Switch if is_word(&OFF) => Decimal::parse("0")?,
            Self::Opening if is_word(&OPEN) => Decimal::parse("1")?,
            Self::Opening if is_word(&CLOSED) => Decimal::parse("0")?,
            Self::Switch | Self::Opening => return Ok(None),
            Self::Unless(none) => {
                let value = Decimal::parse(&text)?;
                if none.contains(&value.as_str()) {
                    return Ok(None);
                }
                value
            }
            Self::Same => Decimal::parse(&text)?,
            Self::Times(factor) => Decimal::parse(&text)?.checked_mul(&Decimal::parse(factor)?)?,
            Self::By(formula, decimals) => {
                // A decimal's text is a number, and nothing of what a sensor measures is too large for it.
                let value: f64 = Decimal::parse(&text)?.as_str().parse().unwrap_or(f64::MAX);
                Decimal::parse(&format!("{:.decimals$}", formula(value)))?
            }
        }))
    }
}

const fn not_a_number(found: Kind) -> Fault {
    Fault::WrongKind(WrongKind { expected: "a number", found })
}

/// The tree of a JSON text that has numbers beyond a double's range, each as a text: so it is refused where it
/// stands, and not with all others.
pub(crate) fn tree_of_any_numbers(json: &[u8]) -> Option<Value> {
    branch(serde_json::from_slice(json).ok()?, MAX_DEPTH)
}

fn branch(raw: &RawValue, depth: usize) -> Option<Value> {
    let (text, depth) = (raw.get(), depth.checked_sub(1)?);
    match Kind::of(raw) {
        Kind::Array => {
            let elements: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            elements.into_iter().map(|it| branch(it, depth)).collect()
        }
        Kind::Object => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
            members.into_iter().map(|(name, it)| Some((name, branch(it, depth)?))).collect()
        }
        Kind::Number => Some(serde_json::from_str(text).unwrap_or_else(|_| text.into())),
        _ => serde_json::from_str(text).ok(),
    }
}

/// A text of an object; none where it has no such key or another value.
pub(crate) fn text<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// The moment of a number of seconds since 1970, of a text, or of neither; 0 is a clock that is not set.
pub(crate) fn moment(value: Option<&Value>) -> Moment {
    match value {
        Some(Value::Number(number)) => Moment::parse(&number.to_string()),
        Some(Value::String(text)) => Moment::parse(text),
        _ => Moment::Arrival,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// What a format makes of a text: each device with its moment, its parts with their values, what is refused.
    pub(crate) fn shown(
        read: fn(&Value) -> Result<Vec<Payload>, Unknown>,
        text: &str,
    ) -> Result<Vec<String>, &'static str> {
        let value = serde_json::from_str(text).expect("JSON");
        let payloads = read(&value).map_err(|Unknown(expected)| expected)?;
        let mut shown = Vec::new();
        for Payload { device, moment, parts, refused, .. } in payloads {
            let device = device.unwrap_or_default();
            for (part, values) in parts {
                let values = values.iter().map(|(name, it)| {
                    let modulus = it.modulus.iter().map(|modulus| format!("%{modulus}"));
                    format!(" {name}={}{}", it.value, modulus.collect::<String>())
                });
                shown.push(format!("{device}|{part}{} {moment}", values.collect::<String>()));
            }
            shown.extend(refused.iter().map(ToString::to_string));
        }
        Ok(shown)
    }

    impl std::fmt::Display for Moment {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            match self {
                Self::Arrival => f.write_str("@arrival"),
                Self::Known(at) => write!(f, "@known {at}"),
                Self::Shown(at) => write!(f, "@{at}"),
                Self::Local(local) => write!(f, "@local {local}"),
                Self::Unset => f.write_str("@unset"),
            }
        }
    }

    #[test]
    fn a_value_is_read_in_the_metric_s_unit_or_named() {
        let read = |value: Value, scale: Scale| match scale.apply(&value) {
            Ok(value) => value.map_or("-".to_owned(), |value| value.to_string()),
            Err(fault) => fault.to_string(),
        };
        for (value, scale, expected) in [
            (json!(21.50), Scale::Same, "21.5"),
            (json!(" 21.50 "), Scale::Same, "21.5"),
            (json!(null), Scale::Same, "-"),
            (json!(""), Scale::Same, "-"),
            (json!("nan"), Scale::Same, "\"nan\" is not a number"),
            (json!(true), Scale::Same, "must be a number, not a boolean"),
            (json!({}), Scale::Same, "must be a number, not an object"),
            (json!(1885.832), MILLI, "1.885832"),
            (json!(70.5), FAHRENHEIT, "21.389"),
            (json!("32"), FAHRENHEIT, "0"),
            (json!(true), Scale::Switch, "1"),
            (json!("OFF"), Scale::Switch, "0"),
            (json!(1), Scale::Switch, "1"),
            (json!("TOGGLE"), Scale::Switch, "-"),
            (json!("OPEN"), Scale::Switch, "-"),
            (json!("OPEN"), Scale::Opening, "1"),
            (json!("closed"), Scale::Opening, "0"),
            (json!("ON"), Scale::Opening, "-"),
            (json!(999.0), Scale::Unless(&["999"]), "-"),
            (json!("-1"), Scale::Unless(&["999"]), "-1"),
        ] {
            assert_eq!(read(value.clone(), scale), expected, "{value} {scale:?}");
        }
    }

    #[test]
    fn an_array_is_phases_and_a_bad_value_takes_no_other_down() {
        let mut payload = Payload::new(None, Moment::Arrival);
        let rows: &[Row] = &[("W", "current_w", Scale::Same), ("V", "voltage", Scale::Same)];
        let object = json!({"W": [1, null, "3", "x"], "V": [0, 0, 0, 0, 0, 0, 0, 0, 9]});
        assert!(payload.take("", &object, rows));
        assert!(!payload.take("", &json!({"A": 1}), rows));
        let names: Vec<_> = payload.parts[""].keys().map(MetricName::as_str).collect();
        assert_eq!(names[..2], ["current_w_a", "current_w_c"]);
        assert_eq!(names.len(), 2 + 8);
        let refused: Vec<_> = payload.refused.iter().map(ToString::to_string).collect();
        assert_eq!(
            refused,
            ["W \"x\" is not a number", "V has more than 8 values; a phase or a relay is one of 8"]
        );
    }
}
