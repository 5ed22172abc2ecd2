//! Problems: failures as clients see them (RFC 9457). Only this module decides the status of a failure.

use std::fmt::Display;
use std::sync::Arc;

use serde::Serialize;

use super::Response;
use super::response::carried_bytes;
use domain::MemberError;
use table::StoreError;

/// Makes `ProblemKind`. Each kind has a status, the last part of its type's URN, and a title.
macro_rules! problem_kinds {
    ($($(#[$doc:meta])* $kind:ident $status:literal $slug:literal $title:literal,)*) => {
        /// The kinds of failures.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ProblemKind { $($(#[$doc])* $kind,)* }

        impl ProblemKind {
            /// The status code.
            pub const fn status(self) -> u16 {
                match self { $(Self::$kind => $status,)* }
            }

            const fn slug(self) -> &'static str {
                match self { $(Self::$kind => $slug,)* }
            }

            const fn title(self) -> &'static str {
                match self { $(Self::$kind => $title,)* }
            }
        }
    };
}

problem_kinds! {
    /// The request cannot be understood.
    BadRequest 400 "bad-request" "The request is not valid",
    /// There is no token, or no valid one.
    Unauthorized 401 "unauthorized" "A valid token is needed",
    /// The token is valid, but does not permit the request.
    Forbidden 403 "forbidden" "The token does not permit this",
    /// The path, or the entry that it names, does not exist.
    NotFound 404 "not-found" "Not found",
    /// The request is answered at another address.
    Elsewhere 404 "elsewhere" "Not found at this address",
    /// The answer exists in no form that the client accepts.
    NotAcceptable 406 "not-acceptable" "There is no form that the client takes",
    /// The path exists, the method on it does not.
    MethodNotAllowed 405 "method-not-allowed" "Method not allowed",
    /// The stored state does not permit the request.
    Conflict 409 "conflict" "What is there does not permit this",
    /// The entry is being deleted.
    Gone 410 "gone" "It is being deleted",
    /// The request has too many bytes or readings.
    TooLarge 413 "too-large" "The request is too large",
    /// The body has a media type that the endpoint does not take.
    UnsupportedType 415 "unsupported-type" "The body's type is not supported",
    /// The body has an unknown content coding.
    UnsupportedCoding 415 "unsupported-coding" "The body's coding is not supported",
    /// The request is understood, but cannot be answered.
    Unanswerable 422 "unanswerable" "The request cannot be answered",
    /// The table throttles requests.
    Throttled 503 "throttled" "The table is busy",
    /// Simultaneous requests change the same item.
    Contended 503 "contended" "Others change the same now",
    /// The table cannot be reached, or time ran out.
    Unavailable 503 "unavailable" "The table is unavailable",
    /// A fault of this system.
    Internal 500 "internal" "Something went wrong",
}

/// An error in one part of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FieldError {
    /// The index of the wrong reading, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// The wrong member or parameter; absent if the whole is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The error, for a person.
    pub message: String,
}

/// The maximum size of all refusals with messages in one answer.
const MAX_FULL_BYTES: usize = 1_000_000;

/// Splits refusals: the first megabyte keeps its messages, the rest become indices, so that ten thousand fit into an
/// answer. A refusal without an index always keeps its message.
pub fn within_a_megabyte(mut refusals: Vec<FieldError>) -> (Vec<FieldError>, Vec<usize>) {
    let mut bytes = 0;
    let fits = |refusal: &&FieldError| {
        let text = serde_json::to_vec(refusal).expect("our own types have string keys");
        bytes += carried_bytes(&text) + 1;
        bytes <= MAX_FULL_BYTES
    };
    let whole = refusals.iter().take_while(fits).count();
    let mut indices = Vec::new();

    for refusal in refusals.split_off(whole) {
        match refusal.index {
            Some(index) => indices.push(index),
            None => refusals.push(refusal),
        }
    }

    (refusals, indices)
}

/// A failure as the client sees it.
#[derive(Debug, Clone)]
pub struct Problem {
    /// The kind of failure.
    pub kind: ProblemKind,
    /// The failure, for a person.
    pub detail: String,
    /// The errors, if single parts of the request are wrong.
    pub errors: Vec<FieldError>,
    /// If only some readings were stored, the indices of all others.
    pub not_stored: Vec<usize>,
    /// The names in a device's payload that are not stored.
    pub ignored: Vec<String>,
    /// If the path does not have the requested method, its methods.
    pub allowed: Vec<&'static str>,
    /// The error of the table, for the log alone.
    pub cause: Option<Arc<StoreError>>,
}

/// After how many seconds a client should try again.
const RETRY_AFTER: u32 = 2;
/// The types of bodies that a client should send.
const MEDIA_TYPES: &str = "application/json, application/x-ndjson";

/// What went wrong, by RFC 9457.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Problem"))]
struct ProblemBody<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [FieldError],
    /// The indices of further errors, beyond the first megabyte.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    more_errors: &'a [usize],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    not_stored: &'a [usize],
    /// The names in a device's payload that are not stored: words, and numbers that fit no metric.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    ignored: &'a [String],
}

/// Adds the schema of a problem to those of the document of the API.
#[cfg(feature = "schema")]
pub fn add_schema_to(generator: &mut schemars::SchemaGenerator) {
    generator.subschema_for::<ProblemBody<'_>>();
}

impl Problem {
    /// A failure of that kind.
    pub fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            errors: Vec::new(),
            not_stored: Vec::new(),
            ignored: Vec::new(),
            allowed: Vec::new(),
            cause: None,
        }
    }

    /// The answer of a function whose code panicked. The message of the panic is for the log.
    pub fn panicked() -> Self {
        Self::new(ProblemKind::Internal, "The request could not be handled; the log says why.")
    }

    /// A request with one wrong parameter or member.
    pub fn field(field: &str, message: impl Display) -> Self {
        let message = message.to_string();
        let error =
            FieldError { index: None, field: Some(field.to_owned()), message: message.clone() };
        let detail = format!("{field}: {message}");
        Self { errors: vec![error], ..Self::new(ProblemKind::BadRequest, detail) }
    }

    /// The answer to the client.
    pub fn respond(&self) -> Response {
        let (errors, more_errors) = within_a_megabyte(self.errors.clone());
        let body = ProblemBody {
            r#type: format!("urn:roomtide:problem:{}", self.kind.slug()),
            title: self.kind.title(),
            status: self.kind.status(),
            detail: &self.detail,
            errors: &errors,
            more_errors: &more_errors,
            not_stored: &self.not_stored,
            ignored: &self.ignored,
        };
        let mut response = Response::json(self.kind.status(), &body);
        response.headers = vec![("content-type", "application/problem+json".to_owned())];

        let response = self.with_advice(response);
        match self.kind {
            ProblemKind::UnsupportedType => response.with("accept", MEDIA_TYPES),
            ProblemKind::Unauthorized => response.with("www-authenticate", "Bearer"),
            _ => response,
        }
    }

    /// Adds the headers that say how a repeat of the request can succeed, in every dialect.
    pub(super) fn with_advice(&self, response: Response) -> Response {
        match self.kind {
            ProblemKind::Throttled | ProblemKind::Contended | ProblemKind::Unavailable => {
                response.with("retry-after", RETRY_AFTER)
            }
            ProblemKind::MethodNotAllowed => response.with("allow", self.allowed.join(", ")),
            ProblemKind::UnsupportedCoding => response.with("accept-encoding", "gzip"),
            _ => response,
        }
    }
}

impl From<MemberError> for Problem {
    /// 400: the member is wrong.
    fn from(error: MemberError) -> Self {
        Self::field(&error.field, error.why)
    }
}

impl From<StoreError> for Problem {
    /// The kind tells the client what to do; the chain of causes is for the log.
    fn from(error: StoreError) -> Self {
        let kind = match error {
            StoreError::Throttled(_) => ProblemKind::Throttled,
            StoreError::Contended(_) => ProblemKind::Contended,
            StoreError::Unavailable(_) | StoreError::TimedOut => ProblemKind::Unavailable,
            StoreError::Refused(_) | StoreError::Inapplicable(_) | StoreError::Unreadable(_) => {
                ProblemKind::Internal
            }
        };

        let mut detail = error.to_string();
        detail[..1].make_ascii_uppercase();
        Self { cause: Some(Arc::new(error)), ..Self::new(kind, detail + ".") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retryable_failure_says_when_to_come_back() {
        let response = Problem::from(StoreError::Throttled("x".into())).respond();
        assert_eq!(response.status, 503);
        assert!(response.headers.contains(&("retry-after", "2".to_owned())));
        assert_eq!(Problem::from(StoreError::TimedOut).respond().status, 503);
        let problem = Problem::from(StoreError::Contended("the device d".to_owned()));
        assert_eq!(problem.detail, "Others keep changing the device d at the same moment.");
        let response = problem.respond();
        assert_eq!(response.status, 503);
        assert!(response.headers.contains(&("retry-after", "2".to_owned())));
    }

    #[test]
    fn the_chain_of_causes_stays_in_the_log() {
        let response = Problem::from(StoreError::Refused("secret table name".into())).respond();
        assert_eq!(response.status, 500);
        assert!(!String::from_utf8_lossy(&response.body).contains("secret"));
    }

    #[test]
    fn a_client_is_told_what_it_may_send_instead() {
        for (kind, header) in [
            (ProblemKind::UnsupportedType, ("accept", MEDIA_TYPES)),
            (ProblemKind::UnsupportedCoding, ("accept-encoding", "gzip")),
        ] {
            let response = Problem::new(kind, "x").respond();
            assert_eq!(response.status, 415);
            assert!(response.headers.contains(&(header.0, header.1.to_owned())));
        }
    }

    #[test]
    fn ten_thousand_refusals_fit_into_one_answer_and_none_is_lost() {
        let message = "\"\u{1f3e0}".repeat(100);
        let refusal =
            |n| FieldError { index: Some(n), field: Some("t".into()), message: message.clone() };
        let errors: Vec<_> = (0..10_000).map(refusal).collect();
        let problem = Problem { errors, ..Problem::new(ProblemKind::BadRequest, "x") };
        let body = problem.respond().body;
        assert!(carried_bytes(&body) < 1_200_000, "{} bytes", carried_bytes(&body));
        let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        let places = |member: &str| body[member].as_array().expect("a list").clone();
        let told = places("errors").into_iter().map(|error| error["index"].clone());
        let all: Vec<_> = told.chain(places("more_errors")).collect();
        assert_eq!(all, (0..10_000).map(serde_json::Value::from).collect::<Vec<_>>());
        let whole = FieldError { index: None, ..refusal(0) };
        let (told, places) =
            within_a_megabyte((0..10_000).map(refusal).chain([whole.clone()]).collect());
        assert_eq!((told.last(), told.len() + places.len()), (Some(&whole), 10_001));
        let few = Problem::field("t", "is bad").respond().body;
        assert!(!String::from_utf8_lossy(&few).contains("more_errors"));
    }
}
