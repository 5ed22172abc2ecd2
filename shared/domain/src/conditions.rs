//! Conditions on metrics: the quarters of an hour that match, the episodes of matching quarters, and their addresses in
//! an index. Reads no table.
//!
//! A condition is about the mean of a metric in a quarter of an hour. The mean hides a spike.

mod episode;
mod interval;
mod schema;

pub use episode::{Basis, Episode, Extremes, MAX_HOLD, episodes, exact_episodes};
pub use interval::{Condition, Interval, IntervalError};
pub use schema::{
    ConditionsSchema, Encoding, IndexEntry, MAX_SCHEMA_VERSION, MetricMeans, SchemaError,
    SchemaMetric,
};
