//! Answers a ping, and requests for the health, the bucket and the organisation. Refuses Flux. Reads no table.

use api::dialect::VERSION;
use api::{Dialect, Request, Response};
use domain::Timestamp;
use serde_json::{Value, json};

/// The id of the only bucket and of the only organisation.
const ID: &str = "0000000000000001";
/// The name of the bucket in the answer, if the request names no bucket.
const BUCKET: &str = "home";

/// `GET /ping`: 204, as clients expect; with `verbose`, 200 and the version.
pub fn ping(request: &Request) -> Response {
    let response = match value(request, "verbose").as_deref() {
        None | Some("" | "0" | "false") => {
            Response { status: 204, headers: Vec::new(), body: Vec::new() }
        }
        Some(_) => Response::json(200, &json!({"version": VERSION})),
    };
    Dialect::V1.dressed(response)
}

/// `GET /health`
pub fn health() -> Response {
    Dialect::V2.dressed(Response::json(200, &health_members()))
}

/// The health, with the members that clients of InfluxDB expect, and with the status `pass`.
pub fn health_members() -> Value {
    json!({
        "name": "influxdb",
        "message": "ready for queries and writes",
        "status": "pass",
        "checks": [],
        "version": VERSION,
        "commit": "",
    })
}

/// `GET /ready`. InfluxDB never answers `up` with `0s`. By this value, the command `roomtide` recognizes a server of
/// Roomtide before it sends a token.
pub fn ready(now: Timestamp) -> Response {
    Dialect::V2
        .dressed(Response::json(200, &json!({"status": "ready", "started": now, "up": "0s"})))
}

/// `GET /api/v2/buckets`: a bucket with the requested name. All names mean the same bucket.
pub fn buckets(request: &Request) -> Response {
    let name = value(request, "name").unwrap_or_else(|| BUCKET.to_owned());
    let bucket = json!({
        "id": ID,
        "orgID": ID,
        "name": name,
        "type": "user",
        "retentionRules": [{"type": "expire", "everySeconds": 0}],
    });
    list("buckets", &bucket)
}

/// `GET /api/v2/orgs`: an organisation with the requested name. All names mean the same organisation.
pub fn orgs(request: &Request) -> Response {
    let name = value(request, "org").unwrap_or_else(|| BUCKET.to_owned());
    list("orgs", &json!({"id": ID, "name": name}))
}

/// `POST /api/v2/query`: Flux is refused.
pub fn flux() -> Response {
    let message = "Flux is not supported; ask /query in InfluxQL, or /devices and /rooms";
    Dialect::V2.error(400, "invalid", message)
}

fn list(name: &str, entry: &Value) -> Response {
    Dialect::V2.dressed(Response::json(200, &json!({name: [entry]})))
}

/// The first query parameter of this name, if any.
fn value(request: &Request, name: &str) -> Option<String> {
    request.query().into_iter().find(|(given, _)| given == name).map(|(_, value)| value)
}
