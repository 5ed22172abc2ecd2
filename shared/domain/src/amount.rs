//! Amounts of energy, and of money for energy. Knows no price.

use super::Exact;

/// The watt-milliseconds in one kWh.
const WATT_MILLIS: u64 = 3_600_000_000;

/// An amount that was counted or integrated, exact until it is shown: kWh, or money for kWh.
///
/// The kWh of a power have no finite decimals, so the integrated part is kept in watt-milliseconds, or in money times
/// `WATT_MILLIS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Amount {
    counted: Exact,
    integrated: Exact,
}

impl Default for Amount {
    fn default() -> Self {
        Self::zero()
    }
}

impl Amount {
    /// The amount zero.
    pub const fn zero() -> Self {
        Self { counted: Exact::zero(), integrated: Exact::zero() }
    }

    /// An amount that a counter counted, in kWh or in another unit of a counter.
    pub const fn counted(amount: Exact) -> Self {
        Self { counted: amount, integrated: Exact::zero() }
    }

    /// The area under a power, in watt-milliseconds.
    pub const fn integrated(watt_millis: Exact) -> Self {
        Self { counted: Exact::zero(), integrated: watt_millis }
    }

    /// Adds another amount.
    pub fn add(&mut self, other: &Self) {
        self.counted += &other.counted;
        self.integrated += &other.integrated;
    }

    /// The difference of both amounts.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        Self {
            counted: &self.counted - &other.counted,
            integrated: &self.integrated - &other.integrated,
        }
    }

    /// The amount times a number, such as a price.
    #[must_use]
    pub fn times(&self, factor: &Exact) -> Self {
        Self { counted: &self.counted * factor, integrated: &self.integrated * factor }
    }

    /// The sign: whether the amount is less than, equal to or greater than zero.
    pub fn sign(&self) -> std::cmp::Ordering {
        let all = &(&self.counted * &Exact::from(WATT_MILLIS)) + &self.integrated;
        all.cmp(&Exact::zero())
    }

    /// The amount in kWh or in money. Its integrated part is rounded to 15 digits.
    pub fn shown(&self) -> Exact {
        let integrated = self.integrated.rounded_quotient(&Exact::from(WATT_MILLIS));
        &self.counted + &integrated.expect("a kWh is not zero")
    }
}
