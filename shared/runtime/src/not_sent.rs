//! The error of a queue that cannot take messages. Sends nothing.

use table::StoreError;

/// The error that some messages could not be sent. Other messages may have been sent.
#[derive(Debug, thiserror::Error)]
#[error("the queue does not take messages")]
pub struct NotSent(#[source] Box<dyn std::error::Error + Send + Sync>);

impl NotSent {
    /// The error with a cause.
    pub fn because(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(cause.into())
    }
}

impl From<StoreError> for NotSent {
    fn from(error: StoreError) -> Self {
        Self::because(error)
    }
}
