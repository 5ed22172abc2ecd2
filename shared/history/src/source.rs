//! A source that is open for reading. Reads nothing itself.

use crate::notes::Notes;
use crate::point::Point;
use crate::units::SeriesUnits;

/// An iterator of a source's points.
pub type Points = Box<dyn Iterator<Item = anyhow::Result<Point>> + Send>;

/// A source that is open for reading.
pub struct Source {
    /// The points, which are sorted before they are sent.
    pub points: Points,
    /// Remarks and counts that are noted while points are read.
    pub notes: Notes,
    /// Units that the source knows and its points do not have.
    pub units: SeriesUnits,
}
