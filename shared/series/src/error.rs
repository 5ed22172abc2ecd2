//! Why a series cannot be answered. Decides no status.

use table::StoreError;

/// A failure on the way to a series.
#[derive(Debug)]
pub enum SeriesError {
    /// An error of the table.
    Store(StoreError),
    /// What is asked for is out of reach; the text tells the client what to ask instead.
    OutOfReach(String),
}

impl From<StoreError> for SeriesError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
