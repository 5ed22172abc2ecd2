//! A query for a page of readings in a range, and pages in general. Reads nothing.

use domain::{DeviceId, Order, Reading, TimeRange, Timestamp};

/// A query for a page of readings in a range.
#[derive(Debug, Clone)]
pub struct RangeQuery {
    /// The whole range.
    pub range: TimeRange,
    /// Oldest or newest first.
    pub order: Order,
    /// The last reading of the previous page; `None` for the first page.
    pub after: Option<ReadingKey>,
    /// The largest number of readings; a page of large readings has fewer.
    pub limit: usize,
    /// Whether the read is consistent, which costs twice the units. A room's readings cannot be read consistently.
    pub consistent: bool,
}

/// The identity of a reading. Identities sort by timestamp, then by device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadingKey {
    /// The timestamp of the measurement.
    pub at: Timestamp,
    /// The device that measured it.
    pub device: DeviceId,
}

impl ReadingKey {
    /// The key of a reading.
    pub fn of(reading: &Reading) -> Self {
        Self { at: reading.at, device: reading.device.clone() }
    }
}

/// A page of results. Their order is that of the query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The results.
    pub items: Vec<T>,
    /// Whether there are more results after these.
    pub has_more: bool,
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        Self { items: Vec::new(), has_more: false }
    }
}
