//! An answer: status, headers, body. Decides no status; see [`problem`](super::problem) for those of failures.

use serde::Serialize;

/// An answer to a request.
#[derive(Debug, Clone)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Lower-case names and values.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// The maximum size of an answer's body, as [`carried_bytes`] counts it. Lambda answers at most 6 MB, including the
/// event around the body.
///
/// Source: <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
pub const MAX_CARRIED: usize = 5_900_000;

/// The size of a text body in the event, which carries it as a JSON string.
pub fn carried_bytes(text: &[u8]) -> usize {
    let carried = |byte: &u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0x00..=0x1f => 6,
        _ => 1,
    };
    text.iter().map(carried).sum()
}

impl Response {
    /// An answer with a body of the given type.
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: vec![("content-type", content_type.to_owned())], body: body.into() }
    }

    /// An answer in JSON.
    pub fn json(status: u16, body: &impl Serialize) -> Self {
        let mut body = serde_json::to_vec(body).expect("our own types have string keys");
        // With a line feed, the next prompt of a terminal begins on a line of its own.
        body.push(b'\n');
        Self::new(status, "application/json", body)
    }

    /// The answer with one more header.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl std::fmt::Display) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }
}
