//! The functions of a series' rows. Computes none.

use domain::MetricRule;

domain::words! {
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
    #[must_use]
    pub const fn usual(rule: &MetricRule) -> &'static [Self] {
        match rule {
            MetricRule::Counter(_) => &[Self::Increase, Self::Count],
            MetricRule::Gauge | MetricRule::Power(_) => {
                &[Self::Mean, Self::Min, Self::Max, Self::Count]
            }
        }
    }

    /// Whether a metric that is folded by this rule has the function.
    #[must_use]
    pub const fn is_of(self, rule: &MetricRule) -> bool {
        match self {
            Self::TimeMean => matches!(rule, MetricRule::Power(_)),
            Self::Increase => matches!(rule, MetricRule::Counter(_)),
            _ => true,
        }
    }
}
