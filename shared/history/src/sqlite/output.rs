//! Passes the points of a database to the import. Makes no point.

use std::sync::mpsc::SyncSender;

use anyhow::Context as _;
use rusqlite::Error::InvalidColumnType;

use crate::notes::Notes;
use crate::point::Point;

/// The receiver of a database's points. Sending fails when the import has ended.
pub(crate) struct PointOutput {
    pub(super) points: SyncSender<anyhow::Result<Point>>,
    pub(crate) notes: Notes,
}

impl PointOutput {
    /// Sends a point to the import.
    pub(crate) fn send(&self, point: Point) -> anyhow::Result<()> {
        self.points.send(Ok(point)).ok().context("the import has ended")
    }

    /// Refuses a row with a value of another type than its column's, because SQLite keeps values of any type. Returns
    /// any other error: the database itself cannot be read.
    pub(crate) fn refuse_row(&self, row: &str, error: rusqlite::Error) -> rusqlite::Result<()> {
        let InvalidColumnType(_, column, kind) = error else { return Err(error) };
        let kind = kind.to_string().to_lowercase();
        self.notes
            .refuse(0, format!("{row} cannot be read: its {column} is a value of type {kind}"));
        Ok(())
    }
}
