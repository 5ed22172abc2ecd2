//! Keeps the registry from the table's stream: devices, their metrics and rooms. Stores no reading.
//!
//! A batch of records becomes one [`DeviceObservation`] per device, which is the same however often and in
//! whatever order the records come. The devices and rooms that it names are read as they are this
//! moment; what the observations teach beyond that is written, under conditions that refuse whatever is
//! older or was set by a person. What can never be applied goes to the dead-letter queue.

mod apply;
mod dead_letters;
mod record;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use aws_lambda_events::event::dynamodb::Event;
use aws_lambda_events::event::streams::{DynamoDbBatchItemFailure, DynamoDbEventResponse};
use domain::{DeviceId, DeviceObservation};
use runtime::clock::{Clock, Deadline};
use runtime::panic::catching;
use runtime::telemetry::{Telemetry, WideEvent, chain};
use table::{FindRegistry, Invocation, QueryReadings, RegisterDevices, UpdateRegistry};

use record::Change;

#[cfg(any(test, feature = "fake"))]
pub use dead_letters::MemoryQueue;
pub use dead_letters::{DeadLetter, DeadLetters, NotPut, SqsQueue};

/// The function.
#[derive(Debug)]
pub struct Registry<S, D, C> {
    store: S,
    dead_letters: D,
    clock: C,
    telemetry: Telemetry,
    /// The items of the registry that this process has put among the dead letters: every further
    /// reading of such a device would put the same letter there.
    reported: Mutex<BTreeSet<(String, String)>>,
}

/// How many poison records a log event names; all are counted.
const NAMED_POISON: usize = 10;
/// How many damaged items are remembered as reported.
const MAX_REPORTED: usize = 1_000;

/// What a batch says of one device, and the first record that says it.
#[derive(Debug)]
struct Seen {
    observation: DeviceObservation,
    first_record: usize,
}

/// What can never be applied, and the first record that asks for it.
#[derive(Debug)]
struct Poison {
    letter: DeadLetter,
    first_record: usize,
}

/// What a batch says.
#[derive(Debug, Default)]
struct Batch {
    devices: BTreeMap<DeviceId, Seen>,
    poison: Vec<Poison>,
    skipped: usize,
    sequence_numbers: Vec<Option<String>>,
}

/// What became of a batch.
#[derive(Debug, Default)]
struct Learned {
    /// The first record that has to be delivered again.
    failed: Option<usize>,
    /// Items of the registry that can never be written as the batch asks for.
    poison: Vec<Poison>,
}

table::store! {
    /// What the function asks of the table.
    pub trait Store: FindRegistry + RegisterDevices + UpdateRegistry + QueryReadings
}

impl<S: Store, D: DeadLetters, C: Clock> Registry<S, D, C> {
    /// The function on a table; what it can never apply goes to `dead_letters`.
    #[must_use]
    pub fn new(store: S, dead_letters: D, clock: C, telemetry: Telemetry) -> Self {
        Self { store, dead_letters, clock, telemetry, reported: Mutex::default() }
    }

    /// Learns from a batch, and reports the first record that should be delivered again.
    ///
    /// A record that can never be applied is counted, logged with its key, put among the dead letters
    /// and skipped. Delivered twice or in another order, a batch leaves the same registry.
    pub async fn handle(&self, event: Event, deadline: Deadline) -> DynamoDbEventResponse {
        let invocation = Invocation::until(deadline);
        let mut log = WideEvent::begin("registry");
        let batch = Batch::of(event).await;
        log.set("stream.records", batch.sequence_numbers.len());
        log.set("stream.skipped", batch.skipped);
        log.set("stream.devices", batch.devices.len());

        let learned = Box::pin(self.learn(&batch.devices, &invocation, &mut log)).await;
        let poison = || batch.poison.iter().chain(&learned.poison);
        log.count("stream.poison", poison().count());
        if poison().next().is_some() {
            let named = poison().take(NAMED_POISON).map(|it| &it.letter);
            let keys = named.map(|it| format!("{} {}: {}", it.pk, it.sk, it.reason));
            log.set("stream.poison_keys", keys.collect::<Vec<_>>());
        }
        let put_aside = self.put_aside(&batch.poison, &learned.poison, &invocation, &mut log).await;
        let failed = learned.failed.into_iter().chain(put_aside).min();
        let mut response = DynamoDbEventResponse::default();
        if let Some(record) = failed {
            log.count("stream.retried", batch.sequence_numbers.len() - record);
            let mut failure = DynamoDbBatchItemFailure::default();
            // Without a number the whole batch is delivered again.
            failure.item_identifier.clone_from(&batch.sequence_numbers[record]);
            response.batch_item_failures = vec![failure];
        }
        log.set("table.read_units", invocation.read_units());
        log.set("table.write_units", invocation.write_units());
        log.emit(&self.telemetry, &self.clock);
        response
    }

    /// Puts poison among the dead letters, an item of the registry once. Returns the first record
    /// that is poison, if they could not be put there.
    async fn put_aside(
        &self,
        readings: &[Poison],
        registry: &[Poison],
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> Option<usize> {
        let key = |it: &Poison| (it.letter.pk.clone(), it.letter.sk.clone());
        let reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let registry: Vec<_> = registry.iter().filter(|it| !reported.contains(&key(it))).collect();
        let poison = || readings.iter().chain(registry.iter().copied());
        let first = poison().map(|it| it.first_record).min()?;
        let letters: Vec<DeadLetter> = poison().map(|it| it.letter.clone()).collect();
        if let Err(error) = self.dead_letters.put(&letters, invocation).await {
            log.error("dead_letters.error", &error);
            return Some(first);
        }
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let free = MAX_REPORTED.saturating_sub(reported.len());
        reported.extend(registry.into_iter().take(free).map(key));
        None
    }
}

impl Batch {
    async fn of(event: Event) -> Self {
        let mut batch = Self::default();
        for (n, mut record) in event.records.into_iter().enumerate() {
            batch.sequence_numbers.push(record.change.sequence_number.take());
            let (pk, sk) = record::describe_key(&record);
            let change = catching(async { record::read(record) }).await;
            let poison = |reason| Poison { letter: DeadLetter { pk, sk, reason }, first_record: n };
            match change {
                Ok(Change::Nothing) => batch.skipped += 1,
                Ok(Change::Poison(why)) => batch.poison.push(poison(chain(&why))),
                Err(panic) => batch.poison.push(poison(panic.to_string())),
                Ok(Change::Reading(reading)) => {
                    batch
                        .devices
                        .entry(reading.device.clone())
                        .and_modify(|seen| seen.observation.see(&reading))
                        .or_insert_with(|| Seen {
                            observation: DeviceObservation::of(&reading),
                            first_record: n,
                        });
                }
            }
        }
        batch
    }
}
