//! The engine's door: `DynamoDB`'s protocol over HTTP, for whoever knows its key. Knows no table.
//!
//! The engine's own server answers everybody who reaches the port: every user of the machine and,
//! because it allows every origin, every web page that is open on it.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use dynoxide::{Database, DynoxideError};
use http::header::{AUTHORIZATION, CONTENT_TYPE, ORIGIN};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::warning::WarningLimiter;

/// The largest body that `DynamoDB` takes.
const MAX_BODY: usize = 16 << 20;

struct Door {
    database: Database,
    key: String,
    warnings: WarningLimiter,
}

/// Answers whoever signs with the access key `key`, until told to stop.
pub(super) async fn serve(
    listener: TcpListener,
    database: Database,
    key: String,
    stopped: oneshot::Receiver<()>,
) {
    let door = Arc::new(Door { database, key, warnings: WarningLimiter::new() });
    let app = Router::new().fallback(answer).with_state(door);
    axum::serve(listener, app)
        .with_graceful_shutdown(async move { drop(stopped.await) })
        .await
        .expect("a listener that was bound keeps listening");
}

async fn answer(State(door): State<Arc<Door>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if !door.admits(&parts.headers) {
        let error = "UnrecognizedClientException";
        let text =
            "the access key is not that of this engine; roomtide shows it with --print-engine-key";
        return response(
            StatusCode::BAD_REQUEST,
            json!({"__type": error, "message": text}).to_string(),
        );
    }
    let Ok(body) = to_bytes(body, MAX_BODY).await else {
        let error = "SerializationException";
        return response(StatusCode::PAYLOAD_TOO_LARGE, json!({"__type": error}).to_string());
    };
    let target = parts.headers.get("x-amz-target").and_then(|target| target.to_str().ok());
    let operation = target.and_then(|target| target.strip_prefix("DynamoDB_20120810."));
    let operation = operation.unwrap_or_default();
    match run(&door.database, operation, &body) {
        Ok(answer) => response(StatusCode::OK, answer),
        Err(error) => {
            // Not the request's fault: the disk is full, the file is damaged or cannot be written.
            if error.status_code() >= 500 {
                door.warnings.warn(format_args!("the engine cannot do {operation}: {error}"));
            }
            let status = StatusCode::from_u16(error.status_code());
            response(status.unwrap_or(StatusCode::BAD_REQUEST), error.to_json())
        }
    }
}

impl Door {
    /// Whether the request is signed with the key, and not a web page's.
    fn admits(&self, headers: &HeaderMap) -> bool {
        let signed = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let key = signed
            .and_then(|signed| signed.split_once("Credential="))
            .and_then(|(_, credential)| credential.split('/').next());
        key == Some(&self.key) && !headers.contains_key(ORIGIN)
    }
}

fn response(status: StatusCode, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/x-amz-json-1.0");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// What stores, tests and other tools ask of a table.
fn run(database: &Database, operation: &str, body: &[u8]) -> dynoxide::Result<String> {
    match operation {
        "BatchGetItem" => ask(body, |request| database.batch_get_item(request)),
        "BatchWriteItem" => ask(body, |request| database.batch_write_item(request)),
        "CreateTable" => ask(body, |request| database.create_table(request)),
        "DeleteItem" => ask(body, |request| database.delete_item(request)),
        "DeleteTable" => ask(body, |request| database.delete_table(request)),
        "DescribeTable" => ask(body, |request| database.describe_table(request)),
        "GetItem" => ask(body, |request| database.get_item(request)),
        "ListTables" => ask(body, |request| database.list_tables(request)),
        "PutItem" => ask(body, |request| database.put_item(request)),
        "Query" => ask(body, |request| database.query(request)),
        "Scan" => ask(body, |request| database.scan(request)),
        "TransactGetItems" => ask(body, |request| database.transact_get_items(request)),
        "TransactWriteItems" => ask(body, |request| database.transact_write_items(request)),
        "UpdateItem" => ask(body, |request| database.update_item(request)),
        "UpdateTimeToLive" => ask(body, |request| database.update_time_to_live(request)),
        other => Err(DynoxideError::ValidationException(format!("{other:?} is not answered here"))),
    }
}

fn ask<Q: DeserializeOwned, A: Serialize>(
    body: &[u8],
    operation: impl FnOnce(Q) -> dynoxide::Result<A>,
) -> dynoxide::Result<String> {
    let request = serde_json::from_slice(body)
        .map_err(|error| DynoxideError::SerializationException(error.to_string()))?;
    serde_json::to_string(&operation(request)?)
        .map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(authorization: &str, origin: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, authorization.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_the_key_opens_the_door_and_not_to_a_web_page() {
        let door = Door {
            database: Database::memory().unwrap(),
            key: "k1".to_owned(),
            warnings: WarningLimiter::new(),
        };
        let signed = |key: &str| {
            format!(
                "AWS4-HMAC-SHA256 Credential={key}/20260111/us-east-1/dynamodb/aws4_request, Signature=0"
            )
        };
        assert!(door.admits(&headers(&signed("k1"), None)));
        assert!(!door.admits(&headers(&signed("k1"), Some("http://127.0.0.1:8080"))));
        for other in [signed("k"), signed("k12"), signed(""), "Bearer k1".to_owned()] {
            assert!(!door.admits(&headers(&other, None)), "{other}");
        }
        assert!(!door.admits(&HeaderMap::new()));
    }

    #[test]
    fn what_is_not_answered_is_named() {
        let database = Database::memory().unwrap();
        let error = run(&database, "CreateBackup", b"{}").unwrap_err().to_json();
        assert!(error.contains("CreateBackup"), "{error}");
        assert!(run(&database, "GetItem", b"{").is_err());
        assert!(run(&database, "ListTables", b"{}").unwrap().contains("TableNames"));
    }
}
