//! The three functions, built as their `main`s build them, in one process. Decides nothing for them.

use std::sync::Arc;

use dynamodb::DynamoStore;
use runtime::clock::SystemClock;

use crate::Options;
use crate::dead_letters::DeadLetters;

/// The ingest function on the engine's table.
pub(crate) type Ingest = ingest::Ingest<DynamoStore, SystemClock>;
/// The query function on the engine's table.
pub(crate) type Query = query::Query<DynamoStore, SystemClock>;
/// The registry function on the engine's table.
pub(crate) type Registry = registry::Registry<DynamoStore, DeadLetters, SystemClock>;

/// One instance of each function.
///
/// Each has its own cache, as on AWS: what one has learned, another sees when its cache grows too old.
#[derive(Clone)]
pub(crate) struct Functions {
    /// Stores readings.
    pub(crate) ingest: Arc<Ingest>,
    /// Answers questions.
    pub(crate) query: Arc<Query>,
    /// Follows the stream.
    pub(crate) registry: Arc<Registry>,
}

impl Functions {
    /// Starts the functions on a table, asking for tokens or not, and does what each does at its cold start.
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
}
