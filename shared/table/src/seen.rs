//! Devices that were seen in a room, with months: the stored form, and the ports. Chooses no room.

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
    /// The month of the earliest folded reading of the device in the room.
    pub first: Month,
    /// The month of the latest folded reading of the device in the room.
    pub last: Month,
    /// The number of times that this item was written.
    pub version: u64,
}

impl RoomVisit {
    /// The item for the first reading of a device that names a room.
    pub const fn begun(room: RoomId, device: DeviceId, month: Month) -> Self {
        Self { room, device, first: month, last: month, version: 1 }
    }

    /// Whether the months from the first to the last contain all of these months.
    pub fn covers(&self, months: &RangeInclusive<Month>) -> bool {
        self.first <= *months.start() && *months.end() <= self.last
    }

    /// The item with these months added, in the next version.
    pub fn widened(&self, months: &RangeInclusive<Month>) -> Self {
        Self {
            first: self.first.min(*months.start()),
            last: self.last.max(*months.end()),
            version: self.version + 1,
            ..self.clone()
        }
    }

    /// Whether any of these months is among the months from the first to the last.
    pub fn overlaps(&self, months: &RangeInclusive<Month>) -> bool {
        self.first <= *months.end() && *months.start() <= self.last
    }
}

ports! {
    /// Notes which devices were seen in which rooms.
    ///
    /// The noted months only grow. They may include months without readings, because readings may be deleted.
    NoteSeen [(GetItem, SeenIn), (PutItem, SeenIn), (PutItem, Rollups)] {
        /// The months in which a device was seen in a room, as they are this moment.
        fn seen(room: &RoomId, device: &DeviceId) -> StoreResult<Option<RoomVisit>>;

        /// Stores a visit; a first visit is stored with the note among the device's rollups. Returns whether the stored
        /// visit was as `expected`. Done twice, the second time is refused.
        fn put_seen(seen: &RoomVisit, expected: Expected) -> StoreResult<bool>;
    }

    /// The devices that were seen in a room.
    ReadSeen [(Query, SeenIn)] {
        /// The devices that were seen in a room in these months, both ends inclusive, sorted by id: at most `limit`.
        fn seen_in(room: &RoomId, months: RangeInclusive<Month>, limit: usize) -> StoreResult<Vec<RoomVisit>>;
    }
}
