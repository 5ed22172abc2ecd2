//! Gathers the newest values of a device and shows them. Reads nothing.

use std::collections::BTreeMap;

use domain::{Decimal, MetricName, Reading, Sample, Timestamp};
use serde::Serialize;
use table::StoredRollup;

/// The newest value of each metric.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LatestValues {
    /// The timestamp of the newest reading.
    pub(crate) timestamp: Timestamp,
    /// The start of the searched time. A missing metric was not sent since then. A value with an earlier timestamp may
    /// not be the newest.
    pub(crate) as_of: Timestamp,
    metrics: BTreeMap<MetricName, LatestValue>,
}

/// The newest value of one metric.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub(crate) struct LatestValue {
    value: Decimal,
    timestamp: Timestamp,
}

impl LatestValues {
    /// The newest values among readings that are sorted newest first.
    pub(crate) fn among(readings: &[Reading]) -> Option<Self> {
        let mut metrics = BTreeMap::new();
        for reading in readings {
            for (name, value) in reading.metrics() {
                let latest = || LatestValue { value: value.clone(), timestamp: reading.at };
                metrics.entry(name.clone()).or_insert_with(latest);
            }
        }
        let (newest, oldest) = (readings.first()?, readings.last()?);
        Some(Self { timestamp: newest.at, as_of: oldest.at, metrics })
    }

    /// Adds the last values of missing metrics from a rollup of older readings. `is_seamless` says that everything
    /// after the rollup was read.
    pub(crate) fn add(&mut self, older: &StoredRollup, is_seamless: bool) {
        if is_seamless {
            self.as_of = self.as_of.min(older.range.from());
        }
        for (name, metric) in &older.rollup.metrics {
            let Sample { at: timestamp, value, .. } = metric.last.clone();
            self.metrics.entry(name.clone()).or_insert(LatestValue { value, timestamp });
        }
    }

    /// Each metric with its value.
    pub(crate) fn values(&self) -> impl Iterator<Item = (&MetricName, &Decimal)> {
        self.metrics.iter().map(|(name, latest)| (name, &latest.value))
    }

    /// The newest value of a metric.
    pub(crate) fn value(&self, metric: &MetricName) -> Option<&Decimal> {
        self.metrics.get(metric).map(|latest| &latest.value)
    }

    /// Whether all these metrics have a value.
    pub(crate) fn has_all(&self, metrics: &[&MetricName]) -> bool {
        metrics.iter().all(|name| self.metrics.contains_key(*name))
    }
}
