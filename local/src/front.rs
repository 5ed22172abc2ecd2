//! HTTP on the loopback interface, in API Gateway's place: a request becomes an event, an answer a response.

mod event;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use aws_lambda_events::encodings;
use aws_lambda_events::event::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::json;
use shared::clock::{Clock as _, Deadline, SystemClock};
use shared::http::routes::{self, Function};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::functions::Functions;
use crate::terminal::complain;

/// The largest body that API Gateway takes.
const LARGEST_BODY: usize = 10 * 1_024 * 1_024;
/// How long a function may take: its `Timeout` in the template, less what it needs to say so.
const TIMEOUT: Duration = Duration::from_millis(24_500);

/// Listens on `port` of `host`; 0 is any that is free.
pub(crate) async fn listen(host: IpAddr, port: u16) -> anyhow::Result<TcpListener> {
    let bound = TcpListener::bind((host, port)).await;
    bound.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => anyhow::anyhow!(
            "port {port} is already in use, perhaps by another roomtide; choose another with --port"
        ),
        _ => anyhow::anyhow!("cannot listen on {host}:{port}: {error}; choose another with --port"),
    })
}

/// Answers until told to stop; requests under way are answered.
///
/// Where the functions ask for no token (not `guarded`), no web page of another origin is answered:
/// every page that its user opens reaches this machine.
pub(crate) async fn serve(
    listener: TcpListener,
    functions: Functions,
    guarded: bool,
    mut stop: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let front = Arc::new(Front { functions, guarded, requests: AtomicU64::new(0) });
    let app = Router::new().fallback(answer).with_state(front);
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    let stopped = async move { drop(stop.wait_for(|stop| *stop).await) };
    axum::serve(listener, service)
        .with_graceful_shutdown(stopped)
        .await
        .context("the server stopped")
}

/// Hands an HTTP event to the function whose route it is; those without a route go to query, which
/// says so. `Err` is what the function itself failed with.
pub(crate) async fn invoke(
    functions: &Functions,
    event: ApiGatewayV2httpRequest,
) -> anyhow::Result<ApiGatewayV2httpResponse> {
    let path = event.raw_path.as_deref().unwrap_or("/");
    let route = routes::find_path(event.request_context.http.method.as_str(), path);
    let function = route.map_or(Function::Query, |(route, _)| route.function);
    let deadline = Deadline::after(TIMEOUT);
    let functions = functions.clone();
    // A task of its own, because a function that has begun goes on when its client has left, and
    // because one that panics must not take the server with it.
    let answer = tokio::spawn(async move {
        match function {
            Function::Query => Ok(Box::pin(functions.query.handle(event, deadline)).await),
            Function::Ingest => {
                let event = ingest::Event::Http(Box::new(event));
                match Box::pin(functions.ingest.handle(event, deadline)).await? {
                    ingest::Reply::Http(response) => Ok(*response),
                    ingest::Reply::Iot(_) => {
                        anyhow::bail!("ingest answered a request as if it were a message")
                    }
                }
            }
        }
    });
    answer.await.context("the function panicked")?
}

/// Asks the functions what a client would ask, without a connection; the status and the body.
pub(crate) async fn ask(
    functions: &Functions,
    request: http::Request<Vec<u8>>,
) -> anyhow::Result<(StatusCode, Vec<u8>)> {
    let (parts, body) = request.into_parts();
    let here = Ipv4Addr::LOCALHOST.into();
    let event = event::event(&parts, body, here, SystemClock.now(), "own")?;
    let response = response(invoke(functions, event).await?)?;
    let status = response.status();
    Ok((status, to_bytes(response.into_body(), usize::MAX).await?.into()))
}

struct Front {
    functions: Functions,
    guarded: bool,
    requests: AtomicU64,
}

async fn answer(
    State(front): State<Arc<Front>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    if !front.guarded && is_foreign(&parts.headers) {
        let text = "Without tokens no web page of another origin is answered; start with --auth.";
        return message(StatusCode::FORBIDDEN, text);
    }
    let Ok(body) = to_bytes(body, LARGEST_BODY).await else {
        return message(StatusCode::PAYLOAD_TOO_LARGE, "Request Entity Too Large");
    };
    let event = front.event(&parts, body.into(), peer.ip());
    let answered = match event {
        Ok(event) => invoke(&front.functions, event).await.and_then(response),
        Err(error) => Err(error.into()),
    };
    answered.unwrap_or_else(|error| {
        complain(format_args!("{} {}: {error:#}", parts.method, parts.uri.path()));
        message(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
    })
}

impl Front {
    fn event(
        &self,
        parts: &http::request::Parts,
        body: Vec<u8>,
        peer: IpAddr,
    ) -> serde_json::Result<ApiGatewayV2httpRequest> {
        let now = SystemClock.now();
        let id =
            format!("{:x}-{:x}", now.as_millis(), self.requests.fetch_add(1, Ordering::Relaxed));
        event::event(parts, body, peer, now, &id)
    }
}

/// Whether a web page of another origin asks, under its own name or, after DNS rebinding, under ours.
fn is_foreign(headers: &HeaderMap) -> bool {
    let header = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let host = header(HOST).unwrap_or_default().to_ascii_lowercase();
    let host = host.as_str();
    let name = host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
    let name = name.map_or(host, |(name, _)| name).trim_end_matches('.');
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_ours = name.is_empty() || name == "localhost" || address.is_ok();
    let is_own_page = header(ORIGIN).is_none_or(|origin| origin == format!("http://{host}"));
    !(is_ours && is_own_page)
}

/// The response that API Gateway makes of a function's answer.
fn response(answer: ApiGatewayV2httpResponse) -> anyhow::Result<Response> {
    let body = match answer.body.unwrap_or_default() {
        encodings::Body::Text(text) if answer.is_base64_encoded => STANDARD
            .decode(text)
            .context("the answer's body is not the base64 that it says it is")?,
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
        response.headers_mut().append(http::header::SET_COOKIE, HeaderValue::from_str(&cookie)?);
    }
    Ok(response)
}

/// An answer of API Gateway's own.
fn message(status: StatusCode, message: &str) -> Response {
    let mut response = Response::new(Body::from(json!({"message": message}).to_string()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn sent(answer: ApiGatewayV2httpResponse) -> (StatusCode, Vec<u8>) {
        let response = response(answer).unwrap();
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

    #[tokio::test]
    async fn an_answer_that_is_none_is_an_error() {
        let mut answer = ApiGatewayV2httpResponse::default();
        answer.status_code = 1_000;
        assert!(response(answer.clone()).is_err());
        answer.status_code = 200;
        answer.is_base64_encoded = true;
        answer.body = Some(encodings::Body::Text("%".to_owned()));
        assert!(response(answer).is_err());
    }

    #[test]
    fn only_pages_of_our_own_are_answered_without_tokens() {
        let foreign = |host: &str, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(ORIGIN, origin.parse().unwrap());
            }
            is_foreign(&headers)
        };
        for host in [
            "localhost:8080",
            "LOCALHOST:8080",
            "localhost.",
            "127.0.0.1:8080",
            "[::1]:8080",
            "[::1]",
            "127.0.0.1",
        ] {
            assert!(!foreign(host, None), "{host}");
            let page = format!("http://{}", host.to_lowercase());
            assert!(!foreign(host, Some(&page)), "{host}");
            assert!(foreign(host, Some("https://example.org")), "{host}");
            assert!(foreign(host, Some("null")), "{host}");
        }
        assert!(foreign("rebound.example.org:8080", None));
        assert!(!is_foreign(&HeaderMap::new()), "curl --http1.0 has no host");
    }

    #[tokio::test]
    async fn a_port_in_use_is_named() {
        let host = Ipv4Addr::LOCALHOST.into();
        let first = listen(host, 0).await.unwrap();
        let port = first.local_addr().unwrap().port();
        let error = listen(host, port).await.unwrap_err().to_string();
        assert!(error.contains(&port.to_string()) && error.contains("--port"), "{error}");
    }
}
