//! One HTTP invocation, from the event to the answer and the log line. Does not know the endpoints.

use api::endpoints::{self, Access, Endpoint, Function};
use api::{Dialect, Params, Problem, Request, Response, gateway, page};
use aws_lambda_events::event::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use table::{FindToken, Invocation, Session};

use crate::auth::Auth;
use crate::authentication::{Authenticator, Grant, NeededAccess};
use crate::clock::{Clock, Deadline};
use crate::config::MaxUnits;
use crate::telemetry::{Telemetry, WideEvent};
use table::panic::catching;

/// A permitted request with parsed parameters. `H` is the state that the function's handlers share.
#[derive(Debug)]
pub struct Call<'a, S, H> {
    /// The endpoint.
    pub endpoint: &'static Endpoint,
    /// The `{id}` in the path, decoded.
    pub id: String,
    /// The parameters in the query.
    pub params: Params,
    /// The permissions of the request.
    pub grant: Grant,
    /// The request itself.
    pub request: &'a Request,
    /// The table, the time that is left, and the time of day.
    pub session: Session<'a, S>,
    /// The log event of the invocation.
    pub log: &'a mut WideEvent,
    /// The state that the function's handlers share.
    pub shared: &'a H,
}

/// The shared state of a function, which answers the function's calls.
pub trait Handler<S>: Send + Sync + Sized {
    /// Answers a call to one of the function's endpoints.
    fn answer(call: Call<'_, S, Self>) -> impl Future<Output = Result<Response, Problem>> + Send;
}

/// The HTTP side of one function: everything around its handlers.
#[derive(Debug)]
pub struct HttpFunction<C> {
    function: Function,
    authenticator: Authenticator,
    clock: C,
    telemetry: Telemetry,
    max_units: Option<MaxUnits>,
}

impl<C: Clock> HttpFunction<C> {
    /// The HTTP side of `function`, whose requests need a token as `auth` says.
    pub fn new(function: Function, auth: Auth, clock: C, telemetry: Telemetry) -> Self {
        let authenticator = Authenticator::new(auth);
        Self { function, authenticator, clock, telemetry, max_units: None }
    }

    /// Adds the limits of the table's capacity to each answer, so that senders of much data can leave devices their
    /// share.
    #[must_use]
    pub fn with_max_units(self, max_units: Option<MaxUnits>) -> Self {
        Self { max_units, ..self }
    }

    /// Answers an event and logs the invocation. There is always an answer, even if the code panics.
    pub async fn handle<S: FindToken>(
        &self,
        event: ApiGatewayV2httpRequest,
        deadline: Deadline,
        store: &S,
        shared: &impl Handler<S>,
    ) -> ApiGatewayV2httpResponse {
        let invocation = match self.function {
            Function::Ingest => Invocation::for_sender(deadline),
            // A person would rather wait for a chart than see an error, so throttled requests are repeated until the
            // deadline.
            Function::Query => Invocation::until(deadline),
        };

        let mut log = WideEvent::begin(self.function.name());
        let response = match gateway::request(event) {
            Ok(request) => {
                log.set("http.request_id", request.id.as_str());
                // A client may choose `http.request_id`. The second id is the id in the gateway's own log.
                if let Some(id) = &request.arrival {
                    log.set("http.gateway_request_id", id.as_str());
                }
                log.set("http.body_bytes", request.body.len());

                let session = Session::new(store, &invocation, self.clock.now());
                let answer = self.answer(&request, session, shared, &mut log);
                let answer = catching(Box::pin(answer)).await.unwrap_or_else(|panic| {
                    log.error("panic", &panic);
                    Err(Problem::panicked())
                });
                let response = answer.unwrap_or_else(|problem| {
                    log.cause(&problem);
                    Dialect::refuse(&request.path, &problem)
                });
                response.finish(&request, &invocation)
            }
            Err(problem) => problem.respond(),
        };

        let response = match self.max_units {
            Some(MaxUnits { read, write }) => {
                response.with("x-max-read-units", read).with("x-max-write-units", write)
            }
            None => response,
        };

        log.answered(response.status);
        log.set("http.answer_bytes", response.body.len());
        log.emit(&invocation, &self.telemetry, &self.clock);
        gateway::response(response)
    }

    async fn answer<S: FindToken>(
        &self,
        request: &Request,
        session: Session<'_, S>,
        shared: &impl Handler<S>,
        log: &mut WideEvent,
    ) -> Result<Response, Problem> {
        let (endpoint, id) = endpoints::find(request, self.function)?;
        log.set("http.route", format!("{} {}", request.method, endpoint.path));
        let access = endpoint.access_of(request, self.function);
        if access == Access::Admin && endpoint.has_id() {
            log.set(endpoint.subject(), id.as_str());
        }

        // The query of this GET is a reading: no foreign page may send it, and no cache may answer it.
        let stores_by_get = access == Access::Address;
        let answer = async {
            if stores_by_get {
                page::refuse(request)?;
            }
            if access == Access::Formed {
                self.authenticator.check_form(request)?;
            }
            let needed = NeededAccess { access, place: endpoint.viewed_place(&id) };
            let grant = self.authenticator.authorize(request, needed, session, log).await?;
            let params = Params::of(request, endpoint)?;
            let call = Call { endpoint, id, params, grant, request, session, log, shared };
            Handler::answer(call).await
        };

        if !stores_by_get {
            return answer.await;
        }

        let response = answer.await.unwrap_or_else(|problem| {
            log.cause(&problem);
            problem.respond()
        });
        Ok(response.with("cache-control", "no-store"))
    }
}
