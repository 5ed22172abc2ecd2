//! The dead-letter queue on Amazon SQS: receives messages and makes them visible again. Replays no message.

use anyhow::{Context as _, bail};
use aws::QueueConfig;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{MessageSystemAttributeName, QueueAttributeName};
use domain::Timestamp;

use super::message::FailureMessage;

/// The seconds for which a received message is hidden. A killed command hides messages for at most this long.
const HIDDEN_SECONDS: i32 = 300;
/// The seconds for which a receive waits for messages on all servers of SQS (long polling).
///
/// Source: <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-short-and-long-polling.html>
const WAIT_SECONDS: i32 = 2;

/// A client of one queue.
pub(super) struct FailureQueue {
    client: Client,
    url: String,
}

/// A received message, which is hidden from other readers for a while.
pub(super) struct Received {
    /// The message's id from SQS.
    pub(super) id: String,
    pub(super) message: FailureMessage,
    /// The time when the message was sent, in milliseconds since 1970.
    pub(super) sent: i64,
    pub(super) handle: String,
}

impl Received {
    /// Whether the message was sent before `at`, by the clock of SQS. A message that SQS itself moves to a dead-letter
    /// queue keeps the time of its original queue.
    ///
    /// Source: <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html>
    pub(super) const fn is_sent_until(&self, at: Timestamp) -> bool {
        self.sent <= at.as_millis()
    }
}

/// The approximate number of messages in a queue.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Depth {
    pub(super) visible: u64,
    pub(super) hidden: u64,
}

impl Depth {
    /// The approximate number of hidden messages that are not among the `received` ones. The queue's count lags: it may
    /// still count a message as hidden that was made visible a moment ago.
    pub(super) fn unseen(self, received: u64) -> u64 {
        self.visible.saturating_add(self.hidden).saturating_sub(received).min(self.hidden)
    }
}

impl FailureQueue {
    /// Makes a client of the queue. Sends no request yet.
    pub(super) fn connect(config: &QueueConfig) -> Self {
        let (endpoint, ca_bundle) = (config.endpoint.as_deref(), config.ca_bundle.as_ref());
        // A receive waits for messages, so it takes longer than other requests.
        let patience = aws::ATTEMPT_TIMEOUT * 5;
        let settings =
            aws::settings(&config.region, endpoint, &config.credentials, ca_bundle, patience);
        Self { client: Client::new(&settings), url: config.url.clone() }
    }

    /// Receives at most `count` messages, and at most ten. Empty if the queue has no visible message.
    pub(super) async fn receive(&self, count: i32) -> anyhow::Result<Vec<Received>> {
        let request = self.client.receive_message().queue_url(&self.url);
        let request = request.max_number_of_messages(count);
        let request = request.visibility_timeout(HIDDEN_SECONDS).wait_time_seconds(WAIT_SECONDS);
        let request =
            request.message_system_attribute_names(MessageSystemAttributeName::SentTimestamp);
        let answer = request.send().await.context("the queue cannot be read")?;
        let received = answer.messages.unwrap_or_default().into_iter().map(|message| {
            let attributes = message.attributes.unwrap_or_default();
            let sent = attributes.get(&MessageSystemAttributeName::SentTimestamp);
            let sent = sent.context("a message without SentTimestamp")?.parse()?;
            Ok(Received {
                id: message.message_id.unwrap_or_default(),
                message: FailureMessage::of(&message.body.unwrap_or_default(), sent),
                sent,
                handle: message.receipt_handle.context("a message without a receipt handle")?,
            })
        });
        received.collect()
    }

    /// The approximate number of messages in the queue.
    ///
    /// Source: <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_GetQueueAttributes.html>
    pub(super) async fn depth(&self) -> anyhow::Result<Depth> {
        let [visible, hidden] = [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
        ];
        let request = self.client.get_queue_attributes().queue_url(&self.url);
        let request = request.attribute_names(visible.clone()).attribute_names(hidden.clone());
        let answer = request.send().await.context("the queue does not count its messages")?;
        let counts = answer.attributes.unwrap_or_default();
        let count = |name: &QueueAttributeName| -> anyhow::Result<u64> {
            let count = counts.get(name).with_context(|| format!("no {}", name.as_str()))?;
            Ok(count.parse()?)
        };
        Ok(Depth { visible: count(&visible)?, hidden: count(&hidden)? })
    }

    /// Deletes a message.
    pub(super) async fn delete(&self, message: &Received) -> anyhow::Result<()> {
        let request = self.client.delete_message().queue_url(&self.url);
        let sent = request.receipt_handle(&message.handle).send().await;
        sent.context("the message cannot be deleted from the queue").map(drop)
    }

    /// Makes a message visible again, at once.
    pub(super) async fn give_back(&self, message: &Received) -> anyhow::Result<()> {
        let request = self.client.change_message_visibility().queue_url(&self.url);
        let request = request.receipt_handle(&message.handle).visibility_timeout(0);
        request.send().await.context("a message cannot be given back").map(drop)
    }

    /// The URL of the queue for which this is the dead-letter queue.
    pub(super) async fn source(&self) -> anyhow::Result<String> {
        let request = self.client.list_dead_letter_source_queues().queue_url(&self.url);
        let answer = request.send().await;
        let answer = answer.context("the work queue is not known")?;
        match &answer.queue_urls[..] {
            [url] => Ok(url.clone()),
            urls => bail!(
                "{} queues send their failed messages to this one; the work queue is not known",
                urls.len()
            ),
        }
    }

    /// Sends a message to another queue.
    pub(super) async fn send(&self, url: &str, body: &str) -> anyhow::Result<()> {
        let sent = self.client.send_message().queue_url(url).message_body(body).send().await;
        let answer = sent.context("the work queue does not take it")?;
        answer.message_id.context("the work queue does not say that it took it").map(drop)
    }
}
