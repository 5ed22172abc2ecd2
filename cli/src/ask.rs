//! A request to the API, and its answer. Sends nothing.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

/// A request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask<'a> {
    /// GET, POST or PATCH.
    pub(crate) method: &'a str,
    /// The path and the query, beginning with a slash.
    pub(crate) path: &'a str,
    /// The body and its type; GET has none.
    pub(crate) body: Option<(&'a str, &'a str)>,
    /// Further headers.
    pub(crate) headers: &'a [(&'static str, String)],
}

impl<'a> Ask<'a> {
    /// A GET request.
    pub(crate) const fn get(path: &'a str) -> Self {
        Self { method: "GET", path, body: None, headers: &[] }
    }
}

/// An answer that a retry would not change.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The body.
    pub(crate) text: String,
    /// What the table consumed for it, and what it may consume.
    pub(crate) units: Units,
    /// The time after which the server wants to be asked again, if it says so.
    pub(crate) retry_after: Option<Duration>,
}

/// Capacity units of the table, as an answer tells them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Units {
    /// The read units of the request.
    pub(crate) read: f64,
    /// The table's largest numbers of read and of write units a second, if it has any.
    pub(crate) max_read: Option<u32>,
    pub(crate) max_write: Option<u32>,
}

impl Units {
    /// Those of an answer's headers.
    pub(crate) fn of(headers: &http::HeaderMap) -> Self {
        fn number<T: std::str::FromStr>(headers: &http::HeaderMap, name: &str) -> Option<T> {
            headers.get(name)?.to_str().ok()?.parse().ok()
        }
        Self {
            read: number(headers, "x-consumed-read-units").unwrap_or_default(),
            max_read: number(headers, "x-max-read-units"),
            max_write: number(headers, "x-max-write-units"),
        }
    }
}

/// A problem as the API describes it, as far as this client reads it.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Problem {
    /// The kind. Its end is the name.
    #[serde(default, rename = "type")]
    kind: String,
    /// What went wrong.
    #[serde(default)]
    pub(crate) detail: String,
    /// The readings or fields that are wrong.
    #[serde(default)]
    pub(crate) errors: Vec<FieldError>,
    /// The index of each further reading that is refused.
    #[serde(default)]
    pub(crate) more_errors: Vec<usize>,
    /// The index of each reading that is to be sent again.
    #[serde(default)]
    pub(crate) not_stored: Vec<usize>,
}

impl Problem {
    /// Whether another address of the system answers this.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.kind.ends_with(":elsewhere")
    }
}

/// One error of a request.
#[derive(Debug, Deserialize)]
pub(crate) struct FieldError {
    /// The index of the reading, from 0.
    pub(crate) index: Option<usize>,
    /// The member.
    pub(crate) field: Option<String>,
    /// The reason.
    pub(crate) message: String,
}

impl Answer {
    /// Why the server answered so, for a person: the problem that the answer describes, else its beginning. A proxy's
    /// page is recognized by it.
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

    /// Returns the answer as JSON, if it is an object with this member: Roomtide's always has it, whatever else answers.
    pub(crate) fn json_with(&self, member: &str) -> Option<Value> {
        let value: Value = serde_json::from_str(&self.text).ok()?;
        value.get(member).is_some().then_some(value)
    }

    /// The end of an error, behind the address, about an answer that has not Roomtide's form.
    pub(crate) fn strange(&self) -> String {
        format!("answers {}, but not as Roomtide does: {}", self.status, self.reason())
    }

    /// Returns whether the same request may get another answer later. An answer that names readings to be sent again asks
    /// for another request.
    pub(crate) fn is_worth_repeating(&self) -> bool {
        matches!(self.status, 429 | 500 | 502 | 503 | 504) && self.problem().not_stored.is_empty()
    }

    /// Returns the problem that the answer describes; an empty one if it describes none.
    pub(crate) fn problem(&self) -> Problem {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}
