//! A value with its time. No I/O.

use super::{Decimal, Timestamp};

/// One value and its timestamp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The timestamp.
    pub at: Timestamp,
    /// The value.
    pub value: Decimal,
    /// The value of the counter's cycle metric in the same reading, if the counter has such a metric.
    pub cycle: Option<Decimal>,
}

impl Sample {
    /// A value without a cycle.
    pub const fn new(at: Timestamp, value: Decimal) -> Self {
        Self { at, value, cycle: None }
    }
}
