//! A running InfluxDB: its points, by measurement and window of time. Sends nothing to Roomtide.
//!
//! The points of a window count only after the whole window is read. If that fails, half the length is tried. OFFSET is
//! not used, because it skips and repeats points while another program writes.

mod again;
mod http;
mod influxql;
mod span;

use std::mem;
use std::sync::Arc;

use anyhow::Context as _;

use crate::point::Point;
use again::again;
use influxql::Measurement;

use crate::point::MILLISECOND;

pub use influxql::{Context, Server};
pub use span::Span;

/// The first window's length, and the maximum length.
const FIRST_WINDOW: i64 = 24 * 3_600 * 1_000 * MILLISECOND;
const MAX_WINDOW: i64 = 400 * FIRST_WINDOW;
/// Fewer points than `FEW` make the next window longer; `MANY` or more make it shorter.
const FEW: usize = 20_000;
const MANY: usize = 200_000;

/// The points of a measurement in a window.
pub struct Window {
    /// The name of the measurement.
    pub measurement: String,
    /// The end of the window in nanoseconds, exclusive.
    pub until: i64,
    /// All points of the measurement in the window.
    pub points: Vec<Point>,
}

/// An iterator of a database's windows, by measurement and then by time.
pub struct Windows {
    server: Arc<Server>,
    context: Context,
    /// The remaining measurements; the last one is current.
    measurements: Vec<Measurement>,
    /// The span of the current measurement that is not read yet.
    left: Option<Span>,
    length: i64,
    /// The maximum length to try: half of the last window that failed, growing again with each success.
    longest: i64,
    /// The measurement and the time up to which an earlier run fetched.
    after: Option<(String, i64)>,
    /// The requested span.
    wanted: Span,
}

impl Windows {
    /// Begins after the points that an earlier run fetched.
    pub fn new(
        server: Arc<Server>,
        context: Context,
        after: Option<(String, i64)>,
        wanted: Span,
    ) -> anyhow::Result<Self> {
        let mut measurements = server.measurements(&context)?;
        // Descending, because the last measurement is taken first.
        measurements.sort_by(|a, b| b.name.cmp(&a.name));
        if let Some((done, _)) = &after {
            measurements.retain(|measurement| measurement.name >= *done);
        }
        Ok(Self {
            server,
            context,
            measurements,
            left: None,
            length: FIRST_WINDOW,
            longest: MAX_WINDOW,
            after,
            wanted,
        })
    }

    fn next_window(&mut self) -> anyhow::Result<Option<Window>> {
        loop {
            let Some(measurement) = self.measurements.last().cloned() else {
                return Ok(None);
            };
            let left = match self.left {
                Some(left) => left,
                None => self.left_of(&measurement)?,
            };
            if left.from >= left.to {
                self.measurements.pop();
                (self.left, self.length, self.longest) = (None, FIRST_WINDOW, MAX_WINDOW);
                continue;
            }

            let (until, points) = self.read(&measurement, left)?;
            let more = self.longest / 8 / MILLISECOND * MILLISECOND;
            self.longest = (self.longest + more).min(MAX_WINDOW);
            self.length = match points.len() {
                0..FEW => (self.length * 4).min(self.longest),
                MANY.. => (self.length / 4).max(MILLISECOND),
                _ => self.length,
            };

            self.left = Some(Span { from: until, ..left });
            return Ok(Some(Window { measurement: measurement.name, until, points }));
        }
    }

    /// The wanted span of a measurement, after the points that an earlier run fetched. Empty for a measurement without
    /// points.
    fn left_of(&mut self, measurement: &Measurement) -> anyhow::Result<Span> {
        let edges = self.server.edges(&self.context, measurement);
        let edges =
            edges.with_context(|| format!("{} of {}", measurement.name, self.context.database));
        let Some((first, last)) = edges? else { return Ok(Span { from: 0, to: 0 }) };

        let done = self.after.take_if(|(name, _)| *name == measurement.name);
        let done = done.map_or(i64::MIN, |(_, until)| until);
        let begin = first.max(self.wanted.from).max(done);
        // Saturating, because InfluxDB's first possible time is close to the minimum of `i64`.
        let from = begin.div_euclid(MILLISECOND).saturating_mul(MILLISECOND);
        Ok(Span { from, to: last.saturating_add(1).min(self.wanted.to) })
    }

    /// Reads a window at the start of `left`, and returns its end and its points. Each further attempt is half as long.
    fn read(&mut self, measurement: &Measurement, left: Span) -> anyhow::Result<(i64, Vec<Point>)> {
        let Self { server, context, length, longest, .. } = self;
        let mut is_repeat = false;
        let read = again(|| {
            if mem::replace(&mut is_repeat, true) {
                *length = (*length / 2 / MILLISECOND).max(1) * MILLISECOND;
                *longest = *length;
            }
            let until = left.from.saturating_add(*length).min(left.to);
            Ok((until, server.points(context, measurement, Span { from: left.from, to: until })?))
        });
        read.with_context(|| format!("{} of {}", measurement.name, self.context.database))
    }
}

impl Iterator for Windows {
    type Item = anyhow::Result<Window>;

    fn next(&mut self) -> Option<anyhow::Result<Window>> {
        self.next_window().transpose()
    }
}
