//! Delivers a queue's messages to one function, as Lambda polls Amazon SQS. Knows no function's rules.
//!
//! A message is delivered at least once. After a failure the message is delivered again after a pause, and given up
//! after as many deliveries as the template allows. A failing message delays no other message.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use chrono::TimeDelta;
use runtime::clock::{Clock as _, SystemClock};
use runtime::dead_letters::DeadLetter;
use runtime::queue::{SqsBatchResponse, SqsEvent, SqsMessage};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::dead_letters::DeadLetters;
use crate::deployment::QueueSource;
use crate::engine::{Queue, QueuedMessage};
use crate::hosted_function::HostedFunction;
use crate::stop::{is_stopped, pause};
use crate::warning::WarningLimiter;

/// A function that receives a queue's messages.
pub(crate) type QueueFunction = HostedFunction<SqsEvent, SqsBatchResponse>;

/// How often a queue is asked for messages that have become due.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The pause before a failed message is delivered again. Each further pause is four times as long, up to the queue's
/// visibility time-out; on AWS every pause is that time-out.
const MIN_PAUSE: Duration = Duration::from_secs(1);
/// How often `settle` checks whether the work is done.
const SETTLE_INTERVAL: Duration = Duration::from_millis(10);

/// Everything that a poller needs.
pub(crate) struct QueuePoller {
    pub(crate) queue: Arc<Queue>,
    /// How the queue's messages are delivered.
    pub(crate) source: QueueSource,
    /// The function that receives the messages.
    pub(crate) function: QueueFunction,
    /// The queue for messages that failed at every delivery.
    pub(crate) dead_letters: DeadLetters,
}

/// A running poller.
pub(crate) struct RunningQueuePoller {
    queue: Arc<Queue>,
    pub(crate) task: JoinHandle<()>,
}

impl RunningQueuePoller {
    /// Waits until each message has been delivered once. Does not wait for retries.
    pub(crate) async fn settle(&self) -> anyhow::Result<()> {
        while self.is_busy().await? {
            tokio::time::sleep(SETTLE_INTERVAL).await;
        }
        Ok(())
    }

    /// Returns whether a message is due or in process.
    pub(crate) async fn is_busy(&self) -> anyhow::Result<bool> {
        let queue = Arc::clone(&self.queue);
        tokio::task::spawn_blocking(move || queue.has_due(SystemClock.now())).await?
    }
}

impl QueuePoller {
    /// Polls until it is stopped; an invocation under way still ends.
    pub(crate) fn spawn(self, stop: watch::Receiver<bool>) -> RunningQueuePoller {
        let queue = Arc::clone(&self.queue);
        RunningQueuePoller { queue, task: tokio::spawn(self.poll(stop)) }
    }

    async fn poll(self, mut stop: watch::Receiver<bool>) {
        let warnings = WarningLimiter::new();
        while !is_stopped(&stop) {
            match self.deliver_batch().await {
                Ok(0) => tokio::select! {
                    () = pause(POLL_INTERVAL, &mut stop) => {}
                    () = self.queue.sent() => {}
                },
                Ok(_) => {}
                Err(error) => {
                    let queue = self.queue.name();
                    warnings.warn(format_args!("{queue} cannot be worked off: {error:#}"));
                    pause(POLL_INTERVAL, &mut stop).await;
                }
            }
        }
    }

    /// Delivers at most one batch of the messages that are due. Returns their number.
    async fn deliver_batch(&self) -> anyhow::Result<usize> {
        let limit = self.source.batch_size;
        let messages = self.on_queue(move |queue| queue.receive(SystemClock.now(), limit)).await?;
        if messages.is_empty() {
            return Ok(0);
        }

        let response = self.function.invoke(event(&messages)).await;
        let failed = failed(response.ok().as_ref(), &messages);
        let delivered = messages.len();

        for message in messages {
            let number = message.number;
            if !failed.contains(&number) {
                self.on_queue(move |queue| queue.remove(number)).await?;
            } else if message.receives >= self.source.max_receives {
                self.give_up(message);
                self.on_queue(move |queue| queue.remove(number)).await?;
            } else {
                let pause = pause_after(message.receives).min(self.source.visibility_timeout);
                let pause = TimeDelta::from_std(pause).context("the visibility time-out")?;
                let due = SystemClock.now().saturating_add(pause);
                self.on_queue(move |queue| queue.postpone(number, due)).await?;
            }
        }

        Ok(delivered)
    }

    /// Does one step on the queue, on a thread that may block.
    async fn on_queue<T: Send + 'static>(
        &self,
        step: impl FnOnce(&Queue) -> anyhow::Result<T> + Send + 'static,
    ) -> anyhow::Result<T> {
        let queue = Arc::clone(&self.queue);
        tokio::task::spawn_blocking(move || step(&queue)).await?
    }

    fn give_up(&self, message: QueuedMessage) {
        let function = self.function.name();
        let reason = format!("{function} failed at each of {} deliveries", message.receives);
        let letter = DeadLetter { pk: self.queue.name().to_owned(), sk: message.body, reason };
        self.dead_letters.push(letter);
    }
}

/// Makes the event that Lambda sends for messages.
fn event(messages: &[QueuedMessage]) -> SqsEvent {
    let records = messages.iter();
    let records =
        records.map(|record| SqsMessage { message_id: id(record), body: record.body.clone() });
    SqsEvent { records: records.collect() }
}

fn id(message: &QueuedMessage) -> String {
    message.number.to_string()
}

/// Reads from a function's response which messages failed, by their numbers.
fn failed(response: Option<&SqsBatchResponse>, messages: &[QueuedMessage]) -> BTreeSet<i64> {
    let all = || messages.iter().map(|message| message.number).collect();
    let Some(response) = response else { return all() };

    let mut failed = BTreeSet::new();
    for failure in &response.batch_item_failures {
        // AWS treats an empty or unknown identifier as a failure of the whole batch.
        match messages.iter().find(|message| id(message) == failure.item_identifier) {
            Some(message) => drop(failed.insert(message.number)),
            None => return all(),
        }
    }
    failed
}

/// The pause after a message has failed for the `receives`-th time.
fn pause_after(receives: u32) -> Duration {
    MIN_PAUSE.saturating_mul(4_u32.saturating_pow(receives.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Mutex;

    use runtime::queue::BatchItemFailure;

    use super::*;
    use crate::Data;
    use crate::deployment::{ROLLUP, ROLLUP_QUEUE};
    use crate::engine::Engine;
    use crate::stop::end;

    fn source() -> QueueSource {
        QueueSource {
            queue: "Work",
            batch_size: 2,
            visibility_timeout: Duration::ZERO,
            max_receives: 3,
            ..ROLLUP_QUEUE
        }
    }

    fn engine(directory: &Path) -> Engine {
        let data = Data::Dir(directory.to_owned());
        Engine::start(&data, None).unwrap()
    }

    /// A function that keeps the bodies of each invocation, reports "fails" as failed and panics at "panics".
    fn function() -> (QueueFunction, Arc<Mutex<Vec<Vec<String>>>>) {
        type Received = Mutex<Vec<Vec<String>>>;
        let received = Arc::new(Received::default());
        let handle = |kept: Arc<Received>, event: SqsEvent, _| async move {
            let bodies = event.records.iter().map(|record| record.body.clone());
            kept.lock().unwrap().push(bodies.collect());
            let has = |body| event.records.iter().any(|record| record.body == body);
            assert!(!has("panics"), "this invocation panics");
            let failed = event.records.iter().filter(|record| record.body == "fails");
            response(failed.map(|record| record.message_id.clone()))
        };
        let function = HostedFunction::new(ROLLUP, &received, handle);
        (function, received)
    }

    fn response(ids: impl Iterator<Item = String>) -> SqsBatchResponse {
        let failure = |item_identifier| BatchItemFailure { item_identifier };
        SqsBatchResponse { batch_item_failures: ids.map(failure).collect() }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_message_that_fails_is_delivered_again_and_given_up_and_holds_up_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let engine = tokio::task::block_in_place(|| engine(directory.path()));
        let queue = tokio::task::block_in_place(|| engine.queue("Work")).unwrap();
        let (function, received) = function();
        let dead_letters = DeadLetters::default();
        let stop = watch::Sender::new(false);

        let poller = QueuePoller {
            queue: Arc::clone(&queue),
            source: source(),
            function,
            dead_letters: dead_letters.clone(),
        };
        let poller = poller.spawn(stop.subscribe());

        let bodies = ["1", "fails", "panics", "2"].map(str::to_owned);
        tokio::task::block_in_place(|| queue.send(&bodies)).unwrap();
        poller.settle().await.unwrap();

        let letters: Vec<_> = dead_letters.all().into_iter().map(|it| (it.pk, it.sk)).collect();
        let letter = |body: &str| ("Work".to_owned(), body.to_owned());
        // A panic fails the batch, as on AWS, so what was delivered with it all three times is given up too.
        assert_eq!(letters, [letter("fails"), letter("panics")]);
        let received = received.lock().unwrap().concat();
        let times = |body: &str| received.iter().filter(|it| *it == body).count();
        assert_eq!((times("1"), times("fails"), times("panics")), (1, 3, 3));
        assert!(times("2") >= 1);

        stop.send_replace(true);
        end(poller.task, "the poller", Duration::from_secs(10)).await.unwrap();
        drop(queue);
        tokio::task::spawn_blocking(|| engine.stop()).await.unwrap().unwrap();
    }

    #[test]
    fn an_identifier_that_is_unknown_is_a_failure_of_all() {
        let message = |number| QueuedMessage { number, body: String::new(), receives: 1 };
        let messages = [message(7), message(8)];
        let response = |ids: &[&str]| response(ids.iter().map(|&id| id.to_owned()));
        assert_eq!(failed(Some(&response(&[])), &messages), [].into());
        assert_eq!(failed(Some(&response(&["8"])), &messages), [8].into());
        for ids in [&["8", ""][..], &["9"]] {
            assert_eq!(failed(Some(&response(ids)), &messages), [7, 8].into());
        }
        assert_eq!(failed(None, &messages), [7, 8].into());
    }

    #[test]
    fn pauses_grow() {
        assert_eq!([1, 2, 3].map(pause_after), [1, 4, 16].map(Duration::from_secs));
        assert!(pause_after(u32::MAX) > Duration::from_hours(1));
    }
}
