//! What keeping rollups costs, counted in the engine's capacity units. Checks no rollup.
//!
//! With `ROOMTIDE_DEVICES=10000` the fleet is that large, and its figures are printed.

use std::io::Write as _;

use domain::Reading;
use dynamodb::DynamoStore;
use futures_util::{StreamExt as _, stream};

use crate::engine::Engine;
use crate::gate::deadline;
use crate::given::{at, placed, reading, register_devices_of};
use crate::home::{Home, Options};
use crate::stored::put;

const MINUTE: i64 = 60_000;
/// The write units of noting that a device is seen in a room for the first time.
const NOTED: u32 = 4;

/// A home of so many thermometers on the engine.
struct Bench {
    _engine: Engine,
    home: Home<DynamoStore>,
}

impl Bench {
    async fn with(devices: usize) -> Self {
        let engine = Engine::embedded().await;
        let store = engine.table(false).await.store();
        let options = Options { deadline, ..Options::at(at(0)) };
        let bench = Self { _engine: engine, home: Home::with(store, options) };
        bench.home.schedule_at(0).await;
        let register = async |n| register_devices_of(&bench.home.store, &[measured(n, 0)]).await;
        stream::iter(0..devices).for_each_concurrent(16, register).await;
        bench.home.log.take_units();
        bench
    }

    async fn put(&self, readings: &[Reading]) {
        for chunk in readings.chunks(1_000) {
            put(&self.home.store, chunk).await;
        }
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
            bench.home.schedule_at(minute * MINUTE).await;
        }
    }
    let (_, write_units) = bench.home.log.take_units();
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
        bench.home.schedule_at(minute * MINUTE).await;
    }
    bench.home.log.take_units();

    let readings: Vec<_> =
        (0..devices).flat_map(|n| (0..15).map(move |it| measured(n, it))).collect();
    bench.put(&readings).await;
    // Each group has its minute once.
    for minute in 26..41 {
        bench.home.schedule_at(minute * MINUTE).await;
    }
    let (read_units, write_units) = bench.home.log.take_units();
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
