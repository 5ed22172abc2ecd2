//! One invocation by the table's stream: decodes the records of a batch once, lets a consumer apply the changes, and
//! answers. Only this file decides what happens after failures.

mod record;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use aws_lambda_events::event::dynamodb::{Event, EventRecord};
use aws_lambda_events::event::streams::{DynamoDbBatchItemFailure, DynamoDbEventResponse};
use table::item::ItemError;
use table::{Invocation, ItemKey, StoreResult};

use crate::clock::{Clock, Deadline};
use crate::dead_letters::{DeadLetter, DeadLetterQueue};
use crate::telemetry::{Telemetry, WideEvent, chain};
use table::panic::{Panic, catching};

pub use record::{TouchedReading, touched_reading, written_reading};

/// A consumer of the changes in a stream. Each consumer returns its own result, so that several consumers can share one
/// decoded batch. There cannot be a function for each consumer, because two functions read the stream already.
/// [AWS][streams]: "no more than two processes at most should be reading from the same stream shard at the same time".
///
/// [streams]: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html#Streams.Processing
pub trait Consumer<T>: Send + Sync {
    /// Applies the changes of a batch, in the stream's order. If changes are applied twice or in another order, the
    /// effect must be the same.
    fn apply(
        &self,
        changes: &[Recorded<T>],
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> impl Future<Output = BatchResult> + Send;
}

/// A change, with its record in the batch.
#[derive(Debug)]
pub struct Recorded<T> {
    /// The position of the record in the batch.
    pub record: usize,
    /// The change.
    pub change: T,
}

/// The result of applying a batch.
#[derive(Debug, Default)]
pub struct BatchResult {
    /// The first record that has to be delivered again.
    first_failure: Option<usize>,
    /// Items whose changes can never be applied.
    poison: Vec<Poison>,
}

impl BatchResult {
    /// Has a record delivered again, with all later records.
    pub fn retry_from(&mut self, record: usize) {
        self.first_failure = Some(self.first_failure.map_or(record, |first| first.min(record)));
    }

    /// Gives up an item of the table, because its change can never be applied. `record` is the item's first record.
    pub fn give_up(&mut self, record: usize, key: ItemKey, reason: String) {
        let ItemKey { pk, sk } = key;
        let letter = DeadLetter { pk, sk, reason };
        self.poison.push(Poison { letter, first_record: record });
    }

    /// Adds the result of another consumer of the same batch.
    pub fn append(&mut self, other: Self) {
        self.poison.extend(other.poison);
        other.first_failure.into_iter().for_each(|record| self.retry_from(record));
    }

    /// Returns an error, with the reason, if the batch is not applied completely.
    pub fn ensure_whole(self) -> Result<(), String> {
        match (self.poison.first(), self.first_failure) {
            (Some(Poison { letter, .. }), _) => {
                Err(format!("{} {}: {}", letter.pk, letter.sk, letter.reason))
            }
            (None, Some(_)) => Err("the table cannot be written".to_owned()),
            (None, None) => Ok(()),
        }
    }

    /// Records the result of writing one item. After a permanent error or a panic, the item is given up. After any
    /// other error, which is logged, the record is delivered again.
    pub fn note(
        &mut self,
        record: usize,
        key: impl FnOnce() -> ItemKey,
        written: Result<StoreResult<()>, Panic>,
        log: &mut WideEvent,
    ) {
        match written {
            Ok(Ok(())) => {}
            Ok(Err(error)) if error.is_permanent() => self.give_up(record, key(), chain(&error)),
            Err(panic) => self.give_up(record, key(), panic.to_string()),
            Ok(Err(error)) => {
                log.error("table.error", &error);
                self.retry_from(record);
            }
        }
    }
}

/// An item whose change can never be applied, with the first record about the item.
#[derive(Debug)]
struct Poison {
    letter: DeadLetter,
    first_record: usize,
}

/// The largest number of items given up that a log event names. All of them are counted.
const MAX_NAMED_POISON: usize = 10;
/// The largest number of items in `reported`.
const MAX_REPORTED: usize = 1_000;

/// All parts of a function that reads the stream, except the consumer.
#[derive(Debug)]
pub struct StreamFunction<Q, C> {
    name: &'static str,
    dead_letters: Q,
    clock: C,
    telemetry: Telemetry,
    /// The items that this process has given up while applying batches. Further records of them send no further letter.
    reported: Mutex<BTreeSet<(String, String)>>,
}

/// A batch with decoded records.
struct DecodedBatch<T> {
    changes: Vec<Recorded<T>>,
    poison: Vec<Poison>,
    skipped: usize,
    sequence_numbers: Vec<Option<String>>,
}

impl<Q: DeadLetterQueue, C: Clock> StreamFunction<Q, C> {
    /// The stream side of the function called `name`.
    pub fn new(name: &'static str, dead_letters: Q, clock: C, telemetry: Telemetry) -> Self {
        Self { name, dead_letters, clock, telemetry, reported: Mutex::default() }
    }

    /// Applies a batch. Returns the first record that should be delivered again, if there is one.
    ///
    /// A record that can never be applied is counted, logged with its key, sent to the dead-letter queue and skipped,
    /// so that later records are applied. `decode` returns `None` for a record that does not concern the consumer.
    /// Errors of `decode` are permanent.
    pub async fn handle<T>(
        &self,
        event: Event,
        deadline: Deadline,
        decode: impl Fn(EventRecord) -> Result<Option<T>, ItemError>,
        consumer: &impl Consumer<T>,
    ) -> DynamoDbEventResponse {
        // No sender waits for an answer, so throttled requests are repeated until the deadline.
        let invocation = Invocation::until(deadline);
        let mut log = WideEvent::begin(self.name);
        let batch = decoded(event, decode).await;
        log.set("stream.records", batch.sequence_numbers.len());
        log.set("stream.skipped", batch.skipped);

        let applied = Box::pin(consumer.apply(&batch.changes, &invocation, &mut log)).await;
        let poison = || batch.poison.iter().chain(&applied.poison);
        log.set("stream.poison", poison().count());
        if poison().next().is_some() {
            let named = poison().take(MAX_NAMED_POISON).map(|poison| &poison.letter);
            let keys =
                named.map(|letter| format!("{} {}: {}", letter.pk, letter.sk, letter.reason));
            log.set("stream.poison_keys", keys.collect::<Vec<_>>());
        }

        let unsent = self.send_letters(&batch.poison, &applied.poison, &invocation, &mut log).await;

        let mut response = DynamoDbEventResponse::default();
        if let Some(record) = applied.first_failure.into_iter().chain(unsent).min() {
            log.set("stream.retried", batch.sequence_numbers.len() - record);
            let mut failure = DynamoDbBatchItemFailure::default();
            // If the sequence number is missing, the whole batch is delivered again.
            failure.item_identifier.clone_from(&batch.sequence_numbers[record]);
            response.batch_item_failures = vec![failure];
        }

        log.emit(&invocation, &self.telemetry, &self.clock);
        response
    }

    /// Sends letters to the dead-letter queue: one for each unreadable record, and one for each item that is given up.
    /// If the queue does not take them, returns the first record that they are about.
    async fn send_letters(
        &self,
        unreadable: &[Poison],
        inapplicable: &[Poison],
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> Option<usize> {
        let key = |poison: &Poison| (poison.letter.pk.clone(), poison.letter.sk.clone());
        let reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let new: Vec<_> =
            inapplicable.iter().filter(|poison| !reported.contains(&key(poison))).collect();
        let poison = || unreadable.iter().chain(new.iter().copied());
        let first = poison().map(|poison| poison.first_record).min()?;

        let letters: Vec<DeadLetter> = poison().map(|poison| poison.letter.clone()).collect();
        if let Err(error) = self.dead_letters.send(&letters, invocation).await {
            log.error("dead_letters.error", &error);
            return Some(first);
        }

        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let free = MAX_REPORTED.saturating_sub(reported.len());
        reported.extend(new.into_iter().take(free).map(key));
        None
    }
}

/// Decodes the records of an event. A record whose decoding panics counts as unreadable.
async fn decoded<T>(
    event: Event,
    decode: impl Fn(EventRecord) -> Result<Option<T>, ItemError>,
) -> DecodedBatch<T> {
    let (mut changes, mut poison, mut skipped) = (Vec::new(), Vec::new(), 0);
    let mut sequence_numbers = Vec::with_capacity(event.records.len());
    for (position, mut record) in event.records.into_iter().enumerate() {
        sequence_numbers.push(record.change.sequence_number.take());
        let (pk, sk) = record::describe_key(&record);
        let reason = match catching(async { decode(record) }).await {
            Ok(Ok(Some(change))) => {
                changes.push(Recorded { record: position, change });
                continue;
            }
            Ok(Ok(None)) => {
                skipped += 1;
                continue;
            }
            Ok(Err(error)) => chain(&error),
            Err(panic) => panic.to_string(),
        };

        let letter = DeadLetter { pk, sk, reason };
        poison.push(Poison { letter, first_record: position });
    }

    DecodedBatch { changes, poison, skipped, sequence_numbers }
}
