//! What an import asks of an InfluxDB, whatever the language of its queries. Asks nothing itself.

use std::fmt;

use crate::import::sources::Point;
use crate::import::sources::line_protocol::Database;

/// Where points are: a database with one of its retention policies, or a bucket with the id of its organization.
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

/// A measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Measurement {
    pub(super) name: String,
    /// Its fields, each with a type, where the query names them.
    pub(super) columns: Vec<(String, String)>,
}

/// The questions. Times are nanoseconds.
pub(super) trait Queries: Send + Sync {
    /// Returns what is imported: what is asked for, or the only one there is. Says what else there is.
    fn contexts(
        &self,
        wanted: &[Database],
        say: &mut dyn FnMut(String),
    ) -> anyhow::Result<Vec<Context>>;

    /// Returns the measurements, in any order.
    fn measurements(&self, context: &Context) -> anyhow::Result<Vec<Measurement>>;

    /// Returns the times of the first and of the last point.
    fn edges(
        &self,
        context: &Context,
        measurement: &Measurement,
    ) -> anyhow::Result<Option<(i64, i64)>>;

    /// Returns the points of a window, whose end is not in it.
    fn points(
        &self,
        context: &Context,
        measurement: &Measurement,
        window: (i64, i64),
    ) -> anyhow::Result<Vec<Point>>;
}
