//! Stores readings: `POST /readings` and IoT Core rule messages. Reads nothing but the registry.
//!
//! The way of a reading: `body` takes the request apart, `reading` says what each part means,
//! [`Ingest`] stores the good ones and names the bad ones, then registers devices and rooms that it
//! has not met before. Whatever it cannot register the stream function will.

mod body;
mod event;
mod reading;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::TimeDelta;
use futures_util::{StreamExt as _, stream};
use shared::access::{Gate, forbidden};
use shared::clock::{Clock, Deadline};
use shared::config::Config;
use shared::domain::{DeviceId, Instant, Reading, Room, RoomId, Sighting};
use shared::http::routes::{self, Function};
use shared::http::{FieldError, Params, Problem, ProblemKind, Request, Response, gateway, inflate};
use shared::registry_cache::{RegistryCache, Snapshot};
use shared::store::{
    Budget, FindToken, Position, PutReadings, ReadRegistry, Register, Registration, StoreError,
};
use shared::telemetry::{Telemetry, WideEvent};

use reading::Sender;

pub use event::{Event, Message, Receipt, Reply};

/// What may be set from outside.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How old the cached registry may grow.
    pub registry_max_age: Duration,
    /// After how many days a reading is deleted; never without.
    pub retention_days: Option<u32>,
    /// Whether requests need an access token.
    pub auth: bool,
}

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        Self {
            registry_max_age: config.registry_max_age,
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
    gate: Gate<C>,
    clock: C,
    telemetry: Telemetry,
    retention: Option<TimeDelta>,
    /// The latest instant, in milliseconds, that was given to a reading without one.
    last_arrival: AtomicI64,
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
/// How many devices and rooms are registered at once.
const REGISTERING: usize = 8;
/// How many new devices, and how many new rooms, a request registers; the stream registers the rest.
const REGISTERED_AT_ONCE: usize = 500;

/// What became of the readings of one request.
#[derive(Debug, Default)]
struct Outcome {
    accepted: usize,
    rejected: Vec<FieldError>,
    not_stored: Vec<usize>,
    cause: Option<StoreError>,
    /// Whether the holder of a token tried to write for a device that is not theirs; then nothing is stored.
    foreign: bool,
}

impl<S: PutReadings + ReadRegistry + Register + FindToken, C: Clock> Ingest<S, C> {
    /// The function on a table.
    #[must_use]
    pub fn new(store: S, clock: C, telemetry: Telemetry, settings: Settings) -> Self {
        Self {
            store,
            registry: RegistryCache::new(settings.registry_max_age, clock.clone()),
            gate: Gate::new(settings.auth, clock.clone()),
            clock,
            telemetry,
            retention: settings.retention_days.map(|days| TimeDelta::days(days.into())),
            last_arrival: AtomicI64::new(0),
        }
    }

    /// Reads the registry, at cold start. Where that fails the first request tries again.
    pub async fn load(&self) {
        let mut log = WideEvent::begin("ingest.load");
        let budget = Budget::until(Deadline::after(COLD_START));
        match self.registry.snapshot(&self.store, &budget).await {
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
    /// An HTTP request always has an answer. An IoT rule does not wait for one, so where readings are
    /// not stored the invocation fails and is repeated; storing a reading twice changes nothing.
    pub async fn handle(&self, event: Event, deadline: Deadline) -> Result<Reply, Failure> {
        let budget = Budget::until(deadline);
        let mut log = WideEvent::begin("ingest");
        let reply = match event {
            Event::Http(event) => {
                let response = match gateway::request(*event) {
                    Ok(request) => {
                        log.set("http.request_id", request.id.as_str());
                        log.set("http.body_bytes", request.body.len());
                        self.answer(&request, &budget, &mut log).await.finish(&request, &budget)
                    }
                    Err(problem) => problem.respond(),
                };
                log.set("http.status", response.status);
                Ok(Reply::Http(Box::new(gateway::response(response))))
            }
            Event::Iot(message) => {
                let outcome = self.store_message(&message, &budget, &mut log).await;
                match outcome.cause {
                    Some(cause) => Err(Failure { not_stored: outcome.not_stored.len(), cause }),
                    None => Ok(Reply::Iot(Receipt::new(outcome.accepted, outcome.rejected))),
                }
            }
        };
        log.set("table.read_units", budget.read_units());
        log.set("table.write_units", budget.write_units());
        log.emit(&self.telemetry, &self.clock);
        reply
    }

    async fn answer(&self, request: &Request, budget: &Budget, log: &mut WideEvent) -> Response {
        let stored = async {
            let (route, _) = routes::find(request)?;
            if route.function != Function::Ingest {
                let detail = format!("{} {} is not answered here.", route.method, route.path);
                return Err(Problem::new(ProblemKind::NotFound, detail));
            }
            let permit = self.gate.admit(request, &self.store, budget, log).await?;
            let sender = permit.write()?.map_or(Sender::Anyone, Sender::Holder);
            Params::of(request, route.operation.parameters())?;
            let text = request.json_body()?;
            let content_type = request.header("content-type").unwrap_or_default();
            let entries = body::parse(&text, content_type)?;
            let outcome = self.store_entries(entries, sender, budget, log).await;
            refuse_foreign(outcome)
        };
        match stored.await {
            Ok(outcome) => respond(outcome),
            Err(problem) => problem.respond(),
        }
    }

    async fn store_message(
        &self,
        message: &Message,
        budget: &Budget,
        log: &mut WideEvent,
    ) -> Outcome {
        let stored = async {
            let device = message.device_id.parse::<DeviceId>();
            let device = device.map_err(|why| Problem::field("device_id", why.to_string()))?;
            let text = inflate(&message.payload)?;
            let entries = body::parse(&text, "")?;
            Ok::<_, Problem>(self.store_entries(entries, Sender::Topic(&device), budget, log).await)
        };
        match stored.await {
            Ok(outcome) => outcome,
            Err(problem) => {
                log.count("readings.rejected", 1);
                let whole = FieldError { index: None, field: None, message: problem.detail };
                let rejected = if problem.errors.is_empty() { vec![whole] } else { problem.errors };
                Outcome { rejected, ..Outcome::default() }
            }
        }
    }

    async fn store_entries(
        &self,
        entries: Vec<body::Entry<'_>>,
        sender: Sender<'_>,
        budget: &Budget,
        log: &mut WideEvent,
    ) -> Outcome {
        let (mut sorted, rejected) = sort(entries, sender, self.arrival());
        self.last_arrival.fetch_max(sorted.last_arrival, Ordering::Relaxed);
        let mut outcome = Outcome { rejected, ..Outcome::default() };
        log.count("readings.rejected", outcome.rejected.len());
        outcome.foreign = sorted.foreign && matches!(sender, Sender::Holder(_));
        if sorted.readings.is_empty() || outcome.foreign {
            return outcome;
        }
        let snapshot = match self.registry.snapshot(&self.store, budget).await {
            Ok((snapshot, stale)) => {
                if let Some(error) = stale {
                    log.warn("registry.error", &error);
                }
                snapshot
            }
            // Without the registry a reading's room is not known, and a reading is written once.
            Err(error) => {
                log.error("registry.error", &error);
                outcome.not_stored = sorted.origins.into_iter().flatten().collect();
                outcome.not_stored.sort_unstable();
                outcome.cause = Some(error);
                return outcome;
            }
        };
        for reading in &mut sorted.readings {
            if reading.room.is_none() {
                let known = snapshot.devices.get(&reading.device);
                reading.room = known.and_then(|device| device.room.clone());
            }
        }

        let put = self.store.put_readings(&sorted.readings, self.retention, budget).await;
        let mut stored = vec![true; sorted.readings.len()];
        put.unstored.iter().for_each(|n| stored[*n] = false);
        for (origins, stored) in sorted.origins.into_iter().zip(&stored) {
            if *stored {
                outcome.accepted += origins.len();
            } else {
                outcome.not_stored.extend(origins);
            }
        }
        outcome.not_stored.sort_unstable();
        if let Some(cause) = &put.cause {
            log.error("table.error", cause);
        }
        outcome.cause = put.cause;
        log.count("readings.accepted", outcome.accepted);
        log.count("readings.not_stored", outcome.not_stored.len());

        let stored = sorted.readings.iter().zip(&stored).filter(|(_, stored)| **stored);
        self.register(&snapshot, stored.map(|(reading, _)| reading), budget, log).await;
        outcome
    }

    /// The instant of arrival of what has none of its own: never the same twice, because the same device
    /// and instant again would replace what is stored already.
    fn arrival(&self) -> Instant {
        let mut arrival = self.clock.now();
        let later = |last: i64| {
            let after = Instant::from_millis(last + 1).unwrap_or(Instant::MAX);
            arrival = arrival.max(after);
            Some(arrival.as_millis())
        };
        let _ = self.last_arrival.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
        arrival
    }

    /// Registers whatever the snapshot does not know. Done twice, or by many at once, it leaves the
    /// item of whoever came first; a failure is left to the stream function.
    async fn register(
        &self,
        snapshot: &Snapshot,
        readings: impl Iterator<Item = &Reading>,
        budget: &Budget,
        log: &mut WideEvent,
    ) {
        let mut devices: BTreeMap<&DeviceId, Sighting> = BTreeMap::new();
        let mut rooms: BTreeMap<&RoomId, Instant> = BTreeMap::new();
        for reading in readings {
            if !snapshot.devices.contains_key(&reading.device) {
                devices
                    .entry(&reading.device)
                    .and_modify(|sighting| sighting.see(reading))
                    .or_insert_with(|| Sighting::of(reading));
            }
            if let Some(room) =
                reading.room.as_ref().filter(|room| !snapshot.rooms.contains_key(room))
            {
                let first = rooms.entry(room).or_insert(reading.at);
                *first = (*first).min(reading.at);
            }
        }
        if devices.is_empty() && rooms.is_empty() {
            return;
        }
        log.set("registry.new_devices", devices.len());
        log.set("registry.new_rooms", rooms.len());
        let devices = devices.into_iter().take(REGISTERED_AT_ONCE);
        let devices: Vec<_> = devices.map(|(id, sighting)| sighting.register(id.clone())).collect();
        let devices = devices.into_iter().map(|device| async move {
            match self.store.register_device(&device, budget).await? {
                Registration::New => self.registry.keep_device(device),
                Registration::Known(known) => self.registry.keep_device(known),
            }
            Ok(())
        });
        let rooms = rooms.into_iter().take(REGISTERED_AT_ONCE);
        let rooms: Vec<_> = rooms.map(|(id, at)| (id.clone(), at)).collect();
        let rooms = rooms.into_iter().map(|(id, first_seen)| async move {
            let room = Room { id, name: None, first_seen };
            match self.store.register_room(&room, budget).await? {
                Registration::New => self.registry.keep_room(room),
                Registration::Known(known) => self.registry.keep_room(known),
            }
            Ok(())
        });
        let results: Vec<Result<(), StoreError>> =
            stream::iter(devices.collect::<Vec<_>>()).buffer_unordered(REGISTERING).collect().await;
        let more: Vec<Result<(), StoreError>> =
            stream::iter(rooms.collect::<Vec<_>>()).buffer_unordered(REGISTERING).collect().await;
        if let Some(error) = results.into_iter().chain(more).find_map(Result::err) {
            log.warn("registry.error", &error);
        }
    }
}

/// The reading that one JSON object says, received at `now`: what `POST /readings` would make of it.
pub fn read_reading(json: &str, now: Instant) -> Result<Reading, FieldError> {
    body::entry(json)
        .map_err(reading::Refusal::whole)
        .and_then(|members| reading::read(members, Sender::Anyone, now))
        .map_err(|reading::Refusal { field, message, .. }| FieldError {
            index: None,
            field,
            message,
        })
}

/// Readings that can be stored, no two of the same device and instant, and where each came from.
#[derive(Debug, Default)]
struct Sorted {
    readings: Vec<Reading>,
    /// For each reading the places in the request that it was made of.
    origins: Vec<Vec<usize>>,
    /// Whether a reading was of a device that is not the sender's.
    foreign: bool,
    /// The latest instant, in milliseconds, that was given to a reading without one.
    last_arrival: i64,
}

fn sort(
    entries: Vec<body::Entry<'_>>,
    sender: Sender<'_>,
    now: Instant,
) -> (Sorted, Vec<FieldError>) {
    let mut sorted = Sorted::default();
    let mut rejected = Vec::new();
    let mut places: HashMap<Position, usize> = HashMap::new();
    // Where each device's readings without an instant have come to.
    let mut arrivals: HashMap<DeviceId, Instant> = HashMap::new();
    for (index, entry) in entries.into_iter().enumerate() {
        let has_instant = entry.as_ref().is_ok_and(|members| members.has_non_null("timestamp"));
        let taken = entry
            .map_err(reading::Refusal::whole)
            .and_then(|members| reading::read(members, sender, now))
            .map(|mut reading| {
                if has_instant {
                    return reading;
                }
                // Without instants of their own, two temperatures are two readings: none is lost.
                let arrival = arrivals.entry(reading.device.clone()).or_insert(now);
                reading.at = *arrival;
                while places
                    .get(&Position::of(&reading))
                    .is_some_and(|place| sorted.readings[*place].shares_a_metric_with(&reading))
                {
                    reading.at = reading.at.saturating_add(TimeDelta::milliseconds(1));
                }
                *arrival = reading.at;
                sorted.last_arrival = sorted.last_arrival.max(reading.at.as_millis());
                reading
            })
            .and_then(|reading| match places.get(&Position::of(&reading)) {
                Some(&place) => {
                    sorted.readings[place].absorb(reading).map_err(reading::Refusal::whole)?;
                    sorted.origins[place].push(index);
                    Ok(())
                }
                None => {
                    places.insert(Position::of(&reading), sorted.readings.len());
                    sorted.readings.push(reading);
                    sorted.origins.push(vec![index]);
                    Ok(())
                }
            });
        if let Err(reading::Refusal { field, message, forbidden }) = taken {
            sorted.foreign |= forbidden;
            rejected.push(FieldError { index: Some(index), field, message });
        }
    }
    (sorted, rejected)
}

/// Nothing of a request is stored that reaches for another's device.
fn refuse_foreign(outcome: Outcome) -> Result<Outcome, Problem> {
    if !outcome.foreign {
        return Ok(outcome);
    }
    let detail = "The token may not write for every device named here; nothing is stored.";
    Err(Problem { errors: outcome.rejected, ..forbidden(detail) })
}

/// 201 all stored, 207 some refused, 400 none valid, 429 or 503 not all stored.
fn respond(outcome: Outcome) -> Response {
    let Outcome { accepted, rejected, not_stored, cause, .. } = outcome;
    if let Some(cause) = cause {
        let detail = format!(
            "{accepted} readings are stored, {} are not; send those again, or all: nothing is stored twice.",
            not_stored.len()
        );
        let problem = Problem { detail, errors: rejected, not_stored, ..Problem::from(&cause) };
        return problem.respond();
    }
    if accepted == 0 {
        let detail = format!("None of the {} readings is valid.", rejected.len());
        let problem = Problem { errors: rejected, ..Problem::new(ProblemKind::BadRequest, detail) };
        return problem.respond();
    }
    let status = if rejected.is_empty() { 201 } else { 207 };
    Response::json(status, &Receipt::new(accepted, rejected))
}
