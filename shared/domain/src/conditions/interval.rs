//! Conditions and their intervals of matching values. Knows no quarter.

use std::fmt;
use std::str::FromStr;

use crate::{Decimal, MetricName, excerpt};

/// A condition: a metric and the interval of values that match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The metric.
    pub metric: MetricName,
    /// The values that match.
    pub interval: Interval,
}

/// The values from `low` to `high`, including both. A missing end means no limit; at least one end is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    low: Option<Decimal>,
    high: Option<Decimal>,
}

/// The reasons for which a text is not an [`Interval`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IntervalError {
    /// The text does not have the form of an interval.
    #[error("is {0:?}; write 28..70, 28.., ..70 or 28, with numbers; both ends are inside")]
    Form(String),
    /// The ends are swapped.
    #[error("ends at {1}, which is below its begin {0}")]
    Empty(Decimal, Decimal),
}

impl Interval {
    /// The smallest value inside; `None` if there is no lower end.
    pub const fn low(&self) -> Option<&Decimal> {
        self.low.as_ref()
    }

    /// The largest value inside; `None` if there is no upper end.
    pub const fn high(&self) -> Option<&Decimal> {
        self.high.as_ref()
    }

    /// Whether a value lies inside the interval.
    pub fn contains(&self, value: &Decimal) -> bool {
        self.low.as_ref().is_none_or(|low| low <= value)
            && self.high.as_ref().is_none_or(|high| value <= high)
    }
}

/// Writes a text that [`from_str`](Interval::from_str) reads.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |end: &Option<Decimal>| end.as_ref().map_or_else(String::new, Decimal::to_string);
        write!(f, "{}..{}", end(&self.low), end(&self.high))
    }
}

impl FromStr for Interval {
    type Err = IntervalError;

    /// Parses `28..70`, `28..`, `..70` or `28`.
    fn from_str(text: &str) -> Result<Self, IntervalError> {
        let form = || IntervalError::Form(excerpt(text));
        let end = |text: &str| match text.trim() {
            "" => Ok(None),
            text => Decimal::parse(text).map(Some).map_err(|_| form()),
        };
        let (low, high) = match text.split_once("..") {
            Some((low, high)) => (end(low)?, end(high)?),
            None => (end(text)?, end(text)?),
        };

        match (low, high) {
            (None, None) => Err(form()),
            (Some(low), Some(high)) if high < low => Err(IntervalError::Empty(low, high)),
            (low, high) => Ok(Self { low, high }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::given::{self, number};

    #[test]
    fn both_ends_are_inside_and_either_may_be_open() {
        for (text, inside, outside) in [
            ("28..", vec!["28", "28.0001", "1e100"], vec!["27.9999"]),
            ("..-5.5", vec!["-5.5", "-1e100"], vec!["-5.4"]),
            ("20..24", vec!["20", "22", "24"], vec!["19.999", "24.001"]),
            ("0", vec!["-0.0", "0"], vec!["0.1", "-0.1"]),
        ] {
            let interval: Interval = given::interval(text);
            assert_eq!(interval.to_string().parse(), Ok(interval.clone()));
            assert!(inside.iter().all(|it| interval.contains(&number(it))), "{text}");
            assert!(!outside.iter().any(|it| interval.contains(&number(it))), "{text}");
        }
    }

    #[test]
    fn what_is_no_interval_is_named_with_the_form() {
        for text in ["", "..", "warm", "28..warm", "1..2..3", "28-70"] {
            let why = text.parse::<Interval>().expect_err(text).to_string();
            assert!(why.contains(&format!("{text:?}")) && why.contains("28..70"), "{why}");
        }
        let why = "70..28".parse::<Interval>().expect_err("swapped");
        assert_eq!(why.to_string(), "ends at 28, which is below its begin 70");
    }
}
