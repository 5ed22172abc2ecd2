//! The sources other than CSV and NDJSON, one file each. A source yields points as its original sender would have sent
//! them in line protocol, and notes what it leaves out. Sends nothing.

pub(super) mod home_assistant;
pub(super) mod influxdb;
pub(super) mod line_protocol;
mod notes;
mod point;
pub(super) mod shelly;
mod units;

pub(super) use notes::{Notes, OwnSum};
pub(super) use point::{
    DEVICE_TAG, Point, ROOM_TAG, StatisticHour, Way, escaped, escaped_measurement, number,
    text_field,
};
pub(super) use units::{Known, Units};

/// An iterator of a source's points.
pub(super) type Points = Box<dyn Iterator<Item = anyhow::Result<Point>> + Send>;

/// A source that is open for reading.
pub(super) struct Source {
    /// The points, which are sorted before they are sent.
    pub(super) points: Points,
    /// Remarks and counts that are noted while points are read.
    pub(super) notes: Notes,
    /// Units that the source knows and its points do not have.
    pub(super) units: Units,
}
