//! Keeps the rollups of readings: from the table's stream, a schedule and a queue. Stores no reading.

mod event;
mod settings;

use aws_lambda_events::event::dynamodb;
use aws_lambda_events::event::streams::DynamoDbEventResponse;
use runtime::clock::{Clock, Deadline};
use runtime::dead_letters::DeadLetterQueue;
use runtime::queue::{Failure, MessageConsumer, QueueFunction, SqsBatchResponse, SqsEvent};
use runtime::telemetry::{Telemetry, WideEvent};
use runtime::work_queue::{FoldRequest, NotSent, WorkQueue};
use table::{
    FindRegistry, Invocation, KeepRollupState, ListDevices, PutRollups, ReadRollups,
    ReadStoredReadings,
};

pub use event::{Event, Reply};
pub use rollups::Retention;
pub use settings::Settings;

/// The function.
#[derive(Debug)]
#[expect(dead_code, reason = "the skeleton applies nothing")]
pub struct Rollup<S, W, Q, C> {
    store: S,
    work: W,
    dead_letters: Q,
    clock: C,
    telemetry: Telemetry,
    settings: Settings,
}

table::store! {
    /// The ports of the table that the function uses.
    pub trait Store:
        FindRegistry + ListDevices + ReadStoredReadings + ReadRollups + PutRollups + KeepRollupState
}

impl<S: Store, W: WorkQueue, Q: DeadLetterQueue, C: Clock> Rollup<S, W, Q, C> {
    /// The function on a table.
    #[must_use]
    pub const fn new(
        store: S,
        work: W,
        dead_letters: Q,
        clock: C,
        telemetry: Telemetry,
        settings: Settings,
    ) -> Self {
        Self { store, work, dead_letters, clock, telemetry, settings }
    }

    /// Applies a batch of the stream.
    #[expect(clippy::unused_async, reason = "the skeleton applies nothing")]
    pub async fn handle_stream(&self, _: dynamodb::Event, _: Deadline) -> DynamoDbEventResponse {
        DynamoDbEventResponse::default()
    }

    /// Applies messages of the queue.
    pub async fn handle_queue(&self, event: SqsEvent, deadline: Deadline) -> SqsBatchResponse {
        QueueFunction::new("rollup", self.clock.clone(), self.telemetry.clone())
            .handle(event, deadline, &Nothing)
            .await
    }

    /// Does what is due.
    #[expect(clippy::unused_async, reason = "the skeleton applies nothing")]
    pub async fn handle_schedule(&self, _: Deadline) -> Result<(), NotSent> {
        Ok(())
    }
}

struct Nothing;

impl MessageConsumer for Nothing {
    type Message = FoldRequest;

    async fn apply(
        &self,
        _: FoldRequest,
        _: &Invocation,
        _: &mut WideEvent,
    ) -> Result<(), Failure> {
        Ok(())
    }
}
