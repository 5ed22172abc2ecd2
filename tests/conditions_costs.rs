//! What conditions cost on a synthetic year, by all rollups, by the index and by the plan that is chosen.
//! Checks that the choice never costs more than 1.2 times all rollups, and that the answers are the same.
//!
//! With `ROOMTIDE_CONDITIONS_DAYS=365` the year is a whole one, and a table is printed that has the index alone too.

use std::collections::BTreeMap;
use std::f64::consts::TAU;
use std::fmt::Write as _;

use domain::{
    Bucket, ConditionsSchema, FoldRules, Interval, MetricMeans, MetricName, QuarterHour, Rollup,
    Timestamp,
};
use dynamodb::DynamoStore;
use serde_json::Value;
use table::item::Kind as _;
use table::{
    ConditionsQuery, Expected, Indexing, PutConditionsSchema as _, PutRollups as _,
    QueryConditions as _, SetConditionsReady as _, StoredRollup,
};

use crate::engine::{Engine, Table};
use crate::given::{
    answer, at, device, invocation, reading, register_devices_of, schema_of, seal, stored_quarter,
};
use crate::home::Home;

const QUARTER: i64 = 900_000;
const METRICS: [&str; 3] = ["temperature", "humidity", "co2"];
/// The entries of a page, as the query function asks for them.
const PAGE: usize = 100;

/// A device's quarters of an hour for some days, in the index by a schema of the first metrics.
pub(crate) struct Year {
    _engine: Engine,
    pub(crate) table: Table,
    schema: ConditionsSchema,
    days: i64,
    /// The means of each metric, sorted.
    sorted: Vec<Vec<domain::Decimal>>,
}

/// A quarter of an hour: warm in summer and in the afternoon, damp when it is cool, stale when people are in.
fn rollup(n: i64) -> Rollup {
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let time = n as f64;
    let (day, year) = ((time / 96.0 * TAU).sin(), (time / 35_040.0 * TAU).sin());
    let mut random = fastrand::Rng::with_seed(u64::try_from(n).expect("not negative"));
    let mut noise = |size: f64| (random.f64() + random.f64() - 1.0) * size;
    let temperature = 20.0 + 5.0 * year + 2.5 * day + noise(2.0);
    let humidity = 50.0 - 1.5 * (temperature - 20.0) + 6.0 * (time / 700.0).sin() + noise(12.0);
    let co2 = 600.0 + 250.0 * (day + 0.3).max(0.0) + noise(160.0);
    let minutes = [0, 5, 10].map(|minute| {
        let mut shown = |value: f64, size: f64| format!("{:.1}", value + noise(size));
        let values = [shown(temperature, 0.3), shown(humidity, 1.0), shown(co2, 20.0)];
        let metrics = METRICS.iter().zip(&values).map(|(name, it)| (*name, it.as_str()));
        let metrics: Vec<_> = metrics.collect();
        reading("sensor", n * QUARTER + minute * 60_000, &metrics)
    });
    Rollup::fold(&minutes, &FoldRules::default())
}

fn stored(n: i64, rollup: &Rollup, indexing: &Indexing) -> StoredRollup {
    let quarter = QuarterHour::of(at(n * QUARTER));
    let indexed = indexing.of(Bucket::QuarterHour(quarter), rollup);
    StoredRollup { indexed, ..stored_quarter(&device("sensor"), quarter, rollup.clone()) }
}

impl Year {
    pub(crate) async fn build(days: i64, metrics: usize) -> Self {
        let engine = Engine::embedded().await;
        let table = engine.table_of(&[("ConditionsIndex", "on")]).await;
        let store = table.store();
        let domains =
            [("temperature", "10", "32"), ("humidity", "25", "80"), ("co2", "300", "1100")];
        let schema = schema_of(1, &domains[..metrics]);
        assert!(answer!(store.put_conditions_schema(&schema, Expected::Absent)));
        assert!(answer!(store.set_conditions_ready(1)));
        let first = reading("sensor", 0, &METRICS.map(|name| (name, "1")));
        register_devices_of(&store, &[first]).await;
        seal(&store, "UTC", at(days * 96 * QUARTER)).await;
        let indexing = &Indexing::By(schema.clone().into());
        let rollups: Vec<Rollup> = (0..days * 96).map(rollup).collect();
        let items = (0..).zip(&rollups).map(|(n, rollup)| stored(n, rollup, indexing));
        table.put_all(items.map(|stored| stored.item())).await;

        let sorted = METRICS.map(|name| {
            let name: MetricName = name.parse().expect("a name");
            let means = rollups.iter().map(|it| MetricMeans::of(&it.metrics[&name]));
            let mut means: Vec<_> = means.map(|it| it.expect("a mean").mean).collect();
            means.sort();
            means
        });
        Self { _engine: engine, table, schema, days, sorted: sorted.into() }
    }

    /// For each metric of the schema the values of a window that holds so many percent of the quarters.
    pub(crate) fn windows(&self, begin: usize, percent: usize) -> Vec<(&'static str, String)> {
        let metrics = METRICS.iter().zip(&self.sorted).take(self.schema.metrics().len());
        let window = |(name, sorted): (&&'static str, &Vec<domain::Decimal>)| {
            let end = ((begin + percent) * sorted.len() / 100).min(sorted.len() - 1);
            (*name, format!("{}..{}", sorted[begin * sorted.len() / 100], sorted[end]))
        };
        metrics.map(window).collect()
    }

    /// The answer to conditions over all days, and what it cost.
    pub(crate) async fn ask(&self, store: DynamoStore, windows: &[(&str, String)]) -> (Value, f64) {
        let (from, to) = (at(0), at(self.days * 96 * QUARTER));
        let home = Home::at(store, to);
        home.query().load().await;
        let conditions: Vec<_> =
            windows.iter().map(|(name, values)| format!("{name}={values}")).collect();
        let query = format!("from={from}&to={to}&explain=1&{}", conditions.join("&"));
        let path = "/devices/sensor/conditions";
        // The first request of a minute also reads the state of the rollups.
        home.get(path, &query).await;
        let answer = home.found_in_the_end(path, &query).await;
        let (reads, _) = answer.units();
        (answer.body, reads)
    }

    /// The write units of the rollup of the quarter that follows the last.
    pub(crate) async fn put_next(&self) -> f64 {
        let (n, invocation) = (self.days * 96, invocation());
        let next = stored(n, &rollup(n), &Indexing::By(self.schema.clone().into()));
        let put = self.table.store().put_rollup(&next, Expected::Absent, &invocation).await;
        assert!(put.expect("written"));
        invocation.write_units()
    }

    /// What the index alone costs, without a bound.
    async fn by_index(&self, windows: &[(&str, String)], max_ranges: usize) -> f64 {
        let store = self.table.store();
        let named: Vec<(MetricName, Interval)> = windows
            .iter()
            .map(|(name, it)| (name.parse().expect("a name"), it.parse().expect("an interval")))
            .collect();
        let region = self.schema.region(&named.iter().map(|(name, it)| (name, it)).collect());
        let curve = self.schema.curve();
        let invocation = invocation();
        let months: BTreeMap<String, Timestamp> = (0..self.days)
            .map(|day| at(day * 96 * QUARTER))
            .map(|at| (at.to_string()[..7].to_owned(), at))
            .collect();
        for month in months.values() {
            for range in curve.ranges(&region, 4_000, max_ranges) {
                let (mut first, mut after) = (*range.start(), None);
                loop {
                    let query = ConditionsQuery {
                        device: &device("sensor"),
                        month: *month,
                        first: &self.schema.address(first),
                        last: &self.schema.address(*range.end()),
                        after: after.as_ref(),
                        limit: PAGE,
                    };
                    let page = store.indexed_quarters(&query, &invocation).await;
                    let Ok(page) = page else { continue };
                    let Some(last) = page.items.into_iter().next_back().filter(|_| page.has_more)
                    else {
                        break;
                    };
                    let address = self.schema.parse_address(&last.entry.address).expect("ours");
                    if region.contains(&curve.point(address)) {
                        after = Some(last);
                        continue;
                    }
                    match curve.next_inside(address, &region) {
                        Some(next) if next <= *range.end() => (first, after) = (next, None),
                        _ => break,
                    }
                }
            }
        }
        invocation.read_units()
    }
}

/// How many questions about a year pay for the index, which costs one write unit more for each rollup of 15
/// minutes, at five read units for a write unit (prices of us-east-1).
fn break_even(savings: &[f64]) -> String {
    let (quarters, reads_of_a_write) = (35_040.0, 5.0);
    let mut questions: Vec<_> =
        savings.iter().filter(|it| **it > 0.0).map(|it| quarters * reads_of_a_write / it).collect();
    questions.sort_by(f64::total_cmp);
    match questions[..] {
        [least, .., most] => {
            format!("the index pays from {least:.0} to {most:.0} such questions a year on\n")
        }
        _ => String::from("the index never pays\n"),
    }
}

#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test's own switch, not the system's configuration"
)]
async fn the_plan_that_is_chosen_costs_at_most_a_fifth_more_than_all_rollups() {
    let days = std::env::var("ROOMTIDE_CONDITIONS_DAYS").ok().and_then(|it| it.parse().ok());
    let mut table =
        String::from("| metrics | each holds | plain | 4 ranges | 8 ranges | chosen | by |\n");
    let (mut largest, mut by_index) = (0.0_f64, 0);
    let mut savings = Vec::new();
    for metrics in [2, 3] {
        let year = Year::build(days.unwrap_or(40), metrics).await;
        let by_index_of = async |windows: &[(&str, String)], max_ranges| match days {
            Some(_) => year.by_index(windows, max_ranges).await.to_string(),
            None => "-".to_owned(),
        };
        for percent in [10, 30] {
            for begin in [0, 35, 100 - percent] {
                let windows = year.windows(begin, percent);
                let (plain, plain_units) =
                    year.ask(year.table.store_without_conditions_index(), &windows).await;
                let (chosen, units) = year.ask(year.table.store(), &windows).await;
                assert_eq!(chosen["data"], plain["data"], "{windows:?}");
                let (four, eight) =
                    (by_index_of(&windows, 4).await, by_index_of(&windows, 8).await);
                let chosen_plan = chosen["explain"]["plan"].as_str().expect("a plan");
                by_index += usize::from(chosen_plan == "z-order");
                largest = largest.max(units / plain_units);
                savings.push(plain_units - units);
                writeln!(
                    table,
                    "| {metrics} | {percent} % from {begin} % | {plain_units} | {four} | {eight} | {units} | {chosen_plan} |"
                )
                .expect("writing to memory does not fail");
            }
        }
    }
    if days.is_some() {
        table.push_str(&break_even(&savings));
        drop(std::io::Write::write_all(&mut std::io::stderr(), table.as_bytes()));
    }
    assert!(largest <= 1.2, "{largest} times all rollups:\n{table}");
    assert!(by_index >= 4, "{by_index} of 12 by the index:\n{table}");
}
