//! The HTTP response to a request: a function's answer, or the gateway's own. Invokes nothing.

use anyhow::Context as _;
use api::{Dialect, Problem, ProblemKind, gateway};
use aws_lambda_events::encodings;
use aws_lambda_events::event::apigw::ApiGatewayV2httpResponse;
use axum::body::Body;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONTENT_TYPE, SET_COOKIE};
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

/// Turns a function's answer into the response that API Gateway would send.
pub(super) fn of_answer(answer: ApiGatewayV2httpResponse) -> anyhow::Result<Response> {
    let body = match answer.body.unwrap_or_default() {
        encodings::Body::Text(text) if answer.is_base64_encoded => {
            STANDARD.decode(text).context("the answer's body is not base64, as it says")?
        }
        encodings::Body::Text(text) => text.into_bytes(),
        encodings::Body::Binary(bytes) => bytes,
        _ => Vec::new(),
    };

    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(u16::try_from(answer.status_code)?)?;
    response.headers_mut().extend(answer.headers);
    for (name, value) in &answer.multi_value_headers {
        response.headers_mut().append(name, value.clone());
    }

    for cookie in answer.cookies {
        response.headers_mut().append(SET_COOKIE, HeaderValue::from_str(&cookie)?);
    }
    Ok(response)
}

/// The response after a function failed, in API Gateway's words; on InfluxDB's paths, in the words of InfluxDB.
pub(super) fn internal_server_error(path: &str) -> Response {
    if let Some(response) = in_dialect(path, ProblemKind::Internal, "Internal Server Error") {
        return response;
    }
    let body = json!({"message": "Internal Server Error"});
    json_response(StatusCode::INTERNAL_SERVER_ERROR, "application/json", &body)
}

/// The response that refuses a request from a web page of another origin.
pub(super) fn foreign_origin(path: &str, detail: &str) -> Response {
    if let Some(response) = in_dialect(path, ProblemKind::Forbidden, detail) {
        return response;
    }
    let status = StatusCode::FORBIDDEN;
    let problem = json!({
        "type": "urn:roomtide:problem:foreign-origin",
        "title": "The request may come from another origin",
        "status": status.as_u16(),
        "detail": detail,
    });
    json_response(status, "application/problem+json", &problem)
}

fn in_dialect(path: &str, kind: ProblemKind, detail: &str) -> Option<Response> {
    let answer = Dialect::of(path)?.respond(&Problem::new(kind, detail));
    of_answer(gateway::response(answer)).ok()
}

fn json_response(status: StatusCode, media_type: &'static str, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    async fn sent(answer: ApiGatewayV2httpResponse) -> (StatusCode, Vec<u8>) {
        let response = of_answer(answer).unwrap();
        let status = response.status();
        (status, to_bytes(response.into_body(), 1_000).await.unwrap().into())
    }

    #[tokio::test]
    async fn a_base64_answer_is_sent_as_its_bytes() {
        let mut answer = ApiGatewayV2httpResponse::default();
        answer.status_code = 201;
        answer.body = Some(encodings::Body::Text("H4s=".to_owned()));
        assert_eq!(sent(answer.clone()).await, (StatusCode::CREATED, b"H4s=".to_vec()));
        answer.is_base64_encoded = true;
        assert_eq!(sent(answer).await, (StatusCode::CREATED, vec![0x1f, 0x8b]));
    }

    #[test]
    fn an_answer_that_is_no_http_is_an_error() {
        let mut answer = ApiGatewayV2httpResponse::default();
        answer.status_code = 1_000;
        assert!(of_answer(answer.clone()).is_err());
        answer.status_code = 200;
        answer.is_base64_encoded = true;
        answer.body = Some(encodings::Body::Text("%".to_owned()));
        assert!(of_answer(answer).is_err());
    }

    #[tokio::test]
    async fn a_foreign_request_is_refused_with_a_problem() {
        let response = foreign_origin("/readings", "Host is \"x\".");
        assert_eq!(response.status(), StatusCode::FORBIDDEN);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
        let body = to_bytes(response.into_body(), 1_000).await.unwrap();
        let problem: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            (&problem["status"], &problem["detail"]),
            (&json!(403), &json!("Host is \"x\"."))
        );
    }
}
