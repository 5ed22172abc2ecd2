//! The highest period of a month, as a process remembers it. Computes none.

use domain::{Exact, Timestamp};

/// The highest period of a month up to an instant, in kW.
#[derive(Debug, Clone)]
pub(crate) struct Peak {
    pub(crate) month: Timestamp,
    /// The number of the device's settings: a verdict changes what has been.
    pub(crate) settings: u64,
    /// When its first period was read.
    pub(crate) read_at: Timestamp,
    pub(crate) until: Timestamp,
    pub(crate) highest: Option<Exact>,
}
