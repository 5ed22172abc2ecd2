//! A request to the API, and its answer. Sends nothing.

use std::str::FromStr;
use std::time::Duration;

use http::HeaderMap;
use http::response::Parts;
use serde::Deserialize;
use serde_json::Value;

/// A request to the API.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask<'a> {
    /// GET, POST or PATCH.
    pub(crate) method: &'a str,
    /// The path and the query, beginning with a slash.
    pub(crate) path: &'a str,
    /// The body and its type; GET has none.
    pub(crate) body: Option<(&'a str, &'a str)>,
    /// Headers in addition to the body's type.
    pub(crate) headers: &'a [(&'static str, String)],
}

impl<'a> Ask<'a> {
    /// A GET request.
    pub(crate) const fn get(path: &'a str) -> Self {
        Self { method: "GET", path, body: None, headers: &[] }
    }

    /// A request with this method that has no body.
    pub(crate) const fn without_body(method: &'a str, path: &'a str) -> Self {
        Self { method, ..Self::get(path) }
    }

    /// A request with a body of JSON.
    pub(crate) const fn json(method: &'a str, path: &'a str, body: &'a str) -> Self {
        Self { method, path, body: Some(("application/json", body)), headers: &[] }
    }

    /// The request to an address, without its body.
    pub(crate) fn request(&self, address: &str) -> http::request::Builder {
        let request = http::Request::builder().method(self.method);
        let request = request.uri(format!("{address}{}", self.path));
        let content_type = self.body.map(|(content_type, _)| ("content-type", content_type));
        let headers = self.headers.iter().map(|(name, value)| (*name, value.as_str()));
        headers
            .chain(content_type)
            .fold(request, |request, (name, value)| request.header(name, value))
    }
}

/// A final answer: the same request would get no better one.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The body of the answer.
    pub(crate) text: String,
    /// The consumed units of the table, and the table's limits.
    pub(crate) units: Units,
    /// The pause that the server asks for before the next request, if any.
    pub(crate) retry_after: Option<Duration>,
}

/// The maximum pause accepted from a server's `Retry-After`.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(120);

/// Capacity units of the table, from the headers of an answer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Units {
    /// The read units that the request consumed.
    pub(crate) read: f64,
    /// The table's limits of read and write units per second, if it has any.
    pub(crate) max_read: Option<u32>,
    pub(crate) max_write: Option<u32>,
}

impl Units {
    /// Reads the units from the headers of an answer.
    fn of(headers: &HeaderMap) -> Self {
        Self {
            read: number(headers, "x-consumed-read-units").unwrap_or_default(),
            max_read: number(headers, "x-max-read-units"),
            max_write: number(headers, "x-max-write-units"),
        }
    }
}

fn number<T: FromStr>(headers: &HeaderMap, name: &str) -> Option<T> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

/// A problem of the API, with the members that this client reads.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Problem {
    /// The URI of the problem's kind; the last segment is its name.
    #[serde(default, rename = "type")]
    kind: String,
    /// The description of the problem.
    #[serde(default)]
    pub(crate) detail: String,
    /// Errors of single readings or fields.
    #[serde(default)]
    pub(crate) errors: Vec<FieldError>,
    /// The indices of further refused readings.
    #[serde(default)]
    pub(crate) more_errors: Vec<usize>,
    /// The indices of readings to send again.
    #[serde(default)]
    pub(crate) not_stored: Vec<usize>,
}

impl Problem {
    /// Whether this request belongs to another address of the system.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.kind.ends_with(":elsewhere")
    }
}

/// An error in one reading or field of a request.
#[derive(Debug, Deserialize)]
pub(crate) struct FieldError {
    /// The index of the reading, from 0.
    pub(crate) index: Option<usize>,
    /// The name of the wrong member.
    pub(crate) field: Option<String>,
    /// The reason of the error.
    pub(crate) message: String,
}

/// What became of the readings of a request or of a message.
#[derive(Debug, Deserialize)]
pub(crate) struct Receipt {
    accepted: usize,
    #[serde(default)]
    accepted_before: usize,
    #[serde(default)]
    pub(crate) rejected: Vec<FieldError>,
    /// The indices of refused readings whose reasons did not fit into the answer.
    #[serde(default)]
    pub(crate) more_rejected: Vec<usize>,
}

impl Receipt {
    /// The number of readings that are stored, also by an earlier request.
    pub(crate) const fn stored(&self) -> usize {
        self.accepted.saturating_add(self.accepted_before)
    }
}

impl Answer {
    /// The answer with this head and body.
    pub(crate) fn of(head: &Parts, text: String) -> Self {
        let retry_after = number(&head.headers, "retry-after");
        let retry_after = retry_after.map(|secs| Duration::from_secs(secs).min(MAX_RETRY_AFTER));
        let units = Units::of(&head.headers);
        Self { status: head.status.as_u16(), text, units, retry_after }
    }

    /// The reason for the answer, for a person: the detail of its problem, or else the beginning of the body, by which
    /// a proxy's page can be recognized.
    pub(crate) fn reason(&self) -> String {
        let Problem { detail, .. } = self.problem();
        if !detail.is_empty() {
            return detail;
        }

        let words: Vec<&str> = self.text.split_whitespace().collect();
        if words.is_empty() {
            return "with an empty body".to_owned();
        }
        format!("\"{}\"", domain::excerpt(&words.join(" ")))
    }

    /// Returns the answer as JSON if it is an object with this member. Every answer of Roomtide has the member, so any
    /// other answer comes from something else.
    pub(crate) fn json_with(&self, member: &str) -> Option<Value> {
        let value: Value = serde_json::from_str(&self.text).ok()?;
        value.get(member).is_some().then_some(value)
    }

    /// Returns whether the same request may get another answer later. If the answer names readings to send again,
    /// another request is needed instead.
    pub(crate) fn is_worth_repeating(&self) -> bool {
        matches!(self.status, 429 | 500 | 502 | 503 | 504) && self.problem().not_stored.is_empty()
    }

    /// Returns the problem that the answer describes; an empty problem if the answer has another form.
    pub(crate) fn problem(&self) -> Problem {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}
