//! The definition of an endpoint, and the search for the endpoint of a request. The rows are in `table`. Routing,
//! authentication, parameters, the `OpenAPI` document and the template's test read these rows. Answers nothing.

mod table;

use super::dialect::PREFIX;
use super::{Dialect, Problem, ProblemKind, Request};
pub use table::{ENDPOINTS, Operation};

/// The parameter of `/health` that asks for details. The details need a token that reads.
const DETAILS: &str = "details";

/// The function that answers a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// `functions/ingest`
    Ingest,
    /// `functions/query`
    Query,
}

impl Function {
    /// The name of the function's package and of its log events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Query => "query",
        }
    }
}

/// The token that a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// No token is needed.
    Public,
    /// Any text that has the form of a token. The token is not looked up, because the answer is the same for all.
    Formed,
    /// Any valid token.
    Any,
    /// A token that reads, or an admin token. Requests about one room or home also take a view token for that place.
    Read,
    /// A token that writes for some devices, or an admin token.
    Write,
    /// A token that writes for some devices, even on a server without authentication. The readings are in the address,
    /// so an image in any web page could write them: requests from pages of other origins are refused, too.
    Address,
    /// An admin token.
    Admin,
}

/// The room or home in a path. The id is not checked yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathPlace<'a> {
    /// A room.
    Room(&'a str),
    /// A home.
    Home(&'a str),
}

/// A parameter of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// The name of the parameter.
    pub name: &'static str,
    /// The values that the parameter takes.
    pub kind: Kind,
    /// A description in one line.
    pub description: &'static str,
}

/// The values that a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A timestamp, absolute or relative.
    Timestamp,
    /// The id of a device or a room.
    Id,
    /// Names of metrics, separated by commas.
    Metrics,
    /// The cursor of the previous page.
    Cursor,
    /// `true` or `1`, `false` or `0`; `false` if it is absent.
    Flag,
    /// The name of a time zone of the IANA database.
    Zone,
    /// A whole number from 1.
    Count {
        /// The value if the parameter is absent.
        default: usize,
        /// The largest value.
        max: usize,
    },
    /// One of several words.
    Choice {
        /// The words.
        of: &'static [&'static str],
        /// The value if the parameter is absent.
        default: Option<&'static str>,
    },
    /// Some of several words, separated by commas.
    Words {
        /// The words.
        of: &'static [&'static str],
    },
    /// The form of an answer. If it is absent, `Accept` decides.
    Format,
    /// An age such as `2h`.
    Age,
    /// Any word. The handler checks it.
    Word,
    /// A text in any case, or the beginning of a text with `*` at the end. The parameter may be repeated.
    Like,
    /// A condition such as `firmware=1.4`. The parameter may be repeated.
    Where,
    /// Any number of parameters: names of metrics with the wanted values. A metric that is named like a parameter of
    /// any endpoint is written with [`METRIC_PREFIX`].
    Conditions,
    /// Any number of parameters: names that the payload format knows, with measured values.
    Values,
}

impl Kind {
    /// Tells whether a parameter of this kind may be given several times.
    pub const fn is_repeatable(self) -> bool {
        matches!(self, Self::Like | Self::Where)
    }
}

/// The prefix of a metric that is named like a parameter. Names of metrics have no dot.
pub const METRIC_PREFIX: &str = "metric.";

/// The name of the API's own JSON among the formats of fetched bodies.
pub const READINGS: &str = "readings";

/// The body of a successful answer, by the name of its schema in the `OpenAPI` document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// One object.
    One(&'static str),
    /// One object that the request has made.
    Made(&'static str),
    /// A page of a list, in JSON, NDJSON or CSV.
    Page(&'static str),
    /// Rows and the members beside them in JSON; the rows alone in NDJSON or CSV.
    Rows(&'static str),
    /// The readings of a request that were stored, and those that were not.
    Receipt(&'static str),
    /// The progress of a deletion that takes several requests.
    Progress(&'static str),
    /// An answer in InfluxDB's form.
    Influx,
    /// A JSON-RPC message, which may be an error. A notification gets no body.
    Message(&'static str),
    /// A file of the web page, in one of these media types.
    File(&'static [&'static str]),
}

/// A method and a path with at most one parameter, `{id}`, and everything that depends on method and path alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`; see [`methods`](Self::methods).
    pub method: &'static str,
    /// The path, as the template and `OpenAPI` write it.
    pub path: &'static str,
    /// The operation, which has a handler.
    pub operation: Operation,
    /// The function that answers.
    pub function: Function,
    /// The token that a request needs.
    pub access: Access,
    /// The parameters of the query. Other parameters are refused.
    pub parameters: &'static [Parameter],
    /// The schema of the request's body, if the endpoint takes one.
    pub body: Option<&'static str>,
    /// The successful answer.
    pub reply: Reply,
    /// A description in one line.
    pub summary: &'static str,
}

/// A payload format of devices, their scripts or their makers' clouds. Its name and path are those of the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadFormat {
    /// The owner of the format, as error messages name it.
    pub owner: &'static str,
    /// The part of an MQTT topic that names the format; `None` if the devices of the format do not publish.
    pub topic: Option<&'static str>,
    /// Whether a time may be local, without an offset.
    pub has_local_times: bool,
}

impl PayloadFormat {
    /// The format of a reading that is written in the query of an address.
    pub const ADDRESS: Self = Self { owner: "", topic: None, has_local_times: false };
}

impl Endpoint {
    /// The methods that the endpoint answers. A `GET` that changes nothing also answers `HEAD`.
    pub fn methods(&self) -> impl Iterator<Item = &'static str> {
        let has_head = self.method == "GET" && self.access != Access::Address;
        [self.method].into_iter().chain(has_head.then_some("HEAD"))
    }

    /// The version of InfluxDB to whose API the endpoint belongs.
    pub fn dialect(&self) -> Option<Dialect> {
        Dialect::of(self.path)
    }

    /// Whether the query names metrics with wanted values.
    pub fn takes_conditions(&self) -> bool {
        self.parameters.iter().any(|parameter| parameter.kind == Kind::Conditions)
    }

    /// Whether the query contains a reading.
    pub fn takes_values(&self) -> bool {
        self.parameters.iter().any(|parameter| parameter.kind == Kind::Values)
    }

    /// The name of the format of the endpoint's bodies: the last part of its path. `None` if the endpoint takes no
    /// payloads, or takes them in its query.
    pub fn body_format(&self) -> Option<&'static str> {
        let takes_payloads = self.operation.payload().is_some() && !self.takes_values();
        takes_payloads.then(|| self.path.rsplit_once('/').map_or(self.path, |(_, name)| name))
    }

    /// The access that a request needs when `function` serves it. The details of the health need a token that reads.
    /// The ingest function also answers the requests that clients of InfluxDB send before they write. It reads no table
    /// for them, so it checks only the form of the token.
    pub fn access_of(&self, request: &Request, function: Function) -> Access {
        let is_set = |(name, value): &(String, String)| {
            name == DETAILS && matches!(value.as_str(), "true" | "1")
        };

        match (self.operation, self.access) {
            (Operation::Health, _)
                if self.function == function && request.query().iter().any(is_set) =>
            {
                Access::Read
            }
            (_, Access::Any) if self.function != function => Access::Formed,
            (_, access) => access,
        }
    }

    /// Whether clients of InfluxDB send this request to the address of ingest before they write.
    const fn is_asked_by_writers(&self) -> bool {
        matches!(
            self.operation,
            Operation::InfluxPing
                | Operation::InfluxReady
                | Operation::InfluxBuckets
                | Operation::InfluxOrgs
                | Operation::InfluxQl
                | Operation::Health
        )
    }

    /// The kind of thing that the id in the path names.
    pub fn subject(&self) -> &'static str {
        match self.path.split('/').nth(1) {
            Some("devices") => "device",
            Some("rooms") => "room",
            Some("homes") => "home",
            Some("alerts") => "rule",
            Some("annotations") => "annotation",
            Some("channels") => "channel",
            Some("sources") => "source",
            Some("tariffs") => "tariff",
            _ => "id",
        }
    }

    /// The room or home of a request that only reads. A view token may be limited to this room or home.
    pub fn viewed_place<'a>(&self, id: &'a str) -> Option<PathPlace<'a>> {
        let is_view = self.method == "GET" && self.access == Access::Read && self.has_id();
        match self.subject() {
            "room" if is_view => Some(PathPlace::Room(id)),
            "home" if is_view => Some(PathPlace::Home(id)),
            _ => None,
        }
    }

    /// Whether the path has an `{id}`.
    pub fn has_id(&self) -> bool {
        self.path.contains("{id}")
    }
}

/// The names of the formats that a fetched body may have: [`READINGS`] and those of payloads.
pub fn fetched_formats() -> impl Iterator<Item = &'static str> {
    [READINGS].into_iter().chain(ENDPOINTS.iter().filter_map(Endpoint::body_format))
}

/// The endpoint of a request to `function`, and the decoded `{id}` of the path. Without an `{id}` in the path, the id
/// is empty.
pub fn find(request: &Request, function: Function) -> Result<(&'static Endpoint, String), Problem> {
    let found = find_path(&request.method, &request.path);
    let is_here = |endpoint: &Endpoint| {
        endpoint.function == function
            || function == Function::Ingest && endpoint.is_asked_by_writers()
    };
    let is_unknown = |problem: &Problem| problem.kind == ProblemKind::NotFound;

    match found {
        Ok((endpoint, id)) if is_here(endpoint) => Ok((endpoint, id)),
        Err(problem) if function == Function::Query || !is_unknown(&problem) => Err(problem),
        _ => Err(elsewhere(request, function)),
    }
}

/// 404: another function answers the request, at an address of its own. Functions do not know each other's addresses;
/// only the web page has both.
pub fn elsewhere(request: &Request, function: Function) -> Problem {
    let (method, path) = (&request.method, domain::excerpt(&request.path));
    let there = match function {
        Function::Ingest => {
            "which stores readings; questions and the page are at the stack's output PageUrl, on a laptop at the \
             port of --port"
        }
        Function::Query => {
            "which stores no readings; these go to the stack's output IngestUrl, on a laptop to the port of \
             --ingest-port"
        }
    };

    let detail = format!("{method} {path} is not answered at this address, {there}.");
    Problem::new(ProblemKind::Elsewhere, detail)
}

/// The paths at which clients of InfluxDB 3 ask in SQL: by HTTP, and by gRPC.
const SQL: [&str; 2] = ["/api/v3/query_", "/arrow.flight.protocol.FlightService/"];

/// The endpoint of a method and a path, whichever function answers it, and its `{id}`.
pub fn find_path(method: &str, path: &str) -> Result<(&'static Endpoint, String), Problem> {
    let matching: Vec<_> = ENDPOINTS
        .iter()
        .filter_map(|endpoint| Some((endpoint, matched_id(endpoint.path, path)?)))
        .collect();
    let asked = format!("{method} {}", domain::excerpt(path));
    if matching.is_empty() {
        let detail =
            if SQL.iter().any(|address| path.trim_start_matches(PREFIX).starts_with(address)) {
                "SQL and Flight SQL are not supported; ask /query in InfluxQL.".to_owned()
            } else {
                format!("There is no {asked}; /openapi.json lists what there is.")
            };
        return Err(Problem::new(ProblemKind::NotFound, detail));
    }

    let methods: Vec<_> = matching.iter().flat_map(|(endpoint, _)| endpoint.methods()).collect();
    let answers = |endpoint: &Endpoint| endpoint.methods().any(|known| known == method);
    matching.into_iter().find(|(endpoint, _)| answers(endpoint)).ok_or_else(|| {
        let detail = format!("There is no {asked}; on this path: {}.", methods.join(", "));
        Problem { allowed: methods, ..Problem::new(ProblemKind::MethodNotAllowed, detail) }
    })
}

/// The decoded `{id}` of a path that matches the template. Without an `{id}` in the template, the id is empty.
fn matched_id(template: &str, path: &str) -> Option<String> {
    let mut id = String::new();
    let mut segments = path.trim_end_matches('/').split('/');
    for expected in template.trim_end_matches('/').split('/') {
        let segment = segments.next()?;
        if expected == "{id}" {
            id = percent_encoding::percent_decode_str(segment).decode_utf8_lossy().into_owned();
        } else if expected != segment {
            return None;
        }
    }
    segments.next().is_none().then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(method: &str, path: &str) -> Result<(Operation, String), u16> {
        find_path(method, path)
            .map(|(endpoint, id)| (endpoint.operation, id))
            .map_err(|problem| problem.kind.status())
    }

    #[test]
    fn a_path_has_one_endpoint_and_an_id() {
        assert_eq!(found("GET", "/devices"), Ok((Operation::ListDevices, String::new())));
        assert_eq!(found("GET", "/"), Ok((Operation::WebPage, String::new())));
        assert_eq!(found("GET", "/assets/a.js"), Ok((Operation::WebFile, "a.js".into())));
        assert_eq!(found("GET", "/devices/"), Ok((Operation::ListDevices, String::new())));
        assert_eq!(found("GET", "/devices/a%3Ab"), Ok((Operation::ShowDevice, "a:b".into())));
        assert_eq!(found("GET", "/rooms/r/stays"), Ok((Operation::RoomStays, "r".into())));
        assert_eq!(found("HEAD", "/rooms/r/stays"), Ok((Operation::RoomStays, "r".into())));
        assert_eq!(
            found("PATCH", "/devices/readings"),
            Ok((Operation::EditDevice, "readings".into()))
        );
    }

    #[test]
    fn everything_else_is_not_found_or_not_allowed() {
        assert_eq!(found("GET", "/devices/x/y"), Err(404));
        assert_eq!(found("GET", "/devices/x/readings/y"), Err(404));
        assert_eq!(found("GET", "/readings"), Err(405));
        assert_eq!(found("HEAD", "/readings"), Err(405));
        assert_eq!(found("HEAD", "/readings/quick"), Err(405), "it would write");
        assert_eq!(found("POST", "/readings/shelly"), Ok((Operation::PostShelly, String::new())));
        assert_eq!(found("GET", "/readings/shelly"), Ok((Operation::ShellyReading, String::new())));
        assert_eq!(found("DELETE", "/devices"), Err(405));
        assert_eq!(found("DELETE", "/rooms/x/readings"), Err(405));
    }

    #[test]
    fn a_function_answers_its_own_endpoints_only() {
        let request = |method: &str, path: &str| Request {
            method: method.to_owned(),
            path: path.to_owned(),
            ..Request::default()
        };
        let post = request("POST", "/readings");
        assert!(find(&post, Function::Ingest).is_ok());
        let problem = find(&post, Function::Query).expect_err("ingest answers it");
        assert_eq!(
            problem.detail,
            "POST /readings is not answered at this address, which stores no readings; these go to the \
             stack's output IngestUrl, on a laptop to the port of --ingest-port."
        );
        for (method, path, status) in [
            ("GET", "/devices", 404),
            ("GET", "/", 404),
            ("GET", "/assets/x.js", 404),
            ("GET", "/nothing", 404),
            ("POST", "/api/v2/query", 404),
            ("DELETE", "/devices/d", 404),
            ("GET", "/readings", 405),
        ] {
            let problem = find(&request(method, path), Function::Ingest).expect_err(path);
            assert_eq!(problem.kind.status(), status, "{path}");
            let names = problem.detail.contains("the stack's output PageUrl");
            assert_eq!(names, status == 404, "{path}: {}", problem.detail);
        }
    }

    #[test]
    fn what_writers_ask_first_is_answered_where_they_write() {
        let asked = |path: &str, raw_query: &str, function| {
            let (path, raw_query) = (path.to_owned(), raw_query.to_owned());
            let request =
                Request { method: "GET".to_owned(), path, raw_query, ..Request::default() };
            let (endpoint, _) = find(&request, function).expect("it is answered");
            endpoint.access_of(&request, function)
        };
        for prefix in ["", PREFIX] {
            for (path, query, at_ingest, at_query) in [
                ("/ping", "", Access::Public, Access::Public),
                ("/ready", "", Access::Public, Access::Public),
                ("/health", "", Access::Public, Access::Public),
                ("/health", "details=0", Access::Public, Access::Public),
                ("/health", "details=1", Access::Public, Access::Read),
                ("/query", "", Access::Formed, Access::Any),
                ("/api/v2/buckets", "", Access::Formed, Access::Any),
                ("/api/v2/orgs", "", Access::Formed, Access::Any),
            ] {
                let path = format!("{prefix}{path}");
                assert_eq!(asked(&path, query, Function::Ingest), at_ingest, "{path}?{query}");
                assert_eq!(asked(&path, query, Function::Query), at_query, "{path}?{query}");
            }
        }
    }

    #[test]
    fn whoever_changes_something_needs_more_than_a_reader_s_token() {
        for endpoint in ENDPOINTS {
            let access = endpoint.access;
            // InfluxDB's queries may be POSTs, and a model's questions are.
            let asks = matches!(
                endpoint.operation,
                Operation::InfluxFlux
                    | Operation::InfluxQl
                    | Operation::Mcp
                    | Operation::PreviewAlert
            );
            let changes = (endpoint.method != "GET" || endpoint.takes_values()) && !asks;
            // The link of a message is the permission.
            let is_link = endpoint.operation == Operation::AcknowledgeByLink;
            let may_change = matches!(access, Access::Write | Access::Admin | Access::Address);
            assert_eq!(changes, may_change || is_link, "{endpoint:?}");
            assert_eq!(endpoint.takes_values(), access == Access::Address, "{endpoint:?}");
            let holds_no_data = matches!(
                endpoint.operation,
                Operation::Health
                    | Operation::InfluxPing
                    | Operation::InfluxReady
                    | Operation::WebPage
                    | Operation::WebFile
                    | Operation::AcknowledgeByLink
            );
            assert_eq!(access == Access::Public, holds_no_data, "{endpoint:?}");
            let has_body = matches!(endpoint.method, "POST" | "PUT" | "PATCH");
            assert_eq!(has_body, endpoint.body.is_some(), "{endpoint:?}");
        }
    }
}
