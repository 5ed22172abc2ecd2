//! The queries of an import to an InfluxDB, independent of the query language. Sends no request itself.

use std::fmt;

use crate::import::sources::Point;
use crate::import::sources::line_protocol::Database;

/// The location of points: a database and one of its retention policies, or a bucket and its organization's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::import) struct Context {
    pub(in crate::import) database: String,
    pub(in crate::import) policy: String,
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.policy)
    }
}

/// A measurement and its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Measurement {
    pub(super) name: String,
    /// The fields, each with a type, if the query has to name them.
    pub(super) columns: Vec<(String, String)>,
}

/// The queries. Times are in nanoseconds.
pub(super) trait Queries: Send + Sync {
    /// Returns the locations to import: the requested ones, or the only one. Reports all others through `say`.
    fn contexts(
        &self,
        wanted: &[Database],
        say: &mut dyn FnMut(String),
    ) -> anyhow::Result<Vec<Context>>;

    /// Returns the measurements, in any order.
    fn measurements(&self, context: &Context) -> anyhow::Result<Vec<Measurement>>;

    /// Returns the times of the first and the last point.
    fn edges(
        &self,
        context: &Context,
        measurement: &Measurement,
    ) -> anyhow::Result<Option<(i64, i64)>>;

    /// Returns the points of a window; its end is exclusive.
    fn points(
        &self,
        context: &Context,
        measurement: &Measurement,
        window: (i64, i64),
    ) -> anyhow::Result<Vec<Point>>;
}
