//! Stores readings: `POST /readings` and IoT Core rule messages. Queries no reading.
//!
//! The way of a reading: `request` says who sends it and in which format, `formats` reads drafts, `assemble`
//! makes readings of the good ones and names the bad ones, `store` completes them by what the registry
//! knows and writes them, `registration` registers devices and rooms that are new, `replies` answers. Whatever
//! cannot be registered the stream function will.

mod assemble;
mod draft;
mod event;
mod formats;
mod known;
mod line_points;
mod places;
mod registration;
mod replies;
mod request;
mod sender;
mod settings;
mod store;
#[cfg(test)]
mod tests;
mod times;

use api::endpoints::Function;
use api::{Problem, Response};
use runtime::clock::{Clock, Deadline};
use runtime::http::{Call, Handler, HttpFunction};
use runtime::registry::CachedRegistry;
use runtime::telemetry::{Telemetry, WideEvent};
use table::{
    AddArrival, FindRegistry, FindToken, Invocation, MergeReadings, PutReadings, ReadRegistry,
    RegisterDevices, TeachDevice,
};

use assemble::assemble;
use places::KnownPlaces;
use replies::{Outcome, native};
use request::Submission;

pub use assemble::read_reading;
pub use event::{Event, Failure, Message, Reply};
pub use replies::native::Receipt;
pub use settings::Settings;

/// The function.
#[derive(Debug)]
pub struct Ingest<S, C> {
    http: HttpFunction<C>,
    intake: Intake<S, C>,
    telemetry: Telemetry,
}

/// The way of readings into the table.
#[derive(Debug)]
struct Intake<S, C> {
    store: S,
    registry: CachedRegistry<C>,
    places: KnownPlaces<C>,
    clock: C,
    settings: Settings,
}

table::store! {
    /// The ports of the table that the function uses.
    pub trait Store: PutReadings + MergeReadings + AddArrival + ReadRegistry + FindRegistry
        + RegisterDevices + TeachDevice + FindToken
}

impl<S: Store, C: Clock> Ingest<S, C> {
    /// The function on a table.
    #[must_use]
    pub fn new(store: S, clock: C, telemetry: Telemetry, settings: Settings) -> Self {
        let registry = CachedRegistry::new(settings.registry_max_age, clock.clone());
        let places = KnownPlaces::new(settings.registry_max_age, clock.clone());
        let http =
            HttpFunction::new(Function::Ingest, settings.auth, clock.clone(), telemetry.clone());
        Self { http, intake: Intake { store, registry, places, clock, settings }, telemetry }
    }

    /// Reads the registry, at cold start. Where that fails the first request tries again.
    pub async fn load(&self) {
        let Intake { store, registry, .. } = &self.intake;
        registry.load(store, "ingest.load", &self.telemetry).await;
    }

    /// Stores the readings of an event.
    ///
    /// An HTTP request always has an answer, even where the code panics. An IoT rule does not wait for
    /// one, so where readings are not stored the invocation fails and is repeated; storing a reading
    /// twice changes nothing.
    pub async fn handle(&self, event: Event, deadline: Deadline) -> Result<Reply, Failure> {
        match event {
            Event::Http(event) => {
                let Self { http, intake, .. } = self;
                let response = http.handle(*event, deadline, &intake.store, intake).await;
                Ok(Reply::Http(Box::new(response)))
            }
            Event::Iot(message) => {
                let invocation = Invocation::until(deadline);
                let mut log = WideEvent::begin("ingest");
                // Boxed, as an HTTP request's is: nested, the future is too deep for the compiler.
                let outcome = Box::pin(self.intake.take(&message, &invocation, &mut log)).await;
                log.emit(&invocation, &self.telemetry, &self.intake.clock);
                match outcome.cause {
                    Some(cause) => Err(Failure::new(&outcome.not_stored, cause)),
                    None => Ok(Reply::Iot(Receipt::new(outcome.accepted, outcome.rejected))),
                }
            }
        }
    }
}

impl<S: Store, C: Clock> Handler for Intake<S, C> {
    /// `POST /readings`. Nothing of a request is stored that names a device of another sender.
    async fn answer(&self, call: Call<'_>) -> Result<Response, Problem> {
        let Call { request, params, grant, invocation, log, .. } = call;
        let submission = Submission::of_request(request, &params, &grant, self.clock.now())?;
        let assembled = assemble(&submission, &self.settings)?;
        if assembled.is_foreign {
            log.count("readings.rejected", assembled.rejected.len());
            return Err(native::foreign(assembled.rejected));
        }
        let outcome = self.store(assembled, &submission, invocation, log).await;
        Ok(native::respond(outcome))
    }
}

impl<S: Store, C: Clock> Intake<S, C> {
    /// Takes an MQTT message. One that can never be stored is rejected, so that nobody repeats it.
    async fn take(
        &self,
        message: &Message,
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> Outcome {
        let assembled = Submission::of_message(message)
            .and_then(|submission| Ok((assemble(&submission, &self.settings)?, submission)));
        match assembled {
            Ok((assembled, submission)) => {
                self.store(assembled, &submission, invocation, log).await
            }
            Err(problem) => Outcome::refused(problem, log),
        }
    }
}
