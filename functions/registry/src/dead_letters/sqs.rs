//! The failures queue on Amazon SQS, as one JSON message a letter. Reads no message.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use shared::aws;
use shared::config::QueueConfig;
use shared::store::Budget;
use shared::telemetry::chain;

use super::{DeadLetter, DeadLetters, NotPut};

/// How many messages a `SendMessageBatch` takes.
///
/// Source: <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html>
const BATCH: usize = 10;

/// The queue that also takes the records that Lambda gave up.
#[derive(Debug, Clone)]
pub struct SqsQueue {
    client: Client,
    url: String,
}

impl SqsQueue {
    /// A queue that will be asked; nothing is sent yet.
    #[must_use]
    pub fn connect(config: &QueueConfig) -> Self {
        let endpoint = config.endpoint.as_deref();
        let settings = aws::settings(&config.region, endpoint, &config.credentials);
        Self { client: Client::new(&settings), url: config.url.clone() }
    }
}

impl DeadLetters for SqsQueue {
    async fn put(&self, letters: &[DeadLetter], budget: &Budget) -> Result<(), NotPut> {
        for batch in letters.chunks(BATCH) {
            let mut request = self.client.send_message_batch().queue_url(&self.url);
            for (n, letter) in batch.iter().enumerate() {
                let body = serde_json::to_string(letter).map_err(NotPut::because)?;
                let entry = SendMessageBatchRequestEntry::builder().id(n.to_string());
                let entry = entry.message_body(body).build().map_err(NotPut::because)?;
                request = request.entries(entry);
            }
            let sent = budget.within(request.send()).await?;
            let answer = sent.map_err(|error| NotPut::because(chain(&error)))?;
            if let Some(refused) = answer.failed().first() {
                let text = format!("{}: {}", refused.code(), refused.message().unwrap_or_default());
                return Err(NotPut::because(text));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use serde_json::{Value, json};
    use shared::clock::Deadline;
    use shared::config::Credentials;

    use super::*;

    /// A queue that answers every request with `answer`, and the requests' bodies.
    fn answering(answer: &'static str) -> (SqsQueue, mpsc::Receiver<Value>) {
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
                let text = format!(
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{answer}",
                    answer.len()
                );
                stream.get_mut().write_all(text.as_bytes()).expect("an answer");
                if bodies.send(serde_json::from_slice(&body).expect("JSON")).is_err() {
                    return;
                }
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
        });
        (queue, received)
    }

    fn letters(number: usize) -> Vec<DeadLetter> {
        let letter = |n| DeadLetter { pk: format!("d{n}"), sk: "TS#x".into(), reason: "no".into() };
        (0..number).map(letter).collect()
    }

    fn budget() -> Budget {
        Budget::until(Deadline::after(Duration::from_secs(5)))
    }

    #[tokio::test]
    async fn ten_letters_go_with_one_request() {
        let (queue, received) = answering(r#"{"Successful": [], "Failed": []}"#);
        queue.put(&letters(11), &budget()).await.expect("taken");
        let sizes = received.try_iter().map(|body| body["Entries"].as_array().map_or(0, Vec::len));
        assert_eq!(sizes.collect::<Vec<_>>(), [10, 1]);

        queue.put(&letters(1), &budget()).await.expect("taken");
        let body = received.recv().expect("a request");
        let message = body["Entries"][0]["MessageBody"].as_str().expect("a text");
        let message: Value = serde_json::from_str(message).expect("JSON");
        assert_eq!(message, json!({"pk": "d0", "sk": "TS#x", "reason": "no"}));
    }

    #[tokio::test]
    async fn a_letter_that_is_refused_is_a_failure() {
        let answer = r#"{"Successful": [], "Failed":
            [{"Id": "0", "SenderFault": false, "Code": "InternalError", "Message": "busy"}]}"#;
        let error = answering(answer).0.put(&letters(1), &budget()).await.expect_err("refused");
        assert!(chain(&error).contains("InternalError: busy"), "{}", chain(&error));
    }
}
