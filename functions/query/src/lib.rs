//! Answers lists, ranges, latest values, series and energy; edits the registry, annotations and alerts; makes tokens;
//! serves the web page. Stores no reading.
//!
//! The token and the parameters of a call are already checked. The table of endpoints names the handler of each
//! operation; `mcp` calls the same handlers.

mod alerts;
mod annotations;
mod answer;
mod conditions_schema;
mod failure;
mod health;
mod influxql;
mod mcp;
mod ports;
mod readings;
mod recheck;
mod registry;
mod saved;
#[cfg(feature = "schema")]
pub mod schemas;
mod series;
mod settings;
mod shared_state;
mod sources;
mod tariffs;
#[cfg(test)]
mod tests;
mod tokens;
mod web;

use std::pin::Pin;
use std::sync::Arc;

use api::endpoints::{Function, Operation};
use api::{Problem, Response};
use aws_lambda_events::event::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use runtime::clock::{Clock, Deadline};
use runtime::http::{Handler, HttpFunction};
use runtime::invoke::InvokeFunction;
use runtime::telemetry::Telemetry;

use crate::series::QueryScope;
use shared_state::{Call, FetchingFunction, SharedState};

pub use ports::Store;
pub use registry::patch::MAX_PATCHED_ATTRIBUTES;
pub use settings::Settings;

use crate::alerts::{acknowledge, channels, history, pause, preview, rules};
use readings::{latest, ranges, remove};
use registry::{deletion, edit, homes, lists, search, stays};
use sources::{edit as sources_edit, trial as sources_trial};

/// The `query` function.
#[derive(Debug)]
pub struct Query<S, C> {
    http: HttpFunction<C>,
    store: S,
    shared: SharedState,
    telemetry: Telemetry,
}

impl<S: Store, C: Clock> Query<S, C> {
    /// Makes the function on a table.
    pub fn new(store: S, clock: C, telemetry: Telemetry, settings: Settings) -> Self {
        let http =
            HttpFunction::new(Function::Query, settings.auth, clock.clone(), telemetry.clone())
                .with_max_units(settings.max_units);
        Self { http, store, shared: SharedState::new(clock, settings), telemetry }
    }

    /// Sets the function that tests sources.
    #[must_use]
    pub fn with_fetching(mut self, fetching: impl InvokeFunction + 'static) -> Self {
        self.shared.fetching = FetchingFunction(Arc::new(fetching));
        self
    }

    /// Reads the registry at cold start. If this fails, the first request tries again. If no device has anything to
    /// index, marks the search index as complete.
    pub async fn load(&self) {
        let Self { store, shared, telemetry, .. } = self;
        shared.registry.load(store, "query.load", telemetry).await;
        Box::pin(search::mark_indexed(shared, store, telemetry)).await;
    }

    /// Answers a request, even if the code panics.
    pub async fn handle(
        &self,
        event: ApiGatewayV2httpRequest,
        deadline: Deadline,
    ) -> ApiGatewayV2httpResponse {
        self.http.handle(event, deadline, &self.store, &self.shared).await
    }
}

impl<S: Store> Handler<S> for SharedState {
    async fn answer(mut call: Call<'_, S>) -> Result<Response, Problem> {
        dispatch(&mut call).await
    }
}

/// The answer of an operation that reads no table.
fn answer_at_once<S>(call: &Call<'_, S>) -> Result<Response, Problem> {
    match call.endpoint.operation {
        Operation::OpenApi => Ok(Response::new(200, "application/json", OPENAPI)),
        Operation::InfluxPing => Ok(influxdb::ping(call.request)),
        Operation::InfluxReady => Ok(influxdb::ready(call.shared.clock.now())),
        Operation::InfluxBuckets => Ok(influxdb::buckets(call.request)),
        Operation::InfluxOrgs => Ok(influxdb::orgs(call.request)),
        Operation::InfluxFlux => Ok(influxdb::flux()),
        Operation::WebPage => Ok(call.shared.page.answer(call.request)),
        Operation::WebFile => web::asset(call.request, &call.id),
        _ => unreachable!("the table of endpoints gives this operation to ingest"),
    }
}

// Calls the handler that the table of endpoints (`api::endpoints`) names for the operation, for HTTP and MCP alike. A
// row of the table begins as `Query DeviceSeries = series::series(Device): ...`: `Device` is the `QueryScope`.
macro_rules! dispatch {
    ($({ $function:ident $operation:ident $(= $($handler:ident)::+ $(($scope:ident))?)?: $($rest:tt)* })*) => {
        /// Answers a call. The future is on the heap: `mcp` dispatches further calls from inside a call, and a debug
        /// build would keep the futures of all handlers on the stack at once.
        fn dispatch<'a, S: Store>(call: &'a mut Call<'_, S>) -> Answer<'a> {
            match call.endpoint.operation {
                $($(Operation::$operation => {
                    Box::pin($($handler)::+($(QueryScope::$scope,)? call))
                })?)*
                _ => Box::pin(std::future::ready(answer_at_once(call))),
            }
        }
    };
}

api::endpoints!(dispatch);

/// The API as an `OpenAPI` 3.1 document, which `tests/documents/openapi.rs` makes from the endpoints and the types of
/// answers.
const OPENAPI: &str = include_str!("../openapi.json");

/// The future of a handler.
type Answer<'a> = Pin<Box<dyn Future<Output = Result<Response, Problem>> + Send + 'a>>;
