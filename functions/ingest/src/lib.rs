//! Stores readings: `POST /readings` and IoT Core rule messages. Reads nothing but the registry.
//!
//! The way of a reading: `body` takes the request apart, `reading` says what each part means,
//! `assemble` makes readings of the good ones and names the bad ones, `store` looks up what the registry
//! knows, writes them, and registers devices and rooms that were not met before. Whatever cannot be
//! registered the stream function will.

mod assemble;
mod body;
mod event;
mod reading;
mod reply;
mod store;
#[cfg(test)]
mod tests;

use std::time::Duration;

use api::routes::{self, Function};
use api::{FieldError, Params, Problem, ProblemKind, Request, Response, gateway, inflate};
use chrono::TimeDelta;
use domain::{DeviceId, Reading, Timestamp, excerpt};
use runtime::authentication::Authenticator;
use runtime::clock::{Clock, Deadline};
use runtime::config::{Config, EARLIEST_TIMESTAMP};
use runtime::panic::catching;
use runtime::registry_cache::RegistryCache;
use runtime::telemetry::{Telemetry, WideEvent};
use sha2::{Digest as _, Sha256};
use table::{
    AddArrival, FindRegistry, FindToken, Invocation, MergeReadings, PutReadings, ReadRegistry,
    RegisterDevices, StoreError,
};

use assemble::assemble;
use reading::{Sender, Times};
use reply::Outcome;
use store::Mode;

pub use event::{Event, Message, Receipt, Reply};

/// What may be set from outside.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How old the cached registry may grow.
    pub registry_max_age: Duration,
    /// Readings before it are refused: their clocks were never set.
    pub earliest_timestamp: Timestamp,
    /// After how many days a reading is deleted; never without.
    pub retention_days: Option<u32>,
    /// Whether requests need an access token.
    pub auth: bool,
}

impl Default for Settings {
    /// What a deployed function has where its environment says nothing else.
    fn default() -> Self {
        Self {
            registry_max_age: Duration::from_secs(60),
            earliest_timestamp: earliest_timestamp(),
            retention_days: None,
            auth: true,
        }
    }
}

fn earliest_timestamp() -> Timestamp {
    Timestamp::parse_absolute(EARLIEST_TIMESTAMP).expect("it is a timestamp")
}

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        Self {
            registry_max_age: config.registry_max_age,
            earliest_timestamp: config.earliest_timestamp,
            retention_days: config.retention_days,
            auth: config.auth,
        }
    }
}

/// The function.
#[derive(Debug)]
pub struct Ingest<S, C> {
    store: S,
    registry: RegistryCache<C>,
    authenticator: Authenticator<C>,
    clock: C,
    telemetry: Telemetry,
    settings: Settings,
}

/// Why an invocation that nobody waits for should be repeated: not everything is stored.
#[derive(Debug, thiserror::Error)]
#[error("{not_stored} readings are not stored")]
pub struct Failure {
    not_stored: usize,
    #[source]
    cause: StoreError,
}

/// How long the registry may take at cold start, before the first request is there.
const COLD_START: Duration = Duration::from_secs(5);

table::store! {
    /// What the function asks of the table.
    pub trait Store: PutReadings + MergeReadings + AddArrival + ReadRegistry + FindRegistry
        + RegisterDevices + FindToken
}

impl<S: Store, C: Clock> Ingest<S, C> {
    /// The function on a table.
    #[must_use]
    pub fn new(store: S, clock: C, telemetry: Telemetry, settings: Settings) -> Self {
        Self {
            store,
            registry: RegistryCache::new(settings.registry_max_age, clock.clone()),
            authenticator: Authenticator::new(settings.auth, clock.clone()),
            clock,
            telemetry,
            settings,
        }
    }

    /// Reads the registry, at cold start. Where that fails the first request tries again.
    pub async fn load(&self) {
        let mut log = WideEvent::begin("ingest.load");
        let invocation = Invocation::until(Deadline::after(COLD_START));
        match self.registry.snapshot(&self.store, &invocation).await {
            Ok((snapshot, _)) => {
                log.set("registry.devices", snapshot.devices.len());
                log.set("registry.rooms", snapshot.rooms.len());
            }
            Err(error) => log.warn("registry.error", &error),
        }
        log.emit(&self.telemetry, &self.clock);
    }

    /// Stores the readings of an event.
    ///
    /// An HTTP request always has an answer, even where the code panics. An IoT rule does not wait for
    /// one, so where readings are not stored the invocation fails and is repeated; storing a reading
    /// twice changes nothing.
    pub async fn handle(&self, event: Event, deadline: Deadline) -> Result<Reply, Failure> {
        let invocation = Invocation::until(deadline);
        let mut log = WideEvent::begin("ingest");
        let reply = match event {
            Event::Http(event) => {
                let response = match gateway::request(*event) {
                    Ok(request) => {
                        log.set("http.request_id", request.id.as_str());
                        log.set("http.body_bytes", request.body.len());
                        let answer = catching(self.answer(&request, &invocation, &mut log)).await;
                        let answer = answer.unwrap_or_else(|panic| {
                            log.error("panic", &panic);
                            Problem::panicked().respond()
                        });
                        answer.finish(&request, &invocation)
                    }
                    Err(problem) => problem.respond(),
                };
                log.set("http.status", response.status);
                Ok(Reply::Http(Box::new(gateway::response(response))))
            }
            Event::Iot(message) => {
                let outcome = self.take_message(&message, &invocation, &mut log).await;
                match outcome.cause {
                    Some(cause) => Err(Failure { not_stored: outcome.not_stored.len(), cause }),
                    None => Ok(Reply::Iot(Receipt::new(outcome.accepted, outcome.rejected))),
                }
            }
        };
        log.set("table.read_units", invocation.read_units());
        log.set("table.write_units", invocation.write_units());
        log.emit(&self.telemetry, &self.clock);
        reply
    }

    async fn answer(
        &self,
        request: &Request,
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> Response {
        match self.take_request(request, invocation, log).await {
            Ok(outcome) => outcome.respond(),
            Err(problem) => problem.respond(),
        }
    }

    async fn take_request(
        &self,
        request: &Request,
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> Result<Outcome, Problem> {
        let (route, _) = routes::find(request)?;
        if route.function != Function::Ingest {
            let detail = format!("{} {} is not answered here.", route.method, route.path);
            return Err(Problem::new(ProblemKind::NotFound, detail));
        }
        let grant = self.authenticator.authenticate(request, &self.store, invocation, log).await?;
        let sender = grant.write()?.map_or(Sender::Anyone, Sender::Holder);
        let mode = read_mode(&Params::of(request, route.operation.parameters())?)?;
        let text = request.json_body()?;
        let content_type = request.header("content-type").unwrap_or_default();
        let entries = body::parse(&text, content_type)?;
        let arrived = request.arrived.unwrap_or_else(|| self.clock.now());
        let assembled = assemble(entries, sender, &self.times(arrived));
        if assembled.foreign {
            log.count("readings.rejected", assembled.rejected.len());
            return Err(reply::foreign(assembled.rejected));
        }
        // The gateway's id makes a repeated event the same arrival.
        let arrival = request.arrival.clone();
        let arrival = arrival.unwrap_or_else(|| format!("{:032x}", fastrand::u128(..)));
        Ok(self.store(assembled, mode, &arrival, invocation, log).await)
    }

    async fn take_message(
        &self,
        message: &Message,
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> Outcome {
        let assembled = || {
            let device = message.device_id.parse::<DeviceId>();
            let device = device.map_err(|why| Problem::field("device_id", why.to_string()))?;
            let arrived = Timestamp::from_millis(message.timestamp);
            let arrived = arrived.map_err(|why| Problem::field("timestamp", why.to_string()))?;
            let text = inflate(&message.payload)?;
            let entries = body::parse(&text, "")?;
            Ok::<_, Problem>(assemble(entries, Sender::Topic(&device), &self.times(arrived)))
        };
        // A repeated message is the same arrival; another one of the same millisecond is not.
        let arrival = digest(&message.payload);
        match assembled() {
            Ok(assembled) => {
                self.store(assembled, Mode::default(), &arrival, invocation, log).await
            }
            Err(problem) => {
                log.count("readings.rejected", 1);
                let whole = FieldError { index: None, field: None, message: problem.detail };
                let rejected = if problem.errors.is_empty() { vec![whole] } else { problem.errors };
                Outcome { rejected, ..Outcome::default() }
            }
        }
    }

    fn times(&self, arrived: Timestamp) -> Times {
        let Settings { earliest_timestamp: earliest, retention_days, .. } = self.settings;
        Times { arrived, earliest, retention_days }
    }

    fn retention(&self) -> Option<TimeDelta> {
        self.settings.retention_days.map(|days| TimeDelta::days(days.into()))
    }
}

/// What tells a payload from all others.
fn digest(payload: &[u8]) -> String {
    let digest = Sha256::digest(payload);
    digest[..16].iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

fn read_mode(params: &Params) -> Result<Mode, Problem> {
    let rooms_given = match params.get("rooms") {
        None => false,
        Some("given") => true,
        Some(other) => {
            let message = format!("is {:?}; expected given", excerpt(other));
            return Err(Problem::field("rooms", message));
        }
    };
    Ok(Mode { merge: params.flag("merge")?, rooms_given })
}

/// The reading that one JSON object says, received at `now`: what `POST /readings` would make of it.
pub fn read_reading(json: &str, now: Timestamp) -> Result<Reading, FieldError> {
    let times = Times { arrived: now, earliest: earliest_timestamp(), retention_days: None };
    body::entry(json)
        .map_err(reading::Refusal::whole)
        .and_then(|members| reading::read(members, Sender::Anyone, &times))
        .map(|draft| draft.reading)
        .map_err(|reading::Refusal { field, message, .. }| FieldError {
            index: None,
            field,
            message,
        })
}
