//! The functions, built as their `main`s build them, in one process. Contains no rule of theirs.

use std::pin::Pin;
use std::sync::Arc;

use aws_lambda_events::event::dynamodb::Event;
use aws_lambda_events::event::streams::DynamoDbEventResponse;
use dynamodb::DynamoStore;
use runtime::clock::{Deadline, SystemClock};
use serde_json::Value;

use crate::Options;
use crate::dead_letters::DeadLetters;

/// The ingest function on the engine's table.
pub(crate) type Ingest = ingest::Ingest<DynamoStore, SystemClock>;
/// The query function on the engine's table.
pub(crate) type Query = query::Query<DynamoStore, SystemClock>;
/// The registry function on the engine's table.
pub(crate) type Registry = registry::Registry<DynamoStore, DeadLetters, SystemClock>;

/// A function that an event source mapping invokes.
pub(crate) type StreamFunction = Arc<
    dyn Fn(Event, Deadline) -> Pin<Box<dyn Future<Output = DynamoDbEventResponse> + Send>>
        + Send
        + Sync,
>;

/// A function that a schedule invokes.
pub(crate) type ScheduledFunction = Arc<
    dyn Fn(Value, Deadline) -> Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send>>
        + Send
        + Sync,
>;

/// One instance of each function.
///
/// Each has its own cache, as on AWS: one sees what another has stored when its cache is too old.
#[derive(Clone)]
pub(crate) struct Functions {
    /// Stores readings.
    pub(crate) ingest: Arc<Ingest>,
    /// Answers queries.
    pub(crate) query: Arc<Query>,
    /// Keeps the registry from the stream.
    pub(crate) registry: Arc<Registry>,
}

impl Functions {
    /// Starts the functions on a table, with authentication or without, and does their work of a cold start.
    pub(crate) async fn start(
        store: &DynamoStore,
        dead_letters: &DeadLetters,
        options: &Options,
        auth: bool,
    ) -> Self {
        let Options { registry_max_age, earliest_timestamp, retention_days, .. } = *options;
        let telemetry = &options.telemetry;
        let functions = Self {
            ingest: Arc::new(Ingest::new(
                store.clone(),
                SystemClock,
                telemetry.clone(),
                ingest::Settings { registry_max_age, earliest_timestamp, retention_days, auth },
            )),
            query: Arc::new(Query::new(
                store.clone(),
                SystemClock,
                telemetry.clone(),
                query::Settings { registry_max_age, auth },
            )),
            registry: Arc::new(Registry::new(
                store.clone(),
                dead_letters.clone(),
                SystemClock,
                telemetry.clone(),
            )),
        };
        Box::pin(functions.ingest.load()).await;
        Box::pin(functions.query.load()).await;
        functions
    }

    /// Returns the function of a logical id in the template, if it takes stream records.
    pub(crate) fn stream_function(&self, logical_id: &str) -> Option<StreamFunction> {
        let registry = Arc::clone(&self.registry);
        match logical_id {
            "RegistryFunction" => Some(Arc::new(move |event, deadline| {
                let registry = Arc::clone(&registry);
                Box::pin(async move { registry.handle(event, deadline).await })
            })),
            _ => None,
        }
    }

    /// Returns the function of a logical id in the template, if a schedule may invoke it: none yet.
    #[expect(clippy::unused_self, reason = "the functions will be its source")]
    pub(crate) const fn scheduled_function(&self, _logical_id: &str) -> Option<ScheduledFunction> {
        None
    }
}
