//! Delivers the table's stream to one function, as an event source mapping does. Knows no function's rules.
//!
//! Each mapping has a poller and a position of its own, so a failing function delays no other function. Batches are
//! delivered at least once, one at a time, in the order of the stream. See [`Stream`] for why a kill loses nothing.

mod delivery;

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use aws_lambda_events::event::dynamodb::{Event, EventRecord};
use aws_lambda_events::event::streams::DynamoDbEventResponse;
use runtime::dead_letters::DeadLetter;
use serde_dynamo::AttributeValue;
use table::keys::{PK, SK};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::dead_letters::DeadLetters;
use crate::deployment::StreamSource;
use crate::engine::{Stream, StreamRecord};
use crate::hosted_function::HostedFunction;
use crate::stop::{is_stopped, pause};
use crate::warning::WarningLimiter;
use delivery::{Delivery, NextStep, Outcome};

/// A function that receives stream records.
pub(crate) type StreamFunction = HostedFunction<Event, DynamoDbEventResponse>;

/// How often an idle stream is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(25);
/// The maximum number of records that are read at once; the engine's own maximum.
const PAGE: usize = 1_000;
/// The pause before the first retry; each further pause is twice as long, up to the maximum.
const MIN_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// Everything that a poller needs.
pub(crate) struct StreamPoller {
    pub(crate) stream: Arc<Stream>,
    /// How the stream is delivered.
    pub(crate) source: StreamSource,
    /// The function that receives the records.
    pub(crate) function: StreamFunction,
    /// The queue for records that failed at every attempt.
    pub(crate) dead_letters: DeadLetters,
}

/// A running poller.
pub(crate) struct RunningPoller {
    name: &'static str,
    /// The number of the last record that was delivered, filtered out or given up.
    position: watch::Receiver<i64>,
    /// The number of the record that `reach` waits for. Up to this record, the poller does not wait for a fuller batch.
    wanted: watch::Sender<i64>,
    pub(crate) task: JoinHandle<()>,
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
}

impl StreamPoller {
    /// Polls from `position` until it is stopped; an invocation under way still ends.
    pub(crate) fn spawn(self, position: i64, stop: watch::Receiver<bool>) -> RunningPoller {
        let name = self.source.name;
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
        let gathers = !self.source.window.is_zero();
        let mut gathered = false;

        while !is_stopped(&stop) {
            let passed = *position.borrow();
            match self.next_page(passed).await {
                Ok(records) if records.is_empty() => pause(POLL_INTERVAL, &mut stop).await,
                Ok(records) if gathers && !gathered && records.len() < self.source.batch_size => {
                    tokio::select! {
                        () = pause(self.source.window, &mut stop) => {}
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

    async fn next_page(&self, after: i64) -> anyhow::Result<Vec<StreamRecord>> {
        let stream = Arc::clone(&self.stream);
        let read = move || {
            if stream.newest()? > after { stream.read(after, PAGE) } else { Ok(Vec::new()) }
        };
        tokio::task::spawn_blocking(read).await?
    }

    async fn advance(&self, position: i64) -> anyhow::Result<()> {
        let (stream, consumer) = (Arc::clone(&self.stream), self.source.name);
        tokio::task::spawn_blocking(move || stream.advance(consumer, position)).await?
    }

    /// Delivers records batch by batch. Returns the number of the last record, or `None` when the poller is stopped.
    async fn deliver(
        &self,
        records: Vec<StreamRecord>,
        stop: &mut watch::Receiver<bool>,
    ) -> Option<i64> {
        let last = records.last().map(|record| record.number);
        let events = records.into_iter().map(|record| record.event);
        let accepted = events.filter(|event| is_change(event) && self.source.accepts(event));
        let accepted = accepted.map(serde_json::from_value);
        let accepted: Vec<EventRecord> = accepted
            .collect::<Result<_, _>>()
            .expect("the engine's records are those of DynamoDB Streams");

        for batch in accepted.chunks(self.source.batch_size) {
            let mut delivery = Delivery::new(batch.len(), self.source.retries);
            while let Some(range) = delivery.next() {
                if is_stopped(stop) {
                    return None;
                }

                let records = &batch[range.clone()];
                let outcome = match self.invoke(records).await {
                    Err(_) => Outcome::FailedWhole,
                    Ok(response) => outcome(&response, records, range.start),
                };

                match delivery.report(outcome) {
                    NextStep::GoOn => {}
                    NextStep::Pause(failures) => pause(pause_after(failures), stop).await,
                    NextStep::GiveUp(range) => self.give_up(&batch[range]),
                }
            }
        }
        last
    }

    async fn invoke(&self, records: &[EventRecord]) -> anyhow::Result<DynamoDbEventResponse> {
        let mut event = Event::default();
        event.records = records.to_vec();
        self.function.invoke(event).await
    }

    fn give_up(&self, records: &[EventRecord]) {
        for record in records {
            let key = |name| match record.change.keys.get(name) {
                Some(AttributeValue::S(text)) => text.clone(),
                _ => String::new(),
            };
            let number = record.change.sequence_number.as_deref().unwrap_or_default();
            let function = self.function.name();
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

/// Reads from a function's response which records of a batch failed: all from the earliest named record on. The first
/// record of `records` has the position `start` in the batch.
fn outcome(response: &DynamoDbEventResponse, records: &[EventRecord], start: usize) -> Outcome {
    let mut first = None;
    for failure in &response.batch_item_failures {
        let named = failure.item_identifier.as_deref().filter(|name| !name.is_empty());
        let position = records.iter().position(|record| {
            named.is_some() && record.change.sequence_number.as_deref() == named
        });

        // AWS treats a missing, empty or unknown identifier as a failure of the whole batch.
        let Some(position) = position else { return Outcome::FailedWhole };
        first = Some(first.map_or(position, |first: usize| first.min(position)));
    }
    first.map_or(Outcome::Done, |first| Outcome::FailedFrom(start + first))
}

fn pause_after(failures: u32) -> Duration {
    MIN_PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(MAX_PAUSE)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use domain::Reading;
    use domain::given::{self, at_second, device, metric};
    use dynamodb::DynamoStore;
    use serde_json::json;
    use table::{Deadline, Invocation, PutReadings as _};
    use tokio::task::block_in_place;

    use super::*;
    use crate::Data;
    use crate::deployment::{REGISTRY, REGISTRY_STREAM};
    use crate::engine::Engine;
    use crate::stop::end;
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
        assert_eq!(outcome(&answer(&json!([])), &batch, 0), Outcome::Done);
        assert_eq!(outcome(&answer(&json!(["11"])), &batch, 0), Outcome::FailedFrom(1));
        assert_eq!(outcome(&answer(&json!(["12", "11"])), &batch, 4), Outcome::FailedFrom(5));
    }

    #[test]
    fn an_identifier_without_sense_fails_the_batch() {
        let batch = records(&["10", "11"]);
        for id in [json!(null), json!(""), json!("99")] {
            let outcome = outcome(&answer(&json!(["10", id])), &batch, 0);
            assert_eq!(outcome, Outcome::FailedWhole, "{id}");
        }
    }

    #[test]
    fn pauses_grow_and_end() {
        assert_eq!(pause_after(1), MIN_PAUSE);
        assert_eq!(pause_after(2), MIN_PAUSE * 2);
        assert_eq!(pause_after(u32::MAX), MAX_PAUSE);
    }

    /// A source of records for a function of a test.
    const fn source(name: &'static str, batch_size: usize, window: Duration) -> StreamSource {
        StreamSource { name, batch_size, window, ..REGISTRY_STREAM }
    }

    /// A function that keeps the sort keys that it receives, and panics while it `fails`.
    fn function(fails: &Arc<AtomicBool>) -> (StreamFunction, Arc<Mutex<Vec<String>>>) {
        let received = Arc::new(Mutex::new(Vec::new()));
        let fails = Arc::clone(fails);

        let handle = move |kept: Arc<Mutex<Vec<String>>>, event: Event, _| {
            let fails = Arc::clone(&fails);
            async move {
                assert!(!fails.load(Ordering::SeqCst), "this invocation fails");
                for record in event.records {
                    let Some(AttributeValue::S(sk)) = record.change.keys.get(SK) else { continue };
                    kept.lock().unwrap().push(sk.clone());
                }
                DynamoDbEventResponse::default()
            }
        };

        let function = HostedFunction::new(REGISTRY, &received, handle);
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
            let engine = Engine::start(&Data::Dir(directory.to_owned()), None).unwrap();
            let positions = engine.stream().set_consumers(&["Quick", "Failing"]).unwrap();
            let (stop, fails) = (watch::Sender::new(false), Arc::new(AtomicBool::new(fails)));

            let start = |source, position, fails| {
                let (function, received) = function(fails);
                let (stream, dead_letters) = (engine.stream(), DeadLetters::default());
                let poller = StreamPoller { stream, source, function, dead_letters };
                (poller.spawn(position, stop.subscribe()), received)
            };

            let never = Arc::default();
            let quick = start(source("Quick", 100, Duration::ZERO), positions[0], &never);
            let failing = start(source("Failing", 2, Duration::ZERO), positions[1], &fails);
            Self { engine, quick, failing, fails, stop }
        }

        async fn put(&self, seconds: std::ops::Range<i64>) {
            put(&self.engine, seconds).await;
        }

        async fn end(self) {
            self.stop.send_replace(true);
            for (poller, _) in [self.quick, self.failing] {
                end(poller.task, poller.name, Duration::from_secs(10)).await.unwrap();
            }
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

    #[tokio::test(flavor = "multi_thread")]
    async fn records_are_gathered_until_there_is_a_batch_or_somebody_waits_for_them() {
        let directory = tempfile::tempdir().unwrap();
        let data = Data::Dir(directory.path().to_owned());
        let engine = block_in_place(|| Engine::start(&data, None)).unwrap();
        let (function, received) = function(&Arc::default());
        let (stream, dead_letters) = (engine.stream(), DeadLetters::default());
        block_in_place(|| stream.set_consumers(&["Gathering"])).unwrap();

        let stop = watch::Sender::new(false);
        let source = source("Gathering", 4, Duration::from_mins(1));
        let poller = StreamPoller { stream, source, function, dead_letters };
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
        end(poller.task, poller.name, Duration::from_secs(10)).await.unwrap();
        tokio::task::spawn_blocking(|| engine.stop()).await.unwrap().unwrap();
    }
}
