//! How the values of a metric become a rollup: as a gauge, as power, as a counter. Folds nothing.

use chrono::TimeDelta;

use super::counter::CounterRule;
use super::energy_unit::watts;
use super::{Decimal, MetricInfo, MetricKind, MetricName, Reading, Sample};

/// The rule by which a metric is folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetricRule {
    /// Its values are levels.
    Gauge,
    /// Its values are totals.
    Counter(CounterRule),
    /// Its values are powers. A value holds for at most this time.
    Power(TimeDelta),
}

/// The time for which a power holds where no `hold` is set.
pub const DEFAULT_HOLD: TimeDelta = TimeDelta::minutes(15);

impl MetricRule {
    /// The rule for a metric.
    pub fn of(info: &MetricInfo) -> Self {
        match info.kind {
            MetricKind::Counter => Self::Counter(CounterRule::of(info)),
            MetricKind::Gauge if watts(info.unit.as_ref()).is_some() => {
                Self::Power(info.hold.unwrap_or(DEFAULT_HOLD))
            }
            MetricKind::Gauge => Self::Gauge,
        }
    }

    /// Whether a value takes part.
    pub fn counts(&self, value: &Decimal) -> bool {
        match self {
            Self::Counter(rule) => rule.counts(value),
            Self::Gauge | Self::Power(_) => true,
        }
    }

    /// The value of a metric in a reading; none if the reading has none that takes part.
    pub fn sample(&self, reading: &Reading, name: &MetricName) -> Option<Sample> {
        let value = reading.metrics().get(name).filter(|value| self.counts(value))?;
        let sample = Sample::new(reading.at, value.clone());
        match self {
            Self::Counter(rule) => Some(Sample { cycle: rule.cycle_of(reading), ..sample }),
            Self::Gauge | Self::Power(_) => Some(sample),
        }
    }

    /// The rule for a metric that nobody has set anything for.
    pub fn of_unknown(name: &MetricName) -> Self {
        Self::of(&name.into())
    }
}
