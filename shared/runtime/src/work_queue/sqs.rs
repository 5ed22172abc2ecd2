//! The work queue on Amazon SQS. Receives no message: Lambda invokes the function with them.

use aws::QueueConfig;
use table::Invocation;

use super::{FoldRequest, NotSent, WorkQueue};
use crate::sqs::SqsSender;

/// The queue of a function's work.
#[derive(Debug, Clone)]
pub struct SqsWorkQueue(SqsSender);

impl SqsWorkQueue {
    /// A client of the queue; nothing is sent yet.
    #[must_use]
    pub fn connect(config: &QueueConfig) -> Self {
        Self(SqsSender::connect(config))
    }
}

impl WorkQueue for SqsWorkQueue {
    async fn send(&self, messages: &[FoldRequest], invocation: &Invocation) -> Result<(), NotSent> {
        self.0.send(messages, invocation).await
    }

    async fn depth(&self, invocation: &Invocation) -> Result<u64, NotSent> {
        self.0.depth(invocation).await
    }
}
