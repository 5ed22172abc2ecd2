//! Decimals of any length, for sums that must lose no digit. Rounds only where the name says so.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, AddAssign, Mul, Neg, Sub};

use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::BigInt;
use bigdecimal::num_traits::{Euclid as _, Zero as _};
use bigdecimal::rounding::RoundingMode;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Decimal, DecimalError};

/// A decimal number of any length.
///
/// A [`Decimal`] has at most 38 digits, which a sum of decimals exceeds: 1e20 + 1e-20 has 41.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exact(BigDecimal);

/// The significant digits of a quotient or an integral that is shown.
const SHOWN_DIGITS: std::num::NonZeroU64 = std::num::NonZeroU64::new(15).expect("not zero");
/// The decimals of a part of a step, see [`Exact::part`].
const PART_DECIMALS: u32 = 9;

impl Exact {
    /// Zero.
    #[must_use]
    pub fn zero() -> Self {
        Self(BigDecimal::zero())
    }

    /// Reads what [`Display`](fmt::Display) writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(|value: BigDecimal| Self(value.normalized()))
    }

    /// The number as a [`Decimal`], if it has few enough digits and is not too large or too small.
    pub fn to_decimal(&self) -> Result<Decimal, DecimalError> {
        Decimal::parse(&self.0.to_scientific_notation())
    }

    /// The quotient, rounded half to even to 15 significant digits. `None` if the divisor is zero.
    #[must_use]
    pub fn rounded_quotient(&self, divisor: &Self) -> Option<Self> {
        if divisor.0.is_zero() {
            return None;
        }
        Some(Self(&self.0 / &divisor.0).rounded())
    }

    /// The number, rounded half to even to 15 significant digits.
    #[must_use]
    pub fn rounded(&self) -> Self {
        Self(self.0.with_precision_round(SHOWN_DIGITS, RoundingMode::HalfEven).normalized())
    }

    /// This number times `elapsed` / `whole`, rounded down to 9 decimals; the whole of it where they are
    /// equal.
    ///
    /// The differences of such parts at consecutive edges add up to the number itself, to the last digit.
    #[must_use]
    pub fn part(&self, elapsed: i64, whole: i64) -> Self {
        if elapsed == whole {
            return self.clone();
        }
        let (digits, scale) = self.0.as_bigint_and_exponent();
        let ten = BigInt::from(10);
        let power = |exponent: u64| ten.pow(u32::try_from(exponent).unwrap_or(u32::MAX));
        let mut numerator = digits * elapsed * ten.pow(PART_DECIMALS);
        let mut denominator = BigInt::from(whole);
        if scale < 0 {
            numerator *= power(scale.unsigned_abs());
        } else {
            denominator *= power(scale.unsigned_abs());
        }
        // Euclid's quotient by a positive divisor is rounded down.
        let quotient = numerator.div_euclid(&denominator);
        Self(BigDecimal::new(quotient, PART_DECIMALS.into()).normalized())
    }

    /// The place value of the last decimal: 0.1 for 8048.1, 1 for whole numbers.
    #[must_use]
    pub fn resolution(&self) -> Self {
        let (_, scale) = self.0.normalized().as_bigint_and_exponent();
        Self(BigDecimal::new(1.into(), scale.max(0)))
    }

    /// Whether it is greater than zero.
    #[must_use]
    pub fn is_positive(&self) -> bool {
        self.0 > BigDecimal::zero()
    }

    /// Whether it is less than zero.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.0 < BigDecimal::zero()
    }
}

impl From<&Decimal> for Exact {
    fn from(decimal: &Decimal) -> Self {
        Self(decimal.as_str().parse().expect("a decimal's text is a number"))
    }
}

impl From<i64> for Exact {
    fn from(number: i64) -> Self {
        Self(number.into())
    }
}

impl From<u64> for Exact {
    fn from(number: u64) -> Self {
        Self(number.into())
    }
}

impl AddAssign<&Exact> for Exact {
    fn add_assign(&mut self, other: &Self) {
        self.0 += &other.0;
    }
}

impl Add for &Exact {
    type Output = Exact;
    fn add(self, other: Self) -> Exact {
        Exact(&self.0 + &other.0)
    }
}

impl Sub for &Exact {
    type Output = Exact;
    fn sub(self, other: Self) -> Exact {
        Exact(&self.0 - &other.0)
    }
}

impl Mul for &Exact {
    type Output = Exact;
    fn mul(self, other: Self) -> Exact {
        Exact(&self.0 * &other.0)
    }
}

impl Mul<i64> for &Exact {
    type Output = Exact;
    fn mul(self, factor: i64) -> Exact {
        Exact(&self.0 * BigDecimal::from(factor))
    }
}

impl Neg for &Exact {
    type Output = Exact;
    fn neg(self) -> Exact {
        Exact(-&self.0)
    }
}

impl Ord for Exact {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Exact {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// As a [`Decimal`] writes it, if it is one; else in scientific notation. One number has one text.
impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_decimal() {
            Ok(decimal) => decimal.fmt(f),
            Err(_) => f.write_str(&self.0.normalized().to_scientific_notation()),
        }
    }
}

impl Serialize for Exact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_string())
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exact(text: &str) -> Exact {
        Exact::parse(text).expect("a number")
    }

    #[test]
    fn a_sum_keeps_what_a_decimal_cannot() {
        let mut sum = exact("1e20");
        sum += &exact("1e-20");
        assert!(matches!(sum.to_decimal(), Err(DecimalError::TooPrecise(41))));
        assert_eq!(Exact::parse(&sum.to_string()), Some(sum.clone()));
        sum += &exact("-1e20");
        assert_eq!(sum.to_string(), "0.00000000000000000001");
    }

    #[test]
    fn a_quotient_has_15_digits_and_a_tie_goes_to_the_even_digit() {
        let quotient =
            |a: &str, b: &str| exact(a).rounded_quotient(&exact(b)).map(|q| q.to_string());
        assert_eq!(quotient("1", "3").as_deref(), Some("0.333333333333333"));
        assert_eq!(quotient("2", "3").as_deref(), Some("0.666666666666667"));
        assert_eq!(quotient("43", "2").as_deref(), Some("21.5"));
        assert_eq!(quotient("1.000000000000005", "1").as_deref(), Some("1"));
        assert_eq!(quotient("1.000000000000015", "1").as_deref(), Some("1.00000000000002"));
        assert_eq!(quotient("-2", "3").as_deref(), Some("-0.666666666666667"));
        assert_eq!(quotient("1", "0"), None);
        assert_eq!(exact("1234567890123456").rounded().to_string(), "1234567890123460");
    }

    #[test]
    fn a_part_is_rounded_down() {
        assert_eq!(exact("1").part(1, 3).to_string(), "0.333333333");
        assert_eq!(exact("-1").part(1, 3).to_string(), "-0.333333334");
        assert_eq!(exact("1e3").part(1, 3).to_string(), "333.333333333");
        assert_eq!(exact("0.00000000001").part(3, 3).to_string(), "0.00000000001");
        assert_eq!(exact("7").part(0, 3), Exact::zero());
    }

    #[test]
    fn the_resolution_is_that_of_the_last_decimal() {
        for (number, resolution) in
            [("8048.1", "0.1"), ("8048", "1"), ("8000", "1"), ("0.25", "0.01")]
        {
            assert_eq!(exact(number).resolution(), exact(resolution), "{number}");
        }
    }

    proptest! {
        #[test]
        fn one_number_has_one_text(digits in any::<i64>(), exponent in -200i32..200, zeros in 0u8..5) {
            let number = exact(&format!("{digits}e{exponent}"));
            let (more, less) = ("0".repeat(zeros.into()), exponent - i32::from(zeros));
            let same = exact(&format!("{digits}{more}e{less}"));
            prop_assert_eq!(number.to_string(), same.to_string());
            prop_assert_eq!(&exact(&number.to_string()), &number);
        }
    }
}
