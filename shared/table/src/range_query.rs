//! A part of a range of readings, and a page of it. Reads nothing.

use domain::{DeviceId, Order, Reading, TimeRange, Timestamp};

/// The part of a range that is asked for.
#[derive(Debug, Clone)]
pub struct RangeQuery {
    /// The whole range.
    pub range: TimeRange,
    /// Oldest or newest first.
    pub order: Order,
    /// The last reading of the page before.
    pub after: Option<ReadingKey>,
    /// The largest number of readings; a page has fewer where they are large.
    pub limit: usize,
    /// Whether all that was acknowledged before must be seen; twice the price, and not for rooms.
    pub consistent: bool,
}

/// The identity of a reading: readings are ordered by timestamp, then by device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadingKey {
    /// The timestamp of the measurement.
    pub at: Timestamp,
    /// The device that measured.
    pub device: DeviceId,
}

impl ReadingKey {
    /// The key of a reading.
    pub fn of(reading: &Reading) -> Self {
        Self { at: reading.at, device: reading.device.clone() }
    }
}

/// Some of what was asked for, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// What was found.
    pub items: Vec<T>,
    /// Whether there is more after the last.
    pub has_more: bool,
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        Self { items: Vec::new(), has_more: false }
    }
}
