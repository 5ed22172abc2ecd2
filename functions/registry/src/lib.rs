//! Keeps the registry from the table's stream: devices, their metrics and rooms. Stores no reading.
//!
//! A batch of records becomes one [`DeviceObservation`](domain::DeviceObservation) per device, which is the same
//! however often and in whatever order the records come. The devices and rooms that it names are read from the table, not from a
//! cache; whatever the observations add is written under conditions that refuse what is older or was set by
//! a person.

mod apply;
mod ports;
mod seen;
#[cfg(test)]
mod tests;

use aws_lambda_events::event::dynamodb::Event;
use aws_lambda_events::event::streams::DynamoDbEventResponse;
use domain::Reading;
use runtime::clock::{Clock, Deadline};
use runtime::dead_letters::DeadLetterQueue;
use runtime::stream::{self, BatchResult, Consumer, Recorded, StreamFunction};
use runtime::telemetry::{Telemetry, WideEvent};
use table::Invocation;

pub use ports::Store;

use seen::observations;

/// The function.
#[derive(Debug)]
pub struct Registry<S, Q, C> {
    stream: StreamFunction<Q, C>,
    writer: RegistryWriter<S>,
}

/// The consumer of the stream: it applies readings to the registry.
#[derive(Debug)]
struct RegistryWriter<S> {
    store: S,
}

impl<S: Store, Q: DeadLetterQueue, C: Clock> Registry<S, Q, C> {
    /// The function on a table; what it can never apply goes to `dead_letters`.
    #[must_use]
    pub fn new(store: S, dead_letters: Q, clock: C, telemetry: Telemetry) -> Self {
        let stream = StreamFunction::new("registry", dead_letters, clock, telemetry);
        Self { stream, writer: RegistryWriter { store } }
    }

    /// Applies a batch to the registry. Returns the first record that should be delivered again, if
    /// there is one. Delivered twice or in another order, a batch leaves the same registry.
    ///
    /// A deletion says nothing: what a deleted reading taught stays true.
    pub async fn handle(&self, event: Event, deadline: Deadline) -> DynamoDbEventResponse {
        self.stream.handle(event, deadline, stream::written_reading, &self.writer).await
    }

    /// Applies readings to the registry that the stream will not tell. Where that fails, returns why.
    pub async fn learn(&self, readings: Vec<Reading>, deadline: Deadline) -> Result<(), String> {
        let invocation = Invocation::until(deadline).patient();
        let recorded = |(record, change)| Recorded { record, change };
        let readings: Vec<_> = readings.into_iter().enumerate().map(recorded).collect();
        let mut log = WideEvent::begin("registry");
        Box::pin(self.writer.apply(&readings, &invocation, &mut log)).await.ensure_whole()
    }
}

impl<S: Store> Consumer<Reading> for RegistryWriter<S> {
    async fn apply(
        &self,
        readings: &[Recorded<Reading>],
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> BatchResult {
        let devices = observations(readings);
        log.set("stream.devices", devices.len());
        apply::apply(&self.store, devices, invocation, log).await
    }
}
