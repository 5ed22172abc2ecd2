//! Requests that clients of InfluxDB send before they write: a ping, and their bucket. Reads no table.

use api::dialect::VERSION;
use api::{Dialect, Response};
use domain::Timestamp;
use runtime::http::Call;
use serde_json::{Value, json};

/// An id of InfluxDB's: there is one bucket and one organisation.
const ID: &str = "0000000000000001";
/// The name of the bucket that is shown where a request names none.
const BUCKET: &str = "home";

/// `GET /ping`: 204, since clients want exactly that; 200 where `verbose` asks for the version.
pub(crate) fn ping(call: &Call<'_>) -> Response {
    let response = match value(call, "verbose").as_deref() {
        None | Some("" | "0" | "false") => {
            Response { status: 204, headers: Vec::new(), body: Vec::new() }
        }
        Some(_) => Response::json(200, &json!({"version": VERSION})),
    };
    Dialect::V1.dressed(response)
}

/// `GET /ready`
pub(crate) fn ready(now: Timestamp) -> Response {
    Dialect::V2
        .dressed(Response::json(200, &json!({"status": "ready", "started": now, "up": "0s"})))
}

/// `GET /api/v2/buckets`: the bucket that is asked for, since every name is the same one.
pub(crate) fn buckets(call: &Call<'_>) -> Response {
    let name = value(call, "name").unwrap_or_else(|| BUCKET.to_owned());
    let bucket = json!({
        "id": ID,
        "orgID": ID,
        "name": name,
        "type": "user",
        "retentionRules": [{"type": "expire", "everySeconds": 0}],
    });
    list("buckets", &bucket)
}

/// `GET /api/v2/orgs`: one organization. A client finds each name that it asks for.
pub(crate) fn orgs(call: &Call<'_>) -> Response {
    let name = value(call, "org").unwrap_or_else(|| BUCKET.to_owned());
    list("orgs", &json!({"id": ID, "name": name}))
}

/// `POST /api/v2/query`: Flux is refused.
pub(crate) fn flux() -> Response {
    let message = "Flux is not supported; ask /query in InfluxQL, or /devices and /rooms";
    Dialect::V2.error(400, "invalid", message)
}

fn list(name: &str, entry: &Value) -> Response {
    Dialect::V2.dressed(Response::json(200, &json!({name: [entry]})))
}

/// A parameter, whichever way its endpoint describes it.
fn value(call: &Call<'_>, name: &str) -> Option<String> {
    call.request.query().into_iter().find(|(given, _)| given == name).map(|(_, value)| value)
}
