//! The event, payload format 2.0, into which API Gateway's HTTP API turns a request. Invokes nothing.

use std::collections::BTreeMap;
use std::net::IpAddr;

use api::endpoints;
use aws_lambda_events::event::apigw::ApiGatewayV2httpRequest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::DateTime;
use domain::Timestamp;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, COOKIE};
use http::request::Parts;
use serde_json::json;

/// Makes the event of a request from `peer`, received at `now`, without its body. `id` is unique.
pub(crate) fn event(
    parts: &Parts,
    peer: IpAddr,
    now: Timestamp,
    id: &str,
) -> serde_json::Result<ApiGatewayV2httpRequest> {
    let path = parts.uri.path();
    let method = parts.method.as_str();
    let route = endpoints::find_path(method, path).ok();
    let route_key = route
        .as_ref()
        .map_or_else(|| "$default".to_owned(), |(route, _)| format!("{method} {}", route.path));

    let header =
        |name| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let host = header(http::header::HOST);
    let mut headers = joined_headers(parts);
    headers.insert("x-forwarded-for".to_owned(), peer.to_string());
    headers.insert("x-forwarded-proto".to_owned(), "http".to_owned());

    let mut event = json!({
        "version": "2.0",
        "routeKey": route_key,
        "rawPath": path,
        "rawQueryString": parts.uri.query().unwrap_or_default(),
        "headers": headers,
        "requestContext": {
            "accountId": "000000000000",
            "apiId": "local",
            "domainName": host,
            "domainPrefix": "local",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": peer,
                "userAgent": header(http::header::USER_AGENT),
            },
            "requestId": id,
            "routeKey": route_key,
            "stage": "$default",
            "time": time_of_log(now),
            "timeEpoch": now.as_millis(),
        },
        "isBase64Encoded": false,
    });

    if let Some((route, id)) = route
        && route.path.contains("{id}")
    {
        event["pathParameters"] = json!({"id": id});
    }

    let query = query_parameters(parts.uri.query().unwrap_or_default());
    if !query.is_empty() {
        event["queryStringParameters"] = json!(query);
    }

    let cookies = cookies(parts);
    if !cookies.is_empty() {
        event["cookies"] = json!(cookies);
    }

    serde_json::from_value(event)
}

/// A time in the format of Apache's log, which API Gateway uses.
fn time_of_log(now: Timestamp) -> String {
    let time = DateTime::from_timestamp_millis(now.as_millis()).unwrap_or_default();
    time.format("%d/%b/%Y:%H:%M:%S %z").to_string()
}

fn cookies(parts: &Parts) -> Vec<&str> {
    let headers = parts.headers.get_all(COOKIE).into_iter();
    headers.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split("; ")).collect()
}

/// Sets the body of an event, as text or as base64.
pub(crate) fn put_body(event: &mut ApiGatewayV2httpRequest, body: Vec<u8>) {
    if body.is_empty() {
        return;
    }

    let header =
        |name| event.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let text = if is_text(header(CONTENT_TYPE), header(CONTENT_ENCODING)) {
        String::from_utf8(body).map_err(std::string::FromUtf8Error::into_bytes)
    } else {
        Err(body)
    };

    event.is_base64_encoded = text.is_err();
    event.body = Some(text.unwrap_or_else(|bytes| STANDARD.encode(bytes)));
}

/// Joins the values of each header by commas, under its lower-case name. Cookies have a field of their own.
fn joined_headers(parts: &Parts) -> BTreeMap<String, String> {
    let mut joined = BTreeMap::new();
    for name in parts.headers.keys().filter(|name| *name != COOKIE) {
        let values = parts.headers.get_all(name).into_iter();
        let values: Vec<_> =
            values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        joined.insert(name.as_str().to_owned(), values.join(","));
    }
    joined
}

fn query_parameters(query: &str) -> BTreeMap<String, String> {
    let mut joined = BTreeMap::<String, String>::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let values = joined.entry(name.into_owned()).or_default();
        if !values.is_empty() {
            values.push(',');
        }
        values.push_str(&value);
    }
    joined
}

/// Returns whether API Gateway passes a body on as text. All other bodies become base64, including forms and NDJSON.
fn is_text(content_type: &str, content_encoding: &str) -> bool {
    let media = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let plain = content_encoding.is_empty() || content_encoding.eq_ignore_ascii_case("identity");
    plain
        && (media.starts_with("text/")
            || matches!(
                media.as_str(),
                "application/json" | "application/xml" | "application/javascript"
            ))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use domain::given::at_millis;
    use http::Request;

    use super::*;

    fn event_of(request: http::request::Builder, body: &[u8]) -> ApiGatewayV2httpRequest {
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let now = at_millis(0);
        let mut event = event(&parts, Ipv4Addr::LOCALHOST.into(), now, "id-1").unwrap();
        put_body(&mut event, body.to_vec());
        event
    }

    #[test]
    fn a_request_becomes_the_event_that_aws_sends() {
        let request = Request::get("/devices/a%3Ab/readings?from=-24h&metrics=a&metrics=b&q=x%20y")
            .header("Host", "localhost:8080")
            .header("Accept", "text/csv")
            .header("X-Twice", "1")
            .header("X-Twice", "2")
            .header("Cookie", "a=1; b=2");
        let event = event_of(request, b"");

        assert_eq!(event.version.as_deref(), Some("2.0"));
        assert_eq!(event.raw_path.as_deref(), Some("/devices/a%3Ab/readings"));
        assert_eq!(
            event.raw_query_string.as_deref(),
            Some("from=-24h&metrics=a&metrics=b&q=x%20y")
        );
        assert_eq!(event.query_string_parameters.all("metrics"), Some(vec!["a", "b"]));
        assert_eq!(event.query_string_parameters.first("q"), Some("x y"));
        assert_eq!(event.path_parameters["id"], "a:b");
        assert_eq!(event.headers["x-twice"], "1,2");
        assert!(!event.headers.contains_key("cookie"));
        assert_eq!(event.cookies, Some(vec!["a=1".to_owned(), "b=2".to_owned()]));
        assert_eq!((event.body, event.is_base64_encoded), (None, false));

        let context = event.request_context;
        assert_eq!(context.route_key.as_deref(), Some("GET /devices/{id}/readings"));
        assert_eq!(context.request_id.as_deref(), Some("id-1"));
        assert_eq!(context.time.as_deref(), Some("11/Jan/2026:16:00:00 +0000"));
        assert_eq!(
            (context.http.method, context.http.source_ip.as_deref()),
            (http::Method::GET, Some("127.0.0.1"))
        );
    }

    #[test]
    fn a_path_without_a_route_is_the_default_s() {
        let event = event_of(Request::get("/nowhere"), b"");
        assert_eq!(event.route_key.as_deref(), Some("$default"));
        assert!(event.path_parameters.is_empty());
    }

    #[test]
    fn only_what_is_known_to_be_text_stays_text() {
        let body = |content_type: &str, encoding: &str, body: &[u8]| {
            let request = Request::post("/readings")
                .header("content-type", content_type)
                .header("content-encoding", encoding);
            let event = event_of(request, body);
            (event.body.unwrap(), event.is_base64_encoded)
        };

        assert_eq!(body("application/json; charset=utf-8", "", b"{}"), ("{}".into(), false));
        assert_eq!(body("text/plain", "identity", b"{}"), ("{}".into(), false));
        assert_eq!(body("application/x-www-form-urlencoded", "", b"{}"), ("e30=".into(), true));
        assert_eq!(body("application/x-ndjson", "", b"{}"), ("e30=".into(), true));
        assert_eq!(body("", "", b"{}"), ("e30=".into(), true));
        assert_eq!(body("application/json", "gzip", b"\x1f\x8b"), ("H4s=".into(), true));
        assert_eq!(body("application/json", "", b"\xff"), ("/w==".into(), true));
    }
}
