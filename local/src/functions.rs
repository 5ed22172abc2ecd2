//! All functions in one process, built as their `main`s build them. Contains no rule of the functions.

use std::sync::Arc;

use anyhow::anyhow;
use chrono::TimeDelta;
use dynamodb::DynamoStore;
use outgoing::Reach;
use rollups::{Retention, RollupDelay};
use runtime::auth::Auth;
use runtime::clock::SystemClock;
use runtime::config::MaxUnits;
use sending::HttpSender;

use crate::Options;
use crate::dead_letters::DeadLetters;
use crate::deployment::{ALERTING, FETCHING, REGISTRY, ROLLUP, ROLLUP_STREAM, ROOM_INDEX_UNITS};
use crate::direct::{DirectFetching, DirectIngest, Fetching, Ingest};
use crate::hint::LocalHint;
use crate::hosted_function::HostedFunction;
use crate::queue_poller::QueueFunction;
use crate::scheduler::ScheduledFunction;
use crate::stream_poller::StreamFunction;
use crate::work_queue::LocalWorkQueue;

/// How soon rollups follow changes, by the options or by the batching window on this machine.
pub(crate) fn rollup_delay(options: &Options) -> RollupDelay {
    options.rollup_delay.unwrap_or_else(|| RollupDelay::gathering_for(ROLLUP_STREAM.window))
}

/// The units per second that the rollup function assumes. The engine itself has no limit.
const MAX_UNITS: u32 = 100_000;

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

/// The units per second of a table with simulated provisioned capacity: those of its smallest index.
fn played_units(options: &Options) -> Option<MaxUnits> {
    options.provisioned.map(|_| ROOM_INDEX_UNITS)
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
        max_units: played_units(options),
        ..ingest::Settings::default()
    }
}

/// The query function on the engine's table.
pub(crate) type Query = query::Query<DynamoStore, SystemClock>;
/// The maximum age of the cached rules by which readings are judged. Short, so that a person who tries a rule does not
/// wait.
const RULES_AGE: TimeDelta = TimeDelta::seconds(1);

/// The registry function on the engine's table.
pub(crate) type Registry = registry::Registry<DynamoStore, DeadLetters, SystemClock, LocalHint>;
/// The rollup function on the engine's table.
pub(crate) type Rollup = rollup::Rollup<DynamoStore, LocalWorkQueue, DeadLetters, SystemClock>;

/// The alerting function on the engine's table.
pub(crate) type Alerting = alerting::Alerting<DynamoStore, SystemClock>;

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
    /// Starts the functions on a table and does their work of a cold start. `ingest_url` tells the web page the address
    /// that stores readings, if that is not the page's own address.
    pub(crate) async fn start(
        store: &DynamoStore,
        options: &Options,
        rollup_delay: RollupDelay,
        auth: Auth,
        ingest_url: Option<String>,
    ) -> Self {
        let telemetry = &options.telemetry;
        let max_units = played_units(options);
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
            data_option: options.data_option.clone(),
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
    ) -> Self {
        let unbounded = MaxUnits { read: MAX_UNITS, write: MAX_UNITS };
        let max_units = played_units(options).unwrap_or(unbounded);
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
        let registry = registry.with_hint(hint.clone()).with_rules_of(RULES_AGE);

        let carrier = alerting::Carrier::new(HttpSender::new(Reach::Local), alerting::NoEmail);
        let heartbeat = options.heartbeat.clone();
        let settings = alerting::Settings { page_url, heartbeat };
        let alerting = Alerting::new(store.clone(), carrier, SystemClock, telemetry, settings);

        Self {
            registry: Arc::new(registry),
            rollup: Arc::new(rollup),
            alerting: Arc::new(alerting),
            hint,
        }
    }

    /// The registry function, as the stream invokes it.
    pub(crate) fn registry_of_stream(&self) -> StreamFunction {
        HostedFunction::new(REGISTRY, &self.registry, |registry, event, deadline| async move {
            registry.handle(event, deadline).await
        })
    }

    /// The rollup function, as the stream invokes it.
    pub(crate) fn rollup_of_stream(&self) -> StreamFunction {
        HostedFunction::new(ROLLUP, &self.rollup, |rollup, event, deadline| async move {
            rollup.handle_stream(event, deadline).await
        })
    }

    /// The rollup function, as its queue invokes it.
    pub(crate) fn rollup_of_queue(&self) -> QueueFunction {
        HostedFunction::new(ROLLUP, &self.rollup, |rollup, event, deadline| async move {
            rollup.handle_queue(event, deadline).await
        })
    }

    /// The rollup function, as its schedule invokes it.
    pub(crate) fn scheduled_rollup(&self) -> ScheduledFunction {
        HostedFunction::new(ROLLUP, &self.rollup, |rollup, (), deadline| async move {
            let swept = rollup.handle(rollup::Event::Schedule, deadline).await;
            swept.map(drop).map_err(|error| anyhow!(error))
        })
    }

    /// The alerting function, as its schedule or a hint invokes it.
    pub(crate) fn alerting_at(&self, event: alerting::Event) -> ScheduledFunction {
        HostedFunction::new(ALERTING, &self.alerting, move |alerting, (), deadline| async move {
            alerting.handle(event, deadline).await.map_err(|error| anyhow!(error))
        })
    }
}

impl Functions {
    /// The fetching function, as its schedule invokes it.
    pub(crate) fn scheduled_fetching(&self) -> ScheduledFunction {
        HostedFunction::new(FETCHING, &self.fetching, |fetching, (), deadline| async move {
            let asked = fetching.handle(fetching::Event::Schedule, deadline).await;
            asked.map(drop).map_err(|error| anyhow!(error))
        })
    }
}
