//! One value of several devices: the mean of gauges, the sum of powers and counters. Reads nothing.

use domain::{Exact, MetricRule};

use super::function::Function;
use super::values::RowValues;

/// How the values of several devices become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combine {
    /// Each device counts the same, however often it measures.
    Mean,
    /// The devices add up.
    Sum,
}

impl Combine {
    /// How a metric combines that is folded by this rule.
    #[must_use]
    pub const fn of(rule: &MetricRule) -> Self {
        match rule {
            MetricRule::Gauge => Self::Mean,
            MetricRule::Counter(_) | MetricRule::Power(_) => Self::Sum,
        }
    }

    /// The way as the API writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mean => "mean_of_devices",
            Self::Sum => "sum_of_devices",
        }
    }

    /// One value of those of the devices that have one.
    #[must_use]
    pub fn value(self, function: Function, values: &[Exact]) -> Option<Exact> {
        let sum = || values.iter().fold(Exact::zero(), |sum, value| &sum + value);
        match (function, self, values) {
            (_, _, []) => None,
            (_, _, [one]) => Some(one.clone()),
            (Function::Sum | Function::Count, _, _) | (_, Self::Sum, _) => Some(sum()),
            (Function::Min, Self::Mean, _) => values.iter().min().cloned(),
            (Function::Max, Self::Mean, _) => values.iter().max().cloned(),
            (_, Self::Mean, _) => sum().rounded_quotient(&Exact::from(values.len() as u64)),
        }
    }
}

/// The value of one device's row; `None` if nothing tells it.
#[must_use]
pub fn value_of(function: Function, row: &RowValues) -> Option<Exact> {
    let (rollup, area) = (row.rollup.as_ref(), row.area.as_ref());
    match function {
        Function::Mean => rollup?.sum.rounded_quotient(&Exact::from(rollup?.count)),
        Function::Min => Some(Exact::from(&rollup?.min)),
        Function::Max => Some(Exact::from(&rollup?.max)),
        Function::Sum => Some(rollup?.sum.clone()),
        Function::Count => Some(Exact::from(rollup?.count)),
        Function::First => Some(Exact::from(&rollup?.first.value)),
        Function::Last => Some(Exact::from(&rollup?.last.value)),
        Function::TimeMean => {
            area?.area.rounded_quotient(&Exact::from(area?.held.num_milliseconds()))
        }
        Function::Increase => row.increase.amount.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauges_give_their_mean_and_powers_their_sum() {
        let exact = |text: &str| Exact::parse(text).expect("a number");
        let (a, b) = (exact("20"), exact("30"));
        let both = [a, b];
        assert_eq!(Combine::Mean.value(Function::Mean, &both), Some(exact("25")));
        assert_eq!(Combine::Mean.value(Function::Max, &both), Some(exact("30")));
        assert_eq!(Combine::Mean.value(Function::Count, &both), Some(exact("50")));
        assert_eq!(Combine::Sum.value(Function::Mean, &both), Some(exact("50")));
        assert_eq!(Combine::Sum.value(Function::Mean, &[]), None);
    }
}
