//! The dead-letter queue and the work queue on Amazon SQS, with one JSON message for each letter or request. Only this
//! file uses the SDK for SQS. Receives no message; Lambda does.

use aws::QueueConfig;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{QueueAttributeName, SendMessageBatchRequestEntry};
use serde::Serialize;
use table::Invocation;

use crate::dead_letters::{DeadLetter, DeadLetterQueue};
use crate::not_sent::NotSent;
use crate::telemetry::chain;
use crate::work_queue::{FoldRequest, WorkQueue};

/// The largest number of messages that SQS takes with one request.
const MAX_BATCH: usize = 10;

/// The numbers of messages that add up to the depth of a queue.
const COUNTS: [QueueAttributeName; 3] = [
    QueueAttributeName::ApproximateNumberOfMessages,
    QueueAttributeName::ApproximateNumberOfMessagesDelayed,
    QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
];

/// A client of one queue. Lambda itself may send records that it gave up to the same queue.
#[derive(Debug, Clone)]
pub struct SqsQueue {
    client: Client,
    url: String,
}

impl SqsQueue {
    /// A client of the queue; nothing is sent yet.
    pub fn connect(config: &QueueConfig) -> Self {
        let endpoint = config.endpoint.as_deref();
        let ca_bundle = config.ca_bundle.as_ref();
        let settings = aws::settings(
            &config.region,
            endpoint,
            &config.credentials,
            ca_bundle,
            aws::ATTEMPT_TIMEOUT,
        );
        Self { client: Client::new(&settings), url: config.url.clone() }
    }

    /// Sends all messages. After an error some may have been sent.
    async fn send_all<T: Serialize>(
        &self,
        messages: &[T],
        invocation: &Invocation,
    ) -> Result<(), NotSent> {
        for batch in messages.chunks(MAX_BATCH) {
            let mut request = self.client.send_message_batch().queue_url(&self.url);
            for (n, message) in batch.iter().enumerate() {
                let body = serde_json::to_string(message).map_err(NotSent::because)?;
                let entry = SendMessageBatchRequestEntry::builder().id(n.to_string());
                let entry = entry.message_body(body).build().map_err(NotSent::because)?;
                request = request.entries(entry);
            }

            let answer = invocation.within(request.send()).await?;
            let answer = answer.map_err(|error| NotSent::because(chain(&error)))?;
            // SQS answers 200 even if it refuses some messages of the batch.
            if let Some(refused) = answer.failed().first() {
                let reason = refused.message().unwrap_or_default();
                return Err(NotSent::because(format!("{}: {reason}", refused.code())));
            }
        }
        Ok(())
    }
}

impl DeadLetterQueue for SqsQueue {
    async fn send(&self, letters: &[DeadLetter], invocation: &Invocation) -> Result<(), NotSent> {
        self.send_all(letters, invocation).await
    }
}

impl WorkQueue for SqsQueue {
    async fn send(&self, messages: &[FoldRequest], invocation: &Invocation) -> Result<(), NotSent> {
        self.send_all(messages, invocation).await
    }

    async fn depth(&self, invocation: &Invocation) -> Result<u64, NotSent> {
        let request = self.client.get_queue_attributes().queue_url(&self.url);
        let request = request.set_attribute_names(Some(COUNTS.to_vec()));
        let answer = invocation.within(request.send()).await?;
        let answer = answer.map_err(|error| NotSent::because(chain(&error)))?;
        let counts =
            answer.attributes().into_iter().flatten().map(|(_, count)| count.parse::<u64>());
        counts.sum::<Result<u64, _>>().map_err(NotSent::because)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use aws::Credentials;
    use serde_json::{Value, json};

    use super::*;
    use crate::clock::Deadline;

    /// A queue whose every request is answered with `status` and `answer`, and the requests' bodies.
    fn answering(status: u16, answer: &'static str) -> (SqsQueue, mpsc::Receiver<Value>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let (bodies, received) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.expect("a connection"));
                let (mut line, mut length) = (String::new(), 0);
                while stream.read_line(&mut line).is_ok_and(|_| !line.trim().is_empty()) {
                    if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().expect("a length");
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                stream.read_exact(&mut body).expect("a body");
                if bodies.send(serde_json::from_slice(&body).expect("JSON")).is_err() {
                    return;
                }
                let text = format!(
                    "HTTP/1.1 {status} .\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{answer}",
                    answer.len()
                );
                stream.get_mut().write_all(text.as_bytes()).expect("an answer");
            }
        });
        let key = || "test".to_owned();
        let queue = SqsQueue::connect(&QueueConfig {
            url: format!("{address}/000000000000/failures"),
            region: "us-east-1".to_owned(),
            endpoint: Some(address),
            credentials: Credentials {
                access_key_id: key(),
                secret_access_key: key(),
                session_token: None,
            },
            ca_bundle: None,
        });
        (queue, received)
    }

    async fn send(queue: &SqsQueue, number: u32) -> Result<(), NotSent> {
        let messages: Vec<Value> = (0..number).map(|n| json!({"n": n})).collect();
        queue.send_all(&messages, &Invocation::until(Deadline::after(Duration::from_secs(5)))).await
    }

    #[tokio::test]
    async fn messages_are_sent_ten_with_a_request() {
        let (queue, received) = answering(200, r#"{"Successful": [], "Failed": []}"#);
        send(&queue, 12).await.expect("taken");
        let requests: Vec<Value> = received.try_iter().collect();
        let entries = requests.iter().map(|request| request["Entries"].as_array().expect("a list"));
        assert_eq!(entries.clone().map(Vec::len).collect::<Vec<_>>(), [10, 2]);
        let bodies = entries.flatten().map(|entry| entry["MessageBody"].as_str().expect("text"));
        let expected = (0..12).map(|n| format!(r#"{{"n":{n}}}"#));
        assert_eq!(bodies.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn the_depth_counts_what_waits_and_what_is_being_worked_on() {
        let attributes = r#"{"Attributes": {"ApproximateNumberOfMessages": "12",
            "ApproximateNumberOfMessagesDelayed": "0", "ApproximateNumberOfMessagesNotVisible": "3"}}"#;
        let (queue, received) = answering(200, attributes);
        let invocation = Invocation::until(Deadline::after(Duration::from_secs(5)));
        assert_eq!(queue.depth(&invocation).await.expect("counted"), 15);
        let asked = received.recv().expect("a request");
        assert_eq!(asked["AttributeNames"].as_array().map(Vec::len), Some(3));
        let (queue, _received) =
            answering(200, r#"{"Attributes": {"ApproximateNumberOfMessages": "?"}}"#);
        assert!(queue.depth(&invocation).await.is_err());
    }

    #[tokio::test]
    async fn a_request_that_is_refused_is_a_failure() {
        let answer = r#"{"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "gone"}"#;
        let (queue, _received) = answering(400, answer);
        let error = send(&queue, 1).await.expect_err("refused");
        assert!(chain(&error).contains("gone"), "{}", chain(&error));
    }

    #[tokio::test]
    async fn a_batch_of_which_one_message_is_refused_is_a_failure() {
        let answer = r#"{"Successful": [{"Id": "0", "MessageId": "a", "MD5OfMessageBody": "b"}],
            "Failed": [{"Id": "1", "SenderFault": false, "Code": "InternalError", "Message": "later"}]}"#;
        let (queue, _received) = answering(200, answer);
        let error = send(&queue, 2).await.expect_err("one is refused");
        assert!(chain(&error).contains("InternalError: later"), "{}", chain(&error));
    }
}
