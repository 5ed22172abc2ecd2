//! The dead-letter queue on Amazon SQS: one JSON message per letter, and the only door to its SDK.

use aws::QueueConfig;
use aws_sdk_sqs::Client;
use table::Invocation;

use super::{DeadLetter, DeadLetterQueue, NotSent};
use crate::telemetry::chain;

/// The queue, which also takes the records that Lambda gave up.
#[derive(Debug, Clone)]
pub struct SqsQueue {
    client: Client,
    url: String,
}

impl SqsQueue {
    /// A client of the queue; nothing is sent yet.
    #[must_use]
    pub fn connect(config: &QueueConfig) -> Self {
        let endpoint = config.endpoint.as_deref();
        let settings = aws::settings(&config.region, endpoint, &config.credentials);
        Self { client: Client::new(&settings), url: config.url.clone() }
    }
}

impl DeadLetterQueue for SqsQueue {
    async fn send(&self, letters: &[DeadLetter], invocation: &Invocation) -> Result<(), NotSent> {
        for letter in letters {
            let body = serde_json::to_string(letter).map_err(NotSent::because)?;
            let message = self.client.send_message().queue_url(&self.url).message_body(body);
            let sent = invocation.within(message.send()).await?;
            sent.map_err(|error| NotSent::because(chain(&error)))?;
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

    use crate::clock::Deadline;
    use aws::Credentials;
    use serde_json::{Value, json};

    use super::*;

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
        });
        (queue, received)
    }

    fn letters(number: usize) -> Vec<DeadLetter> {
        let letter = |n| DeadLetter { pk: format!("d{n}"), sk: "TS#x".into(), reason: "no".into() };
        (0..number).map(letter).collect()
    }

    fn invocation() -> Invocation {
        Invocation::until(Deadline::after(Duration::from_secs(5)))
    }

    #[tokio::test]
    async fn every_letter_is_a_message() {
        let (queue, received) = answering(200, r#"{"MessageId": "1"}"#);
        queue.send(&letters(2), &invocation()).await.expect("taken");
        let bodies = received.try_iter().map(|body| body["MessageBody"].clone());
        let expected = |n| format!(r#"{{"pk":"d{n}","sk":"TS#x","reason":"no"}}"#);
        assert_eq!(bodies.collect::<Vec<_>>(), [json!(expected(0)), json!(expected(1))]);
    }

    #[tokio::test]
    async fn a_letter_that_is_refused_is_a_failure() {
        let answer = r#"{"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "gone"}"#;
        let (queue, _received) = answering(400, answer);
        let error = queue.send(&letters(1), &invocation()).await.expect_err("refused");
        assert!(chain(&error).contains("gone"), "{}", chain(&error));
    }
}
