//! Answers lists, ranges and latest values, and edits the registry. Stores no reading.

mod cursor;
mod edit;
mod format;
mod latest;
mod openapi;
mod ranges;
mod registry;
mod rows;
mod sheet;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use api::routes::{self, Operation};
use api::{Params, Problem, ProblemKind, Request, Response, gateway};
use aws_lambda_events::event::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use runtime::authentication::Authenticator;
use runtime::clock::{Clock, Deadline};
use runtime::config::Config;
use runtime::panic::catching;
use runtime::registry_cache::{RegistryCache, Snapshot};
use runtime::telemetry::{Telemetry, WideEvent};
use serde_json::json;
use table::{
    EditRegistry, FindToken, Invocation, LookUpRegistry, QueryReadings, QueryRoomReadings,
    ReadRegistry, StoreError,
};

/// What may be set from outside.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How old the cached registry may grow.
    pub registry_max_age: Duration,
    /// Whether requests need an access token.
    pub auth: bool,
}

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        Self { registry_max_age: config.registry_max_age, auth: config.auth }
    }
}

/// The function.
#[derive(Debug)]
pub struct Query<S, C> {
    store: S,
    registry: RegistryCache<C>,
    authenticator: Authenticator<C>,
    clock: C,
    telemetry: Telemetry,
}

/// One invocation.
struct Call<'a> {
    request: &'a Request,
    invocation: &'a Invocation,
    log: &'a mut WideEvent,
}

impl Call<'_> {
    /// The problem that the client sees; the log gets the whole chain of causes.
    fn failed(&mut self, error: &StoreError) -> Problem {
        self.log.error("table.error", error);
        error.into()
    }
}

/// How long the registry may take at cold start, before the first request is there.
const COLD_START: Duration = Duration::from_secs(5);

table::store! {
    /// What the function asks of the table.
    pub trait Store: ReadRegistry + LookUpRegistry + QueryReadings + QueryRoomReadings + EditRegistry
        + FindToken
}

impl<S: Store, C: Clock> Query<S, C> {
    /// The function on a table.
    #[must_use]
    pub fn new(store: S, clock: C, telemetry: Telemetry, settings: Settings) -> Self {
        let registry = RegistryCache::new(settings.registry_max_age, clock.clone());
        let authenticator = Authenticator::new(settings.auth, clock.clone());
        Self { store, registry, authenticator, clock, telemetry }
    }

    /// Reads the registry, at cold start. Where that fails the first request tries again.
    pub async fn load(&self) {
        let mut log = WideEvent::begin("query.load");
        let invocation = Invocation::until(Deadline::after(COLD_START));
        if let Err(error) = self.registry.snapshot(&self.store, &invocation).await {
            log.warn("registry.error", &error);
        }
        log.emit(&self.telemetry, &self.clock);
    }

    /// Answers a request. There is always an answer, also where the code panics.
    pub async fn handle(
        &self,
        event: ApiGatewayV2httpRequest,
        deadline: Deadline,
    ) -> ApiGatewayV2httpResponse {
        let invocation = Invocation::until(deadline);
        let mut log = WideEvent::begin("query");
        let response = match gateway::request(event) {
            Ok(request) => {
                log.set("http.request_id", request.id.as_str());
                let mut call = Call { request: &request, invocation: &invocation, log: &mut log };
                let answered = catching(self.answer(&mut call)).await;
                let answered = answered.unwrap_or_else(|panic| {
                    log.error("panic", &panic);
                    Err(Problem::new(ProblemKind::Internal, "A mistake of ours; it is logged."))
                });
                let response = answered.unwrap_or_else(|problem| problem.respond());
                response.finish(&request, &invocation)
            }
            Err(problem) => problem.respond(),
        };
        log.set("http.status", response.status);
        log.set("http.answer_bytes", response.body.len());
        log.set("table.read_units", invocation.read_units());
        log.set("table.write_units", invocation.write_units());
        log.emit(&self.telemetry, &self.clock);
        gateway::response(response)
    }

    async fn answer(&self, call: &mut Call<'_>) -> Result<Response, Problem> {
        let (route, id) = routes::find(call.request)?;
        call.log.set("http.route", format!("{} {}", call.request.method, route.path));
        if route.operation != Operation::Health {
            let grant = self
                .authenticator
                .authenticate(call.request, &self.store, call.invocation, call.log)
                .await?;
            match route.operation {
                Operation::EditDevice | Operation::EditRoom => grant.edit()?,
                _ => grant.read()?,
            }
        }
        let params = &Params::of(call.request, route.operation.parameters())?;
        match route.operation {
            Operation::ListDevices => self.list_devices(call, params, None).await,
            Operation::ShowDevice => self.show_device(call, &id).await,
            Operation::EditDevice => self.edit_device(call, &id).await,
            Operation::DeviceReadings => self.device_readings(call, params, &id).await,
            Operation::DeviceLatest => self.device_latest(call, &id).await,
            Operation::ListRooms => self.list_rooms(call, params).await,
            Operation::ShowRoom => self.show_room(call, &id).await,
            Operation::EditRoom => self.edit_room(call, &id).await,
            Operation::RoomDevices => self.list_devices(call, params, Some(&id)).await,
            Operation::RoomReadings => self.room_readings(call, params, &id).await,
            Operation::RoomLatest => self.room_latest(call, params, &id).await,
            Operation::Health => Ok(Response::json(200, &json!({"status": "ok"}))),
            Operation::OpenApi => Ok(Response::json(200, &openapi::document())),
            Operation::PostReadings => {
                let detail = format!("{} {} is not answered here.", route.method, route.path);
                Err(Problem::new(ProblemKind::NotFound, detail))
            }
        }
    }

    /// The registry, at most as old as allowed.
    async fn snapshot(&self, call: &mut Call<'_>) -> Result<Arc<Snapshot>, Problem> {
        match self.registry.snapshot(&self.store, call.invocation).await {
            Ok((snapshot, stale)) => {
                if let Some(error) = stale {
                    call.log.warn("registry.error", &error);
                }
                if !snapshot.unreadable.is_empty() {
                    call.log.set("registry.unreadable", snapshot.unreadable.clone());
                }
                Ok(snapshot)
            }
            Err(error) => Err(call.failed(&error)),
        }
    }
}
