//! Where the points of a database go. Makes no point.

use std::sync::mpsc::SyncSender;

use anyhow::Context as _;

use crate::import::sources::{Notes, Point};

/// Where the points of a database go; the import is over when nobody takes them any more.
pub(super) struct Output {
    pub(super) points: SyncSender<anyhow::Result<Point>>,
    pub(super) notes: Notes,
}

impl Output {
    /// Hands out a point.
    pub(super) fn send(&self, point: Point) -> anyhow::Result<()> {
        self.points.send(Ok(point)).ok().context("the import has ended")
    }
}
