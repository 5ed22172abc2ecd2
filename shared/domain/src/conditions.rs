//! Conditions on metrics: which quarters of an hour match them, in which episodes, and where an index finds
//! them. Reads no table.
//!
//! A condition is about the mean of a metric in a quarter of an hour: a spike hides in it.

mod episode;
mod interval;
mod schema;

pub use episode::{Basis, Episode, Extremes, MAX_HOLD, episodes, exact_episodes};
pub use interval::{Condition, Interval, IntervalError};
pub use schema::{
    ConditionsSchema, Encoding, IndexEntry, MAX_SCHEMA_VERSION, MetricMeans, SchemaError,
    SchemaMetric,
};
