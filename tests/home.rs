//! A home: the functions of the system on one table, with a clock, a log, queues and a receiver of messages. What happens
//! goes the way that it goes in the real system. Knows no test.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use alerting::{Alerting, Carrier, NoEmail};
use aws_lambda_events::event::apigw::ApiGatewayV2httpRequest;
use domain::{Reading, Timestamp, Zone};
use ingest::Ingest;
use outgoing::Request;
use query::Query;
use registry::Registry;
use rollup::{Retention, Rollup};
use runtime::auth::Auth;
use runtime::clock::{Deadline, TestClock};
use runtime::dead_letters::{DeadLetter, MemoryQueue};
use runtime::invoke::InvokeFunction;
use runtime::telemetry::Telemetry;
use runtime::work_queue::FoldRequest;
use sending::{SendRequest, Unanswered};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::given::{Answer, at, minute, post, request};
use crate::records::batch;

/// All that the functions ask of a table.
pub(crate) trait Store:
    ingest::Store + query::Store + registry::Store + rollup::Store + alerting::Store + Clone
{
}

impl<S> Store for S where
    S: ingest::Store + query::Store + registry::Store + rollup::Store + alerting::Store + Clone
{
}

/// What a home is made with, beside its table.
#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) clock: TestClock,
    pub(crate) log: Log,
    pub(crate) registry_max_age: Duration,
    pub(crate) zone: Zone,
    pub(crate) retention: Retention,
    /// How long an invocation may take.
    pub(crate) deadline: fn() -> Deadline,
    pub(crate) work: MemoryQueue<FoldRequest>,
    pub(crate) letters: MemoryQueue<DeadLetter>,
}

impl Options {
    /// A home as it is by default, at a moment.
    pub(crate) fn at(now: Timestamp) -> Self {
        Self {
            clock: TestClock::at(now),
            log: Log::default(),
            registry_max_age: Duration::from_secs(60),
            zone: Zone::UTC,
            retention: Retention::default(),
            deadline: minute,
            work: MemoryQueue::default(),
            letters: MemoryQueue::default(),
        }
    }
}

/// The lines that the functions log.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn telemetry(&self) -> Telemetry {
        let lines = Arc::clone(&self.0);
        Telemetry::to(Arc::new(move |line| {
            lines.lock().expect("no test panics with it").push(line.to_owned());
        }))
    }

    /// All lines.
    pub(crate) fn text(&self) -> String {
        self.0.lock().expect("no test panics with it").join("\n")
    }

    /// The read and write units of all invocations since the last time.
    pub(crate) fn take_units(&self) -> (f64, f64) {
        let lines = std::mem::take(&mut *self.0.lock().expect("no test panics with it"));
        let (mut reads, mut writes) = (0.0, 0.0);
        for line in lines {
            let line: Value = serde_json::from_str(&line).expect("JSON");
            reads += line["table.read_units"].as_f64().expect("a number");
            writes += line["table.write_units"].as_f64().expect("a number");
        }
        (reads, writes)
    }
}

/// A receiver that takes every message.
#[derive(Clone, Default)]
pub(crate) struct Receiver(Arc<Mutex<Vec<String>>>);

impl Receiver {
    /// The bodies of all messages.
    pub(crate) fn messages(&self) -> Vec<String> {
        self.0.lock().expect("no test panics with it").clone()
    }
}

impl SendRequest for Receiver {
    fn send(&self, request: &Request) -> Result<outgoing::Answer, Unanswered> {
        let text = request.body().to_owned();
        self.0.lock().expect("no test panics with it").push(text);
        Ok(outgoing::Answer { status: 200, retry_after: None, text: String::new() })
    }
}

/// A function that reads the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Consumer {
    Registry,
    Rollup,
}

/// One instance of each function on a table, open to all. A function is made when it is first asked.
pub(crate) struct Home<S> {
    pub(crate) store: S,
    pub(crate) clock: TestClock,
    pub(crate) log: Log,
    pub(crate) receiver: Receiver,
    pub(crate) work: MemoryQueue<FoldRequest>,
    pub(crate) letters: MemoryQueue<DeadLetter>,
    registry_max_age: Duration,
    zone: Zone,
    retention: Retention,
    deadline: fn() -> Deadline,
    ingest: OnceLock<Ingest<S, TestClock>>,
    query: OnceLock<Query<S, TestClock>>,
    registry: OnceLock<Registry<S, MemoryQueue<DeadLetter>, TestClock>>,
    rollup: OnceLock<Rollup<S, MemoryQueue<FoldRequest>, MemoryQueue<DeadLetter>, TestClock>>,
    alerting: OnceLock<Alerting<S, TestClock>>,
}

impl<S: Store> Home<S> {
    pub(crate) fn with(store: S, options: Options) -> Self {
        let Options { clock, log, registry_max_age, zone, retention, deadline, work, letters } =
            options;
        Self {
            store,
            clock,
            log,
            receiver: Receiver::default(),
            work,
            letters,
            registry_max_age,
            zone,
            retention,
            deadline,
            ingest: OnceLock::new(),
            query: OnceLock::new(),
            registry: OnceLock::new(),
            rollup: OnceLock::new(),
            alerting: OnceLock::new(),
        }
    }

    /// A home as it is by default, at a moment.
    pub(crate) fn at(store: S, now: Timestamp) -> Self {
        Self::with(store, Options::at(now))
    }

    // ---- The functions -------------------------------------------------------------------------

    pub(crate) fn ingest(&self) -> &Ingest<S, TestClock> {
        self.ingest.get_or_init(|| {
            let settings = ingest::Settings {
                registry_max_age: self.registry_max_age,
                auth: Auth::Owner,
                ..ingest::Settings::default()
            };
            let telemetry = self.log.telemetry();
            Ingest::new(self.store.clone(), self.clock.clone(), telemetry, settings)
        })
    }

    pub(crate) fn query(&self) -> &Query<S, TestClock> {
        self.query.get_or_init(|| self.new_query())
    }

    fn new_query(&self) -> Query<S, TestClock> {
        let settings = query::Settings {
            registry_max_age: self.registry_max_age,
            auth: Auth::Owner,
            ..query::Settings::default()
        };
        let telemetry = self.log.telemetry();
        Query::new(self.store.clone(), self.clock.clone(), telemetry, settings)
    }

    /// Lets the function `query` have sources tried, before it is first asked.
    pub(crate) fn try_sources_by(&self, fetching: impl InvokeFunction + 'static) {
        let is_first = self.query.set(self.new_query().with_fetching(fetching)).is_ok();
        assert!(is_first, "query was asked before");
    }

    fn registry(&self) -> &Registry<S, MemoryQueue<DeadLetter>, TestClock> {
        self.registry.get_or_init(|| {
            let (letters, telemetry) = (self.letters.clone(), self.log.telemetry());
            Registry::new(self.store.clone(), letters, self.clock.clone(), telemetry)
        })
    }

    fn rollup(&self) -> &Rollup<S, MemoryQueue<FoldRequest>, MemoryQueue<DeadLetter>, TestClock> {
        self.rollup.get_or_init(|| {
            let settings = rollup::Settings {
                zone: self.zone,
                retention: self.retention,
                rollup_delay: rollups::RollupDelay::default(),
                max_read_units: u32::MAX,
                max_write_units: u32::MAX,
            };
            let (work, letters) = (self.work.clone(), self.letters.clone());
            let (clock, telemetry) = (self.clock.clone(), self.log.telemetry());
            Rollup::new(self.store.clone(), work, letters, clock, telemetry, settings)
        })
    }

    fn alerting(&self) -> &Alerting<S, TestClock> {
        self.alerting.get_or_init(|| {
            let page_url = "https://page.example.org/".to_owned();
            let settings = alerting::Settings { page_url, heartbeat: None };
            let carrier = Carrier::new(self.receiver.clone(), NoEmail);
            let telemetry = self.log.telemetry();
            Alerting::new(self.store.clone(), carrier, self.clock.clone(), telemetry, settings)
        })
    }

    // ---- Requests ------------------------------------------------------------------------------

    /// Reads the registry, as an instance does at its cold start.
    pub(crate) async fn load(&self) {
        Box::pin(self.ingest().load()).await;
        Box::pin(self.query().load()).await;
    }

    /// Asks the function `query`.
    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        parameters: &str,
        body: Option<&Value>,
    ) -> Answer {
        let event = request(method, path, parameters, body);
        self.ask_until(event, (self.deadline)()).await
    }

    /// The same, by a deadline.
    pub(crate) async fn ask_until(
        &self,
        event: ApiGatewayV2httpRequest,
        deadline: Deadline,
    ) -> Answer {
        Answer::of(&Box::pin(self.query().handle(event, deadline)).await)
    }

    pub(crate) async fn get(&self, path: &str, parameters: &str) -> Answer {
        self.ask("GET", path, parameters, None).await
    }

    /// An answer that has what was asked for.
    pub(crate) async fn found(&self, path: &str, parameters: &str) -> Answer {
        self.found_within(1, path, parameters).await
    }

    /// Like `found`, but asks up to ten times more after a 503: a busy machine has no time for some requests.
    pub(crate) async fn found_in_the_end(&self, path: &str, parameters: &str) -> Answer {
        self.found_within(11, path, parameters).await
    }

    async fn found_within(&self, attempts: usize, path: &str, parameters: &str) -> Answer {
        let mut answer = self.get(path, parameters).await;
        for _ in 1..attempts {
            if answer.status != 503 {
                break;
            }
            answer = self.get(path, parameters).await;
        }
        assert_eq!(answer.status, 200, "{path}?{parameters}: {}", answer.body);
        answer
    }

    /// Sends a request to the function `ingest`.
    pub(crate) async fn send(&self, event: ingest::Event) -> Answer {
        self.send_until(event, (self.deadline)()).await
    }

    /// The same, by a deadline.
    pub(crate) async fn send_until(&self, event: ingest::Event, deadline: Deadline) -> Answer {
        let reply = Box::pin(self.ingest().handle(event, deadline)).await;
        let reply = reply.expect("a request has an answer");
        Answer::of(&serde_json::to_value(reply).expect("an answer is JSON"))
    }

    /// Posts readings.
    pub(crate) async fn post(&self, readings: &[Reading]) -> Answer {
        self.send(post(readings)).await
    }

    // ---- The stream, the queue and the schedule ------------------------------------------------

    /// Hands a batch of the stream to a function. Returns the number of the first record that failed.
    pub(crate) async fn hand(&self, consumer: Consumer, records: &[Value]) -> Option<usize> {
        self.hand_until(consumer, records, (self.deadline)()).await
    }

    /// The same, by a deadline.
    pub(crate) async fn hand_until(
        &self,
        consumer: Consumer,
        records: &[Value],
        deadline: Deadline,
    ) -> Option<usize> {
        let batch = batch(records);
        let answer = match consumer {
            Consumer::Registry => Box::pin(self.registry().handle(batch, deadline)).await,
            Consumer::Rollup => Box::pin(self.rollup().handle_stream(batch, deadline)).await,
        };
        assert!(answer.batch_item_failures.len() <= 1, "{answer:?}");
        let failure = answer.batch_item_failures.into_iter().next()?;
        Some(failure.item_identifier?.parse().expect("a number"))
    }

    /// Delivers records to a function as the event source mapping does: from the reported one on again, until none is.
    pub(crate) async fn hand_all(&self, consumer: Consumer, mut records: &[Value]) {
        for _ in 0..200 {
            let Some(failed) = self.hand(consumer, records).await else { return };
            let failed = failed.to_string();
            let is_failed = |record: &Value| record["dynamodb"]["SequenceNumber"] == failed;
            let from = records.iter().position(is_failed);
            records = &records[from.expect("a record of this batch is reported")..];
        }
        panic!("200 deliveries were not enough");
    }

    /// Delivers records to all who read the stream; nothing fails.
    pub(crate) async fn deliver(&self, records: &[Value]) {
        for consumer in [Consumer::Registry, Consumer::Rollup] {
            assert_eq!(self.hand(consumer, records).await, None, "{consumer:?}");
        }
    }

    /// Hands a message of the queue to the function `rollup`. Returns whether it is done.
    pub(crate) async fn fold(&self, message: &FoldRequest) -> bool {
        let event = message_event(message);
        let answer = Box::pin(self.rollup().handle_queue(event, (self.deadline)())).await;
        answer.batch_item_failures.is_empty()
    }

    /// The minute of the function `rollup`.
    pub(crate) async fn schedule(&self) -> Result<(), rollup::NotDone> {
        Box::pin(self.rollup().handle_schedule((self.deadline)())).await
    }

    /// The same at a moment, so many milliseconds after the start; it is done.
    pub(crate) async fn schedule_at(&self, millis: i64) {
        self.clock.set(at(millis));
        self.schedule().await.expect("nothing fails");
    }

    /// An invocation of the function `alerting`, by a deadline.
    pub(crate) async fn alert(
        &self,
        event: alerting::Event,
        deadline: Deadline,
    ) -> Result<(), alerting::Failure> {
        Box::pin(self.alerting().handle(event, deadline)).await
    }

    /// Hands the JSON of an event to the function of that name, as Lambda does. Returns what Lambda returns.
    pub(crate) async fn invoke(&self, function: &str, event: &str) -> Value {
        let deadline = (self.deadline)();
        match function {
            "ingest" => {
                let reply = Box::pin(self.ingest().handle(read(event), deadline)).await;
                json!(reply.expect("the table does not fail"))
            }
            "query" => json!(Box::pin(self.query().handle(read(event), deadline)).await),
            "registry" => json!(Box::pin(self.registry().handle(read(event), deadline)).await),
            "rollup" => {
                let reply = Box::pin(self.rollup().handle(read(event), deadline)).await;
                json!(reply.expect("the table does not fail"))
            }
            "alerting" => {
                self.alert(read(event), deadline).await.expect("the table does not fail");
                Value::Null
            }
            other => panic!("{other} is no function"),
        }
    }
}

fn read<T: DeserializeOwned>(event: &str) -> T {
    serde_json::from_str(event).expect("an event")
}

/// A message of the work queue, as the function is invoked with it.
fn message_event<T: DeserializeOwned>(message: &FoldRequest) -> T {
    let body = serde_json::to_string(message).expect("JSON");
    let event = json!({"Records": [{"messageId": "m", "body": body}]});
    serde_json::from_value(event).expect("an event")
}
