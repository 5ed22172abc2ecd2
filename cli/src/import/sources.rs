//! The sources beside CSV and JSON lines, a file each. A source hands out points, as its sender would have sent them in
//! line protocol, and notes what it leaves out. Sends nothing.

pub(super) mod emoncms;
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

/// The points of a source.
pub(super) type Points = Box<dyn Iterator<Item = anyhow::Result<Point>> + Send>;

/// An open source.
pub(super) struct Source {
    /// Its points. They are sorted before they are sent.
    pub(super) points: Points,
    /// What is noted while they are read.
    pub(super) notes: Notes,
    /// The units that it knows beside its points.
    pub(super) units: Units,
}
