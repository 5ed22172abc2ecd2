//! HTTP on the loopback interface, in API Gateway's place: a request becomes an event, an answer a response.

mod connections;
mod event;
mod guard;
mod origin;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use api::request::MAX_BODY;
use api::routes::{self, Function};
use api::{Problem, ProblemKind, gateway};
use aws_lambda_events::encodings;
use aws_lambda_events::event::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use axum::body::{Body, to_bytes};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::request::Parts;
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use runtime::clock::{Clock as _, Deadline, SystemClock};
use serde_json::{Value, json};
use table::Invocation;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::functions::Functions;
use crate::warning::warn;

pub(crate) use connections::Limits;
pub(crate) use guard::Guard;

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
pub(crate) async fn serve(
    listener: TcpListener,
    front: Front,
    limits: Limits,
    stop: watch::Receiver<bool>,
) {
    let front = Arc::new(front);
    let answer = move |request, peer| {
        let front = Arc::clone(&front);
        async move { front.answer(request, peer, limits).await }
    };
    connections::serve(listener, limits, answer, stop).await;
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

/// Sends a request to the functions without a connection. Returns the status and the body.
pub(crate) async fn send(
    functions: &Functions,
    request: Request<Vec<u8>>,
) -> anyhow::Result<(StatusCode, Vec<u8>)> {
    let (parts, body) = request.into_parts();
    let here = Ipv4Addr::LOCALHOST.into();
    let mut event = event::event(&parts, here, SystemClock.now(), "own")?;
    event::put_body(&mut event, body);
    let response = response(invoke(functions, event).await?)?;
    let status = response.status();
    Ok((status, to_bytes(response.into_body(), usize::MAX).await?.into()))
}

/// What stands before the functions.
pub(crate) struct Front {
    functions: Functions,
    guard: Option<Guard>,
    requests: AtomicU64,
}

impl Front {
    /// A front of functions that ask for tokens, or of functions that do not: then without a guard.
    ///
    /// Without one no web page of another origin is answered: every page that its user opens reaches
    /// this machine.
    pub(crate) fn new(functions: Functions, guard: Option<Guard>) -> Self {
        Self { functions, guard, requests: AtomicU64::new(0) }
    }

    async fn answer(&self, request: Request<Incoming>, peer: IpAddr, limits: Limits) -> Response {
        let (parts, body) = request.into_parts();
        if self.guard.is_none()
            && let Some(why) = origin::refusal(&parts.headers)
        {
            return foreign(&why);
        }
        let answered = async {
            let mut event = self.event(&parts, peer)?;
            if takes_body(&parts) {
                match self.body(&event, body, limits.body).await? {
                    Ok(body) => event::put_body(&mut event, body),
                    Err(refusal) => return response(refusal),
                }
            }
            response(invoke(&self.functions, event).await?)
        };
        answered.await.unwrap_or_else(|error| {
            warn(format_args!("{} {}: {error:#}", parts.method, parts.uri.path()));
            message(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
        })
    }

    fn event(&self, parts: &Parts, peer: IpAddr) -> serde_json::Result<ApiGatewayV2httpRequest> {
        let now = SystemClock.now();
        let id =
            format!("{:x}-{:x}", now.as_millis(), self.requests.fetch_add(1, Ordering::Relaxed));
        event::event(parts, peer, now, &id)
    }

    /// The body of a request whose token is good, or the answer to a request that is refused before.
    async fn body(
        &self,
        event: &ApiGatewayV2httpRequest,
        body: Incoming,
        time: Duration,
    ) -> anyhow::Result<Result<Vec<u8>, ApiGatewayV2httpResponse>> {
        let invocation = Invocation::until(Deadline::after(TIMEOUT));
        let request = gateway::request(event.clone());
        let request = request.map_err(|problem| anyhow::anyhow!("{}", problem.detail))?;
        let taken = async {
            if let Some(guard) = &self.guard {
                guard.check(&request, &invocation).await?;
            }
            read(body, time).await
        };
        Ok(taken
            .await
            .map_err(|problem| gateway::response(problem.respond().finish(&request, &invocation))))
    }
}

/// Whether a function looks at the request's body; any other body is left unread.
fn takes_body(parts: &Parts) -> bool {
    let route = routes::find_path(parts.method.as_str(), parts.uri.path());
    route.is_ok_and(|(route, _)| matches!(route.method, "POST" | "PATCH"))
}

/// Reads a body up to the length that the functions take.
async fn read(body: Incoming, time: Duration) -> Result<Vec<u8>, Problem> {
    let too_long = || {
        let detail = format!(
            "The body is longer than {MAX_BODY} bytes. Send fewer readings at a time, or gzip."
        );
        Problem::new(ProblemKind::TooLarge, detail)
    };
    if body.size_hint().lower() > MAX_BODY as u64 {
        return Err(too_long());
    }
    match tokio::time::timeout(time, Limited::new(body, MAX_BODY).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes().into()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_long()),
        Ok(Err(_)) => Err(Problem::new(ProblemKind::BadRequest, "The body is cut short.")),
        Err(_) => {
            let detail = format!("The body did not arrive within {} seconds.", time.as_secs());
            Err(Problem::new(ProblemKind::BadRequest, detail))
        }
    }
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
    json_response(status, "application/json", &json!({"message": message}))
}

/// The answer to a request that may come from a web page of another origin.
fn foreign(detail: &str) -> Response {
    let status = StatusCode::FORBIDDEN;
    let problem = json!({
        "type": "urn:roomtide:problem:foreign-origin",
        "title": "The request may come from another origin",
        "status": status.as_u16(),
        "detail": detail,
    });
    json_response(status, "application/problem+json", &problem)
}

fn json_response(status: StatusCode, media_type: &'static str, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let media_type = HeaderValue::from_static(media_type);
    response.headers_mut().insert(http::header::CONTENT_TYPE, media_type);
    response
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use domain::{Scope, Token, TokenHash};
    use dynamodb::DynamoStore;
    use runtime::telemetry::Telemetry;
    use table::ManageTokens as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;
    use crate::dead_letters::DeadLetters;
    use crate::engine::Engine;
    use crate::table_definition::TableDefinition;
    use crate::{Data, Options};

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

    /// The head of a request, and the answer to it if one comes before its body.
    async fn answer_to_head(front: SocketAddr, token: &str, length: usize) -> Option<String> {
        let mut stream = TcpStream::connect(front).await.unwrap();
        let head = format!(
            "POST /readings HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let answered = stream.read_to_string(&mut answer);
        tokio::time::timeout(Duration::from_secs(2), answered).await.ok()?.ok()?;
        Some(answer)
    }

    #[tokio::test]
    async fn the_token_comes_before_the_body_and_the_body_is_short_and_in_time() {
        let table = TableDefinition::own().unwrap();
        let engine = Engine::start(&Data::Memory, &table).unwrap();
        let (config, options) = (engine.store_config(true), Options::default());
        let functions = Functions::start(&config, &DeadLetters::default(), &options, true).await;
        let (hash, scope) = (TokenHash::of("t"), Scope::Admin);
        let token = Token { hash, scope, name: None, created: SystemClock.now(), revoked: None };
        let invocation = Invocation::until(Deadline::after(TIMEOUT));
        DynamoStore::connect(&config).add_token(&token, &invocation).await.unwrap();

        let listener = listen(Ipv4Addr::LOCALHOST.into(), 0).await.unwrap();
        let address = listener.local_addr().unwrap();
        let front = Front::new(functions, Some(Guard::new(&config, Telemetry::silent())));
        let limits = Limits { body: Duration::from_millis(300), ..Limits::OWN };
        let stop = watch::Sender::new(false);
        let serving = tokio::spawn(serve(listener, front, limits, stop.subscribe()));
        for (token, length, status, text) in [
            ("unknown", MAX_BODY, 401, "urn:roomtide:problem:unauthorized"),
            ("unknown", MAX_BODY + 1, 401, "urn:roomtide:problem:unauthorized"),
            ("t", MAX_BODY + 1, 413, "urn:roomtide:problem:too-large"),
            ("t", MAX_BODY, 400, "did not arrive"),
        ] {
            let answer = answer_to_head(address, token, length).await.expect("it is answered");
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{token}: {answer}");
            assert!(answer.contains(text), "{token}: {answer}");
        }
        stop.send_replace(true);
        serving.await.unwrap();
        engine.stop().unwrap();
    }

    #[tokio::test]
    async fn a_foreign_request_is_refused_with_a_problem() {
        let response = foreign("Host is \"x\".");
        assert_eq!(response.status(), StatusCode::FORBIDDEN);
        assert_eq!(response.headers()[http::header::CONTENT_TYPE], "application/problem+json");
        let body = to_bytes(response.into_body(), 1_000).await.unwrap();
        let problem: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            (&problem["status"], &problem["detail"]),
            (&json!(403), &json!("Host is \"x\"."))
        );
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
