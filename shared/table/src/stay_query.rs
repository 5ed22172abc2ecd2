//! A query of stays. Reads nothing.

use domain::{DeviceId, DeviceStay, TimeRange, Timestamp};

/// What is asked of the stays of a device or in a room: those that overlap a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StayQuery {
    /// The range.
    pub range: TimeRange,
    /// The stay after which the page begins.
    pub after: Option<StayKey>,
    /// The largest number of stays.
    pub limit: usize,
}

/// The identity of a stay among those of a device or in a room, in their order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StayKey {
    /// When it began.
    pub since: Timestamp,
    /// Its device.
    pub device: DeviceId,
}

impl StayKey {
    /// The key of a stay.
    pub fn of(of: &DeviceStay) -> Self {
        Self { since: of.stay.since, device: of.device.clone() }
    }
}
