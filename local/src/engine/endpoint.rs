//! The engine's endpoint: `DynamoDB`'s protocol over HTTP, for programs that have its key. Knows no table.
//!
//! The engine's own server is not used, because it answers everybody who reaches the port: every user of the machine,
//! and every web page that is open there, because it allows every origin.

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

use super::range::Ranges;
use super::throttle::Throttle;
use super::writer::{self, Turns, Writer};
use crate::warning::WarningLimiter;

/// The largest body that `DynamoDB` takes.
const MAX_BODY: usize = 16 << 20;

/// The parts of the engine that perform operations.
pub(super) struct Operations {
    /// Performs all operations that the fields below do not.
    pub(super) database: Database,
    /// Performs `Query` between two sort keys.
    pub(super) ranges: Ranges,
    /// Performs `BatchWriteItem` and `BatchExecuteStatement`.
    pub(super) writer: Writer,
    /// The lock that serializes writers.
    pub(super) turns: Turns,
    /// The capacity of the table, if it is bounded.
    pub(super) throttle: Option<Throttle>,
}

struct EngineEndpoint {
    operations: Operations,
    key: String,
    warnings: WarningLimiter,
}

/// Answers requests that are signed with the access key `key`, until it is stopped.
pub(super) async fn serve(
    listener: TcpListener,
    operations: Operations,
    key: String,
    stopped: oneshot::Receiver<()>,
) {
    let endpoint = Arc::new(EngineEndpoint { operations, key, warnings: WarningLimiter::new() });
    let app = Router::new().fallback(answer).with_state(endpoint);
    axum::serve(listener, app)
        .with_graceful_shutdown(async move { drop(stopped.await) })
        .await
        .expect("a listener that was bound keeps listening");
}

async fn answer(State(endpoint): State<Arc<EngineEndpoint>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if !admits(&endpoint.key, &parts.headers) {
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

    match endpoint.operations.run(operation, &body).await {
        Ok(answer) => response(StatusCode::OK, answer),
        Err(error) => {
            // The server's fault: the disk is full, the file is damaged or cannot be written.
            if error.status_code() >= 500 {
                endpoint.warnings.warn(format_args!("the engine cannot do {operation}: {error}"));
            }
            let status = StatusCode::from_u16(error.status_code());
            response(status.unwrap_or(StatusCode::BAD_REQUEST), error.to_json())
        }
    }
}

/// Whether a request is signed with the key and does not come from a web page.
fn admits(key: &str, headers: &HeaderMap) -> bool {
    let signed = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let credential = signed.and_then(|signed| signed.split_once("Credential="));
    credential.and_then(|(_, credential)| credential.split('/').next()) == Some(key)
        && !headers.contains_key(ORIGIN)
}

fn response(status: StatusCode, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/x-amz-json-1.0");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

impl Operations {
    async fn run(&self, operation: &str, body: &[u8]) -> dynoxide::Result<String> {
        match &self.throttle {
            Some(throttle) => {
                throttle
                    .run(operation, body, async |body| self.perform(operation, body).await)
                    .await
            }
            None => self.perform(operation, body).await,
        }
    }

    /// Performs an operation that stores, tests and other tools use.
    async fn perform(&self, operation: &str, body: &[u8]) -> dynoxide::Result<String> {
        let database = &self.database;
        match operation {
            "BatchExecuteStatement" => {
                self.batch(writer::BatchRequest::Statements(parsed(body)?)).await
            }
            "BatchGetItem" => ask(body, |request| database.batch_get_item(request)),
            "BatchWriteItem" => self.batch(writer::BatchRequest::Items(parsed(body)?)).await,
            "CreateTable" => self.define(body, |request| database.create_table(request)).await,
            "DeleteItem" => self.write(body, |request| database.delete_item(request)).await,
            "DeleteTable" => self.define(body, |request| database.delete_table(request)).await,
            "DescribeTable" => ask(body, |request| database.describe_table(request)),
            "GetItem" => ask(body, |request| database.get_item(request)),
            "ListTables" => ask(body, |request| database.list_tables(request)),
            "PutItem" => self.write(body, |request| database.put_item(request)).await,
            "Query" => match self.ranges.answer(body) {
                Some(answer) => Ok(answer),
                None => ask(body, |request| database.query(request)),
            },
            "Scan" => ask(body, |request| database.scan(request)),
            "TransactGetItems" => ask(body, |request| database.transact_get_items(request)),
            "TransactWriteItems" => {
                self.write(body, |request| database.transact_write_items(request)).await
            }
            "UpdateItem" => self.write(body, |request| database.update_item(request)).await,
            "UpdateTimeToLive" => {
                self.define(body, |request| database.update_time_to_live(request)).await
            }
            other => {
                let text = format!("{other:?} is not answered here");
                Err(DynoxideError::ValidationException(text))
            }
        }
    }

    /// Writes many items. Requests that wait share one transaction.
    async fn batch(&self, request: writer::BatchRequest) -> dynoxide::Result<String> {
        written(&self.writer.write(request).await?)
    }

    /// Writes items over the engine's own connection.
    async fn write<Q: DeserializeOwned, A: Serialize>(
        &self,
        body: &[u8],
        operation: impl FnOnce(Q) -> dynoxide::Result<A>,
    ) -> dynoxide::Result<String> {
        let _turn = self.turns.lock().await;
        ask(body, operation)
    }

    /// Creates, changes or deletes tables.
    async fn define<Q: DeserializeOwned, A: Serialize>(
        &self,
        body: &[u8],
        operation: impl FnOnce(Q) -> dynoxide::Result<A>,
    ) -> dynoxide::Result<String> {
        let mut turn = self.turns.lock().await;
        let answer = ask(body, operation)?;
        turn.reopen().map_err(|error| DynoxideError::InternalServerError(format!("{error:#}")))?;
        Ok(answer)
    }
}

fn ask<Q: DeserializeOwned, A: Serialize>(
    body: &[u8],
    operation: impl FnOnce(Q) -> dynoxide::Result<A>,
) -> dynoxide::Result<String> {
    written(&operation(parsed(body)?)?)
}

fn parsed<Q: DeserializeOwned>(body: &[u8]) -> dynoxide::Result<Q> {
    serde_json::from_slice(body)
        .map_err(|error| DynoxideError::SerializationException(error.to_string()))
}

fn written<A: Serialize>(answer: &A) -> dynoxide::Result<String> {
    serde_json::to_string(answer)
        .map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}

#[cfg(test)]
mod tests {
    use tokio::sync::Mutex;

    use super::super::writer::WriterConnection;
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
    fn only_the_key_is_accepted_and_not_from_a_web_page() {
        let signed = |key: &str| {
            format!(
                "AWS4-HMAC-SHA256 Credential={key}/20260111/us-east-1/dynamodb/aws4_request, Signature=0"
            )
        };
        assert!(admits("k1", &headers(&signed("k1"), None)));
        assert!(!admits("k1", &headers(&signed("k1"), Some("http://127.0.0.1:8080"))));
        for other in [signed("k"), signed("k12"), signed(""), "Bearer k1".to_owned()] {
            assert!(!admits("k1", &headers(&other, None)), "{other}");
        }
        assert!(!admits("k1", &HeaderMap::new()));
    }

    #[tokio::test]
    async fn what_is_not_answered_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("db");
        let database = Database::new(file.to_str().unwrap()).unwrap();
        let turns = Arc::new(Mutex::new(WriterConnection::open(file.clone()).unwrap()));
        let (writer, _) = Writer::start(Arc::clone(&turns)).unwrap();
        let ranges = Ranges::open(&file, "t").unwrap();
        let operations = Operations { database, ranges, writer, turns, throttle: None };
        let error = operations.run("CreateBackup", b"{}").await.unwrap_err().to_json();
        assert!(error.contains("CreateBackup"), "{error}");
        assert!(operations.run("GetItem", b"{").await.is_err());
        assert!(operations.run("BatchWriteItem", b"{").await.is_err());
        assert!(operations.run("ListTables", b"{}").await.unwrap().contains("TableNames"));
    }
}
