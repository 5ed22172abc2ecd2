//! One value of several devices: the mean of gauges, the sum of powers and counters. Reads nothing.

use domain::{Exact, MetricRule};
use serde::Serialize;

use super::aggregate::Aggregate;
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
    /// How a metric combines that is folded by this rule.
    #[must_use]
    pub const fn of(rule: &MetricRule) -> Self {
        match rule {
            MetricRule::Gauge => Self::Mean,
            MetricRule::Counter(_) | MetricRule::Power(_) => Self::Sum,
        }
    }

    /// Combines the values of devices; devices without a value are skipped.
    #[must_use]
    pub fn value(self, function: Aggregate, values: &[Quotient]) -> Option<Exact> {
        let shown = || values.iter().map(Quotient::shown);
        let sum = || values.iter().fold(Quotient::from(Exact::zero()), Quotient::plus);
        match (function, self, values) {
            (_, _, []) => None,
            (Aggregate::Sum | Aggregate::Count, _, _) | (_, Self::Sum, _) => Some(sum().shown()),
            (Aggregate::Min, Self::Mean, _) => shown().min(),
            (Aggregate::Max, Self::Mean, _) => shown().max(),
            (_, Self::Mean, _) => Some(sum().divided(values.len() as u64).shown()),
        }
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
    fn of(dividend: &Exact, divisor: Exact) -> Option<Self> {
        (divisor != Exact::zero()).then(|| Self { dividend: dividend.clone(), divisor })
    }

    /// The value: itself where nothing is divided, else rounded.
    #[must_use]
    pub fn shown(&self) -> Exact {
        if self.divisor == Exact::from(1_u64) {
            return self.dividend.clone();
        }
        self.dividend.rounded_quotient(&self.divisor).expect("the divisor is not zero")
    }

    fn plus(self, other: &Self) -> Self {
        if self.divisor == other.divisor {
            return Self { dividend: &self.dividend + &other.dividend, ..self };
        }
        Self {
            dividend: &(&self.dividend * &other.divisor) + &(&other.dividend * &self.divisor),
            divisor: &self.divisor * &other.divisor,
        }
    }

    fn divided(self, by: u64) -> Self {
        Self { divisor: &self.divisor * &Exact::from(by), ..self }
    }
}

/// The value of one device's row; `None` if nothing tells it.
#[must_use]
pub fn value_of(function: Aggregate, row: &RowValues) -> Option<Quotient> {
    let (rollup, area) = (row.rollup.as_ref(), row.area.as_ref());
    let value = match function {
        Aggregate::Mean => return Quotient::of(&rollup?.sum, rollup?.count.into()),
        Aggregate::TimeMean => {
            return Quotient::of(&area?.area, area?.held.num_milliseconds().into());
        }
        Aggregate::Min => Exact::from(&rollup?.min),
        Aggregate::Max => Exact::from(&rollup?.max),
        Aggregate::Sum => rollup?.sum.clone(),
        Aggregate::Count => Exact::from(rollup?.count),
        Aggregate::First => Exact::from(&rollup?.first.value),
        Aggregate::Last => Exact::from(&rollup?.last.value),
        Aggregate::Increase => row.increase.amount.clone()?,
    };
    Some(value.into())
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
