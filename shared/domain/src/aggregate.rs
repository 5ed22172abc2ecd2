//! The aggregate functions of a series' rows. This list decides which functions the API's parameter and the tools of
//! language models accept. Combines no devices.

use crate::{Exact, MetricRollup, MetricRule};

crate::words! {
    /// A function over the values of one metric in one row.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Aggregate {
        /// The sum divided by the count.
        Mean = "mean",
        /// The smallest value.
        Min = "min",
        /// The largest value.
        Max = "max",
        /// The sum of the values.
        Sum = "sum",
        /// The number of values.
        Count = "count",
        /// The first value.
        First = "first",
        /// The last value.
        Last = "last",
        /// The mean of a power in which each value counts for the time during which it held.
        TimeMean = "time_mean",
        /// The amount that a counter counted, through resets and wraps.
        Increase = "increase",
    }
}

impl Aggregate {
    /// The functions that a row shows for a metric if the request names no function.
    pub const fn usual(rule: &MetricRule) -> &'static [Self] {
        match rule {
            MetricRule::Counter(_) => &[Self::Increase, Self::Count],
            MetricRule::Gauge | MetricRule::Power(_) => {
                &[Self::Mean, Self::Min, Self::Max, Self::Count]
            }
        }
    }

    /// Whether the function can be applied to a metric with this rule.
    pub const fn is_of(self, rule: &MetricRule) -> bool {
        match self {
            Self::TimeMean => matches!(rule, MetricRule::Power(_)),
            Self::Increase => matches!(rule, MetricRule::Counter(_)),
            Self::Mean
            | Self::Min
            | Self::Max
            | Self::Sum
            | Self::Count
            | Self::First
            | Self::Last => true,
        }
    }

    /// The function's value from a rollup. `None` for `TimeMean` and `Increase`, which also need values outside of the
    /// rollup.
    pub fn of_rollup(self, rollup: &MetricRollup) -> Option<Quotient> {
        let value = match self {
            Self::Mean => return Quotient::of(&rollup.sum, rollup.count.into()),
            Self::Min => Exact::from(&rollup.min),
            Self::Max => Exact::from(&rollup.max),
            Self::Sum => rollup.sum.clone(),
            Self::Count => Exact::from(rollup.count),
            Self::First => Exact::from(&rollup.first.value),
            Self::Last => Exact::from(&rollup.last.value),
            Self::TimeMean | Self::Increase => return None,
        };
        Some(value.into())
    }
}

/// An exact fraction. It is rounded only when it is shown, so a combination of several values is rounded once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quotient {
    dividend: Exact,
    /// The number to divide by, never zero.
    divisor: Exact,
}

impl From<Exact> for Quotient {
    fn from(value: Exact) -> Self {
        Self { dividend: value, divisor: Exact::from(1_u64) }
    }
}

impl Quotient {
    /// The quotient of two numbers; `None` if the divisor is zero.
    pub fn of(dividend: &Exact, divisor: Exact) -> Option<Self> {
        (divisor != Exact::zero()).then(|| Self { dividend: dividend.clone(), divisor })
    }

    /// The value to show: exact if nothing is divided, else rounded.
    pub fn shown(&self) -> Exact {
        if self.divisor == Exact::from(1_u64) {
            return self.dividend.clone();
        }
        self.dividend.rounded_quotient(&self.divisor).expect("the divisor is not zero")
    }

    /// The sum of both quotients.
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        if self.divisor == other.divisor {
            return Self { dividend: &self.dividend + &other.dividend, ..self };
        }
        Self {
            dividend: &(&self.dividend * &other.divisor) + &(&other.dividend * &self.divisor),
            divisor: &self.divisor * &other.divisor,
        }
    }

    /// The quotient, divided by a number that is not zero.
    #[must_use]
    pub fn divided(self, by: u64) -> Self {
        Self { divisor: &self.divisor * &Exact::from(by), ..self }
    }
}
