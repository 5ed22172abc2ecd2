//! The stored form of the months in which a device was seen in a room. Chooses no room.

use std::ops::RangeInclusive;

use domain::{DeviceId, Month, RoomId};

/// A room in which a device was seen, because its readings named the room.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct RoomVisit {
    /// The room.
    pub room: RoomId,
    /// The device.
    pub device: DeviceId,
    /// The month of the earliest reading of the device in the room, among the folded readings.
    pub first: Month,
    /// The month of the latest reading of the device in the room, among the folded readings.
    pub last: Month,
    /// The number of times that this item was written.
    pub version: u64,
}

impl RoomVisit {
    /// The first version, for a device that was seen in the room in one month.
    pub const fn begun(room: RoomId, device: DeviceId, month: Month) -> Self {
        Self { room, device, first: month, last: month, version: 1 }
    }

    /// Whether `first` to `last` contains all of these months.
    pub fn covers(&self, months: &RangeInclusive<Month>) -> bool {
        self.first <= *months.start() && *months.end() <= self.last
    }

    /// The next version, with these months added.
    pub fn widened(&self, months: &RangeInclusive<Month>) -> Self {
        Self {
            first: self.first.min(*months.start()),
            last: self.last.max(*months.end()),
            version: self.version + 1,
            ..self.clone()
        }
    }

    /// Whether `first` to `last` contains any of these months.
    pub fn overlaps(&self, months: &RangeInclusive<Month>) -> bool {
        self.first <= *months.end() && *months.start() <= self.last
    }
}
