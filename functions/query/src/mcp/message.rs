//! A message of JSON-RPC 2.0 and its answer. Knows no method.
//!
//! Sources: <https://www.jsonrpc.org/specification>; and the Model Context Protocol, which permits no batches and no
//! null id.

use api::Response;
use serde_json::{Map, Value, json};

/// A message of a client.
#[derive(Debug, PartialEq)]
pub(super) enum ClientMessage {
    /// A message that wants an answer.
    Request(Request),
    /// A message that wants no answer.
    Notification,
}

/// A JSON-RPC request.
#[derive(Debug, PartialEq)]
pub(super) struct Request {
    /// The id, a text or a whole number. The answer repeats it.
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Map<String, Value>,
}

/// An error instead of a result.
#[derive(Debug, PartialEq)]
pub(super) struct Failure {
    pub(super) code: Code,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

/// The kinds of JSON-RPC errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    /// The body is not JSON.
    Parse,
    /// The body is JSON, but not a message.
    InvalidRequest,
    UnknownMethod,
    InvalidParams,
    /// A header contradicts the body.
    HeaderMismatch,
    /// The version of the protocol is not supported.
    UnsupportedVersion,
}

impl Code {
    const fn number(self) -> i32 {
        match self {
            Self::Parse => -32_700,
            Self::InvalidRequest => -32_600,
            Self::UnknownMethod => -32_601,
            Self::InvalidParams => -32_602,
            Self::HeaderMismatch => -32_020,
            Self::UnsupportedVersion => -32_022,
        }
    }

    /// The status of the HTTP answer. In versions before 2026-07-28 the failure of a method has status 200.
    const fn status(self, is_modern: bool) -> u16 {
        match self {
            Self::UnknownMethod if is_modern => 404,
            Self::InvalidParams if is_modern => 400,
            Self::UnknownMethod | Self::InvalidParams => 200,
            Self::Parse
            | Self::InvalidRequest
            | Self::HeaderMismatch
            | Self::UnsupportedVersion => 400,
        }
    }
}

impl Failure {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The answer to the request with this id. `id` is null if the request has no readable id.
    pub(super) fn respond(self, id: &Value, is_modern: bool) -> Response {
        let Self { code, message, data } = self;
        let mut error = json!({"code": code.number(), "message": message});
        if let Some(data) = data {
            error["data"] = data;
        }
        let body = json!({"jsonrpc": "2.0", "id": id, "error": error});
        Response::json(code.status(is_modern), &body)
    }
}

impl ClientMessage {
    /// The id of a refused body, or null if the body has no id.
    pub(super) fn id_of(body: &[u8]) -> Value {
        let message: Value = serde_json::from_slice(body).unwrap_or_default();
        message.get("id").filter(|id| is_id(id)).cloned().unwrap_or_default()
    }

    /// Parses a body.
    pub(super) fn parse(body: &[u8]) -> Result<Self, Failure> {
        let refused = |why: &str| Err(Failure::new(Code::InvalidRequest, why));
        let message: Value = serde_json::from_slice(body)
            .map_err(|why| Failure::new(Code::Parse, format!("The body is not JSON: {why}.")))?;
        let mut message = match message {
            Value::Object(message) => message,
            Value::Array(_) => {
                return refused("Batches are not taken; send one message a request.");
            }
            _ => return refused("A message is a JSON object."),
        };
        if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return refused("jsonrpc: expected \"2.0\".");
        }

        let Some(Value::String(method)) = message.remove("method") else {
            return refused("method: expected a text. Responses are not taken: nothing was asked.");
        };
        let params = match message.remove("params") {
            None => Map::new(),
            Some(Value::Object(params)) => params,
            Some(_) => return refused("params: expected an object."),
        };

        match message.remove("id") {
            None => Ok(Self::Notification),
            Some(id) if is_id(&id) => Ok(Self::Request(Request { id, method, params })),
            Some(_) => refused("id: expected a text or a whole number."),
        }
    }
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_request_or_one_notification() {
        let request = |id: Value, params: Value| {
            let params = params.as_object().expect("an object").clone();
            Ok(ClientMessage::Request(Request { id, method: "m".to_owned(), params }))
        };
        for (body, expected) in [
            (r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#, request(json!("a"), json!({}))),
            (
                r#"{"jsonrpc":"2.0","id":-1,"method":"m","params":{"a":1}}"#,
                request(json!(-1), json!({"a": 1})),
            ),
            (r#"{"jsonrpc":"2.0","method":"notifications/x"}"#, Ok(ClientMessage::Notification)),
        ] {
            assert_eq!(ClientMessage::parse(body.as_bytes()), expected, "{body}");
        }
        for (body, code, why) in [
            ("{", Code::Parse, "not JSON"),
            ("", Code::Parse, "not JSON"),
            ("[]", Code::InvalidRequest, "Batches"),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"m"}]"#, Code::InvalidRequest, "Batches"),
            ("1", Code::InvalidRequest, "object"),
            (r#"{"id":1,"method":"m"}"#, Code::InvalidRequest, "jsonrpc"),
            (r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, Code::InvalidRequest, "jsonrpc"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Code::InvalidRequest, "Responses"),
            (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, Code::InvalidRequest, "id"),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#, Code::InvalidRequest, "id"),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[]}"#,
                Code::InvalidRequest,
                "params",
            ),
        ] {
            let failure = ClientMessage::parse(body.as_bytes()).expect_err(body);
            assert_eq!(failure.code, code, "{body}");
            assert!(failure.message.contains(why), "{body}: {}", failure.message);
        }
        for (body, id) in [
            (r#"{"jsonrpc":"2.0","id":9,"method":"m","params":[1]}"#, json!(9)),
            (r#"{"id":"a","method":"m"}"#, json!("a")),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#, json!(null)),
            ("{", json!(null)),
        ] {
            assert_eq!(ClientMessage::id_of(body.as_bytes()), id, "{body}");
        }
    }
}
