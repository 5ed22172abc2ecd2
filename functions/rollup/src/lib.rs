//! Keeps the rollups up to date, by the table's stream, its own queue and a schedule. Stores no reading.
//!
//! A change of a reading whose quarter is over is folded in the invocation that sees the change. An open quarter is
//! left to the sweep, which folds it once, some minutes after its end. So a rollup of 15 minutes costs one write, and
//! not one for each batch. A bucket that fails for a reason of its own goes to the queue, and blocks neither the stream
//! nor the sweep. The package `rollups` folds by compare-and-swap, so all work here may be done twice, in any order,
//! and concurrently.

mod bucket_folding;
mod event;
mod from_queue;
mod from_stream;
mod log;
mod memory;
mod pace;
mod ports;
mod rechecks;
mod refold;
mod registry;
mod run;
mod schedule;
mod settings;
mod state;
mod sweep;
#[cfg(test)]
mod tests;

use aws_lambda_events::event::dynamodb;
use aws_lambda_events::event::streams::DynamoDbEventResponse;
use runtime::clock::{Clock, Deadline};
use runtime::dead_letters::DeadLetterQueue;
use runtime::queue::{QueueFunction, SqsBatchResponse, SqsEvent};
use runtime::stream::{self, StreamFunction};
use runtime::telemetry::Telemetry;
use runtime::work_queue::WorkQueue;

pub use bucket_folding::NotDone;
pub use event::{Event, Reply};
pub use ports::Store;
pub use rollups::Retention;
pub use settings::Settings;

use bucket_folding::BucketFolding;
use ports::NAME;

/// The function `rollup`.
#[derive(Debug)]
pub struct Rollup<S, W, Q, C> {
    stream: StreamFunction<Q, C>,
    queue: QueueFunction<C>,
    folding: BucketFolding<S, W, C>,
    telemetry: Telemetry,
}

impl<S: Store, W: WorkQueue, Q: DeadLetterQueue, C: Clock> Rollup<S, W, Q, C> {
    /// Makes the function for a table. A bucket that cannot be folded goes to `work_queue`. A record that names no
    /// bucket goes to `dead_letters`.
    pub fn new(
        store: S,
        work_queue: W,
        dead_letters: Q,
        clock: C,
        telemetry: Telemetry,
        settings: Settings,
    ) -> Self {
        Self {
            stream: StreamFunction::new(NAME, dead_letters, clock.clone(), telemetry.clone()),
            queue: QueueFunction::new(NAME, clock.clone(), telemetry.clone()),
            folding: BucketFolding::new(store, work_queue, clock, settings),
            telemetry,
        }
    }

    /// Folds the buckets that a batch of the stream touches. Returns the first record that should be
    /// delivered again, if there is one.
    pub async fn handle_stream(
        &self,
        event: dynamodb::Event,
        deadline: Deadline,
    ) -> DynamoDbEventResponse {
        let decode = |record| stream::touched_reading(&record);
        Box::pin(self.stream.handle(event, deadline, decode, &self.folding)).await
    }

    /// Folds the buckets that messages of the queue name. Returns the messages that should be delivered again.
    pub async fn handle_queue(&self, event: SqsEvent, deadline: Deadline) -> SqsBatchResponse {
        Box::pin(self.queue.handle(event, deadline, &self.folding)).await
    }

    /// Sweeps the groups of devices that are due. Work for which the time is too short is left to the next invocation.
    /// An error means that something failed.
    pub async fn handle_schedule(&self, deadline: Deadline) -> Result<(), NotDone> {
        Box::pin(self.folding.handle_schedule(deadline, &self.telemetry)).await
    }
}
