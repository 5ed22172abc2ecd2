//! What is read for a `SELECT`: the metrics of a device, and in which way. Reads nothing.

use std::collections::BTreeSet;

use domain::{Device, MetricName, Order, Reading};

use crate::group::counts;

/// The way in which the data of a `SELECT` are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// All readings of the range.
    Readings,
    /// Rollups of the rows of a grid, and readings where there are none.
    Rollups,
    /// The newest readings, or the oldest, until each metric has so many.
    Some(Order, usize),
}

/// A device, and the metrics of it that are wanted.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// The device.
    pub device: &'a Device,
    pub(crate) metrics: BTreeSet<&'a MetricName>,
}

impl<'a> Wanted<'a> {
    /// The metrics that have fewer than `number` values among the readings that are found.
    #[must_use]
    pub fn lacking(&self, found: &[Reading], number: usize) -> Vec<&'a MetricName> {
        let has = |reading: &&Reading, metric: &MetricName| {
            let value = reading.metrics().get(metric);
            value.is_some_and(|value| counts(self.device, metric, value))
        };
        let metrics = self.metrics.iter().copied();
        metrics
            .filter(|metric| found.iter().filter(|reading| has(reading, metric)).count() < number)
            .collect()
    }
}
