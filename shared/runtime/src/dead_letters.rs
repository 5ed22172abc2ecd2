//! The dead-letter queue: the port by which a stream consumer sends what it can never apply. Reads no message.

use serde::Serialize;
use table::Invocation;

#[cfg(any(test, feature = "fake"))]
pub use crate::memory_queue::MemoryQueue;
pub use crate::not_sent::NotSent;
#[cfg(feature = "sqs")]
pub use crate::sqs::SqsQueue;

/// An item that can never be applied. It stays in the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeadLetter {
    /// Its partition key, cut short.
    pub pk: String,
    /// Its sort key, cut short.
    pub sk: String,
    /// Why it cannot be applied.
    pub reason: String,
}

/// The queue in which a person finds what was given up.
pub trait DeadLetterQueue: Send + Sync {
    /// Sends all letters, or fails; then some may have been sent. May be done again.
    fn send(
        &self,
        letters: &[DeadLetter],
        invocation: &Invocation,
    ) -> impl Future<Output = Result<(), NotSent>> + Send;
}
