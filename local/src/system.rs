//! The whole system in one process: engine, functions, pump and front. Prints nothing, reads no argument.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use aws::StoreConfig;
use aws_lambda_events::event::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use aws_lambda_events::event::dynamodb::Event;
use aws_lambda_events::event::streams::DynamoDbEventResponse;
use domain::Timestamp;
use registry::DeadLetter;
use runtime::clock::{Deadline, Stopwatch};
use runtime::telemetry::Telemetry;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::dead_letters::DeadLetters;
use crate::engine::Engine;
use crate::event_source_mapping::EventSourceMapping;
use crate::functions::Functions;
use crate::gateway::{Front, Guard, Limits};
use crate::table_definition::TableDefinition;
use crate::template::Template;
use crate::warning::WarningLimiter;
use crate::{gateway, stream_poller};

/// How often expired items are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(30);
/// How long requests and batches under way are waited for at the end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a function that no one waits for over HTTP may take.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Where the table lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// For as long as the system runs.
    Memory,
    /// In this directory, which is made where it is missing.
    Dir(PathBuf),
}

/// How a system is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the table lives; in memory by default.
    pub data: Data,
    /// Whether the API is served over HTTP, as it is by default. Otherwise only this process can ask it.
    pub listens: bool,
    /// The address listened on; loopback by default.
    pub host: IpAddr,
    /// The port; 0, the default, is any that is free.
    pub port: u16,
    /// Whether requests need an access token; not by default, because only this machine can send any.
    pub auth: bool,
    /// How old the functions' registry caches may grow; 1 second by default, so that a person sees
    /// a new device at once.
    pub registry_max_age: Duration,
    /// Readings before it are refused; the functions' own default.
    pub earliest_timestamp: Timestamp,
    /// After how many days readings expire; never by default.
    pub retention_days: Option<u32>,
    /// Where the functions' events go; nowhere by default.
    pub telemetry: Telemetry,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            data: Data::Memory,
            listens: true,
            host: Ipv4Addr::LOCALHOST.into(),
            port: 0,
            auth: false,
            registry_max_age: Duration::from_secs(1),
            earliest_timestamp: ingest::Settings::default().earliest_timestamp,
            retention_days: None,
            telemetry: Telemetry::silent(),
        }
    }
}

/// A running system.
pub struct System {
    url: String,
    store: StoreConfig,
    engine: Engine,
    /// Those that ask for no token: who started this program owns the data.
    functions: Functions,
    delivered: watch::Sender<i64>,
    dead_letters: DeadLetters,
    stop: watch::Sender<bool>,
    front: Option<JoinHandle<()>>,
    pump: JoinHandle<()>,
    sweeper: JoinHandle<()>,
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
    /// Starts everything; when this returns, requests are answered.
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        if !options.auth && !options.host.is_loopback() {
            bail!(
                "{} can be reached from other machines, and without tokens anybody there may read and write; add --auth",
                options.host
            );
        }
        let template = Template::own()?;
        let table = TableDefinition::from_template(&template, &[])?;
        let mapping = EventSourceMapping::from_template(&template)?;
        let listener = if options.listens {
            Some(gateway::listen(options.host, options.port).await?)
        } else {
            None
        };
        let address = listener.as_ref().map(TcpListener::local_addr).transpose()?;
        let url = address.map(|address| format!("http://{address}")).unwrap_or_default();

        let room_index = !table.global_secondary_indexes.is_empty();
        let data = options.data.clone();
        let engine = tokio::task::spawn_blocking(move || Engine::start(&data, &table)).await??;
        let store = engine.store_config(room_index);
        let dead_letters = DeadLetters::default();
        let functions = Functions::start(&store, &dead_letters, &options, false).await;
        let (served, guard) = if options.auth {
            let guarded = Functions::start(&store, &dead_letters, &options, true).await;
            (guarded, Some(Guard::new(&store, options.telemetry.clone())))
        } else {
            (functions.clone(), None)
        };

        let delivered = watch::Sender::default();
        let (stop, stopped) = watch::channel(false);
        let registry = Arc::clone(&functions.registry);
        let pump = tokio::spawn(stream_poller::run(
            engine.stream(),
            registry,
            mapping,
            delivered.clone(),
            dead_letters.clone(),
            stopped.clone(),
        ));
        let sweeper = tokio::spawn(sweep(engine.sweeper(), stopped.clone()));
        let front = listener.map(|listener| {
            tokio::spawn(gateway::serve(listener, Front::new(served, guard), Limits::OWN, stopped))
        });
        Ok(Self {
            url,
            store,
            engine,
            functions,
            delivered,
            dead_letters,
            stop,
            front,
            pump,
            sweeper,
        })
    }

    /// The API's address, without a slash at its end; empty where it does not listen.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The engine's address, for any `DynamoDB` client.
    #[must_use]
    pub fn engine_endpoint(&self) -> &str {
        self.engine.endpoint()
    }

    /// The file that holds the table.
    #[must_use]
    pub fn data_file(&self) -> &std::path::Path {
        self.engine.file()
    }

    /// How a store reaches the table.
    #[must_use]
    pub const fn store_config(&self) -> &StoreConfig {
        &self.store
    }

    /// Whether nothing was ever stored.
    pub fn is_empty(&self) -> anyhow::Result<bool> {
        self.engine.is_empty()
    }

    /// Sends a request to the API without a connection. Returns the status and the body.
    ///
    /// Whoever started the system owns the data, so the request needs no access token.
    pub async fn send(
        &self,
        request: http::Request<Vec<u8>>,
    ) -> anyhow::Result<(http::StatusCode, Vec<u8>)> {
        gateway::send(&self.functions, request).await
    }

    /// Hands an event of API Gateway to the function whose route it names.
    pub async fn invoke_http(
        &self,
        event: ApiGatewayV2httpRequest,
    ) -> anyhow::Result<ApiGatewayV2httpResponse> {
        gateway::invoke(&self.functions, event).await
    }

    /// Hands an event to ingest.
    pub async fn invoke_ingest(&self, event: ingest::Event) -> anyhow::Result<ingest::Reply> {
        Ok(Box::pin(self.functions.ingest.handle(event, Deadline::after(TIMEOUT))).await?)
    }

    /// Hands stream records to the registry.
    pub async fn invoke_registry(&self, event: Event) -> DynamoDbEventResponse {
        Box::pin(self.functions.registry.handle(event, Deadline::after(TIMEOUT))).await
    }

    /// Waits until the stream is delivered, with what the registry wrote meanwhile.
    pub async fn settle(&self) -> anyhow::Result<()> {
        let mut delivered = self.delivered.subscribe();
        loop {
            let stream = self.engine.stream();
            let newest = tokio::task::spawn_blocking(move || stream.newest()).await??;
            if *delivered.borrow_and_update() >= newest {
                return Ok(());
            }
            // The pump ends only with an error or with the system.
            let moved = tokio::time::timeout(Duration::from_millis(200), delivered.changed()).await;
            if moved.is_err() && self.pump.is_finished() {
                bail!("the stream is no longer delivered");
            }
        }
    }

    /// What the registry could not be given or can never apply, oldest first.
    #[must_use]
    pub fn dead_letters(&self) -> Vec<DeadLetter> {
        self.dead_letters.all()
    }

    /// Answers what is under way, then stops. What is not yet delivered waits in the file.
    pub async fn shutdown(self) -> anyhow::Result<()> {
        let Self { engine, functions, stop, front, mut pump, sweeper, .. } = self;
        stop.send_replace(true);
        // A client that holds a request open, or a batch that hangs, is not waited for longer.
        if let Some(mut front) = front {
            match tokio::time::timeout(SHUTDOWN_TIMEOUT, &mut front).await {
                Ok(ended) => ended.context("the server panicked")?,
                Err(_) => front.abort(),
            }
        }
        match tokio::time::timeout(SHUTDOWN_TIMEOUT, &mut pump).await {
            Ok(ended) => ended.context("the delivery of the stream panicked")?,
            Err(_) => pump.abort(),
        }
        sweeper.abort();
        // The clients' connections close with them; the engine waits for open ones.
        drop((functions, sweeper.await));
        tokio::task::spawn_blocking(move || engine.stop()).await?
    }
}

/// Deletes expired items now and then. A sweep reads the whole table, so on a large one it pauses for
/// twenty times as long as it took, and never uses more than a twentieth of the engine's time.
async fn sweep(
    sweep: impl Fn() -> anyhow::Result<usize> + Send + Sync + 'static,
    stop: watch::Receiver<bool>,
) {
    let sweep = Arc::new(sweep);
    let warnings = WarningLimiter::new();
    let mut rest = SWEEP_EVERY;
    while !*stop.borrow() && stop.has_changed().is_ok() {
        tokio::time::sleep(rest).await;
        let (watch, sweep) = (Stopwatch::start(), Arc::clone(&sweep));
        // What could not be deleted now is found by the next sweep.
        if let Ok(Err(error)) = tokio::task::spawn_blocking(move || sweep()).await {
            warnings.warn(format_args!("expired items cannot be deleted: {error:#}"));
        }
        rest = SWEEP_EVERY.max(watch.elapsed().saturating_mul(20));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

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
    async fn what_only_the_stream_tells_reaches_the_registry_and_survives_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let options = || Options {
            data: Data::Dir(directory.path().to_owned()),
            registry_max_age: Duration::ZERO,
            ..Options::default()
        };
        let system = System::start(options()).await.unwrap();
        assert!(system.is_empty().unwrap());
        let payload = br#"{"room": "study", "temperature": 21.5}"#.to_vec();
        let timestamp = 1_768_147_200_000;
        let message = ingest::Message { device_id: "remo".to_owned(), timestamp, payload };
        system.invoke_ingest(ingest::Event::Iot(message)).await.unwrap();
        system.settle().await.unwrap();
        let metrics = devices(&system).await["data"][0]["metrics"].clone();
        assert!(metrics.get("temperature").is_some(), "{metrics}");
        assert!(system.dead_letters().is_empty());
        system.shutdown().await.unwrap();

        let system = System::start(options()).await.unwrap();
        system.settle().await.unwrap();
        assert_eq!(devices(&system).await["data"][0]["device_id"], "remo");
        system.shutdown().await.unwrap();
    }
}
