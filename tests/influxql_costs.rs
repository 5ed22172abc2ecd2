//! What InfluxQL costs beside reading all readings, in the engine's read units, and that its values are right.

use std::io::Write as _;

use domain::{Bucket, FoldRules, Order, QuarterHour, Reading, Rollup, TimeRange, Timestamp, Zone};
use dynamodb::DynamoStore;
use serde_json::Value;
use table::{QueryReadings as _, ReadingKey, RegisterDevices as _, StoredRollup};

use crate::engine::Engine;
use crate::given::{
    answer, at, device, device_of, invocation, percent_encoded, placed, put_first, reading, seal,
    stored_rollup,
};
use crate::home::Home;
use crate::stored::{first_page, put};

const MINUTE: i64 = 60_000;
const DAY: i64 = 86_400_000;
const ZONE: &str = "Europe/Brussels";

/// A thermometer with a reading every few minutes from the start of the tests' time on.
struct Thermometer {
    _engine: Engine,
    store: DynamoStore,
    readings: Vec<Reading>,
    days: i64,
}

/// A value that changes over the day, with two decimals.
fn measured(n: i64, millis: i64) -> Reading {
    let temperature = format!("{}.{:02}", 17 + n / 12 % 7, n * 37 % 100);
    let humidity = format!("{}", 40 + n / 5 % 23);
    let metrics = [("temperature", temperature.as_str()), ("humidity", &humidity)];
    placed(reading("thermo-kitchen", millis, &metrics), "kitchen")
}

impl Thermometer {
    async fn build(minutes: i64, days: i64, has_quarters: bool) -> Self {
        let engine = Engine::embedded().await;
        let store = engine.table(true).await.store();
        let count = days * DAY / (minutes * MINUTE);
        let readings: Vec<Reading> =
            (0..count).map(|n| measured(n, n * minutes * MINUTE)).collect();
        let known = device_of(&readings[..1]);
        answer!(store.register_device(&known));
        for chunk in readings.chunks(250) {
            put(&store, chunk).await;
        }
        let built = Self { _engine: engine, store, readings, days };
        built.roll_up(&FoldRules::of(&known), has_quarters).await;
        built
    }

    async fn roll_up(&self, rules: &FoldRules, has_quarters: bool) {
        let zone: Zone = ZONE.parse().expect("a zone");
        let whole = TimeRange::new(at(0), at(self.days * DAY)).expect("a range");
        let mut buckets: Vec<(Bucket, TimeRange, Option<String>)> = Vec::new();
        let mut from = whole.from();
        while from < whole.to() {
            let date = zone.date(from);
            let day = zone.day(date).expect("it exists");
            buckets.push((Bucket::Day(date), day, Some(ZONE.to_owned())));
            from = day.to();
        }
        let mut quarter = QuarterHour::of(whole.from());
        // Without all of them, those of the two days that the range cuts.
        let is_cut = |quarter: QuarterHour| {
            let (from, to) =
                (quarter.start().since(whole.from()), whole.to().since(quarter.start()));
            from.num_days() == 0 || to.num_days() == 0
        };
        while quarter.start() < whole.to() {
            if has_quarters || is_cut(quarter) {
                buckets.push((Bucket::QuarterHour(quarter), quarter.range(), None));
            }
            quarter = quarter.next();
        }
        for (bucket, range, zone) in buckets {
            let first = self.readings.partition_point(|it| it.at < range.from());
            let end = self.readings.partition_point(|it| it.at < range.to());
            let rollup = Rollup::fold(&self.readings[first..end], rules);
            let stored = stored_rollup(&device("thermo-kitchen"), bucket, range, rollup);
            put_first(&self.store, &StoredRollup { zone, ..stored }).await;
        }
        seal(&self.store, ZONE, at((self.days + 2) * DAY)).await;
    }

    /// The units that all readings cost.
    async fn all_readings(&self) -> f64 {
        let (id, invocation) = (device("thermo-kitchen"), invocation());
        let range = TimeRange::new(at(0), at(self.days * DAY)).expect("a range");
        let mut query = first_page(range, Order::Ascending, 10_000);
        loop {
            let page = self.store.device_readings(&id, &query, &invocation).await.expect("read");
            query.after = page.items.last().map(ReadingKey::of);
            if !page.has_more {
                return invocation.read_units();
            }
        }
    }

    /// The rows of an answer, and the units that it costs a process that knows the registry and was asked before.
    async fn asked(&self, query: &str) -> (Vec<(i64, f64)>, f64) {
        let home = Home::at(self.store.clone(), at((self.days + 3) * DAY));
        home.query().load().await;
        let parameters = format!("db=home&epoch=ms&q={}", percent_encoded(query));
        home.get("/query", &parameters).await;
        let answer = home.get("/query", &parameters).await;
        let values = answer.body["results"][0]["series"][0]["values"].clone();
        let row = |row: &Value| (row[0].as_i64().expect("ms"), row[1].as_f64().expect("a number"));
        let rows = values.as_array().unwrap_or_else(|| panic!("{query}: {}", answer.body));
        (rows.iter().map(row).collect(), answer.units().0)
    }

    /// The mean of each window, added up here.
    fn means(&self, window: impl Fn(Timestamp) -> i64) -> Vec<(i64, f64)> {
        let mut sums: std::collections::BTreeMap<i64, (f64, f64)> =
            std::collections::BTreeMap::new();
        for reading in &self.readings {
            let value = &reading.metrics()[&crate::given::metric("temperature")];
            let sum = sums.entry(window(reading.at)).or_default();
            sum.0 += value.as_str().parse::<f64>().expect("a number");
            sum.1 += 1.0;
        }
        sums.into_iter().map(|(start, (sum, count))| (start, sum / count)).collect()
    }

    fn bounds(&self) -> String {
        let (from, to) = (at(0).as_millis(), at(self.days * DAY).as_millis());
        format!("time >= {from}ms AND time < {to}ms")
    }
}

fn assert_equal(found: &[(i64, f64)], expected: &[(i64, f64)]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.0, expected.0);
        let difference = (found.1 - expected.1).abs();
        assert!(difference <= 1e-12 * expected.1.abs(), "{found:?} {expected:?}");
    }
}

fn say(text: &str) {
    drop(writeln!(std::io::stderr(), "{text}"));
}

#[tokio::test]
async fn months_by_the_day_come_from_days_and_without_tz_never_cost_more_than_readings() {
    let thermometer = Thermometer::build(10, 137, false).await;
    let all = thermometer.all_readings().await;
    let mean = format!(
        "SELECT mean(\"value\") FROM \"temperature\" WHERE {} GROUP BY time(1d)",
        thermometer.bounds()
    );
    let (rows, units) = thermometer.asked(&format!("{mean} fill(none) tz('{ZONE}')")).await;
    let zone: Zone = ZONE.parse().expect("a zone");
    let local_day = |at: Timestamp| zone.day(zone.date(at)).expect("it exists").from().as_millis();
    assert_equal(&rows, &thermometer.means(local_day));
    say(&format!(
        "137 days by the day, a reading every 10 minutes: {units} read units with tz(), {all} for all readings"
    ));
    assert!(units * 20.0 <= all, "{units} units of {all}");
    let (rows, units) = thermometer.asked(&format!("{mean} fill(none)")).await;
    assert_equal(&rows, &thermometer.means(|at| at.as_millis() / DAY * DAY));
    say(&format!("without tz(): {units} read units"));
    // How many readings a day has is known from the first time; a unit tells what rollups may lack.
    assert!(units <= all + 1.0, "{units} units of {all}");
}

#[tokio::test]
async fn a_reading_a_minute_by_the_hour_comes_from_quarters() {
    let thermometer = Thermometer::build(1, 10, true).await;
    let all = thermometer.all_readings().await;
    let query = format!(
        "SELECT mean(\"value\") FROM \"temperature\" WHERE {} GROUP BY time(1h) fill(none)",
        thermometer.bounds()
    );
    let (rows, units) = thermometer.asked(&query).await;
    let hour = DAY / 24;
    assert_equal(&rows, &thermometer.means(|at| at.as_millis() / hour * hour));
    say(&format!(
        "10 days by the hour, a reading a minute: {units} read units, {all} for all readings"
    ));
    assert!(units * 3.0 <= all, "{units} units of {all}");
    let (rows, units) = thermometer.asked("SELECT last(\"value\") FROM \"temperature\"").await;
    assert_eq!(rows.len(), 1);
    assert!(units <= 0.5, "{units} units for the newest value");
    let day = query.replace("time(1h) fill(none)", &format!("time(1d) fill(none) tz('{ZONE}')"));
    let (rows, units) = thermometer.asked(&day.replace("mean", "max")).await;
    assert!(rows.len() == 11 && units * 20.0 <= all, "{units} units of {all}");
}
