//! A source that is open for reading. Reads nothing itself.

use crate::csv::totals::Totals;
use crate::growing::Growing;
use crate::line::Lines;
use crate::made_counters::MadeCounters;
use crate::notes::Notes;
use crate::point::Point;
use crate::units::SeriesUnits;

/// An iterator of a source's points.
pub type Points = Box<dyn Iterator<Item = anyhow::Result<Point>> + Send>;

/// The content of a source.
pub enum SourceItems {
    /// Points, as their sender would have written them in line protocol.
    Points(Points),
    /// Lines of readings.
    Lines(Lines),
}

/// A source that is open for reading.
pub struct HistorySource {
    /// What it has, in any order.
    pub items: SourceItems,
    /// Remarks and counts that are noted while the source is read.
    pub notes: Notes,
    /// Units that the source knows and its points do not have.
    pub units: SeriesUnits,
    /// The amounts of lines that are added up.
    pub totals: Totals,
    /// The counters that are made of amounts and continue the table's.
    pub made: MadeCounters,
    /// The file, if its form does not show whether the last line is complete.
    pub growing: Option<Growing>,
}

impl HistorySource {
    /// Makes a source of points.
    pub fn of_points(points: Points, notes: Notes) -> Self {
        let units = SeriesUnits::default();
        let (totals, made) = (Totals::default(), MadeCounters::default());
        Self { items: SourceItems::Points(points), notes, units, totals, made, growing: None }
    }

    /// Makes a source of lines. Their totals share the notes.
    pub fn of_lines(lines: Lines, totals: Totals) -> Self {
        let (notes, made) = (totals.notes().clone(), totals.made().clone());
        let units = SeriesUnits::default();
        Self { items: SourceItems::Lines(lines), notes, units, totals, made, growing: None }
    }
}

#[cfg(test)]
impl HistorySource {
    /// Returns the points and the notes.
    pub(crate) fn into_points(self) -> (Points, Notes) {
        match self.items {
            SourceItems::Points(points) => (points, self.notes),
            SourceItems::Lines(_) => panic!("it has lines"),
        }
    }
}
