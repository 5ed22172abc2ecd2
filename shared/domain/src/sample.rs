//! A value with its time. No I/O.

use super::{Decimal, Timestamp};

/// One value and its timestamp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The timestamp.
    pub at: Timestamp,
    /// The value.
    pub value: Decimal,
    /// Of a counter with a metric that tells its cycle, the value of that in the same reading.
    pub cycle: Option<Decimal>,
}

impl Sample {
    /// A value that tells no cycle.
    pub const fn new(at: Timestamp, value: Decimal) -> Self {
        Self { at, value, cycle: None }
    }
}
