//! The dead-letter queue: the port by which a stream consumer gives up items that can never be applied. Reads no
//! message.

use serde::Serialize;
use table::Invocation;

#[cfg(any(test, feature = "fake"))]
pub use crate::memory_queue::MemoryQueue;
pub use crate::not_sent::NotSent;
#[cfg(feature = "sqs")]
pub use crate::sqs::SqsQueue;

/// An item that can never be applied. The item stays in the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeadLetter {
    /// The item's partition key, cut short.
    pub pk: String,
    /// The item's sort key, cut short.
    pub sk: String,
    /// The reason why the item cannot be applied.
    pub reason: String,
}

/// The queue in which a person finds items that were given up.
pub trait DeadLetterQueue: Send + Sync {
    /// Sends all letters. After an error some may have been sent, and all may be sent again.
    fn send(
        &self,
        letters: &[DeadLetter],
        invocation: &Invocation,
    ) -> impl Future<Output = Result<(), NotSent>> + Send;
}
