//! HTTP/1.1 messages byte by byte, for requests that no client sends and answers that no server gives.
//! Knows no chunks: the SDK and the engines send lengths.

use std::io::{Error, ErrorKind, Result};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// A connection whose messages are read one by one.
pub(crate) type Connection = BufReader<TcpStream>;

/// A request or an answer.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    /// The first line and the headers, without the empty line behind them.
    pub(crate) head: String,
    /// The body.
    pub(crate) body: Vec<u8>,
}

impl Message {
    /// A `DynamoDB` request of that access key, with a signature that only engines on this machine take.
    pub(crate) fn request(operation: &str, key: &str, body: &Value) -> Self {
        let body = body.to_string().into_bytes();
        let head = format!(
            "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-amz-json-1.0\r\n\
             x-amz-target: DynamoDB_20120810.{operation}\r\nx-amz-date: 20260111T160000Z\r\n\
             authorization: AWS4-HMAC-SHA256 Credential={key}/20260111/us-east-1/dynamodb/aws4_request, \
             SignedHeaders=host;x-amz-date, Signature=0\r\ncontent-length: {}\r\n",
            body.len()
        );
        Self { head, body }
    }

    /// The access key of a signed request.
    pub(crate) fn access_key(&self) -> &str {
        let signed = self.header("authorization").unwrap_or_default();
        let credential = signed.split_once("Credential=").map_or("", |(_, credential)| credential);
        credential.split('/').next().unwrap_or_default()
    }

    /// An answer as `DynamoDB` writes it.
    pub(crate) fn answer(status: u16, body: &Value) -> Self {
        let body = body.to_string().into_bytes();
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} Answer\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: {length}\r\n"
        );
        Self { head, body }
    }

    /// The next message of a connection; none where it was closed before one began.
    pub(crate) async fn read(connection: &mut Connection) -> Result<Option<Self>> {
        let mut head = String::new();
        loop {
            let start = head.len();
            if connection.read_line(&mut head).await? == 0 {
                let closed = Error::from(ErrorKind::UnexpectedEof);
                return if head.is_empty() { Ok(None) } else { Err(closed) };
            }
            if head[start..].trim().is_empty() {
                head.truncate(start);
                break;
            }
        }
        let mut message = Self { head, body: Vec::new() };
        let length = message.header("content-length").and_then(|length| length.parse().ok());
        message.body.resize(length.unwrap_or(0), 0);
        connection.read_exact(&mut message.body).await?;
        Ok(Some(message))
    }

    /// Writes the message.
    pub(crate) async fn write(&self, connection: &mut Connection) -> Result<()> {
        let bytes = [self.head.as_bytes(), b"\r\n", &self.body].concat();
        connection.write_all(&bytes).await?;
        connection.flush().await
    }

    /// A header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The status of an answer.
    pub(crate) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    /// The body as JSON; null if it is not JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// A connection to an address such as `http://127.0.0.1:8000`.
pub(crate) async fn connect(endpoint: &str) -> Result<Connection> {
    let address = endpoint.trim_start_matches("http://").trim_end_matches('/');
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(BufReader::new(stream))
}
