//! The rule that folds the values of a metric: as a gauge, as a power or as a counter. Folds nothing.

use chrono::TimeDelta;

use super::counter::CounterRule;
use super::energy_unit::watts;
use super::{Decimal, MetricInfo, MetricKind, MetricName, Reading, Sample};

/// The rule by which a metric is folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetricRule {
    /// The values are levels at points in time.
    Gauge,
    /// The values are totals that a counter shows.
    Counter(CounterRule),
    /// The values are powers. A value is valid until the next one, but at most for this time.
    Power(TimeDelta),
}

/// The hold time of a metric without the setting `hold`: how long the value of a power is valid at most.
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

    /// Whether rollups count a value.
    pub fn counts(&self, value: &Decimal) -> bool {
        match self {
            Self::Counter(rule) => rule.counts(value),
            Self::Gauge | Self::Power(_) => true,
        }
    }

    /// The value of a metric in a reading; `None` if the reading has no value that rollups count.
    pub fn sample(&self, reading: &Reading, name: &MetricName) -> Option<Sample> {
        let value = reading.metrics().get(name).filter(|value| self.counts(value))?;
        let sample = Sample::new(reading.at, value.clone());
        match self {
            Self::Counter(rule) => Some(Sample { cycle: rule.cycle_of(reading), ..sample }),
            Self::Gauge | Self::Power(_) => Some(sample),
        }
    }

    /// The rule for a metric without settings, which follows from the name.
    pub fn of_unknown(name: &MetricName) -> Self {
        Self::of(&name.into())
    }
}
