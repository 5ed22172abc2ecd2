//! The way from a sender's unit to the metric's. Knows no names.

use domain::{Decimal, DecimalError};

/// The way from a unit to another of the same quantity.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Conversion {
    /// They are the same.
    Same,
    /// Times this number, exactly.
    Times(&'static str),
    /// By a formula, rounded to so many decimals.
    By(fn(f64) -> f64, usize),
}

/// Wh to kWh, mA to A, mV to V.
pub(crate) const MILLI: Conversion = Conversion::Times("0.001");
/// kW to W, klx to lx.
pub(crate) const KILO: Conversion = Conversion::Times("1000");
/// mm to cm, hectowatt-hours to kWh.
pub(crate) const TENTH: Conversion = Conversion::Times("0.1");
/// kPa to hPa.
pub(crate) const TENFOLD: Conversion = Conversion::Times("10");
/// Pa to hPa.
pub(crate) const HUNDREDTH: Conversion = Conversion::Times("0.01");
/// m to cm.
pub(crate) const HUNDREDFOLD: Conversion = Conversion::Times("100");
/// °F to °C.
pub(crate) const FAHRENHEIT: Conversion = Conversion::By(|degrees| (degrees - 32.0) / 1.8, 3);
/// mmHg to hPa.
pub(crate) const MILLIMETRES_OF_MERCURY: Conversion =
    Conversion::By(|pressure| pressure * 1.333_223_874, 3);
/// inHg to hPa.
pub(crate) const INCHES_OF_MERCURY: Conversion =
    Conversion::By(|pressure| pressure * 33.863_886_667, 3);
/// psi to hPa.
pub(crate) const PSI: Conversion = Conversion::By(|pressure| pressure * 68.947_572_932, 3);
/// km/h to m/s.
pub(crate) const KILOMETRES_PER_HOUR: Conversion = Conversion::By(|speed| speed / 3.6, 3);
/// mph to m/s.
pub(crate) const MILES_PER_HOUR: Conversion = Conversion::By(|speed| speed * 0.447_04, 3);
/// Knots to m/s.
pub(crate) const KNOTS: Conversion = Conversion::By(|speed| speed * 0.514_444, 3);
/// How far a cover is closed, in %, to how far it is open.
pub(crate) const CLOSED: Conversion = Conversion::By(|closed| 100.0 - closed, 3);
/// The tilt of slats that are level at 50 and closed at 0 and at 100, to how far they are open in %.
pub(crate) const TILT: Conversion = Conversion::By(|tilt| 100.0 - 2.0 * f64::abs(tilt - 50.0), 3);
/// Inches to mm.
pub(crate) const INCHES: Conversion = Conversion::Times("25.4");

impl Conversion {
    /// The value in the metric's unit.
    pub(crate) fn apply(self, value: Decimal) -> Result<Decimal, DecimalError> {
        match self {
            Self::Same => Ok(value),
            Self::Times(factor) => value.checked_mul(&Decimal::parse(factor)?),
            Self::By(formula, decimals) => {
                // A decimal's text is a number, and nothing of what a sensor measures is too large for it.
                let value: f64 = value.as_str().parse().unwrap_or(f64::MAX);
                Decimal::parse(&format!("{:.decimals$}", formula(value)))
            }
        }
    }
}
