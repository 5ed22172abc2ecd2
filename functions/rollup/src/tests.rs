//! The function on a table in memory that fails on demand. Interleavings are tested by the workspace's model.

mod rooms;
mod schedule;
mod stream;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::TimeDelta;
use domain::given::{at_minute, device, metric};
use domain::{
    Bucket, ConditionsSchema, Device, DevicePatch, Encoding, Exchange, FoldRules, MetricName,
    MetricPatch, QuarterHour, Reading, Rollup as Folded, SWEEP_GROUPS, SchemaMetric, Timestamp,
    Zone, sweep_group,
};
use runtime::clock::TestClock;
use runtime::dead_letters::{DeadLetter, MemoryQueue};
use runtime::work_queue::FoldRequest;
use serde_json::{Value, json};
use table::given::{self, minute, number};
use table::memory_db::MemoryDb;
use table::{
    DeleteReadings as _, EditRegistry as _, Expected, Invocation, LookUpRegistry as _,
    PutConditionsSchema as _, PutReadings as _, ReadLateChanges as _, ReadingKey, RollupKey,
    StoredRollup,
};

use super::*;
use table::ReadRollupState as _;

pub(super) struct Bench {
    pub(super) store: MemoryDb,
    pub(super) clock: TestClock,
    pub(super) work: MemoryQueue<FoldRequest>,
    pub(super) dead_letters: MemoryQueue<DeadLetter>,
    pub(super) rollup:
        Rollup<MemoryDb, MemoryQueue<FoldRequest>, MemoryQueue<DeadLetter>, TestClock>,
    pub(super) invocation: Invocation,
    line: Arc<Mutex<Value>>,
}

impl Bench {
    /// At the start, with the device `d` registered.
    pub(super) async fn new() -> Self {
        Self::begun_on(MemoryDb::default()).await
    }

    /// The same on this table.
    pub(super) async fn begun_on(store: MemoryDb) -> Self {
        let bench = Self::on(store, "Asia/Tokyo");
        bench.schedule().await;
        bench.register("d").await;
        bench
    }

    /// At the start.
    pub(super) fn on(store: MemoryDb, zone: &str) -> Self {
        Self::with(store, zone, 500)
    }

    /// At the start, on a table that may consume so many units of each kind a second.
    pub(super) fn with(store: MemoryDb, zone: &str, max_units: u32) -> Self {
        let clock = TestClock::at(at_minute(0));
        let (work, dead_letters) = (MemoryQueue::default(), MemoryQueue::default());
        let line = Arc::new(Mutex::new(Value::Null));
        let sink = Arc::clone(&line);
        let telemetry = Telemetry::to(Arc::new(move |line| {
            *sink.lock().expect("no panic") = serde_json::from_str(line).expect("JSON");
        }));
        let settings = Settings {
            zone: given::zone(zone),
            retention: Retention::default(),
            rollup_delay: rollups::RollupDelay::default(),
            max_read_units: max_units,
            max_write_units: max_units,
        };
        let permitted = store.for_role(<MemoryDb as Store>::PERMISSIONS);
        let rollup = Rollup::new(
            permitted,
            work.clone(),
            dead_letters.clone(),
            clock.clone(),
            telemetry,
            settings,
        );
        let invocation = given::invocation();
        Self { store, clock, work, dead_letters, rollup, invocation, line }
    }

    pub(super) async fn register(&self, device: &str) {
        given::register_devices_of(&self.store, &[reading(device, 0, "1")]).await;
    }

    /// Stores a reading without delivering its record.
    pub(super) async fn write(&self, device: &str, minute: i64, value: &str) -> Value {
        let reading = reading(device, minute, value);
        self.store.put_readings(&[reading], None, &self.invocation).await;
        record("INSERT", device, minute)
    }

    pub(super) async fn delete(&self, device: &str, minute: i64) -> Value {
        let key = ReadingKey { at: at_minute(minute), device: given::device(device) };
        self.store.delete_readings(&[key], &self.invocation).await;
        record("REMOVE", device, minute)
    }

    /// Delivers records; returns the position of the one to deliver again.
    pub(super) async fn deliver(&self, records: &[Value]) -> Option<usize> {
        self.deliver_within(records, minute()).await
    }

    pub(super) async fn deliver_within(
        &self,
        records: &[Value],
        deadline: Deadline,
    ) -> Option<usize> {
        let mut records = records.to_vec();
        for (n, record) in records.iter_mut().enumerate() {
            record["dynamodb"]["SequenceNumber"] = n.to_string().into();
        }
        let event = serde_json::from_value(json!({"Records": records})).expect("an event");
        let response = self.rollup.handle_stream(event, deadline).await;
        let failure = response.batch_item_failures.first()?.item_identifier.clone();
        Some(failure.expect("a number").parse().expect("a number"))
    }

    /// Delivers a message of the queue; returns whether it is done.
    pub(super) async fn message(&self, device: &str, minute: i64) -> bool {
        let body = json!({"device": device, "quarter": at_minute(minute)}).to_string();
        let event = json!({"Records": [{"messageId": "m", "body": body}]});
        let event = serde_json::from_value(event).expect("an event");
        self.rollup.handle_queue(event, given::minute()).await.batch_item_failures.is_empty()
    }

    pub(super) async fn schedule(&self) {
        self.rollup.handle_schedule(minute()).await.expect("nothing fails");
    }

    /// Runs the schedule every minute from one to another, both inside.
    pub(super) async fn minutes(&self, from: i64, to: i64) {
        for minute in from..=to {
            self.clock.set(at_minute(minute));
            self.schedule().await;
        }
    }

    pub(super) fn rollup(&self, device: &str, bucket: Bucket) -> Option<StoredRollup> {
        let key = RollupKey { device: given::device(device), bucket };
        self.store.rollups().into_iter().find(|it| it.key == key)
    }

    /// The rollup of the quarter in which a minute lies.
    pub(super) fn quarter(&self, device: &str, minute: i64) -> Option<StoredRollup> {
        self.rollup(device, Bucket::QuarterHour(QuarterHour::of(at_minute(minute))))
    }

    /// The rollup of a local day.
    pub(super) fn day(&self, device: &str, date: &str) -> Option<StoredRollup> {
        self.rollup(device, Bucket::Day(given::date(date)))
    }

    /// Stores a rollup that was folded with newer settings than the device has: no fold replaces it.
    pub(super) async fn damage(&self, device: &str, minute: i64) {
        let quarter = QuarterHour::of(at_minute(minute));
        let poison = given::stored_quarter(&given::device(device), quarter, Folded::default());
        given::put_first(&self.store, &StoredRollup { settings: 99, ..poison }).await;
    }

    pub(super) async fn device(&self, device: &str) -> Device {
        let found = self.store.device(&given::device(device), &self.invocation).await;
        found.expect("memory").expect("registered")
    }

    pub(super) async fn backlog(&self) -> Option<table::Backlog> {
        self.store.late_changes(&self.invocation).await.expect("memory").backlog
    }

    pub(super) async fn state(&self) -> table::RollupState {
        self.store.rollup_state(&self.invocation).await.expect("memory").expect("a state")
    }

    /// Changes a setting that concerns every reading of the device.
    pub(super) async fn set_max_w(&self, device: &str, watts: &str) {
        let max_w = domain::Edit::Set(number(watts));
        self.edit(device, MetricPatch { max_w, ..MetricPatch::default() }).await;
    }

    /// Changes a setting that concerns one quarter.
    pub(super) async fn exchange_meter(&self, device: &str, minute: i64) {
        let exchange = Exchange { old: number("1"), new: number("0") };
        let exchanges = domain::Edit::Set([(at_minute(minute), exchange)].into());
        self.edit(device, MetricPatch { exchanges, ..MetricPatch::default() }).await;
    }

    async fn edit(&self, device: &str, patch: MetricPatch) {
        let patch =
            DevicePatch { metrics: [(name(), Some(patch))].into(), ..DevicePatch::default() };
        self.store
            .edit_device(&given::device(device), &patch, Timestamp::MIN, &self.invocation)
            .await
            .expect("memory");
    }

    /// A field of the newest log event.
    pub(super) fn logged(&self, field: &str) -> Value {
        self.line.lock().expect("no panic")[field].clone()
    }
}

pub(super) fn name() -> MetricName {
    metric("cumulative_kwh_p")
}

pub(super) fn reading(device: &str, minute: i64, value: &str) -> Reading {
    given::reading(device, at_minute(minute), None, &[("cumulative_kwh_p", value)])
}

pub(super) fn folded(readings: &[Reading]) -> Folded {
    Folded::fold(readings, &FoldRules::default())
}

pub(super) fn record(event: &str, device: &str, minute: i64) -> Value {
    let sk = table::keys::reading_sk(at_minute(minute));
    json!({
        "eventID": "1", "eventName": event, "awsRegion": "eu-west-1",
        "dynamodb": {"Keys": {"pk": {"S": device}, "sk": {"S": sk}}, "SizeBytes": 1},
    })
}
