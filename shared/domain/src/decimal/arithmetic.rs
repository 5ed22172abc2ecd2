//! Exact arithmetic and comparison of decimals. Never rounds: a result that needs more than 38 digits is
//! an error.

use std::cmp::Ordering;

use super::{Decimal, DecimalError};
use crate::Exact;

impl Decimal {
    /// The sum of both numbers.
    pub fn checked_add(&self, other: &Self) -> Result<Self, DecimalError> {
        (&self.value() + &other.value()).to_decimal()
    }

    /// This number minus the other.
    pub fn checked_sub(&self, other: &Self) -> Result<Self, DecimalError> {
        (&self.value() - &other.value()).to_decimal()
    }

    /// The product of both numbers.
    pub fn checked_mul(&self, other: &Self) -> Result<Self, DecimalError> {
        (&self.value() * &other.value()).to_decimal()
    }

    /// Whether the number is greater than zero.
    pub fn is_positive(&self) -> bool {
        !self.as_str().starts_with('-') && self.as_str() != "0"
    }

    fn value(&self) -> Exact {
        self.into()
    }
}

/// Orders by value. Equal values have equal texts, so this order agrees with `Eq`.
impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        self.value().cmp(&other.value())
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use crate::given::number;
    use proptest::prelude::*;

    use super::*;

    /// Up to 18 digits with up to 18 of them behind the point: `i128` counts them exactly.
    fn small() -> impl Strategy<Value = (i128, Decimal)> {
        (-10_i64.pow(18)..10_i64.pow(18)).prop_map(|n| (n.into(), number(&format!("{n}e-18"))))
    }

    proptest! {
        #[test]
        fn it_agrees_with_integers((a, x) in small(), (b, y) in small()) {
            prop_assert_eq!(x.checked_add(&y), Ok(number(&format!("{}e-18", a + b))));
            prop_assert_eq!(x.checked_sub(&y), Ok(number(&format!("{}e-18", a - b))));
            prop_assert_eq!(x.checked_mul(&y), Ok(number(&format!("{}e-36", a * b))));
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(x.is_positive(), a > 0);
        }
    }

    #[test]
    fn a_result_that_cannot_be_kept_exactly_is_an_error() {
        let most = number(&"9".repeat(38));
        let one = number("1");
        assert_eq!(most.checked_add(&one), Ok(number("1e38")), "its zeros carry nothing");
        let (large, small) = (number("1e20"), number("1e-20"));
        assert_eq!(large.checked_add(&small), Err(DecimalError::TooPrecise(41)));
        assert_eq!(most.checked_sub(&number("0.1")), Err(DecimalError::TooPrecise(39)));
        let huge = number("9e125");
        assert!(matches!(huge.checked_add(&huge), Err(DecimalError::OutOfRange(_))));
        assert!(matches!(huge.checked_mul(&huge), Err(DecimalError::OutOfRange(_))));
        let tiny = number("1e-130");
        assert!(matches!(tiny.checked_mul(&tiny), Err(DecimalError::OutOfRange(_))));
        assert_eq!(tiny.checked_sub(&tiny), Ok(number("0")));
    }

    #[test]
    fn decimals_are_ordered_by_value_not_by_text() {
        let texts = ["-9e125", "-10", "-9.5", "-1e-130", "0", "1e-130", "0.5", "9", "10", "1e125"];
        let ordered = texts.map(number);
        assert!(ordered.is_sorted());
        let mut reversed: Vec<_> = ordered.iter().rev().cloned().collect();
        reversed.sort();
        assert_eq!(reversed, ordered);
    }
}
