//! Sends the requests that deliver messages. Knows no form of a message, keeps no secret and repeats nothing.
//!
//! People write a channel's address, so it may lead anywhere. The client connects to checked addresses only: a name is
//! resolved once for each request, and the client gets the addresses that have passed the check. There are no
//! redirects, no proxy and no kept connections. TLS trusts public roots.

mod resolver;
mod unanswered;

use std::cell::Cell;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use outgoing::{Answer, Fetched, HEADERS_OF_LIMITS, Reach, Request};
use ureq::config::Config;
use ureq::http::Response;
use ureq::tls::TlsConfig;
use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, Body, SendBody};

pub use resolver::{LookUpHost, SystemNames};
pub use unanswered::{Cause, TIMEOUT, TlsFault, Unanswered};

use crate::resolver::CheckedNames;

/// The largest number of bytes that are read of an answer's body to show people the reason of a failure.
const MAX_ANSWER: u64 = 4 * 1024;
/// The largest size of a body in bytes, if the answer is read as a whole.
const MAX_FETCHED: u64 = 512 * 1024;
/// The largest size of an answer's headers in bytes.
const MAX_HEADERS: usize = 16 * 1024;
const USER_AGENT: &str = concat!("roomtide/", env!("CARGO_PKG_VERSION"));

/// Sends requests. Tests put another sender in place.
pub trait SendRequest: Send + Sync {
    /// Sends a request once and waits for its answer, for [`TIMEOUT`] at most. Blocks the thread.
    fn send(&self, request: &Request) -> Result<Answer, Unanswered>;
}

/// Sends requests and reads the whole answers. Tests put another sender in place.
pub trait FetchAnswer: Send + Sync {
    /// Sends a request once and reads its answer, for [`TIMEOUT`] at most. Blocks the thread.
    fn fetch(&self, request: &Request) -> Result<Fetched, Unanswered>;
}

/// Sends requests by HTTP.
///
/// The client logs the paths of requests at the level `TRACE` of the crate `log`, and a path may contain Telegram's
/// token. No part of Roomtide takes these records.
#[derive(Debug)]
pub struct HttpSender(Agent);

impl HttpSender {
    /// A sender that resolves names with the system's resolver.
    pub fn new(reach: Reach) -> Self {
        Self::with_names(reach, Arc::new(SystemNames))
    }

    /// A sender that resolves names with `names`.
    pub fn with_names(reach: Reach, names: Arc<dyn LookUpHost>) -> Self {
        Self::build(reach, names, TIMEOUT, TlsConfig::default())
    }

    /// Makes the client. Each setting that differs from the client's default is a decision: by default the client
    /// follows redirects, takes a proxy from the environment, keeps connections, and waits for ever.
    fn build(reach: Reach, names: Arc<dyn LookUpHost>, timeout: Duration, tls: TlsConfig) -> Self {
        let config = Config::builder()
            .http_status_as_error(false)
            .https_only(reach == Reach::Public)
            .proxy(None)
            .max_redirects(0)
            .timeout_global(Some(timeout))
            .max_idle_connections(0)
            .max_response_header_size(MAX_HEADERS)
            .user_agent(USER_AGENT)
            .tls_config(tls)
            .build();
        let resolver = CheckedNames { names, reach };
        Self(Agent::with_parts(config, DefaultConnector::default(), resolver))
    }
}

impl HttpSender {
    /// Sends a request. Returns the answer with its body still unread.
    fn run(&self, request: &Request) -> Result<Response<Body>, Unanswered> {
        let is_handed_over = Cell::new(false);
        let mut body = Watched { rest: request.body().as_bytes(), is_read: &is_handed_over };
        let mut parts = http::Request::builder().method(request.method()).uri(request.uri());
        for (name, value) in request.headers() {
            parts = parts.header(name.as_ref(), value);
        }

        let answered = if request.body().is_empty() {
            is_handed_over.set(true);
            parts.body(()).map_err(ureq::Error::Http).and_then(|request| self.0.run(request))
        } else {
            let parts = parts.header("content-length", request.body().len());
            let body = SendBody::from_reader(&mut body);
            parts.body(body).map_err(ureq::Error::Http).and_then(|request| self.0.run(request))
        };
        answered.map_err(|error| Unanswered::new(request, &error, is_handed_over.get()))
    }
}

impl SendRequest for HttpSender {
    fn send(&self, request: &Request) -> Result<Answer, Unanswered> {
        let mut response = self.run(request)?;
        let status = response.status().as_u16();
        let retry_after =
            response.headers().get("retry-after").and_then(|value| value.to_str().ok());
        let retry_after = retry_after.map(str::to_owned);
        let mut text = Vec::new();
        if !response.status().is_success() {
            // The status is already known, so an error in the body is ignored. The text before the error is shown.
            let _ = response.body_mut().as_reader().take(MAX_ANSWER).read_to_end(&mut text);
        }

        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(Answer { status, retry_after, text })
    }
}

impl FetchAnswer for HttpSender {
    fn fetch(&self, request: &Request) -> Result<Fetched, Unanswered> {
        let mut response = self.run(request)?;
        let status = response.status().as_u16();
        let headers = HEADERS_OF_LIMITS.into_iter().filter_map(|name| {
            Some((name, response.headers().get(name)?.to_str().ok()?.to_owned()))
        });
        let headers = headers.collect();

        let mut body = Vec::new();
        let rest = response.body_mut().as_reader().take(MAX_FETCHED + 1);
        let read = { rest }.read_to_end(&mut body);
        read.map_err(|error| Unanswered::new(request, &ureq::Error::Io(error), true))?;
        if body.len() as u64 > MAX_FETCHED {
            return Err(Unanswered::too_large(request));
        }
        Ok(Fetched { status, headers, body })
    }
}

/// The body of a request. Notices when the client has read all of it: a server cannot act before that.
struct Watched<'a> {
    rest: &'a [u8],
    is_read: &'a Cell<bool>,
}

impl Read for Watched<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.rest.read(into)?;
        self.is_read.set(self.is_read.get() || self.rest.is_empty());
        Ok(length)
    }
}

#[cfg(test)]
mod tests;
