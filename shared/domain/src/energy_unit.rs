//! Units of energy and of power: Wh and W, their thousands and millions. Knows no other unit.

use super::{Exact, Unit};

/// A unit of energy: Wh, kWh or `MWh`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnergyUnit {
    pub(crate) watt_hours: i64,
}

impl EnergyUnit {
    /// The unit of energy of a metric; `None` for other units.
    pub fn of(unit: Option<&Unit>) -> Option<Self> {
        multiple_of("Wh", unit).map(|watt_hours| Self { watt_hours })
    }

    /// An amount of this unit in kWh, exactly.
    pub fn to_kwh(self, amount: &Exact) -> Exact {
        let watt_hours = amount * self.watt_hours;
        &watt_hours * &Exact::parse("0.001").expect("a number")
    }

    /// 1 kWh in this unit.
    pub(crate) fn kwh(self) -> Exact {
        let kwh = Exact::from(1_000_i64).rounded_quotient(&Exact::from(self.watt_hours));
        kwh.expect("no unit is zero")
    }
}

/// The watts of a unit of power; `None` for other units.
pub fn watts(unit: Option<&Unit>) -> Option<i64> {
    multiple_of("W", unit)
}

/// The multiple of `base` that a unit is: 1, a thousand or a million. `None` for other units.
fn multiple_of(base: &str, unit: Option<&Unit>) -> Option<i64> {
    match unit?.as_str().strip_suffix(base)? {
        "" => Some(1),
        "k" => Some(1_000),
        "M" => Some(1_000_000),
        _ => None,
    }
}
