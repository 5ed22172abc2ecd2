//! What keeping rollups costs, counted in the engine's capacity units. Checks no rollup.
//!
//! With `ROOMTIDE_DEVICES=10000` the fleet is that large, and its figures are printed.

use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::Reading;
use dynamodb::DynamoStore;
use futures_util::{StreamExt as _, stream};
use rollup::{Rollup, Settings};
use rollups::Retention;
use runtime::clock::{Deadline, TestClock};
use runtime::dead_letters::MemoryQueue;
use runtime::telemetry::Telemetry;
use runtime::work_queue::MemoryWorkQueue;
use serde_json::Value;
use table::PutReadings as _;

use crate::engine::Engine;
use crate::given::{at, invocation, placed, reading, register_devices_of};

const MINUTE: i64 = 60_000;
/// The write units of noting that a device is seen in a room for the first time.
const NOTED: u32 = 4;

/// The rollup function on the engine, and what it has consumed.
struct Bench {
    _engine: Engine,
    store: DynamoStore,
    clock: TestClock,
    rollup: Rollup<DynamoStore, MemoryWorkQueue, MemoryQueue, TestClock>,
    consumed: Arc<Mutex<(f64, f64)>>,
}

impl Bench {
    async fn with(devices: usize) -> Self {
        let engine = Engine::embedded().await;
        let store = engine.table(false).await.store();
        let clock = TestClock::at(at(0));
        let consumed: Arc<Mutex<(f64, f64)>> = Arc::default();
        let sum = Arc::clone(&consumed);
        let telemetry = Telemetry::to(Arc::new(move |line| {
            let line: Value = serde_json::from_str(line).expect("JSON");
            let units = |name: &str| line[name].as_f64().expect("a number");
            let mut sum = sum.lock().expect("no test panics with it");
            sum.0 += units("table.read_units");
            sum.1 += units("table.write_units");
        }));
        let settings = Settings {
            zone: "UTC".parse().expect("a zone"),
            retention: Retention::default(),
            following: rollups::Following::default(),
            max_read_units: u32::MAX,
            max_write_units: u32::MAX,
        };
        let (work, letters) = (MemoryWorkQueue::default(), MemoryQueue::default());
        let rollup = Rollup::new(store.clone(), work, letters, clock.clone(), telemetry, settings);
        let bench = Self { _engine: engine, store, clock, rollup, consumed };
        bench.schedule(0).await;
        stream::iter(0..devices)
            .for_each_concurrent(16, |n| {
                let store = bench.store.clone();
                async move {
                    let first = measured(n, 0);
                    register_devices_of(&store, &[first]).await;
                }
            })
            .await;
        bench.take();
        bench
    }

    /// An invocation by the schedule, that many minutes after the start.
    async fn schedule(&self, minute: i64) {
        self.clock.set(at(minute * MINUTE));
        let deadline = Deadline::after(Duration::from_mins(10));
        self.rollup.handle_schedule(deadline).await.expect("done");
    }

    async fn put(&self, readings: &[Reading]) {
        for chunk in readings.chunks(1_000) {
            let outcome = self.store.put_readings(chunk, None, &invocation()).await;
            assert!(outcome.cause.is_none());
        }
    }

    /// The read and write units since the last time.
    fn take(&self) -> (f64, f64) {
        std::mem::take(&mut *self.consumed.lock().expect("no test panics with it"))
    }
}

/// A thermometer's reading of a minute.
fn measured(device: usize, minute: i64) -> Reading {
    let (temperature, humidity) = (format!("2{}.5", minute % 10), format!("4{}", minute % 7));
    let metrics = [("temperature", temperature.as_str()), ("humidity", &humidity)];
    placed(reading(&format!("sensor-{device:05}"), minute * MINUTE, &metrics), "hall")
}

#[tokio::test]
async fn a_home_pays_a_rollup_a_quarter_three_a_day_and_a_mark_a_quarter() {
    const DEVICES: u32 = 4;
    const MINUTES: u32 = 24 * 60;
    let bench = Bench::with(DEVICES as usize).await;
    for begin in (0..i64::from(MINUTES)).step_by(15) {
        let minutes = |n| (begin..begin + 15).map(move |it| measured(n, it));
        let readings: Vec<_> = (0..DEVICES as usize).flat_map(minutes).collect();
        bench.put(&readings).await;
        // A quarter is over 11 minutes after its end.
        for minute in begin + 12..begin + 27 {
            bench.schedule(minute).await;
        }
    }
    let (_, write_units) = bench.take();
    let quarters = MINUTES / 15;
    // The midnight between ends one day, and two parts of the next are folded while it is open. The first mark is that
    // of the quarter before the start.
    let (of_device, marks) = (quarters + 3, quarters + 1);
    // Once in the life of a device it is noted that it was seen in the room: two items in a transaction.
    let expected = f64::from(DEVICES * (of_device + NOTED) + marks);
    assert!((write_units - expected).abs() < 0.1, "{write_units} instead of {expected}");
    let per_reading = f64::from(of_device) / f64::from(MINUTES);
    assert!(per_reading < 0.069, "{per_reading} write units a reading");
}

#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test's own switch, not the system's configuration"
)]
async fn a_fleet_pays_a_query_and_a_rollup_a_device_and_one_list_a_quarter() {
    let devices: usize =
        std::env::var("ROOMTIDE_DEVICES").ok().and_then(|n| n.parse().ok()).unwrap_or(150);
    let bench = Bench::with(devices).await;
    // The quarter before the start, in which nobody has sent anything.
    for minute in 11..26 {
        bench.schedule(minute).await;
    }
    bench.take();

    let readings: Vec<_> =
        (0..devices).flat_map(|n| (0..15).map(move |it| measured(n, it))).collect();
    bench.put(&readings).await;
    // Each group has its minute once.
    for minute in 26..41 {
        bench.schedule(minute).await;
    }
    let (read_units, write_units) = bench.take();
    let count = f64::from(u32::try_from(devices).expect("few"));
    drop(writeln!(
        std::io::stderr(),
        "a quarter of an hour of {devices} devices: {read_units} read units, {write_units} write units"
    ));
    // Once in a month a device's room is noted, the first time with two items in a transaction. Then a rollup of
    // each device, and 15 marks.
    let noted = count * f64::from(NOTED);
    assert!((write_units - noted - count - 15.0).abs() < 1.0, "{write_units} write units");
    // What is noted; a consistent query each of 15 small readings; the list, 4 KB a unit; the state each minute. At the
    // end of 16 hours each device's day as well, and its quarters.
    assert!(read_units < count * 4.15 + 40.0, "{read_units} read units");
}
