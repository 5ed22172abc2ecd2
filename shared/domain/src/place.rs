//! The room of a device, and whether a reading or a person named it.

use super::{RoomId, Timestamp};

/// The room of a device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Place {
    /// No reading has named a room, or a person removed the device from its room.
    #[default]
    Unknown,
    /// The reading of this timestamp named the room.
    Learned(RoomId, Timestamp),
    /// A person chose the room; no reading moves the device.
    Chosen(RoomId),
}

impl Place {
    /// The room.
    pub const fn room(&self) -> Option<&RoomId> {
        match self {
            Self::Unknown => None,
            Self::Learned(room, _) | Self::Chosen(room) => Some(room),
        }
    }

    /// The room that a person chose.
    pub const fn chosen_room(&self) -> Option<&RoomId> {
        match self {
            Self::Chosen(room) => Some(room),
            Self::Unknown | Self::Learned(..) => None,
        }
    }

    /// Whether a reading of the time `at` that names `room` moves the device.
    ///
    /// The reading moves the device if the device has no room, or another room named by a reading of this time or
    /// earlier. A reading of the same time may have been sent again with the right room. No reading moves a device from
    /// a room that a person chose.
    pub fn is_moved_by(&self, room: &RoomId, at: Timestamp) -> bool {
        match self {
            Self::Unknown => true,
            Self::Learned(known, since) => known != room && *since <= at,
            Self::Chosen(_) => false,
        }
    }
}
