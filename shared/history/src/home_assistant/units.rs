//! Exact conversions between units of one quantity, such as energy. A conversion that would round is refused.

use std::str::FromStr as _;

use rust_decimal::Decimal;

/// Units by quantity, each with its value in one unit of the quantity. All values are exact by definition.
const UNITS: [&[(&str, &str)]; 10] = [
    &[
        ("J", "1"),
        ("kJ", "1000"),
        ("MJ", "1000000"),
        ("GJ", "1000000000"),
        ("mWh", "3.6"),
        ("Wh", "3600"),
        ("kWh", "3600000"),
        ("MWh", "3600000000"),
        ("GWh", "3600000000000"),
    ],
    &[("W", "1"), ("mW", "0.001"), ("kW", "1000"), ("MW", "1000000"), ("GW", "1000000000")],
    &[("V", "1"), ("µV", "0.000001"), ("mV", "0.001"), ("kV", "1000")],
    &[("A", "1"), ("mA", "0.001")],
    &[
        ("m³", "1"),
        ("L", "0.001"),
        ("mL", "0.000001"),
        ("ft³", "0.028316846592"),
        ("CCF", "2.8316846592"),
        ("gal", "0.003785411784"),
    ],
    &[
        ("m", "1"),
        ("mm", "0.001"),
        ("cm", "0.01"),
        ("km", "1000"),
        ("in", "0.0254"),
        ("ft", "0.3048"),
        ("yd", "0.9144"),
        ("mi", "1609.344"),
    ],
    &[
        ("g", "1"),
        ("µg", "0.000001"),
        ("mg", "0.001"),
        ("kg", "1000"),
        ("lb", "453.59237"),
        ("oz", "28.349523125"),
    ],
    &[
        ("Pa", "1"),
        ("hPa", "100"),
        ("mbar", "100"),
        ("kPa", "1000"),
        ("cbar", "1000"),
        ("bar", "100000"),
    ],
    // In metres per hour.
    &[("km/h", "1000"), ("m/s", "3600"), ("mph", "1609.344"), ("kn", "1852"), ("ft/s", "1097.28")],
    &[("s", "1"), ("ms", "0.001"), ("min", "60"), ("h", "3600"), ("d", "86400")],
];

/// A conversion of values between two units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Conversion {
    /// No conversion: the same unit, perhaps under another name.
    Same,
    /// Multiplication by a finite decimal.
    Factor(Decimal),
    /// Addition of a constant.
    Add(Decimal),
}

impl Conversion {
    /// Returns the conversion between two units; `None` if it would round.
    pub(super) fn between(from: Option<&str>, to: Option<&str>) -> Option<Self> {
        if from == to {
            return Some(Self::Same);
        }

        let (from, to) = (from?, to?);
        let zero = Decimal::new(27_315, 2);
        match (from, to) {
            ("°C", "K") => return Some(Self::Add(zero)),
            ("K", "°C") => return Some(Self::Add(-zero)),
            _ => {}
        }

        let factor = |units: &&[(&str, &str)], unit: &str| {
            units
                .iter()
                .find(|(known, _)| *known == unit)
                .and_then(|(_, factor)| Decimal::from_str(factor).ok())
        };

        let (from, to) =
            UNITS.iter().find_map(|units| Some((factor(units, from)?, factor(units, to)?)))?;

        let ratio = from.checked_div(to)?.normalize();
        if ratio.checked_mul(to)? != from {
            return None; // the ratio has no finite decimal form
        }
        Some(if ratio == Decimal::ONE { Self::Same } else { Self::Factor(ratio) })
    }

    /// Returns the converted value in line protocol; `None` if it has too many digits.
    pub(super) fn of(self, value: f64) -> Option<String> {
        let text = crate::point::number(value);
        if self == Self::Same {
            return Some(text);
        }

        let value = Decimal::from_str_exact(&text).ok()?;
        let converted = match self {
            Self::Same => value,
            Self::Factor(factor) => {
                let product = value.checked_mul(factor)?;
                // If the inverse does not give back the value, the product was rounded.
                (product.checked_div(factor)? == value).then_some(product)?
            }
            Self::Add(summand) => value.checked_add(summand)?,
        };

        Some(converted.normalize().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(value: f64, from: &str, to: &str) -> Option<String> {
        Conversion::between(Some(from), Some(to))?.of(value)
    }

    #[test]
    fn what_is_exact_is_converted_and_the_rest_is_refused() {
        for (value, from, to, expected) in [
            (1_234.567, "Wh", "kWh", Some("1.234567")),
            (1.5, "kWh", "Wh", Some("1500")),
            (0.1, "kWh", "MJ", Some("0.36")),
            (3.6, "MJ", "kWh", None),
            (20.0, "°C", "K", Some("293.15")),
            (68.0, "°F", "°C", None),
            (1.0, "m/s", "km/h", Some("3.6")),
            (1.0, "hPa", "mbar", Some("1")),
            (2.0, "m³", "L", Some("2000")),
            (1.0, "kWh", "m³", None),
            (21.5, "°C", "°C", Some("21.5")),
        ] {
            assert_eq!(converted(value, from, to).as_deref(), expected, "{value} {from} {to}");
        }
        assert_eq!(Conversion::between(None, Some("kWh")), None);
        assert_eq!(Conversion::between(None, None), Some(Conversion::Same));
    }
}
