//! Stays of devices in rooms. A new stay always follows the newest one in time. No I/O.

use chrono::TimeDelta;

use super::{DeviceId, RoomId, TimeRange, Timestamp};

/// For how long readings must name the same room before a stay in the room is recorded.
///
/// Otherwise a device that switches between two rooms would cost a transaction each minute.
pub const SETTLING: TimeDelta = TimeDelta::minutes(15);

/// A time during which a device is in a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stay {
    /// The room.
    pub room: RoomId,
    /// The first timestamp of the stay.
    pub since: Timestamp,
    /// The first timestamp after the stay; `None` while the stay lasts.
    pub until: Option<Timestamp>,
}

/// A stay and its device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceStay {
    /// The device.
    pub device: DeviceId,
    /// The stay.
    pub stay: Stay,
}

impl Stay {
    /// A stay that begins at `since` and has no end yet.
    pub const fn begun(room: RoomId, since: Timestamp) -> Self {
        Self { room, since, until: None }
    }

    /// The stay with its end.
    #[must_use]
    pub fn ended(&self, until: Timestamp) -> Self {
        Self { until: Some(until), ..self.clone() }
    }

    /// The earliest timestamp at which the device's next stay may begin: stays do not overlap, and no stay is empty.
    pub fn earliest_next(&self) -> Timestamp {
        self.until.unwrap_or_else(|| self.since.saturating_add(TimeDelta::milliseconds(1)))
    }

    /// Whether a part of the stay is in the range.
    pub fn overlaps(&self, range: TimeRange) -> bool {
        self.since < range.to() && self.until.is_none_or(|until| range.from() < until)
    }
}
