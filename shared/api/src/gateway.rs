//! Converts events of payload format 2.0, which API Gateway's HTTP API sends, to requests, and responses to events.
//! Routes nothing.
//!
//! A function URL sends the same format. Sources:
//! <https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html>,
//! <https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html>

use aws_lambda_events::encodings::Body;
use aws_lambda_events::event::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{Problem, ProblemKind, Request, Response, credentials};
use domain::Timestamp;

/// Converts an event to a request.
pub fn request(event: ApiGatewayV2httpRequest) -> Result<Request, Problem> {
    let body = event.body.unwrap_or_default();
    let body = if event.is_base64_encoded {
        STANDARD
            .decode(body)
            .map_err(|_| Problem::new(ProblemKind::BadRequest, "The event's body is not base64."))?
    } else {
        body.into_bytes()
    };

    let context = event.request_context;
    let path = event.raw_path.or(context.http.path).unwrap_or_else(|| "/".to_owned());
    // A stage other than the default is part of the path, and is removed.
    let stage = context.stage.filter(|stage| stage != "$default").map(|stage| format!("/{stage}/"));
    let path = match stage.as_deref().and_then(|stage| path.strip_prefix(stage)) {
        Some(rest) => format!("/{rest}"),
        None => path,
    };

    let headers = event.headers.iter().filter_map(|(name, value)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    });
    let mut headers: std::collections::BTreeMap<_, _> = headers.collect();
    let mut raw_query = event.raw_query_string.unwrap_or_default();
    let secret = credentials::take(&mut headers, &mut raw_query);

    let arrived = Some(context.time_epoch).filter(|millis| *millis > 0);
    let sent_id = headers.get("x-request-id").filter(|id| (1..=128).contains(&id.len())).cloned();
    Ok(Request {
        method: context.http.method.to_string(),
        path,
        raw_query,
        secret,
        body,
        id: sent_id.or_else(|| context.request_id.clone()).unwrap_or_default(),
        headers,
        arrived: arrived.and_then(|millis| Timestamp::from_millis(millis).ok()),
        arrival: context.request_id.filter(|id| !id.is_empty()),
    })
}

/// Converts a response. A body that is not text becomes base64.
pub fn response(response: Response) -> ApiGatewayV2httpResponse {
    let mut headers = HeaderMap::new();
    for (name, value) in response.headers {
        // A value that no header can have, such as an id with control characters, is left out.
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.append(HeaderName::from_static(name), value);
        }
    }

    let mut answer = ApiGatewayV2httpResponse::default();
    answer.status_code = response.status.into();
    answer.headers = headers;
    match String::from_utf8(response.body) {
        Ok(text) => answer.body = Some(Body::Text(text)),
        Err(bytes) => {
            answer.is_base64_encoded = true;
            answer.body = Some(Body::Text(STANDARD.encode(bytes.into_bytes())));
        }
    }

    answer
}
