//! The whole system in one process: engine, functions, stream pollers and gateway. Reads no command line.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{anyhow, bail};
use aws::StoreConfig;
use aws_lambda_events::event::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use aws_lambda_events::event::dynamodb::Event;
use aws_lambda_events::event::streams::DynamoDbEventResponse;
use dynamodb::DynamoStore;
use rollups::{RollupDelay, SKEW, newest_sealable_end};
use runtime::auth::Auth;
use runtime::clock::{Clock as _, Deadline, Stopwatch, SystemClock};
use runtime::dead_letters::DeadLetter;
use table::layout::{ATTRIBUTE_INDEX, CONDITIONS_INDEX, Layout};
use table::shards::Shards;
use table::{Invocation, ReadRollupState as _, ReadShards as _};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::AlertingEvent;
use crate::addresses::Addresses;
use crate::bulk::Bulk;
use crate::dead_letters::DeadLetters;
use crate::deployment::{
    REGISTRY_STREAM, ROLLUP_QUEUE, ROLLUP_STREAM, SCHEDULE_PERIOD, StreamSource,
};
use crate::engine::{Engine, Queue, wait_until_unused};
use crate::functions::{self, Consumers, Functions};
use crate::gateway::{self, Authorizer};
use crate::loader::Loader;
use crate::options::Options;
use crate::queue_poller::{QueuePoller, RunningQueuePoller};
use crate::scheduler::{self, ScheduledFunction};
use crate::stop::{end, is_stopped};
use crate::stream_poller::{RunningPoller, StreamPoller};
use crate::warning::{WarningLimiter, warn};
use crate::work_queue::LocalWorkQueue;

/// How often expired items are deleted.
const SWEEP_EVERY: Duration = Duration::from_secs(30);
/// How long a shutdown waits for requests and batches under way.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a start waits for the first invocation by each schedule.
const FIRST_INVOCATION_TIMEOUT: Duration = Duration::from_secs(2);
/// The time limit of a function that is not invoked over HTTP.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A running system.
pub struct System {
    url: String,
    ingest_url: Option<String>,
    store: StoreConfig,
    time_zone: String,
    table: DynamoStore,
    options: Options,
    engine: Engine,
    /// Functions without authentication: the user who started this process owns the data.
    functions: Functions,
    consumers: Consumers,
    dead_letters: DeadLetters,
    stop: watch::Sender<bool>,
    gateways: Vec<JoinHandle<()>>,
    pollers: Vec<RunningPoller>,
    queue_poller: RunningQueuePoller,
    /// The tasks of the schedules and the sweeper. A shutdown does not wait for them.
    background: Vec<JoinHandle<()>>,
}

/// The number of partitions of the devices in a table; `None` for a table without devices.
pub(crate) async fn shards_of(
    config: &StoreConfig,
    layout: Layout,
) -> anyhow::Result<Option<Shards>> {
    let invocation = Invocation::until(Deadline::after(TIMEOUT));
    Ok(DynamoStore::connect(config, layout).stored_shards(&invocation).await?)
}

/// Starts the engine with the work queue, and makes or removes the indexes that the options decide; other indexes stay
/// as they are.
async fn start_engine(options: &Options) -> anyhow::Result<(Engine, Arc<Queue>)> {
    let wanted = [
        (&CONDITIONS_INDEX, options.conditions_index),
        (&ATTRIBUTE_INDEX, options.attribute_index),
    ];
    let (data, burst) = (options.data.clone(), options.provisioned);

    let start = move || {
        let engine = Engine::start(&data, burst)?;
        for (index, wanted) in wanted {
            if let Some(wanted) = wanted {
                engine.set_index(index, wanted)?;
            }
        }
        let work = engine.queue(ROLLUP_QUEUE.queue)?;
        Ok((engine, work))
    };

    tokio::task::spawn_blocking(start).await?
}

/// Warns if the clock was ahead at an earlier start.
async fn warn_of_wrong_clock(store: &DynamoStore) -> anyhow::Result<()> {
    let state = store.rollup_state(&Invocation::until(Deadline::after(TIMEOUT))).await?;
    let latest = state.and_then(|state| state.sealed.into_iter().max());
    let now = SystemClock.now();
    if let Some(sealed) =
        latest.filter(|latest| *latest > newest_sealable_end(now.saturating_add(SKEW)))
    {
        warn(format_args!(
            "an earlier start had a clock that was ahead: rollups were noted as complete up to {sealed}, and it is {now}. \
             They are folded again as time goes on; if this clock is the wrong one, stop and set it."
        ));
    }
    Ok(())
}

/// A store on the engine's table, with the indexes and partitions that the table has.
async fn connect(options: &Options, engine: &Engine) -> anyhow::Result<DynamoStore> {
    let (config, mut layout) = (engine.store_config(), Layout::default());
    let stored = shards_of(&config, layout).await?;
    layout.shards = options.device_shards.or(stored).unwrap_or_default();
    if let Some(stored) = stored.filter(|stored| *stored != layout.shards) {
        bail!(
            "{}: the devices are in {stored} partitions, which stays; start without --device-shards or with \
             --device-shards {stored}",
            engine.file().display()
        )
    }

    let invocation = Invocation::until(Deadline::after(TIMEOUT));
    Ok(DynamoStore::connect(&config, layout).as_laid_out(&invocation).await?)
}

/// Starts a schedule, and waits for its first invocation.
async fn start_schedule(
    function: ScheduledFunction,
    stopped: &watch::Receiver<bool>,
) -> JoinHandle<()> {
    let (first, invoked) = oneshot::channel();
    let started = tokio::spawn(scheduler::run(SCHEDULE_PERIOD, function, first, stopped.clone()));

    // Invoked before the first request, so that the function finds a new table empty. If its work takes longer,
    // requests do not wait for it.
    drop(tokio::time::timeout(FIRST_INVOCATION_TIMEOUT, invoked).await);
    started
}

/// Starts the sweeper and the schedules.
async fn start_background(
    engine: &Engine,
    consumers: &Consumers,
    functions: &Functions,
    options: &Options,
    stopped: &watch::Receiver<bool>,
) -> Vec<JoinHandle<()>> {
    let mut background = vec![tokio::spawn(sweep(engine.sweeper(), stopped.clone()))];
    background.push(start_schedule(consumers.scheduled_rollup(), stopped).await);

    // A command that opens the data briefly sends no alerts and asks no sources.
    if options.listens {
        let hinted = consumers.alerting_at(AlertingEvent::Hint);
        background.push(tokio::spawn(consumers.hint.clone().follow(hinted, stopped.clone())));
        let alerting = consumers.alerting_at(AlertingEvent::Schedule);
        for function in [alerting, functions.scheduled_fetching()] {
            background.push(start_schedule(function, stopped).await);
        }
    }

    background
}

/// Starts to deliver the stream to the functions, each from its own position on.
async fn start_pollers(
    engine: &Engine,
    consumers: &Consumers,
    rollup_delay: RollupDelay,
    dead_letters: &DeadLetters,
    stopped: &watch::Receiver<bool>,
) -> anyhow::Result<Vec<RunningPoller>> {
    let rollup_stream = StreamSource { window: rollup_delay.window(), ..ROLLUP_STREAM };
    let streams = [
        (REGISTRY_STREAM, consumers.registry_of_stream()),
        (rollup_stream, consumers.rollup_of_stream()),
    ];
    let names = [REGISTRY_STREAM.name, ROLLUP_STREAM.name];

    let stream = engine.stream();
    let positions = tokio::task::spawn_blocking(move || stream.set_consumers(&names)).await??;

    let mut pollers = Vec::new();
    for ((source, function), position) in streams.into_iter().zip(positions) {
        let (stream, dead_letters) = (engine.stream(), dead_letters.clone());
        let poller = StreamPoller { stream, source, function, dead_letters };
        pollers.push(poller.spawn(position, stopped.clone()));
    }
    Ok(pollers)
}

/// Refuses a public address without authentication, where anybody could read and write.
fn check_host(options: &Options) -> anyhow::Result<()> {
    if options.auth || options.host.is_loopback() {
        return Ok(());
    }
    bail!(
        "{} can be reached from other machines, and without tokens anybody there may read and write; add --auth",
        options.host
    )
}

/// The name of the time zone of the table's rollups, which the first invocation of the rollup function has stored.
async fn stored_zone(store: &DynamoStore, options: &Options) -> anyhow::Result<String> {
    let state = store.rollup_state(&Invocation::until(Deadline::after(TIMEOUT))).await?;
    Ok(state.map_or_else(|| options.time_zone.name().to_owned(), |state| state.zone))
}

impl fmt::Debug for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("System")
            .field("url", &self.url)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl System {
    /// Starts the system, which answers requests from then on.
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        check_host(&options)?;
        let addresses = Addresses::listen(&options).await?;
        let (url, ingest_url) = (addresses.url(), addresses.ingest_url());

        let (engine, work) = start_engine(&options).await?;
        let config = engine.store_config();
        let store = connect(&options, &engine).await?;
        let dead_letters = DeadLetters::default();

        let rollup_delay = functions::rollup_delay(&options);
        let start = |auth| {
            let told = ingest_url.clone();
            Box::pin(Functions::start(&store, &options, rollup_delay, auth, told))
        };
        let functions = start(Auth::Owner).await;
        let (served, authorizer) = if options.auth {
            let authorizer = Authorizer::new(store.clone(), options.telemetry.clone());
            (start(Auth::On).await, Some(Arc::new(authorizer)))
        } else {
            (functions.clone(), None)
        };

        let sender = LocalWorkQueue::to(Arc::clone(&work));
        let page_url = options.page_url.clone().unwrap_or_else(|| url.clone());
        let consumers =
            Consumers::start(&store, sender, &dead_letters, &options, rollup_delay, page_url);

        warn_of_wrong_clock(&store).await?;
        let (stop, stopped) = watch::channel(false);
        let background =
            start_background(&engine, &consumers, &functions, &options, &stopped).await;
        let time_zone = stored_zone(&store, &options).await?;

        let pollers =
            start_pollers(&engine, &consumers, rollup_delay, &dead_letters, &stopped).await?;
        let queue_poller = QueuePoller {
            queue: work,
            source: ROLLUP_QUEUE,
            function: consumers.rollup_of_queue(),
            dead_letters: dead_letters.clone(),
        };
        let queue_poller = queue_poller.spawn(stopped.clone());

        let gateways = addresses.serve(&served, authorizer.as_ref(), &stopped);
        Ok(Self {
            url,
            ingest_url,
            store: config,
            time_zone,
            table: store,
            options,
            engine,
            functions,
            consumers,
            dead_letters,
            stop,
            gateways,
            pollers,
            queue_poller,
            background,
        })
    }

    /// Returns the API's address on this machine, without a slash at the end; empty if the system listens on no port.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the address that stores readings, if the ingest function has an address of its own.
    pub fn ingest_url(&self) -> Option<&str> {
        self.ingest_url.as_deref()
    }

    /// Returns the engine's address, for any `DynamoDB` client.
    pub fn engine_endpoint(&self) -> &str {
        self.engine.endpoint()
    }

    /// Returns the path of the file that holds the table.
    pub fn data_file(&self) -> &std::path::Path {
        self.engine.file()
    }

    /// Returns the settings with which a store reaches the table.
    pub const fn store_config(&self) -> &StoreConfig {
        &self.store
    }

    /// Returns the name of the time zone of the days of rollups: the one of the first start.
    pub fn time_zone(&self) -> &str {
        &self.time_zone
    }

    /// Returns whether the table holds nothing but the state of the functions.
    pub fn is_empty(&self) -> anyhow::Result<bool> {
        self.engine.is_empty()
    }

    /// Returns whether the table holds a reading.
    pub fn has_readings(&self) -> anyhow::Result<bool> {
        self.engine.has_readings()
    }

    /// Returns the loader of past days with their rollups. Drop it before the system ends.
    pub async fn loader(&self) -> anyhow::Result<Loader> {
        let Self { functions, table, time_zone, options, .. } = self;
        let zone = time_zone.parse().map_err(|error| anyhow!("{error}"))?;
        let loader = Loader::new(functions.clone(), table.clone(), self.bulk(), zone, options);
        Ok(Box::pin(loader).await)
    }

    /// Returns the writer of many rollups at once. Drop it before the system ends.
    pub fn bulk(&self) -> Bulk {
        Bulk::of(self.engine.load())
    }

    /// Sends a request to the API without a connection.
    ///
    /// The user who started the system owns the data, so the request needs no access token.
    pub async fn send(
        &self,
        request: http::Request<Vec<u8>>,
    ) -> anyhow::Result<http::Response<Vec<u8>>> {
        Box::pin(gateway::send(&self.functions, request)).await
    }

    /// Invokes the function of the route that an event of API Gateway names.
    pub async fn invoke_http(
        &self,
        event: ApiGatewayV2httpRequest,
    ) -> anyhow::Result<ApiGatewayV2httpResponse> {
        Box::pin(gateway::invoke(&self.functions, event, None)).await
    }

    /// Invokes the ingest function.
    pub async fn invoke_ingest(&self, event: ingest::Event) -> anyhow::Result<ingest::Reply> {
        Ok(Box::pin(self.functions.ingest.handle(event, Deadline::after(TIMEOUT))).await?)
    }

    /// Invokes the registry function with stream records.
    pub async fn invoke_registry(&self, event: Event) -> DynamoDbEventResponse {
        Box::pin(self.consumers.registry.handle(event, Deadline::after(TIMEOUT))).await
    }

    /// Invokes the rollup function.
    pub async fn invoke_rollup(&self, event: rollup::Event) -> anyhow::Result<rollup::Reply> {
        let reply = self.consumers.rollup.handle(event, Deadline::after(TIMEOUT));
        Box::pin(reply).await.map_err(|error| anyhow!(error))
    }

    /// Invokes the fetching function.
    pub async fn invoke_fetching(
        &self,
        event: fetching::Event,
    ) -> anyhow::Result<Option<fetching::TestReply>> {
        let done = self.functions.fetching.handle(event, Deadline::after(TIMEOUT));
        Box::pin(done).await.map_err(|error| anyhow!(error))
    }

    /// Invokes the alerting function.
    pub async fn invoke_alerting(&self, event: alerting::Event) -> anyhow::Result<()> {
        let done = self.consumers.alerting.handle(event, Deadline::after(TIMEOUT));
        Box::pin(done).await.map_err(|error| anyhow!(error))
    }

    /// Waits until every function has received the stream and the queue, including what the functions wrote and sent
    /// meanwhile.
    pub async fn settle(&self) -> anyhow::Result<()> {
        loop {
            let stream = self.engine.stream();
            let newest = tokio::task::spawn_blocking(move || stream.newest()).await??;
            let is_delivered = self.pollers.iter().all(|poller| poller.position() >= newest);
            if is_delivered && !self.queue_poller.is_busy().await? {
                return Ok(());
            }

            for poller in &self.pollers {
                poller.reach(newest).await?;
            }
            self.queue_poller.settle().await?;
        }
    }

    /// Returns the records and messages that no function could process, oldest first.
    pub fn dead_letters(&self) -> Vec<DeadLetter> {
        self.dead_letters.all()
    }

    /// Calls [`shutdown`](Self::shutdown) as soon as no other process uses the data through this one. Commands end this
    /// way, because a person who starts two commands does not know which one opened the data.
    pub async fn shutdown_when_unused(self) -> anyhow::Result<()> {
        let file = self.engine.file().to_owned();
        let waited = tokio::task::spawn_blocking(move || wait_until_unused(&file)).await;
        let ended = self.shutdown().await;
        let _closed_to_others = waited??;
        ended
    }

    /// Stops after the requests under way are answered. Undelivered stream records and messages stay in the file.
    pub async fn shutdown(self) -> anyhow::Result<()> {
        let Self {
            engine,
            table,
            functions,
            consumers,
            stop,
            gateways,
            pollers,
            queue_poller,
            background,
            ..
        } = self;

        stop.send_replace(true);
        for gateway in gateways {
            end(gateway, "the gateway", SHUTDOWN_TIMEOUT).await?;
        }
        for poller in pollers {
            end(poller.task, "a poller of the stream", SHUTDOWN_TIMEOUT).await?;
        }
        end(queue_poller.task, "the poller of the queue", SHUTDOWN_TIMEOUT).await?;

        for task in background {
            task.abort();
            drop(task.await);
        }

        // Dropping these closes their connections; the engine waits for open connections.
        drop((table, functions, consumers));
        tokio::task::spawn_blocking(move || engine.stop()).await?
    }
}

/// Deletes expired items from time to time. A sweep reads the whole table. The following pause is at least twenty times
/// as long, so that sweeps take at most a twentieth of the engine's time.
async fn sweep(
    sweep: impl Fn() -> anyhow::Result<usize> + Send + Sync + 'static,
    stop: watch::Receiver<bool>,
) {
    let sweep = Arc::new(sweep);
    let warnings = WarningLimiter::new();
    let mut rest = SWEEP_EVERY;

    while !is_stopped(&stop) {
        tokio::time::sleep(rest).await;
        let (watch, sweep) = (Stopwatch::start(), Arc::clone(&sweep));
        // The next sweep deletes the items that this one could not delete.
        if let Ok(Err(error)) = tokio::task::spawn_blocking(move || sweep()).await {
            warnings.warn(format_args!("expired items cannot be deleted: {error:#}"));
        }

        rest = SWEEP_EVERY.max(watch.elapsed().saturating_mul(20));
    }
}

#[cfg(test)]
mod tests {
    use domain::given;
    use serde_json::{Value, json};
    use table::{KeepRollupState as _, RollupState};

    use domain::Timestamp;

    use super::*;
    use crate::options::Data;

    async fn devices(system: &System) -> Value {
        let event = json!({
            "version": "2.0", "rawPath": "/devices", "requestContext": {"http": {"method": "GET"}},
        });
        let answer = system.invoke_http(serde_json::from_value(event).unwrap()).await.unwrap();
        let Some(aws_lambda_events::encodings::Body::Text(body)) = answer.body else {
            panic!("{answer:?}")
        };
        serde_json::from_str(&body).unwrap()
    }

    #[tokio::test]
    async fn indexes_come_and_go_as_they_are_told() {
        let directory = tempfile::tempdir().unwrap();
        let indexes = async |conditions_index, attribute_index| {
            let data = Data::Dir(directory.path().to_owned());
            let listens = false;
            let options =
                Options { data, listens, conditions_index, attribute_index, ..Options::default() };
            let system = Box::pin(System::start(options)).await.unwrap();

            let has_conditions = system.engine.has_index(&CONDITIONS_INDEX).unwrap();
            let store = DynamoStore::connect(system.store_config(), Layout::default());
            let invocation = Invocation::until(Deadline::after(TIMEOUT));
            let layout = store.as_laid_out(&invocation).await.unwrap().layout();

            system.shutdown().await.unwrap();
            [layout.room_index, has_conditions, layout.attribute_index]
        };

        assert_eq!(indexes(None, None).await, [true, false, false]);
        assert_eq!(indexes(None, Some(true)).await, [true, false, true]);
        assert_eq!(indexes(Some(true), None).await, [true, true, true]);
        assert_eq!(indexes(None, None).await, [true, true, true]);
        assert_eq!(indexes(None, Some(false)).await, [true, true, false]);
        assert_eq!(indexes(Some(false), None).await, [true, false, false]);
    }

    #[tokio::test]
    async fn what_only_the_stream_tells_reaches_the_registry_and_survives_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let options = || Options {
            data: Data::Dir(directory.path().to_owned()),
            registry_max_age: Duration::ZERO,
            ..Options::default()
        };

        let system = Box::pin(System::start(options())).await.unwrap();
        assert!(system.is_empty().unwrap());

        let payload = br#"{"room": "study", "temperature": 21.5}"#.to_vec();
        let timestamp = 1_768_147_200_000;
        let message = ingest::MqttMessage { device_id: "remo".to_owned(), timestamp, payload };
        system.invoke_ingest(ingest::Event::Iot(message)).await.unwrap();
        system.settle().await.unwrap();

        let metrics = devices(&system).await["data"][0]["metrics"].clone();
        assert!(metrics.get("temperature").is_some(), "{metrics}");
        assert!(system.dead_letters().is_empty());
        system.shutdown().await.unwrap();

        let system = Box::pin(System::start(options())).await.unwrap();
        system.settle().await.unwrap();
        assert_eq!(devices(&system).await["data"][0]["device_id"], "remo");
        system.shutdown().await.unwrap();
    }

    #[tokio::test]
    async fn the_time_zone_of_the_first_start_rules() {
        let directory = tempfile::tempdir().unwrap();
        let options = |zone: &str| Options {
            data: Data::Dir(directory.path().to_owned()),
            time_zone: given::zone(zone),
            ..Options::default()
        };

        let system = Box::pin(System::start(options("Europe/Berlin"))).await.unwrap();
        let store = DynamoStore::connect(system.store_config(), Layout::default());
        let invocation = Invocation::until(Deadline::after(TIMEOUT));
        let zone = system.time_zone().to_owned();
        let state = RollupState {
            zone,
            since: Timestamp::MIN,
            sealed: [Timestamp::MIN; domain::SWEEP_GROUPS],
            queue: None,
        };
        store.begin_rollups(&state, &invocation).await.unwrap();

        assert!(system.is_empty().unwrap(), "what the functions keep for themselves is no data");
        drop(store);
        system.shutdown().await.unwrap();

        let system = Box::pin(System::start(options("Asia/Tokyo"))).await.unwrap();
        assert_eq!(system.time_zone(), "Europe/Berlin");
        system.shutdown().await.unwrap();
    }
}
