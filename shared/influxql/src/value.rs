//! Values of an answer, their arithmetic and their JSON. Reads no value.

use std::fmt::Write as _;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::ast::Operator;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Float(f64),
    /// A count, or a whole number in the query.
    Integer(i64),
    Boolean(bool),
    Text(String),
}

/// A whole number as a float; beyond 2^53 the nearest float.
#[expect(clippy::cast_precision_loss, reason = "InfluxQL's arithmetic is that of floats")]
pub(crate) const fn float(number: i64) -> f64 {
    number as f64
}

impl Value {
    /// The number; `None` for a boolean or a text.
    pub(crate) const fn number(&self) -> Option<f64> {
        match self {
            Self::Float(number) => Some(*number),
            Self::Integer(number) => Some(float(*number)),
            Self::Boolean(_) | Self::Text(_) => None,
        }
    }

    /// The result of an operator on two numbers. Whole numbers stay whole, except in a division. Division by zero gives
    /// 0, as in InfluxDB.
    pub(crate) fn computed(operator: Operator, sides: [&Self; 2]) -> Option<Self> {
        if let [Self::Integer(a), Self::Integer(b)] = sides {
            let whole = match operator {
                Operator::Add => a.checked_add(*b),
                Operator::Subtract => a.checked_sub(*b),
                Operator::Multiply => a.checked_mul(*b),
                Operator::Modulo if *b == 0 => Some(0),
                Operator::Modulo => a.checked_rem(*b),
                _ => None,
            };
            if whole.is_some() {
                return whole.map(Self::Integer);
            }
        }

        let (a, b) = (sides[0].number()?, sides[1].number()?);
        let number = match operator {
            Operator::Add => a + b,
            Operator::Subtract => a - b,
            Operator::Multiply => a * b,
            Operator::Divide if b == 0.0 => 0.0,
            Operator::Divide => a / b,
            Operator::Modulo => a % b,
            _ => return None,
        };
        Some(Self::Float(number))
    }

    /// The text of the value, without quotation marks.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Float(number) => number_text(*number),
            Self::Integer(number) => number.to_string(),
            Self::Boolean(value) => value.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => text.serialize(serializer),
            other => {
                let literal = RawValue::from_string(other.text());
                literal.expect("a literal of JSON").serialize(serializer)
            }
        }
    }
}

/// The shortest text of a float; without a fraction if the float is whole: `18`, not `18.0`.
fn number_text(number: f64) -> String {
    if !number.is_finite() {
        return "null".to_owned();
    }
    let size = number.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return number.to_string();
    }
    let mut text = String::new();
    write!(text, "{number:e}").expect("a text takes all that is written");
    text.replace('e', if size < 1.0 { "e" } else { "e+" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_real_server_writes_them() {
        for (number, text) in [
            (18.0, "18"),
            (0.1, "0.1"),
            (-0.5, "-0.5"),
            (0.0, "0"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e-7, "1.5e-7"),
            (1e-6, "0.000001"),
        ] {
            assert_eq!(serde_json::to_string(&Value::Float(number)).expect("JSON"), text);
        }
    }

    #[test]
    fn whole_numbers_stay_whole_but_for_a_quotient() {
        let of = |operator, a: i64, b: i64| {
            Value::computed(operator, [&Value::Integer(a), &Value::Integer(b)])
        };
        assert_eq!(of(Operator::Multiply, 2, 5), Some(Value::Integer(10)));
        assert_eq!(of(Operator::Divide, 5, 2), Some(Value::Float(2.5)));
        assert_eq!(of(Operator::Divide, 5, 0), Some(Value::Float(0.0)));
        assert_eq!(of(Operator::Multiply, i64::MAX, 2), Some(Value::Float(float(i64::MAX) * 2.0)));
        let text = Value::Text("a".to_owned());
        assert_eq!(Value::computed(Operator::Add, [&text, &Value::Integer(1)]), None);
    }
}
