//! Devices that were seen in a room, with the months: the stored form, and its ports. Chooses no room.

use std::ops::RangeInclusive;

use domain::{DeviceId, Month, RoomId};

use crate::ports_macro::ports;
use crate::{Expected, StoreResult};

/// A device whose readings named a room.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct RoomVisit {
    /// The room.
    pub room: RoomId,
    /// The device.
    pub device: DeviceId,
    /// The month of the earliest such reading that has been folded.
    pub first: Month,
    /// The month of the latest.
    pub last: Month,
    /// The number of times that this was written.
    pub version: u64,
}

impl RoomVisit {
    /// What is noted of the first reading of a device that names a room.
    pub const fn begun(room: RoomId, device: DeviceId, month: Month) -> Self {
        Self { room, device, first: month, last: month, version: 1 }
    }

    /// Whether the months from the first to the last contain these.
    pub fn covers(&self, months: &RangeInclusive<Month>) -> bool {
        self.first <= *months.start() && *months.end() <= self.last
    }

    /// The item with these months as well, to be put in its place.
    pub fn widened(&self, months: &RangeInclusive<Month>) -> Self {
        Self {
            first: self.first.min(*months.start()),
            last: self.last.max(*months.end()),
            version: self.version + 1,
            ..self.clone()
        }
    }

    /// Whether a month lies within both these and the months from the first to the last.
    pub fn overlaps(&self, months: &RangeInclusive<Month>) -> bool {
        self.first <= *months.end() && *months.start() <= self.last
    }
}

ports! {
    /// Notes which devices were seen in which rooms.
    ///
    /// What is noted only widens. It may say more than there is: a reading may be deleted.
    NoteSeen [(GetItem, SeenIn), (PutItem, SeenIn), (PutItem, Rollups)] {
        /// What is noted of a device in a room, as it is this moment.
        fn seen(room: &RoomId, device: &DeviceId) -> StoreResult<Option<RoomVisit>>;

        /// Puts what is noted, with the device's side where there was none; returns whether there was as
        /// `expected`. Done twice, the second is refused.
        fn put_seen(seen: &RoomVisit, expected: Expected) -> StoreResult<bool>;
    }

    /// The devices that were seen in a room.
    ReadSeen [(Query, SeenIn)] {
        /// The devices that were seen in a room in some months, both inside, sorted by id: at most `limit`.
        fn seen_in(room: &RoomId, months: RangeInclusive<Month>, limit: usize) -> StoreResult<Vec<RoomVisit>>;
    }
}
