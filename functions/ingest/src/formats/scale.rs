//! Converts values of payloads to values of metrics: numbers in another unit, words that stand for states. Knows no
//! key.

use api::json::{JsonKind, WrongKind};
use domain::Decimal;
use serde_json::Value;

use super::units::{HUNDREDTH, UnitConversion};
use crate::formats::draft::Fault;

/// The conversion of a payload's value to the metric's value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scale {
    /// A number, converted from its unit.
    Number(UnitConversion),
    /// A share between 0 and 1. A value above 1 is read as a percentage.
    Share,
    /// An unchanged number, unless it is listed: then there is no sensor.
    Unless(&'static [&'static str]),
    /// An unchanged number. A word or a boolean is not taken, as it belongs to another metric.
    IfNumber,
    /// Words with the numbers for which they stand, in upper or lower case. A boolean is read as the word `true` or
    /// `false`.
    Words(&'static [(&'static str, &'static str)]),
}

/// A number that is already in the metric's unit.
pub(crate) const SAME: Scale = Scale::Number(UnitConversion::Same);
/// Wh to kWh, mA to A, mV to V.
pub(crate) const MILLI: Scale = Scale::Number(super::units::MILLI);
/// °F to °C.
pub(crate) const FAHRENHEIT: Scale = Scale::Number(super::units::FAHRENHEIT);

/// Words for on or true, 1, and for off or false, 0.
pub(crate) const SWITCH: Scale = Scale::Words(&[
    ("on", "1"),
    ("true", "1"),
    ("detected", "1"),
    ("1", "1"),
    ("off", "0"),
    ("false", "0"),
    ("not_detected", "0"),
    ("0", "0"),
]);

/// The booleans only: a number with the same key belongs to another metric.
pub(crate) const TRUTH: Scale = Scale::Words(&[("true", "1"), ("false", "0")]);

/// Words for open, 1, and for closed, 0.
pub(crate) const OPENING: Scale = Scale::Words(&[
    ("open", "1"),
    ("opened", "1"),
    ("timeoutnotclose", "1"),
    ("close", "0"),
    ("closed", "0"),
]);

/// Words for locked, 1, and for not locked, 0.
pub(crate) const LOCK: Scale = Scale::Words(&[
    ("lock", "1"),
    ("locked", "1"),
    ("unlock", "0"),
    ("unlocked", "0"),
    ("not_fully_locked", "0"),
]);

/// The result of converting a payload's value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Scaled {
    /// A value.
    Value(Decimal),
    /// No value: `null`, an empty text, or a number that means that there is no sensor.
    Nothing,
    /// A word that stands for no state.
    UnknownWord,
}

impl Scale {
    /// Whether values stay unchanged.
    pub(crate) const fn is_same(self) -> bool {
        matches!(self, Self::Number(UnitConversion::Same) | Self::Unless(_) | Self::IfNumber)
    }

    /// Converts a value to the metric's unit.
    pub(crate) fn apply(self, value: &Value) -> Result<Scaled, Fault> {
        let text = match value {
            Value::Null => return Ok(Scaled::Nothing),
            Value::Number(number) => number.to_string(),
            Value::String(text) if text.trim().is_empty() => return Ok(Scaled::Nothing),
            Value::String(text) => text.trim().to_owned(),
            Value::Bool(state) if matches!(self, Self::Words(_)) => state.to_string(),
            Value::Bool(_) if matches!(self, Self::IfNumber) => return Ok(Scaled::UnknownWord),
            Value::Bool(_) => return Err(not_a_number(JsonKind::Boolean)),
            Value::Array(_) => return Err(not_a_number(JsonKind::Array)),
            Value::Object(_) => return Err(not_a_number(JsonKind::Object)),
        };

        Ok(Scaled::Value(match self {
            Self::Words(words) => {
                let known = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(&text));
                let Some((_, number)) = known else { return Ok(Scaled::UnknownWord) };
                Decimal::parse(number)?
            }
            Self::Unless(none) => {
                let value = Decimal::parse(&text)?;
                if none.contains(&value.as_str()) {
                    return Ok(Scaled::Nothing);
                }
                value
            }
            Self::Share => {
                let value = Decimal::parse(&text)?;
                let is_percent = value.as_str().parse().is_ok_and(|share: f64| share.abs() > 1.0);
                if is_percent { HUNDREDTH.apply(value)? } else { value }
            }
            Self::IfNumber => match Decimal::parse(&text) {
                Ok(value) => value,
                Err(_) if value.is_string() => return Ok(Scaled::UnknownWord),
                Err(why) => return Err(why.into()),
            },
            Self::Number(conversion) => conversion.apply(Decimal::parse(&text)?)?,
        }))
    }
}

const fn not_a_number(found: JsonKind) -> Fault {
    Fault::WrongKind(WrongKind { expected: "a number", found })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::units::{CLOSED, TILT};
    use super::*;

    #[test]
    fn a_value_is_read_in_the_metric_s_unit_or_named() {
        let read = |value: Value, scale: Scale| match scale.apply(&value) {
            Ok(Scaled::Value(value)) => value.to_string(),
            Ok(Scaled::Nothing) => "-".to_owned(),
            Ok(Scaled::UnknownWord) => "?".to_owned(),
            Err(fault) => fault.to_string(),
        };
        for (value, scale, expected) in [
            (json!(21.50), SAME, "21.5"),
            (json!(" 21.50 "), SAME, "21.5"),
            (json!(null), SAME, "-"),
            (json!(""), SAME, "-"),
            (json!("nan"), SAME, "\"nan\" is not a number"),
            (json!(true), SAME, "must be a number, not a boolean"),
            (json!({}), SAME, "must be a number, not an object"),
            (json!(1885.832), MILLI, "1.885832"),
            (json!(70.5), FAHRENHEIT, "21.389"),
            (json!("32"), FAHRENHEIT, "0"),
            (json!(true), SWITCH, "1"),
            (json!("OFF"), SWITCH, "0"),
            (json!(1), SWITCH, "1"),
            (json!("TOGGLE"), SWITCH, "?"),
            (json!("OPEN"), SWITCH, "?"),
            (json!("OPEN"), OPENING, "1"),
            (json!("closed"), OPENING, "0"),
            (json!("ON"), OPENING, "?"),
            (json!("UNLOCK"), LOCK, "0"),
            (json!(999.0), Scale::Unless(&["999"]), "-"),
            (json!("-1"), Scale::Unless(&["999"]), "-1"),
            (json!(98), Scale::Share, "0.98"),
            (json!(-0.5), Scale::Share, "-0.5"),
            (json!(1), Scale::Share, "1"),
            (json!("bright"), Scale::IfNumber, "?"),
            (json!("40"), Scale::IfNumber, "40"),
            (json!(true), Scale::IfNumber, "?"),
            (json!(1), TRUTH, "?"),
            (json!(true), TRUTH, "1"),
            (json!(40), Scale::Number(CLOSED), "60"),
            (json!("68"), Scale::Number(TILT), "64"),
            (json!(50), Scale::Number(TILT), "100"),
            (json!(0), Scale::Number(TILT), "0"),
        ] {
            assert_eq!(read(value.clone(), scale), expected, "{value} {scale:?}");
        }
    }
}
