//! All functions in one process, built as their `main`s build them. Contains no rule of the functions.

use std::pin::Pin;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use aws_lambda_events::event::dynamodb::Event;
use aws_lambda_events::event::streams::DynamoDbEventResponse;
use chrono::TimeDelta;
use dynamodb::DynamoStore;
use outgoing::Reach;
use runtime::auth::Auth;
use runtime::clock::{Deadline, SystemClock};
use runtime::config::MaxUnits;
use runtime::queue::{SqsBatchResponse, SqsEvent};
use serde_json::Value;

use crate::Options;
use crate::dead_letters::DeadLetters;
use crate::direct::{DirectFetching, DirectIngest};
use crate::event_source_mapping::EventSourceMapping;
use crate::hint::{Alerting, LocalHint};
use crate::template::Template;
use crate::work_queue::LocalWorkQueue;
use rollups::{Retention, RollupDelay};
use sending::HttpSender;

/// The rollup function's logical id in the template.
const ROLLUP: &str = "RollupFunction";
/// The logical id of the function that sends messages.
pub(crate) const ALERTING: &str = "AlertingFunction";
/// The logical id of the function that asks sources.
pub(crate) const FETCHING: &str = "FetchingFunction";

/// How soon rollups follow changes, with the mapping's batching window on this machine.
pub(crate) fn rollup_delay(mappings: &[EventSourceMapping]) -> anyhow::Result<RollupDelay> {
    let mapping = mappings.iter().find(|mapping| mapping.function == ROLLUP);
    let mapping = mapping.with_context(|| format!("nothing delivers the stream to {ROLLUP}"))?;
    Ok(RollupDelay::gathering_for(mapping.window))
}

/// The template's event source mappings. The rollup function's mapping gathers records for the time that `following`
/// says.
pub(crate) fn mappings(
    template: &Template,
    rollup_delay: Option<RollupDelay>,
) -> anyhow::Result<Vec<EventSourceMapping>> {
    let mut mappings = EventSourceMapping::from_template(template)?;

    if let Some(rollup_delay) = rollup_delay {
        let of_rollups = mappings.iter_mut().filter(|mapping| mapping.function == ROLLUP);
        of_rollups.for_each(|mapping| mapping.window = rollup_delay.window());
    }

    Ok(mappings)
}

/// The units per second that the rollup function assumes. The engine itself has no limit.
const MAX_UNITS: u32 = 100_000;

/// The template's provisioned units per second: the smaller numbers of the table and its index by room.
pub(crate) const PROVISIONED: MaxUnits = MaxUnits { read: 11, write: 11 };

/// How long a mark of late changes holds. The time is short because a write costs nothing here, and because a longer
/// mark makes answers say needlessly that rollups may be incomplete.
pub(crate) const LATE_AHEAD: TimeDelta = TimeDelta::seconds(2);

/// How long readings and rollups are kept.
pub(crate) fn retention(options: &Options) -> Retention {
    let days = |days: Option<u32>| days.map(|days| TimeDelta::days(days.into()));
    Retention {
        readings: days(options.retention_days),
        quarters: days(options.quarter_retention_days),
        days: days(options.day_retention_days),
    }
}

/// The settings of the ingest function.
pub(crate) fn ingest_settings(options: &Options, auth: Auth) -> ingest::Settings {
    let Options { registry_max_age, earliest_timestamp, retention_days, time_zone, .. } = *options;
    ingest::Settings {
        registry_max_age,
        earliest_timestamp,
        retention_days,
        auth,
        time_zone,
        late_ahead: LATE_AHEAD,
        max_units: options.provisioned.map(|_| PROVISIONED),
        ..ingest::Settings::default()
    }
}

/// The ingest function on the engine's table.
pub(crate) type Ingest = ingest::Ingest<DynamoStore, SystemClock>;
/// The fetching function on the engine's table.
pub(crate) type Fetching = fetching::Fetching<DynamoStore, SystemClock>;
/// The query function on the engine's table.
pub(crate) type Query = query::Query<DynamoStore, SystemClock>;
/// The registry function on the engine's table.
pub(crate) type Registry = registry::Registry<DynamoStore, DeadLetters, SystemClock, LocalHint>;
/// The rollup function on the engine's table.
pub(crate) type Rollup = rollup::Rollup<DynamoStore, LocalWorkQueue, DeadLetters, SystemClock>;

/// A function that an event source mapping invokes with stream records.
pub(crate) type StreamFunction = Arc<
    dyn Fn(Event, Deadline) -> Pin<Box<dyn Future<Output = DynamoDbEventResponse> + Send>>
        + Send
        + Sync,
>;

/// A function that an event source mapping invokes with a queue's messages.
pub(crate) type QueueFunction = Arc<
    dyn Fn(SqsEvent, Deadline) -> Pin<Box<dyn Future<Output = SqsBatchResponse> + Send>>
        + Send
        + Sync,
>;

/// A function that a schedule invokes.
pub(crate) type ScheduledFunction = Arc<
    dyn Fn(Value, Deadline) -> Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send>>
        + Send
        + Sync,
>;

/// One instance of each function that answers requests.
///
/// Each has its own cache, as on AWS: a function sees another's changes when its own cache has expired.
#[derive(Clone)]
pub(crate) struct Functions {
    /// Stores readings.
    pub(crate) ingest: Arc<Ingest>,
    /// Answers queries.
    pub(crate) query: Arc<Query>,
    /// Asks sources.
    pub(crate) fetching: Arc<Fetching>,
}

impl Functions {
    /// Starts the functions on a table and does their work of a cold start. If readings are stored at another address,
    /// the web page gets this address.
    pub(crate) async fn start(
        store: &DynamoStore,
        options: &Options,
        rollup_delay: RollupDelay,
        auth: Auth,
        ingest_url: Option<String>,
    ) -> Self {
        let telemetry = &options.telemetry;
        let max_units = options.provisioned.map(|_| PROVISIONED);
        let settings = ingest_settings(options, auth);
        let ingest = Ingest::new(store.clone(), SystemClock, telemetry.clone(), settings);
        let ingest = Arc::new(ingest);

        let http = Arc::new(HttpSender::new(Reach::Local));
        let to_ingest = Arc::new(DirectIngest(Arc::clone(&ingest)));
        let outside = fetching::Outside { http, ingest: to_ingest, reach: Reach::Local };
        let fetching = Fetching::new(store.clone(), outside, SystemClock, telemetry.clone());
        let fetching = Arc::new(fetching);

        let settings = query::Settings {
            registry_max_age: options.registry_max_age,
            auth,
            ingest_url,
            command: options.command.clone(),
            frame_ancestors: options.frame_ancestors.clone(),
            rollup_delay,
            max_units,
            reach: Reach::Local,
            alert_topic: None,
        };
        let query = Query::new(store.clone(), SystemClock, telemetry.clone(), settings);
        let query = query.with_fetching(DirectFetching(Arc::clone(&fetching)));
        let functions = Self { ingest, query: Arc::new(query), fetching };
        Box::pin(functions.ingest.load()).await;
        Box::pin(functions.query.load()).await;
        functions
    }
}

/// One instance of each function that consumes the table's stream.
#[derive(Clone)]
pub(crate) struct Consumers {
    /// Keeps the registry up to date.
    pub(crate) registry: Arc<Registry>,
    /// Keeps the rollups up to date.
    pub(crate) rollup: Arc<Rollup>,
    /// Sends the messages of alerts.
    pub(crate) alerting: Arc<Alerting>,
    /// Wakes the alerting function.
    pub(crate) hint: LocalHint,
    /// Asks sources.
    fetching: Arc<Fetching>,
}

impl Consumers {
    /// Starts the functions on a table.
    pub(crate) fn start(
        store: &DynamoStore,
        work: LocalWorkQueue,
        dead_letters: &DeadLetters,
        options: &Options,
        rollup_delay: RollupDelay,
        page_url: String,
        fetching: Arc<Fetching>,
    ) -> Self {
        let unbounded = MaxUnits { read: MAX_UNITS, write: MAX_UNITS };
        let max_units = options.provisioned.map_or(unbounded, |_| PROVISIONED);
        let settings = rollup::Settings {
            zone: options.time_zone,
            retention: retention(options),
            rollup_delay,
            max_read_units: max_units.read,
            max_write_units: max_units.write,
        };

        let (letters, telemetry) = (dead_letters.clone(), options.telemetry.clone());
        let rollup = Rollup::new(
            store.clone(),
            work,
            letters.clone(),
            SystemClock,
            telemetry.clone(),
            settings,
        );
        let hint = LocalHint::default();
        let registry =
            registry::Registry::new(store.clone(), letters, SystemClock, telemetry.clone());
        let registry = registry.with_hint(hint.clone());
        let carrier = alerting::Carrier::new(HttpSender::new(Reach::Local), alerting::NoEmail);
        let heartbeat = options.heartbeat.clone();
        let settings = alerting::Settings { page_url, heartbeat };
        let alerting = Alerting::new(store.clone(), carrier, SystemClock, telemetry, settings);
        Self {
            registry: Arc::new(registry),
            rollup: Arc::new(rollup),
            alerting: Arc::new(alerting),
            hint,
            fetching,
        }
    }

    /// Returns the function with this logical id, if it consumes stream records.
    pub(crate) fn stream_function(&self, logical_id: &str) -> Option<StreamFunction> {
        let Self { registry, rollup, .. } = self.clone();
        match logical_id {
            "RegistryFunction" => Some(Arc::new(move |event, deadline| {
                let registry = Arc::clone(&registry);
                Box::pin(async move { registry.handle(event, deadline).await })
            })),
            ROLLUP => Some(Arc::new(move |event, deadline| {
                let rollup = Arc::clone(&rollup);
                Box::pin(async move { rollup.handle_stream(event, deadline).await })
            })),
            _ => None,
        }
    }

    /// Returns the function with this logical id, if it consumes a queue's messages.
    pub(crate) fn queue_function(&self, logical_id: &str) -> Option<QueueFunction> {
        let rollup = Arc::clone(&self.rollup);
        match logical_id {
            ROLLUP => Some(Arc::new(move |event, deadline| {
                let rollup = Arc::clone(&rollup);
                Box::pin(async move { rollup.handle_queue(event, deadline).await })
            })),
            _ => None,
        }
    }

    /// Returns the function with this logical id, if a schedule may invoke it.
    pub(crate) fn scheduled_function(&self, logical_id: &str) -> Option<ScheduledFunction> {
        let Self { rollup, alerting, fetching, .. } = self.clone();
        match logical_id {
            ROLLUP => Some(Arc::new(move |event, deadline| {
                let rollup = Arc::clone(&rollup);
                Box::pin(async move {
                    let event = serde_json::from_value(event)?;
                    let reply = rollup.handle(event, deadline).await;
                    reply.map(drop).map_err(|error| anyhow!(error))
                })
            })),
            ALERTING => Some(Arc::new(move |event, deadline| {
                let alerting = Arc::clone(&alerting);
                Box::pin(async move {
                    let event = serde_json::from_value(event)?;
                    let done = Box::pin(alerting.handle(event, deadline)).await;
                    done.map_err(|error| anyhow!(error))
                })
            })),
            FETCHING => Some(Arc::new(move |event, deadline| {
                let fetching = Arc::clone(&fetching);
                Box::pin(async move {
                    let event = serde_json::from_value(event)?;
                    let done = Box::pin(fetching.handle(event, deadline)).await;
                    done.map(drop).map_err(|error| anyhow!(error))
                })
            })),
            _ => None,
        }
    }
}
