//! A running InfluxDB 1: its points, by measurement and window of time. Sends nothing to Roomtide.
//!
//! Windows are read whole before their points count, and again with half the length where one fails. Nothing is read by
//! OFFSET, which skips and repeats where somebody writes meanwhile.
//!
//! Source: <https://docs.influxdata.com/influxdb/v1/tools/api/#query-http-endpoint>

mod answer;
mod query;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

use super::Point;
use super::line_protocol::Database;
use answer::Cell;
pub(in crate::import) use query::Server;
use query::quoted;

/// Nanoseconds of a millisecond, on which windows begin.
const MILLISECOND: i64 = 1_000_000;
/// The first window, and the longest.
const FIRST_WINDOW: i64 = 24 * 3_600 * 1_000 * MILLISECOND;
const MAX_WINDOW: i64 = 400 * FIRST_WINDOW;
/// The points of a window that is long enough, and of one that is too long.
const FEW: usize = 20_000;
const MANY: usize = 200_000;
/// How often a window is read.
const ATTEMPTS: u32 = 4;
/// The pause before a window is read again.
const PAUSE: Duration = Duration::from_secs(3);
/// InfluxDB's database about itself.
const INTERNAL: &str = "_internal";

/// A database and one of its retention policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::import) struct Context {
    pub(in crate::import) database: String,
    pub(in crate::import) policy: String,
}

/// The points of a measurement in a window.
pub(in crate::import) struct Window {
    pub(in crate::import) measurement: String,
    /// The end, which is not in it, in nanoseconds.
    pub(in crate::import) until: i64,
    pub(in crate::import) points: Vec<Point>,
}

/// Returns what is imported: the databases that are asked for, or the only one, each with the policy that is asked for
/// or its default one. Says what else there is.
pub(in crate::import) fn contexts(
    server: &Server,
    wanted: &[Database],
    mut say: impl FnMut(String),
) -> anyhow::Result<Vec<Context>> {
    let all: Vec<String> = server.texts("", "SHOW DATABASES", 0)?;
    let all: Vec<String> = all.into_iter().filter(|name| name != INTERNAL).collect();
    let chosen: Vec<Database> = match (wanted, &all[..]) {
        ([], [only]) => vec![Database::named(only)],
        ([], []) => bail!("{} has no database", server.shown()),
        ([], _) => bail!("{} has {}; choose with --database", server.shown(), all.join(", ")),
        (wanted, _) => wanted.to_vec(),
    };
    let mut contexts = Vec::new();
    for it in chosen {
        // A name may have a point.
        let (database, policy) = it.among(&all);
        ensure!(
            all.contains(&database),
            "{} has no database {database:?}; it has {}",
            server.shown(),
            all.join(", ")
        );
        let statement = format!("SHOW RETENTION POLICIES ON {}", quoted(&database));
        let policies = server.rows(&database, &statement)?;
        let name = |row: &Vec<Cell>| row.first().and_then(Cell::text).map(ToOwned::to_owned);
        let names: Vec<String> = policies.iter().filter_map(name).collect();
        let is_default =
            |row: &&Vec<Cell>| row.last().is_some_and(|cell| *cell == Cell::Boolean(true));
        let policy = match policy {
            Some(policy) => policy,
            None => policies
                .iter()
                .find(is_default)
                .and_then(name)
                .context("no retention policy is the default one")?,
        };
        ensure!(
            names.contains(&policy),
            "{database} has no retention policy {policy:?}; it has {}",
            names.join(", ")
        );
        say(format!("database     {database}, retention policy {policy}"));
        for other in names.iter().filter(|name| **name != policy) {
            say(format!(
                "left out     {database}.{other}; --database {database}.{other} imports it"
            ));
        }
        contexts.push(Context { database, policy });
    }
    Ok(contexts)
}

/// The windows of a database, by measurement and then by time.
pub(in crate::import) struct Windows {
    server: Arc<Server>,
    context: Context,
    /// The measurements that are left, each with its fields by their types.
    measurements: Vec<(String, Vec<(String, String)>)>,
    /// Where the next window begins, in the last of the measurements, and the end of its points.
    span: Option<(i64, i64)>,
    length: i64,
    /// Where an earlier import ended: in this measurement.
    after: Option<(String, i64)>,
    /// The span that is wanted.
    wanted: (i64, i64),
    /// The pause before a window is read again.
    pause: Duration,
}

impl Windows {
    /// Begins behind what an earlier import has done.
    pub(in crate::import) fn new(
        server: Arc<Server>,
        context: Context,
        after: Option<(String, i64)>,
        wanted: (i64, i64),
    ) -> anyhow::Result<Self> {
        let fields = server.series(&context.database, "SHOW FIELD KEYS", Some(&context.policy))?;
        let mut measurements: Vec<(String, Vec<(String, String)>)> = fields
            .into_iter()
            .map(|(name, rows)| {
                let field = |row: &Vec<Cell>| {
                    Some((row.first()?.text()?.to_owned(), row.get(1)?.text()?.to_owned()))
                };
                (name, columns(rows.iter().filter_map(field)))
            })
            .collect();
        // The last is taken first.
        measurements.sort_by(|a, b| b.0.cmp(&a.0));
        if let Some((done, _)) = &after {
            measurements.retain(|(name, _)| name >= done);
        }
        Ok(Self {
            server,
            context,
            measurements,
            span: None,
            length: FIRST_WINDOW,
            pause: PAUSE,
            after,
            wanted,
        })
    }

    fn next_window(&mut self) -> anyhow::Result<Option<Window>> {
        loop {
            let Some((measurement, fields)) = self.measurements.last().cloned() else {
                return Ok(None);
            };
            let from = self.from(&measurement);
            let (begin, end) = match self.span {
                Some(span) => span,
                None => match self.edges(&from)? {
                    Some((first, last)) => {
                        let done = self.after.take_if(|(name, _)| *name == measurement);
                        let done = done.map_or(i64::MIN, |(_, until)| until);
                        let begin = first.max(self.wanted.0).max(done);
                        let begin = begin.div_euclid(MILLISECOND) * MILLISECOND;
                        (begin, last.saturating_add(1).min(self.wanted.1))
                    }
                    None => (0, 0),
                },
            };
            if begin >= end {
                self.measurements.pop();
                (self.span, self.length) = (None, FIRST_WINDOW);
                continue;
            }
            let (until, points) = self.read(&from, &measurement, &fields, begin)?;
            self.length = match points.len() {
                0..FEW => (self.length * 4).min(MAX_WINDOW),
                MANY.. => (self.length / 4).max(MILLISECOND),
                _ => self.length,
            };
            self.span = Some((until, end));
            return Ok(Some(Window { measurement, until, points }));
        }
    }

    fn from(&self, measurement: &str) -> String {
        format!("{}.{}", quoted(&self.context.policy), quoted(measurement))
    }

    /// Returns the times of the first and of the last point.
    fn edges(&self, from: &str) -> anyhow::Result<Option<(i64, i64)>> {
        let edge = |order: &str| {
            let statement = format!("SELECT * FROM {from} ORDER BY time {order} LIMIT 1");
            let rows = self.server.rows(&self.context.database, &statement)?;
            anyhow::Ok(rows.first().and_then(|row| row.first()?.number()?.parse().ok()))
        };
        Ok(edge("ASC")?.zip(edge("DESC")?))
    }

    /// Reads a window; a shorter one if that fails.
    fn read(
        &mut self,
        from: &str,
        measurement: &str,
        fields: &[(String, String)],
        begin: i64,
    ) -> anyhow::Result<(i64, Vec<Point>)> {
        let select = fields.iter().map(|(name, kind)| format!("{}::{kind}", quoted(name)));
        let select = select.collect::<Vec<_>>().join(", ");
        let mut attempt = 1;
        loop {
            let until = begin.saturating_add(self.length);
            let statement = format!(
                "SELECT {select} FROM {from} WHERE time >= {begin} AND time < {until} GROUP BY *"
            );
            match self.server.points(&self.context.database, &statement, measurement, fields) {
                Ok(points) => return Ok((until, points)),
                Err(error) if attempt == ATTEMPTS => {
                    return Err(
                        error.context(format!("{measurement} of {}", self.context.database))
                    );
                }
                Err(_) => {
                    attempt += 1;
                    thread::sleep(self.pause);
                    self.length = (self.length / 2 / MILLISECOND).max(1) * MILLISECOND;
                }
            }
        }
    }
}

impl Iterator for Windows {
    type Item = anyhow::Result<Window>;

    fn next(&mut self) -> Option<anyhow::Result<Window>> {
        self.next_window().transpose()
    }
}

/// The columns that give back every value: a field may have changed its type. A float's column has the integers too.
fn columns(fields: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let mut by_name: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, kind) in fields {
        by_name.entry(name).or_default().push(kind);
    }
    let mut columns = Vec::new();
    for (name, kinds) in by_name {
        let has_float = kinds.iter().any(|kind| kind == "float");
        let kept = kinds.into_iter().filter(|kind| kind != "integer" || !has_float);
        columns.extend(kept.map(|kind| (name.clone(), kind)));
    }
    columns
}

#[cfg(test)]
mod tests;
