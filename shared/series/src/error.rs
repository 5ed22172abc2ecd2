//! The error of a series that cannot be answered. Chooses no HTTP status.

use table::StoreError;

/// The reason why a series cannot be answered.
#[derive(Debug)]
pub enum SeriesError {
    /// An error of the table.
    Store(StoreError),
    /// The request passes a limit, or its data has expired. The text says what the client may request instead.
    OutOfReach(String),
}

impl From<StoreError> for SeriesError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
