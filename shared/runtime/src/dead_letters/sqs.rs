//! The dead-letter queue on Amazon SQS: one JSON message per letter. Reads no message.

use aws::QueueConfig;
use table::Invocation;

use super::{DeadLetter, DeadLetterQueue, NotSent};
use crate::sqs::SqsSender;

/// The queue, which also takes the records that Lambda gave up.
#[derive(Debug, Clone)]
pub struct SqsQueue(SqsSender);

impl SqsQueue {
    /// A client of the queue; nothing is sent yet.
    #[must_use]
    pub fn connect(config: &QueueConfig) -> Self {
        Self(SqsSender::connect(config))
    }
}

impl DeadLetterQueue for SqsQueue {
    async fn send(&self, letters: &[DeadLetter], invocation: &Invocation) -> Result<(), NotSent> {
        self.0.send(letters, invocation).await
    }
}
