//! The highest mean power of the periods of a month, as a process remembers it. Computes nothing.

use domain::{Exact, Timestamp};

/// The highest mean power of a month's periods up to an instant, in kW.
#[derive(Debug, Clone)]
pub(crate) struct Peak {
    pub(crate) month: Timestamp,
    /// The version of the device's settings: a person's verdict changes the energy of past periods.
    pub(crate) settings: u64,
    /// When the first period was read.
    pub(crate) read_at: Timestamp,
    pub(crate) until: Timestamp,
    pub(crate) highest: Option<Exact>,
}
