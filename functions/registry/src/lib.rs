//! Keeps the registry of devices, their metrics and rooms, from the table's stream. Judges alerts by the same batches.
//! Stores no reading.
//!
//! A batch of records becomes one [`DeviceObservation`](domain::DeviceObservation) per device. Repeated records and
//! another order of records make the same observation. The devices and rooms of the batch are read from the table, not
//! from a cache. Conditions on each write protect newer facts, and everything that a person has set.

mod apply;
mod current;
mod judge;
mod newest_room;
mod observed;
mod ports;
mod register;
#[cfg(test)]
mod tests;

use aws_lambda_events::event::dynamodb::Event;
use aws_lambda_events::event::streams::DynamoDbEventResponse;
use chrono::TimeDelta;
use domain::Reading;
use judging::Judging;
use runtime::clock::{Clock, Deadline, SystemClock};
use runtime::dead_letters::DeadLetterQueue;
use runtime::hint::{Hint, NoHint};
use runtime::stream::{self, BatchResult, Consumer, Recorded, StreamFunction};
use runtime::telemetry::{Telemetry, WideEvent};
use table::{Invocation, Session};

pub use ports::{RegistryStore, Store};

use observed::observations;

/// The function.
#[derive(Debug)]
pub struct Registry<S, Q, C, H = NoHint> {
    stream: StreamFunction<Q, C>,
    store: S,
    judging: Judging,
    clock: C,
    hint: H,
}

impl<S: Store, Q: DeadLetterQueue, C: Clock> Registry<S, Q, C> {
    /// Makes the function for a table. Records that can never be applied go to `dead_letters`.
    pub fn new(store: S, dead_letters: Q, clock: C, telemetry: Telemetry) -> Self {
        let stream = StreamFunction::new("registry", dead_letters, clock.clone(), telemetry);
        Self { stream, store, judging: Judging::default(), clock, hint: NoHint }
    }
}

impl<S: Store, Q: DeadLetterQueue, C: Clock, H: Hint> Registry<S, Q, C, H> {
    /// Adds a `hint` to the alerting function, so that it sends new messages at once.
    pub fn with_hint<N: Hint>(self, hint: N) -> Registry<S, Q, C, N> {
        let Self { stream, store, judging, clock, .. } = self;
        Registry { stream, store, judging, clock, hint }
    }

    /// Reads rules and channels again once they are older than `max_age`. Where reading the rules costs nothing,
    /// `max_age` may be short: then a rule that was just saved judges the next reading.
    #[must_use]
    pub fn with_rules_of(self, max_age: TimeDelta) -> Self {
        Self { judging: self.judging.with_rules_of(max_age), ..self }
    }

    /// Applies a batch to the registry. Returns the first record that should be delivered again, if there is such a
    /// record. A repeated batch, or another order of batches, leads to the same registry.
    ///
    /// Deleted readings change nothing: the facts learned from a deleted reading stay true.
    pub async fn handle(&self, event: Event, deadline: Deadline) -> DynamoDbEventResponse {
        self.stream.handle(event, deadline, stream::written_reading, self).await
    }
}

/// Applies readings that do not come by the stream to the registry. Judges no alert. The error says why the readings
/// could not be applied.
pub async fn learn(
    store: impl RegistryStore,
    readings: Vec<Reading>,
    deadline: Deadline,
) -> Result<(), String> {
    let invocation = Invocation::until(deadline);
    let recorded = |(record, change)| Recorded { record, change };
    let readings: Vec<_> = readings.into_iter().enumerate().map(recorded).collect();
    let mut log = WideEvent::begin("registry");
    let session = Session::new(&store, &invocation, SystemClock.now());
    Box::pin(apply_readings(session, &readings, &mut log)).await.ensure_whole()
}

impl<S: Store, Q: DeadLetterQueue, C: Clock, H: Hint> Consumer<Reading> for Registry<S, Q, C, H> {
    /// Applies a batch to the registry, then judges alerts: rules on groups find a new device only in the registry. A
    /// device that the batch moves counts in its old groups until the list of devices is read again. Alerts are judged
    /// even if the registry fails.
    async fn apply(
        &self,
        readings: &[Recorded<Reading>],
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> BatchResult {
        // The registry repeats throttled requests for at most half of the time, so that time is left for judging.
        let part = invocation.with_half_patience();
        let session = Session::new(&self.store, &part, self.clock.now());
        let mut result = apply_readings(session, readings, log).await;
        result.append(self.judge_alerts(readings, invocation, log).await);
        result
    }
}

async fn apply_readings(
    session: Session<'_, impl RegistryStore>,
    readings: &[Recorded<Reading>],
    log: &mut WideEvent,
) -> BatchResult {
    let devices = observations(readings);
    log.set("stream.devices", devices.len());
    apply::apply(session, devices, log).await
}
