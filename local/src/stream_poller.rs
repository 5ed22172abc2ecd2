//! Delivers the table's stream to one function, as an event source mapping does. Knows no function's rules.
//!
//! Each mapping has a poller and a position of its own, so a failing function delays no other function. Batches are
//! delivered at least once, one at a time, in the order of the stream. See [`Stream`] for why a kill loses nothing.

mod delivery;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use aws_lambda_events::event::dynamodb::{Event, EventRecord};
use aws_lambda_events::event::streams::DynamoDbEventResponse;
use runtime::clock::Deadline;
use runtime::dead_letters::DeadLetter;
use serde_dynamo::AttributeValue;
use table::keys::{PK, SK};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::dead_letters::DeadLetters;
use crate::engine::{Record, Stream};
use crate::event_source_mapping::EventSourceMapping;
use crate::function_run::run_function;
use crate::functions::StreamFunction;
use crate::stop::{is_stopped, pause};
use crate::warning::WarningLimiter;
use delivery::{Delivery, Outcome, Policy, Verdict};

/// How often an idle stream is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(25);
/// The records that are read at once; the engine returns no more.
const PAGE: usize = 1_000;
/// The pause before the first retry; each further pause is twice as long, up to the maximum.
const MIN_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// Everything that a poller needs.
pub(crate) struct StreamPoller {
    pub(crate) stream: Arc<Stream>,
    /// How the stream is delivered.
    pub(crate) mapping: EventSourceMapping,
    /// The function that receives the records.
    pub(crate) function: StreamFunction,
    /// The queue for records that failed at every attempt.
    pub(crate) dead_letters: DeadLetters,
}

/// A running poller.
pub(crate) struct RunningPoller {
    name: String,
    /// The number of the last record that was delivered, filtered out or given up.
    position: watch::Receiver<i64>,
    /// The number of a record that `reach` waits for: up to it, the poller does not wait to gather a fuller batch.
    wanted: watch::Sender<i64>,
    task: JoinHandle<()>,
}

impl RunningPoller {
    /// The number of the last record that the poller has passed.
    pub(crate) fn position(&self) -> i64 {
        *self.position.borrow()
    }

    /// Waits until the poller has passed the record of this number. Until then the poller does not wait to gather
    /// further records.
    pub(crate) async fn reach(&self, number: i64) -> anyhow::Result<()> {
        self.wanted.send_modify(|wanted| *wanted = number.max(*wanted));
        let reached = self.position.clone().wait_for(|position| *position >= number).await.is_ok();
        if reached { Ok(()) } else { Err(anyhow!("{} no longer polls the stream", self.name)) }
    }

    /// Waits for the end of a poller that was stopped. Aborts the poller after `timeout`.
    pub(crate) async fn end(mut self, timeout: Duration) -> anyhow::Result<()> {
        match tokio::time::timeout(timeout, &mut self.task).await {
            Ok(ended) => ended.with_context(|| format!("the poller {} panicked", self.name)),
            Err(_) => {
                self.task.abort();
                Ok(())
            }
        }
    }
}

impl StreamPoller {
    /// Polls from `position` until it is stopped; an invocation under way still ends.
    pub(crate) fn spawn(self, position: i64, stop: watch::Receiver<bool>) -> RunningPoller {
        let name = self.mapping.name.clone();
        let (sender, receiver) = watch::channel(position);
        let wanted = watch::Sender::new(0);
        let task = tokio::spawn(self.poll(sender, wanted.subscribe(), stop));
        RunningPoller { name, position: receiver, wanted, task }
    }

    async fn poll(
        self,
        position: watch::Sender<i64>,
        mut wanted: watch::Receiver<i64>,
        mut stop: watch::Receiver<bool>,
    ) {
        let warnings = WarningLimiter::new();
        let gathers = !self.mapping.window.is_zero();
        let mut gathered = false;
        while !is_stopped(&stop) {
            let passed = *position.borrow();
            match self.next_page(passed).await {
                Ok(records) if records.is_empty() => pause(POLL_INTERVAL, &mut stop).await,
                Ok(records) if gathers && !gathered && records.len() < self.mapping.batch_size => {
                    tokio::select! {
                        () = pause(self.mapping.window, &mut stop) => {}
                        _ = wanted.wait_for(|wanted| *wanted > passed) => {}
                    }
                    gathered = true;
                }
                Ok(records) => {
                    gathered = false;
                    let Some(last) = self.deliver(records, &mut stop).await else { break };
                    // A position that cannot be saved now is saved with the next page. After a kill in between, the
                    // records are delivered again.
                    if let Err(error) = self.advance(last).await {
                        warnings
                            .warn(format_args!("the stream's position cannot be kept: {error:#}"));
                    }
                    position.send_replace(last);
                }
                Err(error) => {
                    warnings.warn(format_args!("the stream cannot be read: {error:#}"));
                    pause(MAX_PAUSE, &mut stop).await;
                }
            }
        }
    }

    async fn next_page(&self, after: i64) -> anyhow::Result<Vec<Record>> {
        let stream = Arc::clone(&self.stream);
        let read = move || {
            if stream.newest()? > after { stream.read(after, PAGE) } else { Ok(Vec::new()) }
        };
        tokio::task::spawn_blocking(read).await?
    }

    async fn advance(&self, position: i64) -> anyhow::Result<()> {
        let (stream, consumer) = (Arc::clone(&self.stream), self.mapping.name.clone());
        tokio::task::spawn_blocking(move || stream.advance(&consumer, position)).await?
    }

    /// Delivers records batch by batch. Returns the number of the last record, or `None` when the poller is stopped.
    async fn deliver(&self, records: Vec<Record>, stop: &mut watch::Receiver<bool>) -> Option<i64> {
        let last = records.last().map(|record| record.number);
        let events = records.into_iter().map(|record| record.event);
        let accepted = events.filter(|event| is_change(event) && self.mapping.accepts(event));
        let accepted = accepted.map(serde_json::from_value);
        let accepted: Vec<EventRecord> = accepted
            .collect::<Result<_, _>>()
            .expect("the engine's records are those of DynamoDB Streams");
        let policy = Policy { retries: self.mapping.retries, bisect: self.mapping.bisect };
        for batch in accepted.chunks(self.mapping.batch_size) {
            let mut delivery = Delivery::new(batch.len(), policy);
            while let Some(range) = delivery.next() {
                if is_stopped(stop) {
                    return None;
                }
                let records = &batch[range.clone()];
                let outcome = match self.invoke(records).await {
                    None => Outcome::FailedWhole,
                    Some(_) if !self.mapping.partial_responses => Outcome::Done,
                    Some(response) => match outcome(&response, records) {
                        Outcome::FailedFrom(position) => {
                            Outcome::FailedFrom(range.start + position)
                        }
                        other => other,
                    },
                };
                match delivery.report(outcome) {
                    Verdict::GoOn => {}
                    Verdict::Pause(failures) => pause(pause_after(failures), stop).await,
                    Verdict::GiveUp(range) => self.give_up(&batch[range]),
                }
            }
        }
        last
    }

    /// Invokes the function. Returns `None` if it panics or takes too long.
    async fn invoke(&self, records: &[EventRecord]) -> Option<DynamoDbEventResponse> {
        let mut event = Event::default();
        event.records = records.to_vec();
        let timeout = self.mapping.timeout;
        run_function((self.function)(event, Deadline::after(timeout)), timeout).await.ok()
    }

    fn give_up(&self, records: &[EventRecord]) {
        for record in records {
            let key = |name| match record.change.keys.get(name) {
                Some(AttributeValue::S(text)) => text.clone(),
                _ => String::new(),
            };
            let number = record.change.sequence_number.as_deref().unwrap_or_default();
            let function = &self.mapping.function;
            let reason = format!("{function} failed at every attempt of stream record {number}");
            self.dead_letters.push(DeadLetter { pk: key(PK), sk: key(SK), reason });
        }
    }
}

/// Whether a record is about a change. The engine also writes records of puts and updates that change nothing;
/// `DynamoDB` does not.
///
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html>
fn is_change(event: &serde_json::Value) -> bool {
    let images = &event["dynamodb"];
    event["eventName"] != "MODIFY" || images["OldImage"] != images["NewImage"]
}

/// Reads from a function's response which records of a batch failed: the earliest one that the response names, and all
/// later ones.
fn outcome(response: &DynamoDbEventResponse, batch: &[EventRecord]) -> Outcome {
    let mut first = None;
    for failure in &response.batch_item_failures {
        let named = failure.item_identifier.as_deref().filter(|name| !name.is_empty());
        let position = batch.iter().position(|record| {
            named.is_some() && record.change.sequence_number.as_deref() == named
        });
        // AWS treats a missing, empty or unknown identifier as a failure of the whole batch.
        let Some(position) = position else { return Outcome::FailedWhole };
        first = Some(first.map_or(position, |first: usize| first.min(position)));
    }
    first.map_or(Outcome::Done, Outcome::FailedFrom)
}

fn pause_after(failures: u32) -> Duration {
    MIN_PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(MAX_PAUSE)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use domain::Reading;
    use domain::given::{self, at_second, device, metric};
    use dynamodb::DynamoStore;
    use serde_json::json;
    use table::{Invocation, PutReadings as _};
    use tokio::task::block_in_place;

    use super::*;
    use crate::Data;
    use crate::engine::Engine;
    use crate::table_definition::TableDefinition;
    use crate::template::Template;
    use table::layout::Layout;

    fn records(numbers: &[&str]) -> Vec<EventRecord> {
        let record = |number: &&str| {
            let record = json!({
                "eventID": number, "eventName": "INSERT", "awsRegion": "local",
                "dynamodb": {
                    "Keys": {"pk": {"S": "d"}, "sk": {"S": "TS#"}}, "SequenceNumber": number, "SizeBytes": 1,
                },
            });
            serde_json::from_value(record).unwrap()
        };
        numbers.iter().map(record).collect()
    }

    fn answer(identifiers: &serde_json::Value) -> DynamoDbEventResponse {
        let failures: Vec<_> = identifiers
            .as_array()
            .unwrap()
            .iter()
            .map(|id| json!({"itemIdentifier": id}))
            .collect();
        serde_json::from_value(json!({"batchItemFailures": failures})).unwrap()
    }

    #[test]
    fn the_first_reported_failure_counts() {
        let batch = records(&["10", "11", "12"]);
        assert_eq!(outcome(&answer(&json!([])), &batch), Outcome::Done);
        assert_eq!(outcome(&answer(&json!(["11"])), &batch), Outcome::FailedFrom(1));
        assert_eq!(outcome(&answer(&json!(["12", "11"])), &batch), Outcome::FailedFrom(1));
    }

    #[test]
    fn an_identifier_without_sense_fails_the_batch() {
        let batch = records(&["10", "11"]);
        for id in [json!(null), json!(""), json!("99")] {
            assert_eq!(outcome(&answer(&json!(["10", id])), &batch), Outcome::FailedWhole, "{id}");
        }
    }

    #[test]
    fn pauses_grow_and_end() {
        assert_eq!(pause_after(1), MIN_PAUSE);
        assert_eq!(pause_after(2), MIN_PAUSE * 2);
        assert_eq!(pause_after(u32::MAX), MAX_PAUSE);
    }

    /// Two functions on the stream of one table.
    const TWO_CONSUMERS: &str = "
Resources:
  Quick:
    Type: AWS::Serverless::Function
    Properties:
      Timeout: 60
      Events:
        Stream: {Type: DynamoDB, Properties: {StartingPosition: TRIM_HORIZON}}
  Failing:
    Type: AWS::Serverless::Function
    Properties:
      Timeout: 60
      Events:
        Stream: {Type: DynamoDB, Properties: {StartingPosition: TRIM_HORIZON, BatchSize: 2}}
";

    /// A function that keeps the sort keys that it receives, and panics while it `fails`.
    fn function(fails: &Arc<AtomicBool>) -> (StreamFunction, Arc<Mutex<Vec<String>>>) {
        let received = Arc::new(Mutex::new(Vec::new()));
        let (kept, fails) = (Arc::clone(&received), Arc::clone(fails));
        let function: StreamFunction = Arc::new(move |event: Event, _| {
            let (kept, fails) = (Arc::clone(&kept), Arc::clone(&fails));
            Box::pin(async move {
                assert!(!fails.load(Ordering::SeqCst), "this invocation fails");
                for record in event.records {
                    let Some(AttributeValue::S(sk)) = record.change.keys.get(SK) else { continue };
                    kept.lock().unwrap().push(sk.clone());
                }
                DynamoDbEventResponse::default()
            })
        });
        (function, received)
    }

    /// An engine whose stream is polled for the two functions.
    struct Running {
        engine: Engine,
        quick: (RunningPoller, Arc<Mutex<Vec<String>>>),
        failing: (RunningPoller, Arc<Mutex<Vec<String>>>),
        fails: Arc<AtomicBool>,
        stop: watch::Sender<bool>,
    }

    impl Running {
        fn start(directory: &Path, fails: bool) -> Self {
            let table = TableDefinition::own().unwrap();
            let engine = Engine::start(&Data::Dir(directory.to_owned()), &table, None).unwrap();
            let template = Template::parse(TWO_CONSUMERS).unwrap();
            let mut mappings = EventSourceMapping::from_template(&template).unwrap();
            mappings.sort_by_key(|mapping| mapping.function != "Quick");
            let names: Vec<String> = mappings.iter().map(|mapping| mapping.name.clone()).collect();
            let positions = engine.stream().set_consumers(&names).unwrap();
            let (stop, fails) = (watch::Sender::new(false), Arc::new(AtomicBool::new(fails)));
            let start = |mapping, position, fails| {
                let (function, received) = function(fails);
                let (stream, dead_letters) = (engine.stream(), DeadLetters::default());
                let poller = StreamPoller { stream, mapping, function, dead_letters };
                (poller.spawn(position, stop.subscribe()), received)
            };
            let failing = start(mappings.remove(1), positions[1], &fails);
            let quick = start(mappings.remove(0), positions[0], &Arc::default());
            Self { engine, quick, failing, fails, stop }
        }

        async fn put(&self, seconds: std::ops::Range<i64>) {
            put(&self.engine, seconds).await;
        }

        async fn end(self) {
            self.stop.send_replace(true);
            self.quick.0.end(Duration::from_secs(10)).await.unwrap();
            self.failing.0.end(Duration::from_secs(10)).await.unwrap();
            tokio::task::spawn_blocking(|| self.engine.stop()).await.unwrap().unwrap();
        }
    }

    async fn put(engine: &Engine, seconds: std::ops::Range<i64>) {
        let store = DynamoStore::connect(&engine.store_config(), Layout::default());
        let reading = |second| {
            let at = at_second(second);
            let metrics = [(metric("t"), given::number("1"))].into();
            Reading::new(device("d"), at, None, metrics).unwrap()
        };
        let readings: Vec<Reading> = seconds.map(reading).collect();
        let invocation = Invocation::until(Deadline::after(Duration::from_mins(1)));
        let put = store.put_readings(&readings, None, &invocation).await;
        assert!(put.not_stored.is_empty());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_consumer_that_fails_holds_up_no_other_and_receives_everything_after_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let running = block_in_place(|| Running::start(directory.path(), true));
        running.put(0..5).await;
        let newest = block_in_place(|| running.engine.stream().newest()).unwrap();
        running.quick.0.reach(newest).await.unwrap();
        assert_eq!(running.quick.1.lock().unwrap().len(), 5);
        assert_eq!((running.failing.0.position(), running.failing.1.lock().unwrap().len()), (0, 0));
        running.end().await;

        let running = block_in_place(|| Running::start(directory.path(), true));
        running.put(5..6).await;
        let newest = block_in_place(|| running.engine.stream().newest()).unwrap();
        running.quick.0.reach(newest).await.unwrap();
        assert_eq!(running.quick.1.lock().unwrap().len(), 1, "what it has passed stays passed");
        running.fails.store(false, Ordering::SeqCst);
        running.failing.0.reach(newest).await.unwrap();
        let received = running.failing.1.lock().unwrap().clone();
        assert!(received.len() == 6 && received.is_sorted(), "{received:?}");
        let kept = block_in_place(|| running.engine.stream().read(0, PAGE)).unwrap();
        assert_eq!(kept.len(), 1, "only the newest record stays");
        running.end().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_changes_nothing_is_not_received() {
        let directory = tempfile::tempdir().unwrap();
        let running = block_in_place(|| Running::start(directory.path(), false));
        for seconds in [0..3, 0..3, 2..4] {
            running.put(seconds).await;
        }
        let newest = block_in_place(|| running.engine.stream().newest()).unwrap();
        running.quick.0.reach(newest).await.unwrap();
        assert_eq!(running.quick.1.lock().unwrap().len(), 4);
        running.end().await;
    }

    /// A function with batches of four, and a window of an hour, which is a minute here.
    const GATHERING: &str = "
Resources:
  Gathering:
    Type: AWS::Serverless::Function
    Properties:
      Timeout: 60
      Events:
        Stream:
          Type: DynamoDB
          Properties: {StartingPosition: TRIM_HORIZON, BatchSize: 4, MaximumBatchingWindowInSeconds: 3600}
";

    #[tokio::test(flavor = "multi_thread")]
    async fn records_are_gathered_until_there_is_a_batch_or_somebody_waits_for_them() {
        let directory = tempfile::tempdir().unwrap();
        let data = Data::Dir(directory.path().to_owned());
        let table = TableDefinition::own().unwrap();
        let engine = block_in_place(|| Engine::start(&data, &table, None)).unwrap();
        let mapping = EventSourceMapping::from_template(&Template::parse(GATHERING).unwrap());
        let mapping = mapping.unwrap().remove(0);
        assert_eq!(mapping.window, Duration::from_mins(1));
        let (function, received) = function(&Arc::default());
        let (stream, dead_letters) = (engine.stream(), DeadLetters::default());
        block_in_place(|| stream.set_consumers(std::slice::from_ref(&mapping.name))).unwrap();
        let stop = watch::Sender::new(false);
        let poller = StreamPoller { stream, mapping, function, dead_letters };
        let poller = poller.spawn(0, stop.subscribe());

        put(&engine, 0..3).await;
        let newest = block_in_place(|| engine.stream().newest()).unwrap();
        tokio::time::sleep(POLL_INTERVAL * 8).await;
        assert_eq!((poller.position(), received.lock().unwrap().len()), (0, 0), "they are held");
        poller.reach(newest).await.unwrap();
        assert_eq!(received.lock().unwrap().len(), 3);

        put(&engine, 3..7).await;
        let newest = block_in_place(|| engine.stream().newest()).unwrap();
        let mut position = poller.position.clone();
        let full = position.wait_for(|position| *position >= newest);
        tokio::time::timeout(Duration::from_secs(10), full).await.expect("no window").unwrap();
        assert_eq!(received.lock().unwrap().len(), 7);
        stop.send_replace(true);
        poller.end(Duration::from_secs(10)).await.unwrap();
        tokio::task::spawn_blocking(|| engine.stop()).await.unwrap().unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn without_partial_responses_only_a_panic_is_a_failure() {
        let directory = tempfile::tempdir().unwrap();
        let table = TableDefinition::own().unwrap();
        let data = Data::Dir(directory.path().to_owned());
        let engine = block_in_place(|| Engine::start(&data, &table, None)).unwrap();
        let mappings =
            EventSourceMapping::from_template(&Template::parse(TWO_CONSUMERS).unwrap()).unwrap();
        let mapping = mappings.into_iter().next().unwrap();
        let invocations = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&invocations);
        let function: StreamFunction = Arc::new(move |_, _| {
            count.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { answer(&json!([""])) })
        });
        let dead_letters = DeadLetters::default();
        let poller = StreamPoller { stream: engine.stream(), mapping, function, dead_letters };
        let records = records(&["1"]);
        assert_eq!(poller.invoke(&records).await.map(|it| it.batch_item_failures.len()), Some(1));
        let event = serde_json::to_value(&records[0]).unwrap();
        let stop = watch::Sender::new(false);
        let delivered =
            poller.deliver(vec![Record { number: 7, event }], &mut stop.subscribe()).await;
        assert_eq!((delivered, invocations.load(Ordering::SeqCst)), (Some(7), 2));
        drop(poller);
        tokio::task::spawn_blocking(|| engine.stop()).await.unwrap().unwrap();
    }
}
