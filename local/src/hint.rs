//! The hint that messages wait, within one process. Sends no message.

use std::sync::Arc;

use runtime::clock::Deadline;
use runtime::hint::Hint;
use tokio::sync::{Notify, watch};

use crate::scheduler::ScheduledFunction;
use crate::stop::is_stopped;
use crate::warning::WarningLimiter;

/// Wakes the alerting function to send waiting messages. Several hints before it wakes count as one.
#[derive(Debug, Clone, Default)]
pub(crate) struct LocalHint(Arc<Notify>);

impl Hint for LocalHint {
    async fn give(&self, _: Deadline) -> Result<(), String> {
        self.0.notify_one();
        Ok(())
    }
}

impl LocalHint {
    /// Invokes the alerting function at each hint, until it is stopped.
    pub(crate) async fn follow(self, alerting: ScheduledFunction, stop: watch::Receiver<bool>) {
        let warnings = WarningLimiter::new();
        while !is_stopped(&stop) {
            self.0.notified().await;
            if let Err(error) = alerting.invoke(()).await.flatten() {
                warnings.warn(format_args!("messages of alerts are not sent: {error:#}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;
    use std::sync::mpsc;
    use std::thread;

    use runtime::clock::Stopwatch;
    use serde_json::{Value, json};

    use crate::{Options, System};

    /// A receiver of messages on this machine: its address, and the bodies that it gets.
    fn receiver() -> (String, mpsc::Receiver<Value>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}/hook", listener.local_addr().expect("an address"));
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

                let answer = b"HTTP/1.1 204 .\r\ncontent-length: 0\r\n\r\n";
                stream.get_mut().write_all(answer).expect("an answer");
                if bodies.send(serde_json::from_slice(&body).expect("JSON")).is_err() {
                    return;
                }
            }
        });

        (address, received)
    }

    async fn send(system: &System, method: &str, path: &str, body: &Value) {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(body.to_string().into_bytes())
            .expect("a request");
        let answer = Box::pin(system.send(request)).await.expect("an answer");
        let text = String::from_utf8_lossy(answer.body()).into_owned();
        assert!(answer.status().is_success(), "{method} {path}: {} {text}", answer.status());
    }

    /// The stream's window is ten seconds; judging and sending have five more.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_reading_beyond_a_limit_is_told_within_the_window_and_five_seconds() {
        let system = Box::pin(System::start(Options::default())).await.expect("it starts");
        let (address, received) = receiver();
        let key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let channel = json!({"kind": "webhook", "name": "Here", "address": address, "key": key});
        send(&system, "PUT", "/channels/here", &channel).await;

        let rule = json!({
            "name": "Warm", "device": "freezer", "metric": "temperature", "above": 8, "for": "0s",
        });
        send(&system, "PUT", "/alerts/warm", &rule).await;

        let next = async || {
            let wait = std::time::Duration::from_secs(20);
            let body = tokio::task::block_in_place(|| received.recv_timeout(wait));
            body.expect("a message within twenty seconds")
        };

        for (value, news) in [(9.5, "fired"), (5.0, "recovered")] {
            let watch = Stopwatch::start();
            let reading = json!({"device_id": "freezer", "room": "cellar", "temperature": value});
            send(&system, "POST", "/readings", &reading).await;
            let body = next().await;
            let seconds = watch.elapsed().as_secs_f64();

            assert_eq!(body["messages"][0]["news"], news, "{body}");
            assert_eq!(body["messages"].as_array().map(Vec::len), Some(1), "{body}");
            let link = body["link"].as_str().expect("a link");
            assert!(link.starts_with(&format!("{}/", system.url())), "{link}");
            assert!(seconds < 15.0, "{news} after {seconds} seconds");
        }

        assert!(received.try_recv().is_err(), "once");
        system.shutdown().await.expect("it stops");
    }
}
