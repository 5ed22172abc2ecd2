//! Reports failures as InfluxDB's HTTP APIs do, by version. Answers nothing itself.

use serde_json::json;

use super::{Problem, ProblemKind, Response};

/// The version of InfluxDB that this system reports and imitates.
pub const VERSION: &str = "1.8.10";
/// Every path of InfluxDB is also served below this prefix.
pub const PREFIX: &str = "/influx";
/// The maximum length of an error in a header.
const MAX_HEADER: usize = 1_024;

/// The version of InfluxDB's API to which a path belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `/write`, `/query`, `/ping`
    V1,
    /// `/api/v2/...` and `/ready`
    V2,
    /// `/api/v3/...`
    V3,
}

impl Dialect {
    /// The dialect of a path. Returns `None` for this system's own paths.
    pub fn of(path: &str) -> Option<Self> {
        let below =
            path.strip_prefix(PREFIX).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let path = below.unwrap_or(path).trim_end_matches('/');
        match path {
            "/write" | "/query" | "/ping" => Some(Self::V1),
            "/ready" => Some(Self::V2),
            _ if path.starts_with("/api/v2/") => Some(Self::V2),
            _ if path.starts_with("/api/v3/") => Some(Self::V3),
            _ => below.map(|_| Self::V1),
        }
    }

    /// The answer to a failed request: in InfluxDB's words on a path of InfluxDB, else as a problem.
    pub fn refuse(path: &str, problem: &Problem) -> Response {
        match Self::of(path) {
            Some(dialect) => dialect.respond(problem),
            None => problem.respond(),
        }
    }

    /// A failure in the dialect's words.
    pub fn respond(self, problem: &Problem) -> Response {
        let (status, code) = status_and_code(problem.kind);
        let message = self.message(problem);
        let response = match (self, problem.kind) {
            (Self::V1, ProblemKind::NotFound) => {
                self.dressed(Response::new(status, "text/plain; charset=utf-8", message + "\n"))
            }
            _ => self.error(status, code, &message),
        };

        problem.with_advice(response)
    }

    /// An error. Only version 2 shows the code.
    pub fn error(self, status: u16, code: &'static str, message: &str) -> Response {
        let response = match self {
            Self::V1 => Response::json(status, &json!({"error": message}))
                .with("x-influxdb-error", one_line(message)),
            Self::V2 => {
                let body = Response::json(status, &json!({"code": code, "message": message})).body;
                Response::new(status, "application/json; charset=utf-8", body)
                    .with("x-platform-error-code", code)
            }
            Self::V3 => Response::json(status, &json!({"error": message})),
        };
        self.dressed(response)
    }

    /// Adds the headers that all answers of InfluxDB have.
    pub fn dressed(self, response: Response) -> Response {
        response.with("x-influxdb-version", VERSION).with("x-influxdb-build", "OSS")
    }

    /// The message of a failure. Some messages have exact words, by which clients recognise the failure.
    fn message(self, problem: &Problem) -> String {
        let known = match (self, problem.kind) {
            (Self::V1, ProblemKind::Unauthorized) => "authorization failed",
            (Self::V2, ProblemKind::Unauthorized) => "unauthorized access",
            (Self::V3, ProblemKind::Unauthorized) => "the request was not authenticated",
            (Self::V1, ProblemKind::NotFound) => "404 page not found",
            _ => return problem.detail.clone(),
        };
        known.to_owned()
    }
}

/// The HTTP status of a failure, and its error code in version 2 of InfluxDB's API.
const fn status_and_code(kind: ProblemKind) -> (u16, &'static str) {
    let code = match kind {
        ProblemKind::Unauthorized => "unauthorized",
        ProblemKind::Forbidden => "forbidden",
        ProblemKind::NotFound | ProblemKind::Elsewhere => "not found",
        ProblemKind::MethodNotAllowed => "method not allowed",
        ProblemKind::Conflict => "conflict",
        ProblemKind::TooLarge => "request too large",
        ProblemKind::Unanswerable => "unprocessable entity",
        ProblemKind::Throttled | ProblemKind::Unavailable | ProblemKind::Contended => "unavailable",
        ProblemKind::Internal => "internal error",
        ProblemKind::BadRequest
        | ProblemKind::Gone
        | ProblemKind::NotAcceptable
        | ProblemKind::UnsupportedType
        | ProblemKind::UnsupportedCoding => "invalid",
    };

    (kind.status(), code)
}

/// Makes a text fit for a header: one line of ASCII.
fn one_line(text: &str) -> String {
    let ascii = text.chars().map(|c| match c {
        '\n' => ';',
        ' '..='~' => c,
        _ => '?',
    });
    ascii.take(MAX_HEADER).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &str, kind: ProblemKind) -> (u16, String, Vec<(&'static str, String)>) {
        let problem = Problem { allowed: vec!["POST"], ..Problem::new(kind, "why °\nand more") };
        let response = Dialect::refuse(path, &problem);
        (response.status, String::from_utf8(response.body).expect("UTF-8"), response.headers)
    }

    #[test]
    fn every_path_has_its_dialect() {
        for (path, dialect) in [
            ("/write", Some(Dialect::V1)),
            ("/influx/write/", Some(Dialect::V1)),
            ("/influx", Some(Dialect::V1)),
            ("/influx/devices", Some(Dialect::V1)),
            ("/api/v2/write", Some(Dialect::V2)),
            ("/influx/api/v2/nothing", Some(Dialect::V2)),
            ("/ready", Some(Dialect::V2)),
            ("/api/v3/write_lp", Some(Dialect::V3)),
            ("/influxes/write", None),
            ("/readings", None),
            ("/health", None),
        ] {
            assert_eq!(Dialect::of(path), dialect, "{path}");
        }
    }

    #[test]
    fn no_failure_on_these_paths_is_a_problem_document() {
        for (path, kind, status, body) in [
            ("/write", ProblemKind::Unauthorized, 401, "{\"error\":\"authorization failed\"}\n"),
            ("/write", ProblemKind::BadRequest, 400, "{\"error\":\"why °\\nand more\"}\n"),
            ("/influx/x", ProblemKind::NotFound, 404, "404 page not found\n"),
            ("/write", ProblemKind::Elsewhere, 404, "{\"error\":\"why °\\nand more\"}\n"),
            (
                "/api/v2/write",
                ProblemKind::Unauthorized,
                401,
                "{\"code\":\"unauthorized\",\"message\":\"unauthorized access\"}\n",
            ),
            (
                "/api/v2/write",
                ProblemKind::TooLarge,
                413,
                "{\"code\":\"request too large\",\"message\":\"why °\\nand more\"}\n",
            ),
            (
                "/api/v2/x",
                ProblemKind::NotFound,
                404,
                "{\"code\":\"not found\",\"message\":\"why °\\nand more\"}\n",
            ),
            (
                "/api/v3/write_lp",
                ProblemKind::Unauthorized,
                401,
                "{\"error\":\"the request was not authenticated\"}\n",
            ),
            ("/api/v3/write_lp", ProblemKind::Internal, 500, "{\"error\":\"why °\\nand more\"}\n"),
        ] {
            let (is, said, headers) = refused(path, kind);
            assert_eq!((is, said.as_str()), (status, body), "{path}");
            assert!(headers.contains(&("x-influxdb-version", VERSION.to_owned())), "{path}");
            assert!(!headers.iter().any(|(name, _)| *name == "www-authenticate"), "{path}");
        }
        for kind in [ProblemKind::Throttled, ProblemKind::Contended, ProblemKind::Unavailable] {
            let (status, _, headers) = refused("/api/v2/write", kind);
            assert_eq!(status, 503);
            assert!(headers.contains(&("retry-after", "2".to_owned())), "{kind:?}");
            assert!(headers.contains(&("x-platform-error-code", "unavailable".to_owned())));
        }
        let (_, _, headers) = refused("/write", ProblemKind::MethodNotAllowed);
        assert!(headers.contains(&("allow", "POST".to_owned())));
        assert!(headers.contains(&("x-influxdb-error", "why ?;and more".to_owned())));
        assert_eq!(one_line(&"x".repeat(5_000)).len(), MAX_HEADER);
    }
}
