//! Keeps the registry from the table's stream: devices, their metrics and rooms. Stores no reading.
//!
//! A batch of records becomes one [`Sighting`] per device, which is the same however often and in
//! whatever order the records come; what a sighting teaches beyond the registry is written, under
//! conditions that refuse whatever is older or was set by a person.

mod dead_letters;
mod record;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use aws_lambda_events::event::dynamodb::Event;
use aws_lambda_events::event::streams::{DynamoDbBatchItemFailure, DynamoDbEventResponse};
use shared::clock::{Clock, Deadline};
use shared::config::Config;
use shared::domain::{Device, DeviceId, Instant, Order, Room, RoomId, Sighting, TimeRange};
use shared::registry_cache::RegistryCache;
use shared::store::{
    Budget, Learn, Learning, QueryReadings, RangeQuery, ReadRegistry, Register, Registration,
    StoreError, StoreResult,
};
use shared::telemetry::{Telemetry, WideEvent, chain};

use record::Change;

#[cfg(any(test, feature = "fake"))]
pub use dead_letters::MemoryQueue;
pub use dead_letters::{DeadLetter, DeadLetters, NotPut, SqsQueue};

/// What may be set from outside.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How old the cached registry may grow.
    pub registry_max_age: Duration,
}

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        Self { registry_max_age: config.registry_max_age }
    }
}

/// The function.
#[derive(Debug)]
pub struct Registry<S, D, C> {
    store: S,
    dead_letters: D,
    cache: RegistryCache<C>,
    clock: C,
    telemetry: Telemetry,
}

/// How long the registry may take at cold start, before the first batch is there.
const COLD_START: Duration = Duration::from_secs(5);
/// How often a write begins again because the registry changed meanwhile.
const ATTEMPTS: usize = 5;
/// How many poison records a log event names; all are counted.
const NAMED_POISON: usize = 10;

/// What a batch says of one device or room, and the first record that says it.
#[derive(Debug)]
struct Seen<T> {
    what: T,
    first_record: usize,
}

/// What a batch says.
#[derive(Debug, Default)]
struct Batch {
    devices: BTreeMap<DeviceId, Seen<Sighting>>,
    rooms: BTreeMap<RoomId, Seen<Instant>>,
    poison: Vec<DeadLetter>,
    first_poison: Option<usize>,
    passed_over: usize,
    sequence_numbers: Vec<Option<String>>,
}

impl<S, D, C> Registry<S, D, C>
where
    S: ReadRegistry + Register + Learn + QueryReadings,
    D: DeadLetters,
    C: Clock,
{
    /// The function on a table; what it can never apply goes to `dead_letters`.
    #[must_use]
    pub fn new(
        store: S,
        dead_letters: D,
        clock: C,
        telemetry: Telemetry,
        settings: Settings,
    ) -> Self {
        let cache = RegistryCache::new(settings.registry_max_age, clock.clone());
        Self { store, dead_letters, cache, clock, telemetry }
    }

    /// Reads the registry, at cold start. Where that fails the first batch tries again.
    pub async fn load(&self) {
        let mut log = WideEvent::begin("registry.load");
        let budget = Budget::until(Deadline::after(COLD_START));
        if let Err(error) = self.cache.snapshot(&self.store, &budget).await {
            log.warn("registry.error", &error);
        }
        log.emit(&self.telemetry, &self.clock);
    }

    /// Learns from a batch, and reports the first record that should be delivered again.
    ///
    /// A record that can never be read is counted, logged with its key, put among the dead letters
    /// and passed over. Delivered twice or in another order, a batch leaves the same registry.
    pub async fn handle(&self, event: Event, deadline: Deadline) -> DynamoDbEventResponse {
        let budget = Budget::until(deadline);
        let mut log = WideEvent::begin("registry");
        let batch = Batch::of(event);
        log.set("stream.records", batch.sequence_numbers.len());
        log.set("stream.passed_over", batch.passed_over);
        log.set("stream.devices", batch.devices.len());
        log.count("stream.poison", batch.poison.len());
        if !batch.poison.is_empty() {
            let named = batch.poison.iter().take(NAMED_POISON);
            let keys = named.map(|it| format!("{} {}: {}", it.pk, it.sk, it.reason));
            log.set("stream.poison_keys", keys.collect::<Vec<_>>());
        }

        let learned = self.learn(&batch, &budget, &mut log).await;
        let put_aside = self.put_aside(&batch, &budget, &mut log).await;
        let failed = learned.into_iter().chain(put_aside).min();
        let mut response = DynamoDbEventResponse::default();
        if let Some(record) = failed {
            log.count("stream.retried_from", record);
            let mut failure = DynamoDbBatchItemFailure::default();
            // Without a number the whole batch is delivered again.
            failure.item_identifier.clone_from(&batch.sequence_numbers[record]);
            response.batch_item_failures = vec![failure];
        }
        log.set("table.read_units", budget.read_units());
        log.set("table.write_units", budget.write_units());
        log.emit(&self.telemetry, &self.clock);
        response
    }

    /// The first poison record, if they could not be put among the dead letters.
    async fn put_aside(
        &self,
        batch: &Batch,
        budget: &Budget,
        log: &mut WideEvent,
    ) -> Option<usize> {
        let first = batch.first_poison?;
        let error = self.dead_letters.put(&batch.poison, budget).await.err()?;
        log.error("dead_letters.error", &error);
        Some(first)
    }

    /// The first record that teaches something which could not be written.
    async fn learn(&self, batch: &Batch, budget: &Budget, log: &mut WideEvent) -> Option<usize> {
        if batch.devices.is_empty() {
            return None;
        }
        let snapshot = match self.cache.snapshot(&self.store, budget).await {
            Ok((snapshot, stale)) => {
                if let Some(error) = stale {
                    log.warn("registry.error", &error);
                }
                snapshot
            }
            Err(error) => {
                log.error("registry.error", &error);
                return batch.devices.values().map(|seen| seen.first_record).min();
            }
        };
        let mut failed = None;
        let mut note = |result: StoreResult<()>, record: usize| {
            if let Err(error) = result {
                log.error("registry.error", &error);
                failed = Some(failed.map_or(record, |first: usize| first.min(record)));
            }
        };
        for (id, seen) in &batch.rooms {
            let known = snapshot.rooms.get(id).cloned();
            note(self.learn_room(id, seen.what, known, budget).await, seen.first_record);
        }
        for (id, seen) in &batch.devices {
            let known = snapshot.devices.get(id).cloned();
            note(self.learn_device(id, &seen.what, known, budget).await, seen.first_record);
        }
        failed
    }

    async fn learn_device(
        &self,
        id: &DeviceId,
        sighting: &Sighting,
        mut known: Option<Device>,
        budget: &Budget,
    ) -> StoreResult<()> {
        for _ in 0..ATTEMPTS {
            let device = match known {
                Some(device) => device,
                None => {
                    let new = sighting.register(id.clone());
                    match self.store.register_device(&new, budget).await? {
                        Registration::New => {
                            self.cache.keep_device(new);
                            return Ok(());
                        }
                        Registration::Known(device) => device,
                    }
                }
            };
            let mut learned = device.learn(sighting);
            if let Some((at, room)) = learned.room.take() {
                let newest = self.newest_room(id, at, room, budget).await?;
                learned.room = Some(newest).filter(|(_, room)| device.room.as_ref() != Some(room));
            }
            if learned.is_empty() {
                self.cache.keep_device(device);
                return Ok(());
            }
            match self.store.learn_device(id, &learned, budget).await? {
                Learning::Written(now) => {
                    self.cache.keep_device(now);
                    return Ok(());
                }
                // Somebody was faster, or a person has decided: what is there now is the new base.
                Learning::Refused(now) => known = now,
            }
        }
        Err(StoreError::Unavailable(format!("the item of {id} kept changing").into()))
    }

    /// The room that the newest of the device's readings names, at or after the one seen in the batch.
    ///
    /// The registry is not written per reading, so it does not know how new its own room is: a late
    /// reading from elsewhere could look newer. The readings themselves know.
    async fn newest_room(
        &self,
        device: &DeviceId,
        at: Instant,
        room: RoomId,
        budget: &Budget,
    ) -> StoreResult<(Instant, RoomId)> {
        let Ok(range) = TimeRange::new(at, Instant::MAX) else { return Ok((at, room)) };
        let mut query = RangeQuery {
            range,
            order: Order::Descending,
            after: None,
            limit: 10,
            consistent: true,
        };
        loop {
            let page = self.store.device_readings(device, &query, budget).await?;
            let newest = page.readings.iter().find_map(|r| Some((r.at, r.room.clone()?)));
            if let Some(newest) = newest {
                return Ok(newest);
            }
            match page.readings.last() {
                Some(last) if page.has_more => {
                    query.after = Some(shared::store::Position::of(last));
                    query.limit = 1_000;
                }
                // Deleted since: what the stream said is all there is.
                _ => return Ok((at, room)),
            }
        }
    }

    async fn learn_room(
        &self,
        id: &RoomId,
        first_seen: Instant,
        known: Option<Room>,
        budget: &Budget,
    ) -> StoreResult<()> {
        let room = match known {
            Some(room) => room,
            None => {
                let new = Room { id: id.clone(), name: None, first_seen };
                match self.store.register_room(&new, budget).await? {
                    Registration::New => {
                        self.cache.keep_room(new);
                        return Ok(());
                    }
                    Registration::Known(room) => room,
                }
            }
        };
        if first_seen >= room.first_seen {
            self.cache.keep_room(room);
            return Ok(());
        }
        match self.store.learn_room(id, first_seen, budget).await? {
            Learning::Written(now) | Learning::Refused(Some(now)) => self.cache.keep_room(now),
            Learning::Refused(None) => {}
        }
        Ok(())
    }
}

impl Batch {
    fn of(event: Event) -> Self {
        let mut batch = Self::default();
        for (n, mut record) in event.records.into_iter().enumerate() {
            batch.sequence_numbers.push(record.change.sequence_number.take());
            match record::read(record) {
                Change::Nothing => batch.passed_over += 1,
                Change::Poison { key: (pk, sk), why } => {
                    batch.first_poison.get_or_insert(n);
                    batch.poison.push(DeadLetter { pk, sk, reason: chain(&why) });
                }
                Change::Reading(reading) => {
                    if let Some(room) = &reading.room {
                        let seen = Seen { what: reading.at, first_record: n };
                        let first = batch.rooms.entry(room.clone()).or_insert(seen);
                        first.what = first.what.min(reading.at);
                    }
                    batch
                        .devices
                        .entry(reading.device.clone())
                        .and_modify(|seen| seen.what.see(&reading))
                        .or_insert_with(|| Seen { what: Sighting::of(&reading), first_record: n });
                }
            }
        }
        batch
    }
}
