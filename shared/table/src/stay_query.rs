//! A query of stays. Reads nothing.

use domain::{DeviceId, DeviceStay, TimeRange, Timestamp};

/// A query for the stays of a device or in a room that overlap a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StayQuery {
    /// The range.
    pub range: TimeRange,
    /// The last stay of the previous page; `None` for the first page.
    pub after: Option<StayKey>,
    /// The largest number of stays.
    pub limit: usize,
}

/// The identity of a stay among those of a device or in a room. Identities sort by time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StayKey {
    /// When the stay began.
    pub since: Timestamp,
    /// The device that stayed.
    pub device: DeviceId,
}

impl StayKey {
    /// The key of a stay.
    pub fn of(of: &DeviceStay) -> Self {
        Self { since: of.stay.since, device: of.device.clone() }
    }
}
