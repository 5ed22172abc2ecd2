//! One invocation by a queue: each message is applied or reported as failed. Sends no message.

mod event;

use serde::de::DeserializeOwned;
use table::{Invocation, StoreError};

use crate::clock::{Clock, Deadline};
use crate::telemetry::{Telemetry, WideEvent};
use table::panic::catching;

pub use event::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage};

/// The reason why a message is not applied.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A consumer of a queue's messages.
pub trait MessageConsumer: Send + Sync {
    /// A message's body, as JSON.
    type Message: DeserializeOwned + Send;

    /// Applies one message. Applied twice, a message must have the same effect as once.
    fn apply(
        &self,
        message: Self::Message,
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// All parts of a function that reads a queue, except the consumer: batches, failures, telemetry.
#[derive(Debug)]
pub struct QueueFunction<C> {
    name: &'static str,
    clock: C,
    telemetry: Telemetry,
}

impl<C: Clock> QueueFunction<C> {
    /// The queue side of the function called `name`.
    pub const fn new(name: &'static str, clock: C, telemetry: Telemetry) -> Self {
        Self { name, clock, telemetry }
    }

    /// Applies the messages of a batch, one after the other. Returns the messages that should be delivered again.
    ///
    /// An error, a panic or an unreadable body makes only its own message fail. SQS delivers a failed message again,
    /// and moves it to the dead-letter queue after the largest number of deliveries.
    pub async fn handle<K: MessageConsumer>(
        &self,
        event: SqsEvent,
        deadline: Deadline,
        consumer: &K,
    ) -> SqsBatchResponse {
        // No sender waits for an answer, so throttled requests are repeated until the deadline.
        let invocation = Invocation::until(deadline);
        let mut log = WideEvent::begin(self.name);
        log.set("queue.messages", event.records.len());
        let mut response = SqsBatchResponse::default();

        for message in event.records {
            let SqsMessage { message_id, body } = message;
            let applied = catching(apply(consumer, &body, &invocation, &mut log)).await;
            let applied = applied.unwrap_or_else(|panic| Err(panic.into()));
            if let Err(failure) = applied {
                log.error("queue.error", failure.as_ref());
                response.batch_item_failures.push(BatchItemFailure { item_identifier: message_id });
            }
        }

        log.set("queue.failed", response.batch_item_failures.len());
        log.emit(&invocation, &self.telemetry, &self.clock);
        response
    }
}

async fn apply<K: MessageConsumer>(
    consumer: &K,
    body: &str,
    invocation: &Invocation,
    log: &mut WideEvent,
) -> Result<(), Failure> {
    if invocation.remaining().is_zero() {
        return Err(StoreError::TimedOut.into());
    }
    consumer.apply(serde_json::from_str(body)?, invocation, log).await
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use domain::Timestamp;
    use serde_json::{Value, json};

    use super::*;
    use crate::clock::TestClock;

    /// Keeps the numbers that it is given; fails at 1 and panics at 2.
    #[derive(Default)]
    struct Numbers(Mutex<Vec<u32>>);

    impl MessageConsumer for Numbers {
        type Message = u32;

        async fn apply(
            &self,
            number: u32,
            _: &Invocation,
            _: &mut WideEvent,
        ) -> Result<(), Failure> {
            self.0.lock().expect("no panic holds it").push(number);
            assert_ne!(number, 2, "this message panics");
            if number == 1 { Err("this message fails".into()) } else { Ok(()) }
        }
    }

    /// Delivers bodies with their positions as ids. Returns the response, the numbers and the log line.
    async fn deliver(bodies: &[&str], left: Duration) -> (Value, Vec<u32>, Value) {
        let message = |(id, body)| json!({"messageId": format!("m{id}"), "body": body});
        let records: Vec<Value> = bodies.iter().enumerate().map(message).collect();
        let event = serde_json::from_value(json!({"Records": records})).expect("an event");
        let line = Arc::new(Mutex::new(String::new()));
        let sink = Arc::clone(&line);
        let telemetry =
            Telemetry::to(Arc::new(move |line| sink.lock().expect("no panic").push_str(line)));
        let consumer = Numbers::default();
        let function = QueueFunction::new("test", TestClock::at(Timestamp::MIN), telemetry);
        let response = function.handle(event, Deadline::after(left), &consumer).await;
        let line = serde_json::from_str(&line.lock().expect("no panic")).expect("a line");
        (json!(response), consumer.0.into_inner().expect("no panic"), line)
    }

    fn failed(ids: &[&str]) -> Value {
        let failures: Vec<_> = ids.iter().map(|id| json!({"itemIdentifier": id})).collect();
        json!({"batchItemFailures": failures})
    }

    #[tokio::test]
    async fn a_message_that_fails_panics_or_cannot_be_read_fails_alone() {
        let bodies = ["0", "1", "2", "three", "4"];
        let (response, numbers, line) = deliver(&bodies, Duration::from_secs(5)).await;
        assert_eq!(response, failed(&["m1", "m2", "m3"]));
        assert_eq!(numbers, [0, 1, 2, 4]);
        assert_eq!((&line["level"], &line["queue.failed"]), (&json!("ERROR"), &json!(3)));
    }

    #[tokio::test]
    async fn without_time_nothing_is_begun() {
        let (response, numbers, line) = deliver(&["0", "4"], Duration::ZERO).await;
        assert_eq!((response, numbers), (failed(&["m0", "m1"]), vec![]));
        assert_eq!(line["queue.messages"], 2);
    }
}
