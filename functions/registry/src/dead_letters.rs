//! What the registry can never apply, and the port by which it is put aside. The queue itself is in `sqs`.

#[cfg(any(test, feature = "fake"))]
mod memory;
mod sqs;

use serde::Serialize;
use table::{Invocation, StoreError};

#[cfg(any(test, feature = "fake"))]
pub use memory::MemoryQueue;
pub use sqs::SqsQueue;

/// An item that stands under a reading's key and is none. It stays in the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeadLetter {
    /// Its partition key, cut short.
    pub pk: String,
    /// Its sort key, cut short.
    pub sk: String,
    /// Why it is no reading.
    pub reason: String,
}

/// Somewhere a person looks for what was put aside.
pub trait DeadLetters {
    /// Puts all of them aside, or fails; then some may have been. May be done again.
    fn put(
        &self,
        letters: &[DeadLetter],
        invocation: &Invocation,
    ) -> impl Future<Output = Result<(), NotPut>> + Send;
}

/// The letters could not be put aside.
#[derive(Debug, thiserror::Error)]
#[error("poison records cannot be put into the failures queue")]
pub struct NotPut(#[source] Box<dyn std::error::Error + Send + Sync>);

impl NotPut {
    /// For that reason.
    pub fn because(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(why.into())
    }
}

impl From<StoreError> for NotPut {
    fn from(error: StoreError) -> Self {
        Self::because(error)
    }
}
