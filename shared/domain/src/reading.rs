//! A reading: what one device measured at one timestamp. Does not know how it was sent or is kept.

use std::collections::BTreeMap;

use super::{Decimal, Device, DeviceId, MetricName, RoomId, Timestamp};

/// How many metrics a sender may put into one reading; an item then stays far below `DynamoDB`'s 400 KB.
pub const MAX_METRICS: usize = 64;

/// What one device measured at one timestamp: at least one metric.
///
/// The device and the timestamp are its identity; a reading that is sent again replaces itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Who measured.
    pub device: DeviceId,
    /// When.
    pub at: Timestamp,
    /// Where, as far as the sender or the registry knows.
    pub room: Option<RoomId>,
    /// Where, as the sender said. Nothing else teaches the registry a room: what was filled in from it
    /// may be older than what it knows by now.
    pub named_room: Option<RoomId>,
    metrics: BTreeMap<MetricName, Decimal>,
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
    /// A reading as a sender may send it: of at most [`MAX_METRICS`] metrics.
    pub fn new(
        device: DeviceId,
        at: Timestamp,
        room: Option<RoomId>,
        metrics: BTreeMap<MetricName, Decimal>,
    ) -> Result<Self, ReadingError> {
        match metrics.len() {
            0..=MAX_METRICS => Self::stored(device, at, room, metrics),
            n => Err(ReadingError::TooManyMetrics(n)),
        }
    }

    /// A reading as the table holds it: merging writes may have given it any number of metrics. Its room
    /// counts as named by the sender.
    pub fn stored(
        device: DeviceId,
        at: Timestamp,
        room: Option<RoomId>,
        metrics: BTreeMap<MetricName, Decimal>,
    ) -> Result<Self, ReadingError> {
        if metrics.is_empty() {
            return Err(ReadingError::NoMetric);
        }
        Ok(Self { device, at, named_room: room.clone(), room, metrics })
    }

    /// The values by metric.
    #[must_use]
    pub const fn metrics(&self) -> &BTreeMap<MetricName, Decimal> {
        &self.metrics
    }

    /// Takes over the room that the registry knows of the device: where the sender named none, and
    /// where a person chose it.
    pub fn fill_in_room(&mut self, device: &Device) {
        if let Some(chosen) = device.chosen_room() {
            self.room = Some(chosen.clone());
        } else if self.room.is_none() {
            self.room.clone_from(&device.room);
        }
    }

    /// A metric that both have measured.
    #[must_use]
    pub fn shared_metric(&self, other: &Self) -> Option<&MetricName> {
        self.metrics.keys().find(|name| other.metrics.contains_key(*name))
    }

    /// Takes over what a later reading of the same device and timestamp says; its values win.
    ///
    /// When that would make too many metrics, nothing is taken over.
    pub fn absorb(&mut self, later: Self) -> Result<(), ReadingError> {
        let new = later.metrics.keys().filter(|name| !self.metrics.contains_key(*name)).count();
        let total = self.metrics.len() + new;
        if total > MAX_METRICS {
            return Err(ReadingError::TooManyMetrics(total));
        }
        self.room = later.room.or(self.room.take());
        self.named_room = later.named_room.or(self.named_room.take());
        self.metrics.extend(later.metrics);
        Ok(())
    }
}
