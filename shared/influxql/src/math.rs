//! The mathematical functions of InfluxQL, which compute a number from the numbers of a row. Knows no points.

use crate::value::Value;

/// A function of one number or two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Math {
    name: &'static str,
    of: Of,
}

#[derive(Debug, Clone, Copy)]
enum Of {
    One(fn(f64) -> f64),
    /// A function of one number that leaves whole numbers whole.
    Rounded(fn(f64) -> f64),
    Two(fn(f64, f64) -> f64),
}

impl PartialEq for Of {
    /// Always true: `Math` compares the names of functions instead.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

const FUNCTIONS: [(&str, Of); 18] = [
    ("abs", Of::Rounded(f64::abs)),
    ("ceil", Of::Rounded(f64::ceil)),
    ("floor", Of::Rounded(f64::floor)),
    ("round", Of::Rounded(f64::round)),
    ("acos", Of::One(f64::acos)),
    ("asin", Of::One(f64::asin)),
    ("atan", Of::One(f64::atan)),
    ("cos", Of::One(f64::cos)),
    ("exp", Of::One(f64::exp)),
    ("ln", Of::One(f64::ln)),
    ("log10", Of::One(f64::log10)),
    ("log2", Of::One(f64::log2)),
    ("sin", Of::One(f64::sin)),
    ("sqrt", Of::One(f64::sqrt)),
    ("tan", Of::One(f64::tan)),
    ("atan2", Of::Two(f64::atan2)),
    ("log", Of::Two(|number, base| number.ln() / base.ln())),
    ("pow", Of::Two(f64::powf)),
];

impl Math {
    /// The function of a name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let (name, of) = FUNCTIONS.into_iter().find(|(known, _)| *known == name)?;
        Some(Self { name, of })
    }

    /// The number of arguments that the function takes.
    pub(crate) const fn arguments(self) -> usize {
        if matches!(self.of, Of::Two(_)) { 2 } else { 1 }
    }

    /// The value of the function; `None` if there is no such number, as for the root of a negative number.
    pub(crate) fn value(self, arguments: &[Option<Value>]) -> Option<Value> {
        let number = |n: usize| arguments.get(n)?.as_ref()?.number();
        let number = match self.of {
            Of::Rounded(of) => match arguments.first()?.as_ref()? {
                Value::Integer(whole) if self.name == "abs" => {
                    return whole.checked_abs().map(Value::Integer);
                }
                whole @ Value::Integer(_) => return Some(whole.clone()),
                _ => of(number(0)?),
            },
            Of::One(of) => of(number(0)?),
            Of::Two(of) => of(number(0)?, number(1)?),
        };

        number.is_finite().then_some(Value::Float(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_numbers_or_nothing() {
        let of = |name: &str, arguments: &[f64]| {
            let arguments: Vec<_> = arguments.iter().map(|it| Some(Value::Float(*it))).collect();
            let value = Math::of(name).expect(name).value(&arguments)?;
            value.number()
        };
        for (name, arguments, expected) in [
            ("round", &[2.5][..], Some(3.0)),
            ("round", &[-2.5], Some(-3.0)),
            ("abs", &[-2.0], Some(2.0)),
            ("sqrt", &[-2.0], None),
            ("ln", &[0.0], None),
            ("asin", &[2.0], None),
            ("pow", &[9.0, 0.5], Some(3.0)),
            ("pow", &[9.0], None),
            ("atan2", &[0.0, -1.0], Some(std::f64::consts::PI)),
            ("log2", &[8.0], Some(3.0)),
        ] {
            assert_eq!(of(name, arguments), expected, "{name} {arguments:?}");
        }
        let whole =
            |name: &str, of: i64| Math::of(name).expect(name).value(&[Some(Value::Integer(of))]);
        assert_eq!(whole("abs", -3), Some(Value::Integer(3)));
        assert_eq!(whole("abs", i64::MIN), None);
        assert_eq!(whole("round", 3), Some(Value::Integer(3)));
        assert_eq!(Math::of("mean"), None);
    }
}
