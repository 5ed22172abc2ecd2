//! Passes the points of a database to the import. Makes no point.

use std::sync::mpsc::SyncSender;

use anyhow::Context as _;

use crate::import::sources::{Notes, Point};

/// The receiver of a database's points. Sending fails when the import has ended.
pub(super) struct Output {
    pub(super) points: SyncSender<anyhow::Result<Point>>,
    pub(super) notes: Notes,
}

impl Output {
    /// Sends a point to the import.
    pub(super) fn send(&self, point: Point) -> anyhow::Result<()> {
        self.points.send(Ok(point)).ok().context("the import has ended")
    }
}
