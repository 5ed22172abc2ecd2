//! The functions of a series' rows. Computes none.

use domain::MetricRule;

/// A function over the values of one metric in one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aggregate {
    /// The sum divided by the count.
    Mean,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// The sum of the values.
    Sum,
    /// The number of values.
    Count,
    /// The first value.
    First,
    /// The last value.
    Last,
    /// Of a power: each value counts for the time during which it held.
    TimeMean,
    /// Of a counter: what it counted, through resets and wraps.
    Increase,
}

impl Aggregate {
    /// All functions.
    pub const ALL: [Self; 9] = [
        Self::Mean,
        Self::Min,
        Self::Max,
        Self::Sum,
        Self::Count,
        Self::First,
        Self::Last,
        Self::TimeMean,
        Self::Increase,
    ];

    /// The function as the API writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Min => "min",
            Self::Max => "max",
            Self::Sum => "sum",
            Self::Count => "count",
            Self::First => "first",
            Self::Last => "last",
            Self::TimeMean => "time_mean",
            Self::Increase => "increase",
        }
    }

    /// Reads what [`as_str`](Self::as_str) writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|function| function.as_str() == text)
    }

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
