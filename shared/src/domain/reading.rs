//! A reading: what one device measured at one instant. Does not know how it was sent or is kept.

use std::collections::BTreeMap;

use super::{DeviceId, Instant, MetricName, Number, RoomId};

/// How many metrics one reading may carry; an item then stays far below `DynamoDB`'s 400 KB.
pub const MAX_METRICS: usize = 64;

/// What one device measured at one instant: at least one and at most [`MAX_METRICS`] metrics.
///
/// The device and the instant are its identity; a reading that is sent again replaces itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Who measured.
    pub device: DeviceId,
    /// When.
    pub at: Instant,
    /// Where, if the sender said so or the registry knows.
    pub room: Option<RoomId>,
    metrics: BTreeMap<MetricName, Number>,
}

/// Why metrics make no reading.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadingError {
    /// Nothing was measured.
    #[error("there is no metric; add at least one, such as \"temperature\": 21.5")]
    NoMetric,
    /// More than [`MAX_METRICS`].
    #[error("there are {0} metrics; at most {MAX_METRICS} are allowed in one reading")]
    TooManyMetrics(usize),
}

impl Reading {
    /// A reading of these metrics.
    pub fn new(
        device: DeviceId,
        at: Instant,
        room: Option<RoomId>,
        metrics: BTreeMap<MetricName, Number>,
    ) -> Result<Self, ReadingError> {
        match metrics.len() {
            0 => Err(ReadingError::NoMetric),
            1..=MAX_METRICS => Ok(Self { device, at, room, metrics }),
            n => Err(ReadingError::TooManyMetrics(n)),
        }
    }

    /// The values by metric.
    #[must_use]
    pub const fn metrics(&self) -> &BTreeMap<MetricName, Number> {
        &self.metrics
    }

    /// Whether both measured the same thing.
    #[must_use]
    pub fn shares_a_metric_with(&self, other: &Self) -> bool {
        other.metrics.keys().any(|name| self.metrics.contains_key(name))
    }

    /// Takes over what a later reading of the same device and instant says; its values win.
    ///
    /// When that would make too many metrics, nothing is taken over.
    pub fn absorb(&mut self, later: Self) -> Result<(), ReadingError> {
        let new = later.metrics.keys().filter(|name| !self.metrics.contains_key(*name)).count();
        let total = self.metrics.len() + new;
        if total > MAX_METRICS {
            return Err(ReadingError::TooManyMetrics(total));
        }
        self.room = later.room.or(self.room.take());
        self.metrics.extend(later.metrics);
        Ok(())
    }
}
