//! A running InfluxDB: its points, by measurement and window of time. Sends nothing to Roomtide.
//!
//! Windows are read whole before their points count, and again with half the length where one fails. Nothing is read by
//! OFFSET, which skips and repeats where somebody writes meanwhile.

mod again;
mod flux;
mod http;
mod influxql;
mod queries;
mod server;

use std::mem;
use std::sync::Arc;

use anyhow::Context as _;

use super::Point;
use super::line_protocol::Database;
use again::again;
use queries::Measurement;

use crate::moment::MILLISECOND;

pub(in crate::import) use queries::Context;
pub(in crate::import) use server::Server;

/// The first window, and the longest.
const FIRST_WINDOW: i64 = 24 * 3_600 * 1_000 * MILLISECOND;
const MAX_WINDOW: i64 = 400 * FIRST_WINDOW;
/// The points of a window that is long enough, and of one that is too long.
const FEW: usize = 20_000;
const MANY: usize = 200_000;

/// The points of a measurement in a window.
pub(in crate::import) struct Window {
    pub(in crate::import) measurement: String,
    /// The end, which is not in it, in nanoseconds.
    pub(in crate::import) until: i64,
    pub(in crate::import) points: Vec<Point>,
}

/// Returns what is imported: the databases or buckets that are asked for, or the only one. Says what else there is.
pub(in crate::import) fn contexts(
    server: &Server,
    wanted: &[Database],
    mut say: impl FnMut(String),
) -> anyhow::Result<Vec<Context>> {
    server.queries.contexts(wanted, &mut say)
}

/// The windows of a database, by measurement and then by time.
pub(in crate::import) struct Windows {
    server: Arc<Server>,
    context: Context,
    /// The measurements that are left.
    measurements: Vec<Measurement>,
    /// Where the next window begins, in the last of the measurements, and the end of its points.
    span: Option<(i64, i64)>,
    length: i64,
    /// The longest window to try: half of the one that failed last, and more again with each that does not fail.
    longest: i64,
    /// Where an earlier import ended: in this measurement.
    after: Option<(String, i64)>,
    /// The span that is wanted.
    wanted: (i64, i64),
}

impl Windows {
    /// Begins behind what an earlier import has done.
    pub(in crate::import) fn new(
        server: Arc<Server>,
        context: Context,
        after: Option<(String, i64)>,
        wanted: (i64, i64),
    ) -> anyhow::Result<Self> {
        let mut measurements = server.queries.measurements(&context)?;
        // The last is taken first.
        measurements.sort_by(|a, b| b.name.cmp(&a.name));
        if let Some((done, _)) = &after {
            measurements.retain(|it| it.name >= *done);
        }
        Ok(Self {
            server,
            context,
            measurements,
            span: None,
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
            let (begin, end) = match self.span {
                Some(span) => span,
                None => match self.edges(&measurement)? {
                    Some((first, last)) => {
                        let done = self.after.take_if(|(name, _)| *name == measurement.name);
                        let done = done.map_or(i64::MIN, |(_, until)| until);
                        let begin = first.max(self.wanted.0).max(done);
                        // InfluxDB's first time is nearly the least number.
                        let begin = begin.div_euclid(MILLISECOND).saturating_mul(MILLISECOND);
                        (begin, last.saturating_add(1).min(self.wanted.1))
                    }
                    None => (0, 0),
                },
            };
            if begin >= end {
                self.measurements.pop();
                (self.span, self.length, self.longest) = (None, FIRST_WINDOW, MAX_WINDOW);
                continue;
            }
            let (until, points) = self.read(&measurement, begin)?;
            let more = self.longest / 8 / MILLISECOND * MILLISECOND;
            self.longest = (self.longest + more).min(MAX_WINDOW);
            self.length = match points.len() {
                0..FEW => (self.length * 4).min(self.longest),
                MANY.. => (self.length / 4).max(MILLISECOND),
                _ => self.length,
            };
            self.span = Some((until, end));
            return Ok(Some(Window { measurement: measurement.name, until, points }));
        }
    }

    fn edges(&self, measurement: &Measurement) -> anyhow::Result<Option<(i64, i64)>> {
        let edges = self.server.queries.edges(&self.context, measurement);
        edges.with_context(|| format!("{} of {}", measurement.name, self.context.database))
    }

    /// Reads a window; a shorter one if that fails.
    fn read(&mut self, measurement: &Measurement, begin: i64) -> anyhow::Result<(i64, Vec<Point>)> {
        let Self { server, context, length, longest, .. } = self;
        let mut has_failed = false;
        let read = again(|| {
            if mem::replace(&mut has_failed, true) {
                *length = (*length / 2 / MILLISECOND).max(1) * MILLISECOND;
                *longest = *length;
            }
            let until = begin.saturating_add(*length);
            Ok((until, server.queries.points(context, measurement, (begin, until))?))
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
