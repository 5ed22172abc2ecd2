//! The functions of the rows of a series, one value each: the parameter, the tools of models and the queries of InfluxDB
//! that rollups answer follow from them. Combines no devices.

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
        /// Of a power: each value counts for the time during which it held.
        TimeMean = "time_mean",
        /// Of a counter: what it counted, through resets and wraps.
        Increase = "increase",
    }
}

impl Aggregate {
    /// Those that a row has of a metric where none is asked for.
    pub const fn usual(rule: &MetricRule) -> &'static [Self] {
        match rule {
            MetricRule::Counter(_) => &[Self::Increase, Self::Count],
            MetricRule::Gauge | MetricRule::Power(_) => {
                &[Self::Mean, Self::Min, Self::Max, Self::Count]
            }
        }
    }

    /// Whether a metric that is folded by this rule has the function.
    pub const fn is_of(self, rule: &MetricRule) -> bool {
        match self {
            Self::TimeMean => matches!(rule, MetricRule::Power(_)),
            Self::Increase => matches!(rule, MetricRule::Counter(_)),
            _ => true,
        }
    }

    /// The value of a rollup; `None` for what a row has beside its rollup.
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

/// An exact value, rounded only when it is shown: a combination of several is rounded once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quotient {
    dividend: Exact,
    /// Never zero.
    divisor: Exact,
}

impl From<Exact> for Quotient {
    fn from(value: Exact) -> Self {
        Self { dividend: value, divisor: Exact::from(1_u64) }
    }
}

impl Quotient {
    /// `None` if the divisor is zero.
    pub fn of(dividend: &Exact, divisor: Exact) -> Option<Self> {
        (divisor != Exact::zero()).then(|| Self { dividend: dividend.clone(), divisor })
    }

    /// The value: itself where nothing is divided, else rounded.
    pub fn shown(&self) -> Exact {
        if self.divisor == Exact::from(1_u64) {
            return self.dividend.clone();
        }
        self.dividend.rounded_quotient(&self.divisor).expect("the divisor is not zero")
    }

    /// The sum of both.
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

    /// The value, divided by a number that is not zero.
    #[must_use]
    pub fn divided(self, by: u64) -> Self {
        Self { divisor: &self.divisor * &Exact::from(by), ..self }
    }
}
