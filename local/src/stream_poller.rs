//! The stream pumped to the registry, as an event source mapping does it. Holds no rule of the registry.
//!
//! One batch is in flight at a time, in the order of the stream, at least once. What was delivered is
//! trimmed; see [`Stream`] for why a kill loses nothing.

mod delivery;

use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::event::dynamodb::{Event, EventRecord};
use aws_lambda_events::event::streams::DynamoDbEventResponse;
use registry::DeadLetter;
use runtime::clock::Deadline;
use serde_dynamo::AttributeValue;
use table::keys::{PK, SK};
use tokio::sync::watch;

use crate::dead_letters::DeadLetters;
use crate::engine::{Record, Stream};
use crate::event_source_mapping::EventSourceMapping;
use crate::functions::Registry;
use crate::warning::WarningLimiter;
use delivery::{Delivery, Outcome, Policy, Verdict};

/// How often an idle stream is looked at.
const IDLE: Duration = Duration::from_millis(25);
/// How many records are read at once; the engine gives no more.
const PAGE: usize = 1_000;
/// How long an invocation may take, as the template's `Timeout` says.
const TIMEOUT: Duration = Duration::from_mins(1);
/// The pause before the first repetition; each further one is twice as long, up to the longest.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// Delivers the stream until told to stop; an invocation under way is waited for.
///
/// Everything up to the number that `delivered` holds is delivered, filtered out or given up.
pub(crate) async fn run(
    stream: Arc<Stream>,
    registry: Arc<Registry>,
    mapping: EventSourceMapping,
    delivered: watch::Sender<i64>,
    dead_letters: DeadLetters,
    mut stop: watch::Receiver<bool>,
) {
    let pump = Pump { stream, registry, mapping, dead_letters };
    let warnings = WarningLimiter::new();
    let mut last = 0;
    while !stopped(&stop) {
        match pump.next_page(last).await {
            Ok(records) if records.is_empty() => pause(IDLE, &mut stop).await,
            Ok(records) => {
                let Some(done) = pump.deliver(records, &mut stop).await else { break };
                last = done;
                // What is not trimmed now is trimmed with the next page, or delivered again.
                if let Err(error) = pump.trim(last).await {
                    warnings.warn(format_args!("the stream cannot be trimmed: {error:#}"));
                }
                delivered.send_replace(last);
            }
            Err(error) => {
                warnings.warn(format_args!("the stream cannot be read: {error:#}"));
                pause(MAX_PAUSE, &mut stop).await;
            }
        }
    }
}

struct Pump {
    stream: Arc<Stream>,
    registry: Arc<Registry>,
    mapping: EventSourceMapping,
    dead_letters: DeadLetters,
}

impl Pump {
    async fn next_page(&self, after: i64) -> anyhow::Result<Vec<Record>> {
        let stream = Arc::clone(&self.stream);
        let read = move || {
            if stream.newest()? > after { stream.read(after, PAGE) } else { Ok(Vec::new()) }
        };
        tokio::task::spawn_blocking(read).await?
    }

    async fn trim(&self, delivered: i64) -> anyhow::Result<()> {
        let stream = Arc::clone(&self.stream);
        tokio::task::spawn_blocking(move || stream.trim(delivered)).await?
    }

    /// Delivers records batch by batch; gives the last one's number, or `None` when told to stop.
    async fn deliver(&self, records: Vec<Record>, stop: &mut watch::Receiver<bool>) -> Option<i64> {
        let last = records.last().map(|record| record.number);
        let wanted = records.into_iter().filter(|record| self.mapping.lets_through(&record.event));
        let wanted = wanted.map(|record| serde_json::from_value(record.event));
        let wanted: Vec<EventRecord> = wanted
            .collect::<Result<_, _>>()
            .expect("the engine's records are those of DynamoDB Streams");
        let policy = Policy { retries: self.mapping.retries, bisect: self.mapping.bisect };
        for batch in wanted.chunks(self.mapping.batch_size) {
            let mut delivery = Delivery::new(batch.len(), policy);
            while let Some(range) = delivery.next() {
                if stopped(stop) {
                    return None;
                }
                let mut event = Event::default();
                event.records = batch[range.clone()].to_vec();
                let answer = self.invoke(event).await;
                let outcome = match answer {
                    None => Outcome::FailedWhole,
                    Some(answer) => match outcome(&answer, &batch[range.clone()]) {
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

    /// The function's answer; none when it panics or takes too long.
    async fn invoke(&self, event: Event) -> Option<DynamoDbEventResponse> {
        let registry = Arc::clone(&self.registry);
        // A task of its own: when the function panics, that is an answer, not the end of the pump.
        let answer = tokio::spawn(async move {
            Box::pin(registry.handle(event, Deadline::after(TIMEOUT))).await
        });
        tokio::time::timeout(TIMEOUT, answer).await.ok()?.ok()
    }

    fn give_up(&self, records: &[EventRecord]) {
        for record in records {
            let key = |name| match record.change.keys.get(name) {
                Some(AttributeValue::S(text)) => text.clone(),
                _ => String::new(),
            };
            let number = record.change.sequence_number.as_deref().unwrap_or_default();
            let reason = format!("stream record {number} failed until no try was left");
            self.dead_letters.push(DeadLetter { pk: key(PK), sk: key(SK), reason });
        }
    }
}

/// What an answer says of the batch that it answers: the earliest of the records that it names.
fn outcome(answer: &DynamoDbEventResponse, batch: &[EventRecord]) -> Outcome {
    let mut first = None;
    for failure in &answer.batch_item_failures {
        let named = failure.item_identifier.as_deref().filter(|name| !name.is_empty());
        let position = batch.iter().position(|record| {
            named.is_some() && record.change.sequence_number.as_deref() == named
        });
        // AWS takes an identifier that is missing, empty or unknown for a failure of the whole batch.
        let Some(position) = position else { return Outcome::FailedWhole };
        first = Some(first.map_or(position, |first: usize| first.min(position)));
    }
    first.map_or(Outcome::Done, Outcome::FailedFrom)
}

fn pause_after(failures: u32) -> Duration {
    SHORTEST_PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(MAX_PAUSE)
}

/// Whether the system stops, or is gone without having said so.
fn stopped(stop: &watch::Receiver<bool>) -> bool {
    *stop.borrow() || stop.has_changed().is_err()
}

/// Waits, but not beyond the word to stop.
async fn pause(duration: Duration, stop: &mut watch::Receiver<bool>) {
    tokio::select! {
        () = tokio::time::sleep(duration) => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        assert_eq!(pause_after(1), SHORTEST_PAUSE);
        assert_eq!(pause_after(2), SHORTEST_PAUSE * 2);
        assert_eq!(pause_after(u32::MAX), MAX_PAUSE);
    }
}
