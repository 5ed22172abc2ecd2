//! A client that speaks HTTP to a system of this process. Asserts nothing.

use std::time::Duration;

use local::{Options, System};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A system in memory whose functions cache nothing, so that a test sees what is in the table.
pub(crate) async fn system() -> System {
    let options = Options { registry_max_age: Duration::ZERO, ..Options::default() };
    System::start(options).await.expect("a free port and memory are all it takes")
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("no JSON: {}", String::from_utf8_lossy(&self.body)))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// Sends one request, in a connection of its own.
pub(crate) async fn send(system: &System, method: &str, path: &str, body: &[u8]) -> Answer {
    send_with(system, method, path, "", body).await
}

/// Sends one request with further headers, each ending with a new line.
pub(crate) async fn send_with(
    system: &System,
    method: &str,
    path: &str,
    headers: &str,
    body: &[u8],
) -> Answer {
    send_to(system.url(), method, path, headers, body).await
}

/// Sends one request to an address.
pub(crate) async fn send_to(
    url: &str,
    method: &str,
    path: &str,
    headers: &str,
    body: &[u8],
) -> Answer {
    let address = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.expect("it listens");
    // A server that refuses a body early closes before it has read it all.
    let _ = stream.write_all(body).await;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("it answers");
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8(answer[..end].to_vec()).expect("ASCII");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    let rest = &answer[end + 4..];
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    assert!(!chunked, "answers have a length");
    Answer { status, head, body: rest.to_vec() }
}

pub(crate) async fn get(system: &System, path: &str) -> Answer {
    send(system, "GET", path, b"").await
}

pub(crate) async fn post(system: &System, body: &Value) -> Answer {
    send(system, "POST", "/readings", body.to_string().as_bytes()).await
}
