//! An answer: status, headers, body. Decides no status; see [`problem`](super::problem) for those of failures.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

use super::Request;
use crate::store::Budget;

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

/// Below this many bytes compression makes nothing smaller that matters.
const WORTH_COMPRESSING: usize = 1_024;

impl Response {
    /// An answer with a body of the given type.
    #[must_use]
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: vec![("content-type", content_type.to_owned())], body: body.into() }
    }

    /// An answer in JSON.
    #[must_use]
    pub fn json(status: u16, body: &impl Serialize) -> Self {
        let mut body = serde_json::to_vec(body).expect("our own types have string keys");
        // At a terminal the prompt then begins on a line of its own.
        body.push(b'\n');
        Self::new(status, "application/json", body)
    }

    /// The answer with one more header.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl std::fmt::Display) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    /// What every answer carries: the request's id, what it cost and what it depends on; and gzip where it was asked for.
    #[must_use]
    pub fn finish(self, request: &Request, budget: &Budget) -> Self {
        let response = self
            // So that no cache answers one form, or one token's request, with another's.
            .with("vary", "accept, accept-encoding, authorization")
            .with("x-request-id", &request.id)
            .with("x-consumed-read-units", budget.read_units())
            .with("x-consumed-write-units", budget.write_units());
        if !request.accepts_gzip() || response.body.len() < WORTH_COMPRESSING {
            return response;
        }
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&response.body).expect("writing to memory does not fail");
        let body = gzip.finish().expect("writing to memory does not fail");
        Self { body, ..response }.with("content-encoding", "gzip")
    }
}
