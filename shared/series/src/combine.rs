//! One value of several devices: the mean of gauges, the sum of powers and counters. Reads nothing.

use domain::{Aggregate, Exact, MetricRule, Quotient};
use serde::Serialize;

use super::values::RowValues;

/// How the values of several devices become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub enum Combine {
    /// Each device counts the same, however often it measures.
    #[serde(rename = "mean_of_devices")]
    Mean,
    /// The devices add up.
    #[serde(rename = "sum_of_devices")]
    Sum,
}

impl Combine {
    /// The way to combine the values of devices for a metric with this rule.
    pub const fn of(rule: &MetricRule) -> Self {
        match rule {
            MetricRule::Gauge => Self::Mean,
            MetricRule::Counter(_) | MetricRule::Power(_) => Self::Sum,
        }
    }

    /// Combines the values of devices; devices without a value are skipped.
    pub fn value(self, function: Aggregate, values: &[Quotient]) -> Option<Exact> {
        let shown = || values.iter().map(Quotient::shown);
        let sum = || values.iter().fold(Quotient::from(Exact::zero()), Quotient::plus);
        if values.is_empty() {
            return None;
        }

        if self == Self::Sum {
            return Some(sum().shown());
        }

        match function {
            Aggregate::Sum | Aggregate::Count => Some(sum().shown()),
            Aggregate::Min => shown().min(),
            Aggregate::Max => shown().max(),
            Aggregate::Mean
            | Aggregate::First
            | Aggregate::Last
            | Aggregate::TimeMean
            | Aggregate::Increase => Some(sum().divided(values.len() as u64).shown()),
        }
    }
}

/// The value of a function in one row of a device; `None` if the row has no such value.
pub fn value_of(function: Aggregate, row: &RowValues) -> Option<Quotient> {
    match function {
        Aggregate::TimeMean => {
            let area = row.area.as_ref()?;
            Quotient::of(&area.area, area.held.num_milliseconds().into())
        }
        Aggregate::Increase => row.increase.amount.clone().map(Quotient::from),
        Aggregate::Mean
        | Aggregate::Min
        | Aggregate::Max
        | Aggregate::Sum
        | Aggregate::Count
        | Aggregate::First
        | Aggregate::Last => function.of_rollup(row.rollup.as_ref()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::given;

    #[test]
    fn gauges_give_their_mean_and_powers_their_sum() {
        let exact = |text: &str| given::exact(text);
        let (a, b) = (exact("20"), exact("30"));
        let both = [a.into(), b.into()];
        assert_eq!(Combine::Mean.value(Aggregate::Mean, &both), Some(exact("25")));
        assert_eq!(Combine::Mean.value(Aggregate::Max, &both), Some(exact("30")));
        assert_eq!(Combine::Mean.value(Aggregate::Count, &both), Some(exact("50")));
        assert_eq!(Combine::Sum.value(Aggregate::Mean, &both), Some(exact("50")));
        assert_eq!(Combine::Sum.value(Aggregate::Mean, &[]), None);
    }

    #[test]
    fn several_quotients_are_rounded_once() {
        let quotient = |dividend: i64, divisor: u64| {
            Quotient::of(&Exact::from(dividend), divisor.into()).expect("not by zero")
        };
        let shown = |combine: Combine, values: &[(i64, u64)]| {
            let values: Vec<_> = values.iter().map(|(a, b)| quotient(*a, *b)).collect();
            combine.value(Aggregate::Mean, &values).map(|it| it.to_string())
        };
        // Means of -13.3333 and of 13.6666: the digits that cancel are not those that were left.
        let mean = shown(Combine::Mean, &[(-40, 3), (41, 3)]);
        assert_eq!(mean.as_deref(), Some("0.166666666666667"));
        let sum = shown(Combine::Sum, &[(-40, 3), (27, 2), (1, 7)]);
        assert_eq!(sum.as_deref(), Some("0.30952380952381"));
        assert_eq!(shown(Combine::Sum, &[(1, 3), (2, 3)]).as_deref(), Some("1"));
        assert_eq!(Quotient::of(&Exact::from(1_i64), Exact::zero()), None);
    }
}
