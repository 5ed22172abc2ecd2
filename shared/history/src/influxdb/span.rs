//! A span of time. Asks nothing.

use serde::{Deserialize, Serialize};

/// A span of time in nanoseconds; its end is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NanosecondRange {
    /// The beginning.
    pub from: i64,
    /// The end.
    pub to: i64,
}
