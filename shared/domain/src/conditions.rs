//! Conditions on metrics: the quarters of an hour that match, the episodes of matching quarters, and the addresses by
//! which an index finds the quarters. Reads no table.
//!
//! A condition is about the mean of a metric in a quarter of an hour. A short spike does not show in the mean.

mod episode;
mod interval;
mod schema;

pub use episode::{Basis, Episode, Extremes, MAX_HOLD, episodes, exact_episodes};
pub use interval::{Condition, Interval, IntervalError};
pub use schema::{
    ConditionsSchema, Encoding, IndexEntry, MAX_SCHEMA_VERSION, MetricMeans, SchemaError,
    SchemaMetric,
};
