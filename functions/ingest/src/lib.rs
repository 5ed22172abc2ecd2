//! Stores readings: `POST /readings`, line protocol, IoT Core rule messages, and fetched bodies. Queries no reading.
//!
//! The way of a reading: `intake` finds its sender and format. `formats` parses drafts. `readings` turns good drafts
//! into readings and names bad ones. `store` looks up the devices, refuses readings beyond the `limits`, completes the
//! readings (`completion`), writes them, and registers new devices and rooms. `replies` answers. Registrations that
//! fail here are made by the registry function, from the stream.

mod completion;
mod event;
mod first_questions;
mod formats;
mod intake;
mod limits;
mod pipeline;
mod readings;
mod replies;
mod retry_memory;
mod settings;
mod store;
mod store_request;
#[cfg(test)]
mod tests;
mod write_lines;

use api::endpoints::{Function, Operation};
use api::{Problem, Response};
use domain::Zone;
use runtime::clock::{Clock, Deadline};
use runtime::http::{Call, Handler, HttpFunction};
use runtime::telemetry::{Telemetry, WideEvent};
use table::{Invocation, Session, StoreResult};

use formats::ReadingFormat;
use intake::sender::RequestSender;
use intake::submission::Submission;
use limits::counted_sender::CountedSender;
use limits::counted_sender::ReplyDialect;
use pipeline::Pipeline;
use readings::{Assembled, assemble};
use replies::{StoreReport, native};
use store_request::StoreRequest;

pub use event::{
    Event, FetchedMessage, FetchedRoom, MqttMessage, NotAllStored, Reply, TopicMessage,
};
pub use pipeline::Store;
pub use readings::{
    LineRules, LineTextError, LineTexts, PointsRead, read_line, read_points, read_reading,
};
pub use replies::fetched::{FetchedReading, FetchedReceipt, FetchedValue};
pub use replies::native::Receipt;
pub use settings::Settings;

/// The function.
#[derive(Debug)]
pub struct Ingest<S, C> {
    http: HttpFunction<C>,
    store: S,
    pipeline: Pipeline<C>,
    telemetry: Telemetry,
}

impl<S: Store, C: Clock> Ingest<S, C> {
    /// Makes the function for a table.
    pub fn new(store: S, clock: C, telemetry: Telemetry, settings: Settings) -> Self {
        let http =
            HttpFunction::new(Function::Ingest, settings.auth, clock.clone(), telemetry.clone())
                .with_max_units(settings.max_units);
        Self { http, store, pipeline: Pipeline::new(clock, settings), telemetry }
    }

    /// Reads the registry at a cold start. If this fails, the first request tries again.
    pub async fn load(&self) {
        self.pipeline.registry.load(&self.store, "ingest.load", &self.telemetry).await;
    }

    /// Stores the readings of an event.
    ///
    /// An HTTP request always gets an answer, even if the code panics. An IoT rule waits for no answer: if readings are
    /// not stored, the invocation fails and is repeated. Storing a reading twice changes nothing.
    pub async fn handle(&self, event: Event, deadline: Deadline) -> Result<Reply, NotAllStored> {
        match event {
            Event::Http(event) => {
                let Self { http, store, pipeline, .. } = self;
                let response = http.handle(*event, deadline, store, pipeline).await;
                Ok(Reply::Http(Box::new(response)))
            }

            Event::Iot(message) => {
                let submission = Submission::of_message(&message).map(Some);
                let report = self.store_and_log(submission, deadline).await?;
                Ok(Reply::Iot(report.into()))
            }
            Event::Payload(message) => {
                let report =
                    self.store_and_log(Submission::of_topic_message(&message), deadline).await?;
                Ok(Reply::Iot(report.into()))
            }

            Event::Fetched(message) => {
                let submission = Submission::of_fetched(&message).map(Some);
                let report = self.store_and_log(submission, deadline).await?;
                Ok(Reply::Fetched(FetchedReceipt::of(report, message.dry)))
            }
        }
    }

    /// Stores the readings of an MQTT message or of a fetched body, and emits the log event. A message that can never
    /// be stored is rejected without a failure, so that it is not repeated.
    async fn store_and_log(
        &self,
        submission: Result<Option<Submission<'_>>, Problem>,
        deadline: Deadline,
    ) -> Result<StoreReport, NotAllStored> {
        let invocation = Invocation::until(deadline);
        let session = Session::new(&self.store, &invocation, self.pipeline.clock.now());
        let mut log = WideEvent::begin("ingest");

        // Boxed, like the future of an HTTP request: nested futures are too deep for the compiler.
        let mut report = match submission {
            Ok(Some(submission)) => {
                if let RequestSender::Topic(device) = &submission.sender {
                    log.set("mqtt.device", device.as_str());
                }
                if let Some(FetchedMessage { of, dry, .. }) = submission.fetched {
                    log.set("fetched.source", of.as_str());
                    log.set("fetched.is_dry", *dry);
                }
                Box::pin(self.pipeline.store_submission(session, &submission, &mut log)).await
            }
            // The topic carries no readings.
            Ok(None) => StoreReport::default(),
            Err(problem) => StoreReport::refused(problem, &mut log),
        };

        log.emit(&invocation, &self.telemetry, &self.pipeline.clock);
        match report.cause.take() {
            Some(cause) => Err(NotAllStored::new(&report.not_stored, cause)),
            None => Ok(report),
        }
    }
}

impl<S: Store, C: Clock> Handler<S> for Pipeline<C> {
    /// `shared` of the call is this pipeline.
    async fn answer(call: Call<'_, S, Self>) -> Result<Response, Problem> {
        let pipeline = call.shared;
        // Boxed: in a debug build, the stack is too small for both futures at once.
        match call.endpoint.operation {
            Operation::WriteLines => Box::pin(pipeline.write_lines(call)).await,
            // Readings in JSON, or a payload of a maker.
            _ if call.endpoint.function == Function::Ingest => {
                Box::pin(pipeline.post_readings(call)).await
            }
            // Endpoints of the query function by which clients of InfluxDB test a server before they write.
            _ => first_questions::answer(&call, pipeline.clock.now()),
        }
    }
}

impl<C: Clock> Pipeline<C> {
    /// Stores the readings of an HTTP request in any format but line protocol. If an entry names a device of another
    /// sender, the whole request is refused.
    async fn post_readings(&self, call: Call<'_, impl Store, Self>) -> Result<Response, Problem> {
        let Call { endpoint, request, params, grant, session, log, .. } = call;
        let counted_sender = CountedSender::of(&grant, &self.settings, ReplyDialect::Native);
        let submission =
            Submission::of_request(endpoint, request, &params, &grant, self.clock.now())?;

        let zone = self.zone_of(session, &submission).await?;
        let assembled = self.assemble(&submission, zone, log)?;
        if assembled.is_foreign {
            log.count("readings.rejected", assembled.rejected.len());
            return Err(native::foreign(assembled.rejected));
        }

        let request = StoreRequest::of(&submission, assembled, counted_sender.as_ref());
        Ok(native::respond(self.store(session, request, log).await))
    }

    /// Stores the readings of an MQTT message or of a fetched body.
    async fn store_submission(
        &self,
        session: Session<'_, impl Store>,
        submission: &Submission<'_>,
        log: &mut WideEvent,
    ) -> StoreReport {
        let zone = match self.zone_of(session, submission).await {
            Ok(zone) => zone,
            Err(error) => {
                log.error("table.error", &error);
                // Nothing is parsed yet, so the whole message counts as one reading.
                let not_stored = vec![0];
                return StoreReport { not_stored, cause: Some(error), ..StoreReport::default() };
            }
        };
        let assembled = match self.assemble(submission, zone, log) {
            Ok(assembled) => assembled,
            Err(problem) => return StoreReport::refused(problem, log),
        };

        let counted_sender = CountedSender::of_message(submission, &self.settings);
        let request = StoreRequest::of(submission, assembled, counted_sender.as_ref());
        self.store(session, request, log).await
    }

    /// The home's time zone, if the submission may have local times.
    async fn zone_of(
        &self,
        session: Session<'_, impl Store>,
        submission: &Submission<'_>,
    ) -> StoreResult<Zone> {
        match submission.format {
            ReadingFormat::Payload(reader) if reader.format.has_local_times => {
                self.zone.get(session).await
            }
            _ => Ok(Zone::UTC),
        }
    }

    fn assemble(
        &self,
        submission: &Submission<'_>,
        zone: Zone,
        log: &mut WideEvent,
    ) -> Result<Assembled, Problem> {
        let assembled = assemble(submission, &self.settings, zone)?;
        log.set("clocks.wrong", assembled.wrong_clocks);
        Ok(assembled)
    }
}
