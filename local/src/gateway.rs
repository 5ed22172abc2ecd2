//! HTTP in place of API Gateway: turns a request into an event, and a function's answer into a response.

mod authorizer;
mod connections;
mod cors;
mod event;
mod origin;
mod response;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use api::endpoints::{self, Access, Function};
use api::request::MAX_BODY;
use api::{Dialect, Problem, ProblemKind, gateway};
use aws_lambda_events::event::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use axum::body::to_bytes;
use axum::response::Response;
use http::Request;
use http::request::Parts;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use runtime::clock::{Clock as _, Deadline, SystemClock};
use table::Invocation;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::functions::Functions;
use crate::warning::warn;

pub(crate) use authorizer::Authorizer;
pub(crate) use connections::ConnectionLimits;

/// The time limit of a function over HTTP: its `Timeout` in the template, less the time to answer with a time-out
/// error.
const TIMEOUT: Duration = Duration::from_millis(24_500);
/// The maximum body size of a request without a token, in bytes.
const MAX_PUBLIC_BODY: usize = 4_096;

/// Listens on `port` of `host`; with port 0, on any free port. An error names the option that chooses the port.
pub(crate) async fn listen(host: IpAddr, port: u16, option: &str) -> anyhow::Result<TcpListener> {
    let bound = TcpListener::bind((host, port)).await;
    bound.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => anyhow::anyhow!(
            "port {port} is already in use, perhaps by another roomtide; choose another with {option}"
        ),
        _ => anyhow::anyhow!("cannot listen on {host}:{port}: {error}; choose another with {option}"),
    })
}

/// Serves until it is stopped, then answers the requests under way.
pub(crate) async fn serve(
    listener: TcpListener,
    gateway: Gateway,
    limits: ConnectionLimits,
    stop: watch::Receiver<bool>,
) {
    let gateway = Arc::new(gateway);
    let answer = move |request, peer| {
        let gateway = Arc::clone(&gateway);
        async move { gateway.answer(request, peer, limits).await }
    };
    connections::serve(listener, limits, answer, stop).await;
}

/// The functions that an address reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Host {
    /// Both functions, chosen by the route, as behind an HTTP API.
    Both,
    /// The query function alone, as at its function URL.
    Query,
    /// The ingest function alone, as at its function URL, with CORS for the web page.
    Ingest {
        /// The origin of the web page.
        page: String,
    },
}

/// The function of an HTTP event's route. An event without a route goes to the query function, which answers 404 or
/// 405.
pub(crate) fn function_of(event: &ApiGatewayV2httpRequest) -> Function {
    let path = event.raw_path.as_deref().unwrap_or("/");
    let route = endpoints::find_path(event.request_context.http.method.as_str(), path);
    route.map_or(Function::Query, |(route, _)| route.function)
}

/// Invokes the function `only`, or else the function of the event's route. An error is the function's own failure.
pub(crate) async fn invoke(
    functions: &Functions,
    event: ApiGatewayV2httpRequest,
    only: Option<Function>,
) -> anyhow::Result<ApiGatewayV2httpResponse> {
    let function = only.unwrap_or_else(|| function_of(&event));
    let deadline = Deadline::after(TIMEOUT);
    let functions = functions.clone();

    // In a task of its own: a function goes on when its client has disconnected, and a panic does not end the server.
    let answer = tokio::spawn(async move {
        match function {
            Function::Query => Ok(Box::pin(functions.query.handle(event, deadline)).await),
            Function::Ingest => {
                let event = ingest::Event::Http(Box::new(event));
                http_answer(Box::pin(functions.ingest.handle(event, deadline)).await?)
            }
        }
    });
    answer.await.context("the function panicked")?
}

/// The HTTP answer in the ingest function's reply.
pub(crate) fn http_answer(reply: ingest::Reply) -> anyhow::Result<ApiGatewayV2httpResponse> {
    match reply {
        ingest::Reply::Http(response) => Ok(*response),
        ingest::Reply::Iot(_) | ingest::Reply::Fetched(_) => {
            anyhow::bail!("ingest answered an HTTP request as another event")
        }
    }
}

/// Sends a request to the functions without a connection.
pub(crate) async fn send(
    functions: &Functions,
    request: Request<Vec<u8>>,
) -> anyhow::Result<http::Response<Vec<u8>>> {
    response_of(invoke(functions, event_of(request)?, None).await?).await
}

/// The API Gateway event of a request that comes over no connection.
pub(crate) fn event_of(request: Request<Vec<u8>>) -> anyhow::Result<ApiGatewayV2httpRequest> {
    let (parts, body) = request.into_parts();
    let here = Ipv4Addr::LOCALHOST.into();
    let mut event = event::event(&parts, here, SystemClock.now(), "own")?;
    event::put_body(&mut event, body);
    Ok(event)
}

/// The HTTP response for a function's answer.
pub(crate) async fn response_of(
    answer: ApiGatewayV2httpResponse,
) -> anyhow::Result<http::Response<Vec<u8>>> {
    let (parts, body) = response::of_answer(answer)?.into_parts();
    Ok(http::Response::from_parts(parts, to_bytes(body, usize::MAX).await?.into()))
}

/// The gateway in front of the functions.
pub(crate) struct Gateway {
    functions: Functions,
    authorizer: Option<Arc<Authorizer>>,
    host: Host,
    requests: AtomicU64,
}

impl Gateway {
    /// Makes a gateway. Functions that need tokens have an authorizer; other functions do not.
    ///
    /// Without an authorizer, requests from web pages of other origins are refused: every page that a user of this
    /// machine opens can reach the gateway.
    pub(crate) fn new(
        functions: Functions,
        authorizer: Option<Arc<Authorizer>>,
        host: Host,
    ) -> Self {
        Self { functions, authorizer, host, requests: AtomicU64::new(0) }
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        peer: IpAddr,
        limits: ConnectionLimits,
    ) -> Response {
        let (parts, body) = request.into_parts();
        let (page, only) = match &self.host {
            Host::Both => (None, None),
            Host::Query => (None, Some(Function::Query)),
            Host::Ingest { page } => (Some(page.as_str()), Some(Function::Ingest)),
        };

        if self.authorizer.is_none()
            && let Some(reason) = origin::refusal(&parts, page)
        {
            return response::foreign_origin(parts.uri.path(), &reason);
        }
        if let Some(response) = page.and_then(|_| cors::preflight(&parts)) {
            return response;
        }

        let response = async {
            let mut event = self.event(&parts, peer)?;
            if let Some(access) = access_with_body(&parts) {
                match self.body(&event, access, body, limits.body).await? {
                    BodyRead::Complete(body) => event::put_body(&mut event, body),
                    BodyRead::Refused(answer) => return response::of_answer(*answer),
                }
            }
            response::of_answer(invoke(&self.functions, event, only).await?)
        };
        let response = response.await.unwrap_or_else(|error| {
            warn(format_args!("{} {}: {error:#}", parts.method, parts.uri.path()));
            response::internal_server_error(parts.uri.path())
        });

        if page.is_some() { cors::permitting(&parts, response) } else { response }
    }

    fn event(&self, parts: &Parts, peer: IpAddr) -> serde_json::Result<ApiGatewayV2httpRequest> {
        let now = SystemClock.now();
        let id =
            format!("{:x}-{:x}", now.as_millis(), self.requests.fetch_add(1, Ordering::Relaxed));
        event::event(parts, peer, now, &id)
    }

    /// Checks a request's token if the route needs one, and reads the body.
    async fn body(
        &self,
        event: &ApiGatewayV2httpRequest,
        access: Access,
        body: Incoming,
        time: Duration,
    ) -> anyhow::Result<BodyRead> {
        let invocation = Invocation::until(Deadline::after(TIMEOUT));
        let request = gateway::request(event.clone());
        let request = request.map_err(|problem| anyhow::anyhow!("{}", problem.detail))?;

        let body = async {
            if access == Access::Public {
                return read(body, MAX_PUBLIC_BODY, time).await;
            }
            if let Some(authorizer) = &self.authorizer {
                authorizer.authorize(&request, &invocation).await?;
            }
            read(body, MAX_BODY, time).await
        };

        Ok(match body.await {
            Ok(body) => BodyRead::Complete(body),
            Err(problem) => {
                let refusal = Dialect::refuse(&request.path, &problem);
                let answer = gateway::response(refusal.finish(&request, &invocation));
                BodyRead::Refused(Box::new(answer))
            }
        })
    }
}

/// The outcome of reading a request's body.
enum BodyRead {
    Complete(Vec<u8>),
    /// The answer to a request that is refused before a function gets it.
    Refused(Box<ApiGatewayV2httpResponse>),
}

/// Returns the access that the request's route needs, if the route takes a body. Bodies of other routes are left
/// unread.
fn access_with_body(parts: &Parts) -> Option<Access> {
    let (route, _) = endpoints::find_path(parts.method.as_str(), parts.uri.path()).ok()?;
    matches!(route.method, "POST" | "PUT" | "PATCH").then_some(route.access)
}

/// Reads a body of at most `most` bytes within `time`.
async fn read(body: Incoming, most: usize, time: Duration) -> Result<Vec<u8>, Problem> {
    let too_long = || {
        let detail = format!(
            "The body is longer than {most} bytes. Send fewer readings at a time, or gzip."
        );
        Problem::new(ProblemKind::TooLarge, detail)
    };

    if body.size_hint().lower() > most as u64 {
        return Err(too_long());
    }

    match tokio::time::timeout(time, Limited::new(body, most).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes().into()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_long()),
        Ok(Err(_)) => Err(Problem::new(ProblemKind::BadRequest, "The body is cut short.")),
        Err(_) => {
            let detail = format!("The body did not arrive within {} seconds.", time.as_secs());
            Err(Problem::new(ProblemKind::BadRequest, detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use domain::Scope;
    use dynamodb::DynamoStore;
    use runtime::auth::Auth;
    use runtime::telemetry::Telemetry;
    use table::layout::Layout;
    use table::{AddToken as _, given};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;
    use crate::engine::Engine;
    use crate::{Data, Options};
    use rollups::RollupDelay;

    /// Sends the head of a request. Returns the answer if it comes before the body.
    async fn answer_to_head(
        gateway: SocketAddr,
        path: &str,
        token: &str,
        length: usize,
    ) -> Option<String> {
        let mut stream = TcpStream::connect(gateway).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\
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
        let engine = Engine::start(&Data::Memory, None).unwrap();
        let store = DynamoStore::connect(&engine.store_config(), Layout::default());
        let options = Options::default();
        let rollup_delay = RollupDelay::default();
        let functions = Functions::start(&store, &options, rollup_delay, Auth::On, None).await;
        let token = given::token("t", Scope::Admin);
        let invocation = Invocation::until(Deadline::after(TIMEOUT));
        store.add_token(&token, &invocation).await.unwrap();

        let listener = listen(Ipv4Addr::LOCALHOST.into(), 0, "--port").await.unwrap();
        let address = listener.local_addr().unwrap();
        let authorizer = Authorizer::new(store, Telemetry::silent());
        let gateway = Gateway::new(functions, Some(Arc::new(authorizer)), Host::Both);
        let limits = ConnectionLimits { body: Duration::from_millis(300), ..ConnectionLimits::OWN };
        let stop = watch::Sender::new(false);
        let serving = tokio::spawn(serve(listener, gateway, limits, stop.subscribe()));

        for (path, token, length, status, text) in [
            ("/readings", "unknown", MAX_BODY, 401, "urn:roomtide:problem:unauthorized"),
            ("/readings", "unknown", MAX_BODY + 1, 401, "urn:roomtide:problem:unauthorized"),
            ("/readings", "t", MAX_BODY + 1, 413, "urn:roomtide:problem:too-large"),
            ("/readings", "t", MAX_BODY, 400, "did not arrive"),
            // The link of a message permits this, so its body is read, but no long one.
            ("/acknowledge", "unknown", MAX_PUBLIC_BODY + 1, 413, "longer than 4096 bytes"),
            ("/acknowledge", "unknown", MAX_PUBLIC_BODY, 400, "did not arrive"),
        ] {
            let answer = answer_to_head(address, path, &given::secret(token), length)
                .await
                .expect("it is answered");
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{token}: {answer}");
            assert!(answer.contains(text), "{token}: {answer}");
        }

        stop.send_replace(true);
        serving.await.unwrap();
        engine.stop().unwrap();
    }

    #[tokio::test]
    async fn a_port_in_use_is_named() {
        let host = Ipv4Addr::LOCALHOST.into();
        let first = listen(host, 0, "--port").await.unwrap();
        let port = first.local_addr().unwrap().port();
        let error = listen(host, port, "--ingest-port").await.unwrap_err().to_string();
        assert!(error.contains(&port.to_string()) && error.contains("--ingest-port"), "{error}");
    }
}
