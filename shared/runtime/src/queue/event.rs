//! The event that Lambda makes of a queue's messages, and the answer to the event. Has only members that are read.
//!
//! The crate of Lambda's events has these types, too, but its feature for SQS adds twenty further crates. Source:
//! <https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html>

use serde::{Deserialize, Serialize};

/// An event with messages of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SqsEvent {
    /// The messages.
    #[serde(rename = "Records")]
    pub records: Vec<SqsMessage>,
}

/// A message of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SqsMessage {
    /// The id by which a failure is reported.
    #[serde(rename = "messageId")]
    pub message_id: String,
    /// The text that was sent.
    pub body: String,
}

/// The answer to an event: the messages that failed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct SqsBatchResponse {
    /// A failure for each message that is to be delivered again.
    #[serde(rename = "batchItemFailures")]
    pub batch_item_failures: Vec<BatchItemFailure>,
}

/// A message that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BatchItemFailure {
    /// The message's id.
    #[serde(rename = "itemIdentifier")]
    pub item_identifier: String,
}
