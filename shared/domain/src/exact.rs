//! Decimals of any length, for sums that must lose no digit. A function rounds only if its name says so.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, AddAssign, Mul, Neg, Sub};

use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::BigInt;
use bigdecimal::num_traits::{Euclid as _, ToPrimitive as _};
use bigdecimal::rounding::RoundingMode;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::decimal::small::{Small, power};
use super::{Decimal, DecimalError};

/// A decimal number of any length.
///
/// A [`Decimal`] has at most 38 digits, and a sum of decimals may need more: 1e20 + 1e-20 has 41.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exact(Number);

/// A number that is small if it fits, else large, so each number has only one form.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Number {
    Small(Small),
    Large(BigDecimal),
}

/// The number of significant digits to which a shown quotient or integral is rounded.
const SHOWN_DIGITS: std::num::NonZeroU64 = std::num::NonZeroU64::new(15).expect("not zero");
/// The number of decimals to which [`Exact::part`] rounds.
const PART_DECIMALS: u32 = 9;

impl Exact {
    /// Zero.
    pub const fn zero() -> Self {
        Self(Number::Small(Small::ZERO))
    }

    /// Reads a text that [`Display`](fmt::Display) writes.
    pub fn parse(text: &str) -> Option<Self> {
        match Small::parse(text) {
            Some(small) => Some(Self(Number::Small(small))),
            None => text.parse().ok().as_ref().map(Self::of_large),
        }
    }

    fn of(digits: i128, scale: i64) -> Self {
        let large = || BigDecimal::new(digits.into(), scale).normalized();
        Self(Small::new(digits, scale).map_or_else(|| Number::Large(large()), Number::Small))
    }

    fn of_large(number: &BigDecimal) -> Self {
        let number = number.normalized();
        let (digits, scale) = number.as_bigint_and_exponent();
        let small = digits.to_i128().and_then(|digits| Small::new(digits, scale));
        Self(small.map_or_else(|| Number::Large(number), Number::Small))
    }

    fn large(&self) -> BigDecimal {
        match &self.0 {
            Number::Small(small) => BigDecimal::new(small.digits().into(), small.scale().into()),
            Number::Large(large) => large.clone(),
        }
    }

    /// The number as a [`Decimal`], if it has few enough digits and is not too large or too small.
    pub fn to_decimal(&self) -> Result<Decimal, DecimalError> {
        match &self.0 {
            Number::Small(small) => Ok((*small).into()),
            Number::Large(large) => Decimal::parse(&large.to_scientific_notation()),
        }
    }

    /// The quotient, rounded half to even to 15 significant digits. `None` if the divisor is zero.
    pub fn rounded_quotient(&self, divisor: &Self) -> Option<Self> {
        if *divisor == Self::zero() {
            return None;
        }
        if let (Number::Small(one), Number::Small(two)) = (&self.0, &divisor.0)
            && let Some(quotient) = one.rounded_quotient(*two)
        {
            return Some(Self(Number::Small(quotient)));
        }
        Some(Self::of_large(&(self.large() / divisor.large())).rounded())
    }

    /// The number, rounded half to even to 15 significant digits.
    #[must_use]
    pub fn rounded(&self) -> Self {
        if let Number::Small(small) = &self.0
            && let Some(rounded) = small.rounded()
        {
            return Self(Number::Small(rounded));
        }
        Self::of_large(&self.large().with_precision_round(SHOWN_DIGITS, RoundingMode::HalfEven))
    }

    /// The number, rounded to some decimals: down towards zero, or half away from zero.
    #[must_use]
    pub fn to_decimals(&self, decimals: u8, is_down: bool) -> Self {
        let mode = if is_down { RoundingMode::Down } else { RoundingMode::HalfUp };
        Self::of_large(&self.large().with_scale_round(decimals.into(), mode))
    }

    /// The text with exactly this number of decimals, as money is written. Further digits are cut off.
    pub fn fixed(&self, decimals: u8) -> String {
        self.large().with_scale(decimals.into()).to_plain_string()
    }

    /// This number times `elapsed` / `whole`, rounded down to 9 decimals; the number itself if the two are equal.
    ///
    /// The differences of such parts at consecutive edges add up to the number itself, to the last digit.
    #[must_use]
    pub fn part(&self, elapsed: i64, whole: i64) -> Self {
        if elapsed == whole {
            return self.clone();
        }

        if let Number::Small(small) = &self.0 {
            let numerator = i128::from(small.digits())
                .checked_mul(elapsed.into())
                .and_then(|product| product.checked_mul(power(PART_DECIMALS)));
            let denominator = i128::from(whole).checked_mul(power(small.scale()));
            if let (Some(numerator), Some(denominator)) = (numerator, denominator) {
                // Euclidean division by a positive divisor rounds down.
                return Self::of(numerator.div_euclid(denominator), PART_DECIMALS.into());
            }
        }

        let large = self.large();
        let (digits, scale) = large.as_bigint_and_exponent();
        let ten = BigInt::from(10);
        let power = |exponent: u64| ten.pow(u32::try_from(exponent).unwrap_or(u32::MAX));

        let mut numerator = digits * elapsed * ten.pow(PART_DECIMALS);
        let mut denominator = BigInt::from(whole);
        if scale < 0 {
            numerator *= power(scale.unsigned_abs());
        } else {
            denominator *= power(scale.unsigned_abs());
        }

        let quotient = numerator.div_euclid(&denominator);
        Self::of_large(&BigDecimal::new(quotient, PART_DECIMALS.into()))
    }

    /// The place value of the last decimal: 0.1 for 8048.1, 1 for whole numbers.
    #[must_use]
    pub fn resolution(&self) -> Self {
        match &self.0 {
            Number::Small(small) => Self::of(1, small.scale().into()),
            Number::Large(large) => {
                let (_, scale) = large.as_bigint_and_exponent();
                Self::of_large(&BigDecimal::new(1.into(), scale.max(0)))
            }
        }
    }

    /// Whether the number is greater than zero.
    pub fn is_positive(&self) -> bool {
        *self > Self::zero()
    }

    /// Whether the number is less than zero.
    pub fn is_negative(&self) -> bool {
        *self < Self::zero()
    }

    /// Combines two numbers: by `small` if both are small, else by `large`.
    fn combine(
        &self,
        other: &Self,
        small: impl FnOnce(Small, Small) -> (i128, i64),
        large: impl FnOnce(BigDecimal, BigDecimal) -> BigDecimal,
    ) -> Self {
        match (&self.0, &other.0) {
            (Number::Small(one), Number::Small(two)) => {
                let (digits, scale) = small(*one, *two);
                Self::of(digits, scale)
            }
            _ => Self::of_large(&large(self.large(), other.large())),
        }
    }
}

impl From<&Decimal> for Exact {
    fn from(decimal: &Decimal) -> Self {
        Self::parse(decimal.as_str()).expect("a decimal's text is a number")
    }
}

impl From<i64> for Exact {
    fn from(number: i64) -> Self {
        Self::of(number.into(), 0)
    }
}

impl From<u64> for Exact {
    fn from(number: u64) -> Self {
        Self::of(number.into(), 0)
    }
}

impl AddAssign<&Exact> for Exact {
    fn add_assign(&mut self, other: &Self) {
        *self = &*self + other;
    }
}

impl Add for &Exact {
    type Output = Exact;
    fn add(self, other: Self) -> Exact {
        self.combine(other, Small::sum, |one, two| one + two)
    }
}

impl Sub for &Exact {
    type Output = Exact;
    fn sub(self, other: Self) -> Exact {
        self.combine(other, Small::difference, |one, two| one - two)
    }
}

impl Mul for &Exact {
    type Output = Exact;
    fn mul(self, other: Self) -> Exact {
        self.combine(other, Small::product, |one, two| one * two)
    }
}

impl Mul<i64> for &Exact {
    type Output = Exact;
    fn mul(self, factor: i64) -> Exact {
        self * &Exact::from(factor)
    }
}

impl Neg for &Exact {
    type Output = Exact;
    fn neg(self) -> Exact {
        &Exact::zero() - self
    }
}

impl Ord for Exact {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Number::Small(one), Number::Small(two)) => one.cmp(two),
            _ => self.large().cmp(&other.large()),
        }
    }
}

impl PartialOrd for Exact {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Writes a number that fits a [`Decimal`] in the same way as `Decimal`, and any other number in scientific notation.
/// Equal numbers have the same text.
impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_decimal() {
            Ok(decimal) => decimal.fmt(f),
            Err(_) => f.write_str(&self.large().to_scientific_notation()),
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
    use crate::given::exact;
    use bigdecimal::num_traits::Zero as _;
    use proptest::prelude::*;

    use super::*;

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

        /// The arithmetic of integers against that of `bigdecimal`, where numbers are small, where they are not, and
        /// where they become the one or the other.
        #[test]
        fn it_is_what_large_numbers_give(a in number(), b in number(), elapsed in 0i64..=1 << 50, more in 1i64..=1 << 50) {
            let (one, two) = (exact(&a), exact(&b));
            let (large_one, large_two) = (large(&a), large(&b));
            for (got, expected) in [
                (&one + &two, &large_one + &large_two),
                (&one - &two, &large_one - &large_two),
                (&one * &two, &large_one * &large_two),
                (&one * elapsed, &large_one * BigDecimal::from(elapsed)),
                (-&one, -large_one.clone()),
                (one.rounded(), large_one.with_precision_round(SHOWN_DIGITS, RoundingMode::HalfEven)),
            ] {
                let text = expected.normalized().to_scientific_notation();
                prop_assert_eq!(&got.large(), &expected);
                // In the one form that the number has.
                prop_assert_eq!(&got, &exact(&text));
                prop_assert_eq!(got.to_decimal(), Decimal::parse(&text));
            }
            let mut sum = one.clone();
            sum += &two;
            prop_assert_eq!(sum, &one + &two);
            prop_assert_eq!(one.cmp(&two), large_one.cmp(&large_two));
            prop_assert_eq!(one.is_negative(), large_one < BigDecimal::zero());
            prop_assert_eq!(one.is_positive(), large_one > BigDecimal::zero());
            let quotient = one.rounded_quotient(&two);
            prop_assert_eq!(quotient.is_none(), large_two.is_zero());
            if let Some(quotient) = quotient {
                let expected = (&large_one / &large_two).with_precision_round(SHOWN_DIGITS, RoundingMode::HalfEven);
                prop_assert_eq!(quotient.large(), expected);
            }
            // At most a billionth less than the fraction, and never more.
            let whole = elapsed + more;
            let part = one.part(elapsed, whole).large() * BigDecimal::from(whole);
            let missing = &large_one * BigDecimal::from(elapsed) - part;
            prop_assert!(missing >= BigDecimal::zero());
            prop_assert!(missing < BigDecimal::from(whole) * large("1e-9"));
        }
    }

    fn large(text: &str) -> BigDecimal {
        text.parse().expect("a number")
    }

    /// Most are short, as measured values are; some have just as many digits as a small number may have.
    fn number() -> impl Strategy<Value = String> {
        let edge = 10_i64.pow(18) - 1;
        let digits = prop_oneof![
            -99_999_i64..100_000,
            -edge..=edge,
            prop::sample::select(vec![edge, edge + 1, -edge, -edge - 1, 0, 1, 5, 10_i64.pow(17)]),
            any::<i64>(),
        ];
        let exponent = prop_oneof![-6..=2, -19..=19, -60..60];
        (digits, exponent).prop_map(|(digits, exponent)| format!("{digits}e{exponent}"))
    }
}
