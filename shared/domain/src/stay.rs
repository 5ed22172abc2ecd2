//! Stays of devices in rooms: their history, which is only ever continued. No I/O.

use chrono::TimeDelta;

use super::{DeviceId, RoomId, TimeRange, Timestamp};

/// The time for which a room that readings name must hold before a stay in it is recorded.
///
/// A device that flaps between two rooms would otherwise cost a transaction a minute.
pub const SETTLING: TimeDelta = TimeDelta::minutes(15);

/// A time for which a device is in a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stay {
    /// The room.
    pub room: RoomId,
    /// The first timestamp of the stay.
    pub since: Timestamp,
    /// The first timestamp after it; `None` while it lasts.
    pub until: Option<Timestamp>,
}

/// A stay, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceStay {
    /// The device.
    pub device: DeviceId,
    /// Its stay.
    pub stay: Stay,
}

impl Stay {
    /// The stay from `since` on.
    pub const fn begun(room: RoomId, since: Timestamp) -> Self {
        Self { room, since, until: None }
    }

    /// The stay, ended.
    #[must_use]
    pub fn ended(&self, until: Timestamp) -> Self {
        Self { until: Some(until), ..self.clone() }
    }

    /// The earliest timestamp at which the device's next stay may begin: stays do not overlap, and none is
    /// empty.
    pub fn earliest_next(&self) -> Timestamp {
        self.until.unwrap_or_else(|| self.since.saturating_add(TimeDelta::milliseconds(1)))
    }

    /// Whether a part of the stay is in the range.
    pub fn overlaps(&self, range: TimeRange) -> bool {
        self.since < range.to() && self.until.is_none_or(|until| range.from() < until)
    }
}
