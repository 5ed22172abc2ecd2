//! The hint on Lambda: invokes the function `alerting` without waiting for its end. Knows no message.

use std::time::Duration;

use aws::ServiceConfig;

use super::Hint;
use crate::clock::{Clock, Deadline};
use crate::invoke::LambdaFunction;

/// How long Lambda may take to accept the invocation.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Invokes the function `alerting`.
#[derive(Debug)]
pub struct LambdaHint<C>(LambdaFunction<C>);

impl<C: Clock> LambdaHint<C> {
    /// A client that invokes a function by its name; nothing is sent yet. Without a name no hint is given.
    pub fn connect(config: &ServiceConfig, function: Option<&str>, clock: C) -> Self {
        Self(LambdaFunction::connect_within(TIMEOUT, config, function, clock))
    }
}

impl<C: Clock> Hint for LambdaHint<C> {
    /// Lambda answers an invocation of type `Event` with 202 once the event is in Lambda's own queue.
    async fn give(&self, deadline: Deadline) -> Result<(), String> {
        if !self.0.is_there() {
            return Ok(());
        }
        let reply = self.0.call("Event", r#"{"source":"roomtide.hint"}"#, deadline).await?;
        match reply.status {
            202 => Ok(()),
            status => Err(format!("Lambda answers {status}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;
    use std::sync::mpsc;
    use std::thread;

    use aws::Credentials;

    use super::*;
    use crate::clock::SystemClock;

    /// A server that answers each request with a status, and the heads and bodies of the requests.
    fn answering(status: u16) -> (LambdaHint<SystemClock>, mpsc::Receiver<(String, String)>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let (requests, received) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.expect("a connection"));
                let (mut head, mut length) = (String::new(), 0);
                loop {
                    let mut line = String::new();
                    stream.read_line(&mut line).expect("a line");
                    let line = line.to_lowercase();
                    if line.trim().is_empty() {
                        break;
                    }
                    if let Some(value) = line.strip_prefix("content-length:") {
                        length = value.trim().parse().expect("a length");
                    }
                    head.push_str(&line);
                }
                let mut body = vec![0; length];
                stream.read_exact(&mut body).expect("a body");
                let body = String::from_utf8(body).expect("text");
                if requests.send((head, body)).is_err() {
                    return;
                }
                let text = format!("HTTP/1.1 {status} .\r\ncontent-length: 0\r\n\r\n");
                stream.get_mut().write_all(text.as_bytes()).expect("an answer");
            }
        });
        let config = ServiceConfig {
            region: "us-east-1".to_owned(),
            endpoint: Some(address),
            credentials: Credentials {
                access_key_id: "AKID".to_owned(),
                secret_access_key: "geheim".to_owned(),
                session_token: Some("lent".to_owned()),
            },
            ca_bundle: None,
        };
        (LambdaHint::connect(&config, Some("stack-Alerting-x"), SystemClock), received)
    }

    fn soon() -> Deadline {
        Deadline::after(Duration::from_secs(10))
    }

    #[tokio::test]
    async fn the_function_is_invoked_asynchronously_by_a_signed_request() {
        let (hint, received) = answering(202);
        hint.give(soon()).await.expect("asked");
        let (head, body) = received.recv().expect("a request");
        assert!(
            head.starts_with("post /2015-03-31/functions/stack-alerting-x/invocations "),
            "{head}"
        );
        for expected in [
            "x-amz-invocation-type: event",
            "x-amz-security-token: lent",
            "authorization: aws4-hmac-sha256 credential=akid/",
            "/us-east-1/lambda/aws4_request",
        ] {
            assert!(head.contains(expected), "{expected}: {head}");
        }
        assert!(!head.contains("geheim"));
        assert_eq!(body, r#"{"source":"roomtide.hint"}"#);
    }

    #[tokio::test]
    async fn a_refusal_says_its_status_and_a_server_that_is_gone_says_so() {
        let (hint, _received) = answering(403);
        assert_eq!(hint.give(soon()).await, Err("Lambda answers 403".to_owned()));
        assert!(!format!("{hint:?}").contains("geheim"));
        let gone = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("one");
        let config = ServiceConfig {
            region: "us-east-1".to_owned(),
            endpoint: Some(format!("http://{gone}")),
            credentials: Credentials {
                access_key_id: "AKID".to_owned(),
                secret_access_key: "x".to_owned(),
                session_token: None,
            },
            ca_bundle: None,
        };
        let hint = LambdaHint::connect(&config, Some("f"), SystemClock);
        let why = hint.give(soon()).await.expect_err("nobody listens");
        assert!(why.starts_with("lambda does not answer: "), "{why}");
        let nobody = LambdaHint::connect(&config, None, SystemClock);
        assert_eq!(nobody.give(soon()).await, Ok(()));
    }
}
