//! The function on a table in memory that fails on demand. Sample events are run by the workspace's tests.

use chrono::TimeDelta;
use serde_json::{Value, json};
use shared::clock::TestClock;
use shared::domain::{DevicePatch, Edit, MetricName, Number, Reading};
use shared::store::memory::MemoryStore;
use shared::store::{EditRegistry as _, Edited, PutReadings as _};

use super::*;

struct Bench {
    store: MemoryStore,
    registry: Registry<MemoryStore, MemoryQueue, TestClock>,
    queue: MemoryQueue,
    budget: Budget,
    clock: TestClock,
}

impl Bench {
    fn on(store: MemoryStore) -> Self {
        let clock = TestClock::at(instant(0));
        let settings = Settings { registry_max_age: Duration::from_secs(60) };
        let queue = MemoryQueue::default();
        let (telemetry, queue_of_its) = (Telemetry::silent(), queue.clone());
        let registry =
            Registry::new(store.clone(), queue_of_its, clock.clone(), telemetry, settings);
        let budget = Budget::until(Deadline::after(Duration::from_secs(5)));
        Self { store, registry, queue, budget, clock }
    }

    fn new() -> Self {
        Self::on(MemoryStore::default())
    }

    /// Stores the readings and delivers them as one batch; the sequence number that was reported.
    async fn write(&self, readings: &[Reading]) -> Option<String> {
        self.store.put_readings(readings, None, &self.budget).await;
        self.deliver(readings).await
    }

    async fn deliver(&self, readings: &[Reading]) -> Option<String> {
        let records: Vec<Value> = readings.iter().enumerate().map(record).collect();
        let event = serde_json::from_value(json!({"Records": records})).expect("an event");
        let response = self.registry.handle(event, Deadline::after(Duration::from_secs(5))).await;
        assert!(response.batch_item_failures.len() <= 1, "at most the first is reported");
        response.batch_item_failures.into_iter().next().and_then(|failure| failure.item_identifier)
    }

    async fn device(&self) -> Device {
        let id = "d".parse().expect("an id");
        self.store.device(&id, &self.budget).await.expect("memory").expect("registered")
    }

    async fn room_of_device(&self) -> String {
        self.device().await.room.expect("a room").to_string()
    }
}

fn instant(minute: i64) -> Instant {
    let start = Instant::from_millis(1_768_147_200_000).expect("an instant");
    start.saturating_add(TimeDelta::minutes(minute))
}

fn reading(device: &str, minute: i64, room: Option<&str>) -> Reading {
    let metric: MetricName = "temperature".parse().expect("a name");
    let metrics = [(metric, Number::parse("20").expect("a number"))].into();
    let room = room.map(|room| room.parse().expect("an id"));
    Reading::new(device.parse().expect("an id"), instant(minute), room, metrics).expect("a reading")
}

fn record((n, reading): (usize, &Reading)) -> Value {
    let sk = shared::store::keys::reading_sk(reading.at);
    let mut image =
        json!({"pk": {"S": reading.device}, "sk": {"S": sk}, "temperature": {"N": "20"}});
    if let Some(room) = &reading.room {
        image["room"] = json!({"S": room});
    }
    json!({
        "eventID": n.to_string(), "eventName": "INSERT", "awsRegion": "eu-west-1",
        "dynamodb": {
            "Keys": {"pk": image["pk"], "sk": image["sk"]}, "NewImage": image,
            "SequenceNumber": format!("{n}"), "SizeBytes": 1,
        },
    })
}

#[tokio::test]
async fn nothing_is_written_for_what_is_known() {
    let bench = Bench::new();
    bench.write(&[reading("d", 0, Some("a"))]).await;
    let before = bench.store.calls();
    for minute in 1..20 {
        bench.write(&[reading("d", minute, Some("a"))]).await;
    }
    assert_eq!(bench.store.calls().registry_writes, before.registry_writes);
    assert_eq!(bench.store.calls().reads, before.reads);
}

#[tokio::test]
async fn a_late_reading_never_moves_a_device_back() {
    let bench = Bench::new();
    bench.write(&[reading("d", 0, Some("a"))]).await;
    bench.write(&[reading("d", 30, Some("a"))]).await;
    // Newer than the reading that told the room, older than the newest one.
    bench.write(&[reading("d", 15, Some("b"))]).await;
    assert_eq!(bench.room_of_device().await, "a");
    bench.write(&[reading("d", 31, Some("b"))]).await;
    assert_eq!(bench.room_of_device().await, "b");
    bench.write(&[reading("d", 16, Some("a")), reading("d", 40, None)]).await;
    assert_eq!(bench.room_of_device().await, "b");
}

#[tokio::test]
async fn any_order_and_any_repetition_leave_the_same_registry() {
    let all: Vec<Reading> = [(0, "a"), (5, "b"), (9, "c"), (7, "b"), (3, "a")]
        .map(|(minute, room)| reading("d", minute, Some(room)))
        .into();
    let mut registries = Vec::new();
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]] {
        let bench = Bench::new();
        for n in order {
            bench.write(&[all[n].clone()]).await;
        }
        bench.deliver(&all).await;
        registries
            .push((bench.device().await, bench.store.rooms(&bench.budget).await.expect("memory")));
    }
    assert!(registries.iter().all(|registry| *registry == registries[0]), "{registries:#?}");
    assert_eq!(registries[0].0.room.as_ref().expect("a room").as_str(), "c");
    assert_eq!(registries[0].0.first_seen, instant(0));
}

#[tokio::test]
async fn what_a_person_set_stays() {
    let bench = Bench::new();
    bench.write(&[reading("d", 0, Some("a"))]).await;
    let patch = DevicePatch {
        name: Edit::Set("Kitchen".to_owned()),
        room: Edit::Set("p".parse().expect("an id")),
        ..DevicePatch::default()
    };
    let edited = bench.store.edit_device(&"d".parse().expect("an id"), &patch, &bench.budget).await;
    assert!(matches!(edited, Ok(Edited::Written(_))));
    // The function's own cache does not know of the edit.
    bench.write(&[reading("d", 10, Some("b")), reading("d", -10, Some("c"))]).await;
    let device = bench.device().await;
    assert_eq!(
        (device.name.as_deref(), device.room.expect("a room").as_str()),
        (Some("Kitchen"), "p")
    );
    assert_eq!(device.first_seen, instant(-10), "what nobody set is still learned");

    let patch = DevicePatch { room: Edit::Clear, ..DevicePatch::default() };
    bench
        .store
        .edit_device(&"d".parse().expect("an id"), &patch, &bench.budget)
        .await
        .expect("memory");
    bench.clock.advance(Duration::from_secs(60));
    bench.write(&[reading("d", 20, Some("b"))]).await;
    assert_eq!(
        bench.room_of_device().await,
        "b",
        "the readings decide again once the cache is read anew"
    );
}

#[tokio::test]
async fn the_first_record_that_could_not_be_learned_is_reported() {
    let bench = Bench::new();
    bench.registry.load().await;
    let batch = [reading("z", 0, None), reading("d", 0, None), reading("d", 1, None)];
    // Devices are written in the order of their ids: d, which record 1 is the first to name, then z.
    bench.store.fail_registry_writes_with([StoreError::TimedOut]);
    assert_eq!(bench.deliver(&batch).await.as_deref(), Some("1"));
    assert_eq!(bench.deliver(&batch[1..]).await, None, "delivered again, it is learned");
    assert_eq!(bench.device().await.first_seen, instant(0));
}

#[tokio::test]
async fn without_the_registry_the_first_reading_is_reported() {
    let bench = Bench::new();
    bench.store.fail_with([StoreError::TimedOut]);
    assert_eq!(bench.deliver(&[reading("d", 0, None)]).await.as_deref(), Some("0"));
    assert_eq!(bench.deliver(&[reading("d", 0, None)]).await, None);
}

#[tokio::test]
async fn a_stale_cache_of_two_functions_does_no_harm() {
    let one = Bench::new();
    let two = Bench::on(one.store.clone());
    one.registry.load().await;
    two.registry.load().await;
    one.write(&[reading("d", 5, Some("b"))]).await;
    two.write(&[reading("d", 0, Some("a"))]).await;
    assert_eq!(one.room_of_device().await, "b");
    assert_eq!(one.device().await.first_seen, instant(0));
}

#[tokio::test]
async fn poison_is_put_aside_and_comes_again_only_while_it_cannot_be() {
    let bench = Bench::new();
    let mut records: Vec<Value> =
        [reading("a", 0, None), reading("b", 0, None), reading("c", 0, None)]
            .iter()
            .enumerate()
            .map(record)
            .collect();
    records[1]["dynamodb"]["Keys"]["sk"] = json!({"S": "TS#yesterday"});
    records[1]["dynamodb"]["NewImage"]["sk"] = json!({"S": "TS#yesterday"});
    let deliver = async || {
        let event = serde_json::from_value(json!({"Records": records})).expect("an event");
        bench.registry.handle(event, Deadline::after(Duration::from_secs(5))).await
    };
    bench.queue.fail(true);
    let failures = deliver().await.batch_item_failures;
    assert_eq!(failures[0].item_identifier.as_deref(), Some("1"));
    assert!(bench.queue.letters().is_empty());
    let learned = bench.store.devices(&bench.budget).await.expect("memory");
    assert_eq!(learned.len(), 2, "the others do not wait for it");

    bench.queue.fail(false);
    assert!(deliver().await.batch_item_failures.is_empty());
    let letters = bench.queue.letters();
    let [letter] = letters.as_slice() else { panic!("one letter: {letters:?}") };
    assert_eq!((letter.pk.as_str(), letter.sk.as_str()), ("b", "TS#yesterday"));
    assert!(!letter.reason.is_empty());
}
