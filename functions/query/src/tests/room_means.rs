//! What the means of rooms leave out, against means that are computed here from the readings.

use std::collections::{BTreeMap, BTreeSet};

use domain::{Encoding, FoldRules, QuarterHour, Rollup, SchemaMetric};
use fastrand::Rng;
use table::{Expected, Indexing, PutConditionsSchema as _, SetConditionsReady as _, StoredRollup};

use super::series::numbers;
use super::*;

/// Each kind, and whether it has an inside of its own.
const KINDS: [(&str, bool); 6] = [
    ("thermometer", false),
    ("freezer", true),
    ("Wine fridge", true),
    ("window sensor", false),
    ("OVEN", true),
    ("pool-probe", true),
];
/// Each metric, and whether it is of a thing by its name.
const METRICS: [(&str, bool); 4] = [
    ("temperature", false),
    ("humidity", false),
    ("device_temperature", true),
    ("soil_moisture", true),
];
const POWER: &str = "current_w";
const MINUTES: i64 = 60;

/// A device as this file knows it.
#[derive(Default)]
struct Model {
    kind: Option<usize>,
    word: Option<bool>,
    words: BTreeMap<usize, bool>,
    /// By minute and metric, the number of the last is that of the power.
    values: BTreeMap<(i64, usize), i64>,
}

impl Model {
    /// Why a metric is left out.
    fn reason(&self, metric: usize) -> Option<&'static str> {
        if metric == METRICS.len() {
            return None;
        }
        match (self.words.get(&metric), METRICS[metric].1, self.word) {
            (Some(true), ..) | (None, false, Some(true)) => None,
            (Some(false), ..) | (None, false, Some(false)) => Some("person"),
            (None, true, _) => Some("metric"),
            (None, false, None) => self.kind.filter(|kind| KINDS[*kind].1).map(|_| "kind"),
        }
    }

    /// The values of a metric in a quarter of an hour.
    fn of_quarter(&self, metric: usize, quarter: i64) -> Vec<i64> {
        let of = |minute: i64| self.values.get(&(minute, metric)).copied();
        (quarter * 15..(quarter + 1) * 15).filter_map(of).collect()
    }

    fn has(&self, metric: usize) -> bool {
        self.values.keys().any(|(_, it)| *it == metric)
    }

    fn patch(&self, random: &mut Rng) -> Vec<String> {
        let mut patches = Vec::new();
        if let Some(kind) = self.kind {
            patches.push(json!({"kind": KINDS[kind].0}).to_string());
        }
        if let Some(word) = self.word {
            patches.push(json!({"in_room_means": word}).to_string());
        }
        for (metric, word) in &self.words {
            let settings = json!({name(*metric): {"in_room_means": word}});
            patches.push(json!({"metrics": settings}).to_string());
        }
        random.shuffle(&mut patches);
        patches
    }
}

fn name(metric: usize) -> &'static str {
    METRICS.get(metric).map_or(POWER, |(name, _)| name)
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn mean(values: &[i64]) -> f64 {
    values.iter().sum::<i64>() as f64 / values.len() as f64
}

fn random_home(random: &mut Rng) -> BTreeMap<String, Model> {
    let mut home = BTreeMap::new();
    for n in 0..random.usize(1..6) {
        let mut device = Model {
            kind: random.bool().then(|| random.usize(0..KINDS.len())),
            word: (random.u8(0..3) == 0).then(|| random.bool()),
            ..Model::default()
        };
        let metrics: Vec<usize> = (0..=METRICS.len()).filter(|_| random.u8(0..3) > 0).collect();
        let minutes: Vec<i64> = (0..MINUTES).filter(|_| random.bool()).collect();
        for minute in minutes {
            for metric in &metrics {
                if random.u8(0..4) > 0 {
                    device.values.insert((minute, *metric), random.i64(-20..90));
                }
            }
        }
        for metric in 0..METRICS.len() {
            if device.has(metric) && random.u8(0..3) == 0 {
                device.words.insert(metric, random.bool());
            }
        }
        if !device.values.is_empty() {
            home.insert(format!("d{n}"), device);
        }
    }
    home
}

async fn stored(home: &BTreeMap<String, Model>) -> Bench {
    let bench = Bench::empty();
    let mut readings = Vec::new();
    for (id, device) in home {
        for minute in 0..MINUTES {
            let of_minute = device.values.range((minute, 0)..(minute + 1, 0));
            let values: Vec<(&str, String)> =
                of_minute.map(|((_, metric), it)| (name(*metric), it.to_string())).collect();
            let values: Vec<(&str, &str)> =
                values.iter().map(|(name, it)| (*name, it.as_str())).collect();
            if !values.is_empty() {
                readings.push(numbers(id, minute, "hall", &values));
            }
        }
    }
    bench.store(&readings).await;
    assert_eq!(bench.patch("/rooms/hall", r#"{"home": "h"}"#).await.status, 200);
    bench
}

fn url(path: &str, further: &str) -> String {
    format!("{path}?from={}&to={}&{further}", at_minute(0), at_minute(MINUTES))
}

fn close(found: &Value, expected: f64) -> bool {
    found.as_f64().is_some_and(|found| (found - expected).abs() < 1e-9)
}

/// The rows of a metric are those of the devices that are not left out.
fn check_rows(answer: &Value, home: &BTreeMap<String, Model>, metric: usize, told: &str) {
    for quarter in 0..MINUTES / 15 {
        let counted = home.values().filter(|it| it.reason(metric).is_none());
        let each: Vec<Vec<i64>> = counted
            .map(|it| it.of_quarter(metric, quarter))
            .filter(|values| !values.is_empty())
            .collect();
        let found = &answer["data"][usize::try_from(quarter).expect("few")][name(metric)];
        let means: Vec<f64> = each.iter().map(|values| mean(values)).collect();
        if means.is_empty() {
            assert!(found.is_null(), "{told} quarter {quarter}: {found}");
            continue;
        }
        let sum: f64 = means.iter().sum();
        #[expect(clippy::cast_precision_loss, reason = "few devices")]
        let expected = if metric == METRICS.len() { sum } else { sum / means.len() as f64 };
        assert!(close(&found["mean"], expected), "{told} quarter {quarter}: {found} {expected}");
        if metric < METRICS.len() {
            let all = || each.iter().flatten().copied();
            assert_eq!(found["min"].as_i64(), all().min(), "{told} quarter {quarter}");
            assert_eq!(found["max"].as_i64(), all().max(), "{told} quarter {quarter}");
            assert_eq!(found["count"].as_u64(), Some(all().count() as u64), "{told}");
        }
    }
}

fn check_left_out(answer: &Value, home: &BTreeMap<String, Model>, metric: usize, told: &str) {
    let expected: Vec<Value> = home
        .iter()
        .filter(|(_, it)| it.has(metric))
        .filter_map(|(id, it)| {
            let reason = it.reason(metric)?;
            Some(json!({"device_id": id, "metric": name(metric), "not_of_room": reason}))
        })
        .collect();
    let found = answer["left_out"].as_array().cloned().unwrap_or_default();
    assert_eq!(found, expected, "{told}");
}

#[tokio::test]
async fn a_room_s_row_is_the_mean_of_the_devices_that_are_not_left_out() {
    let mut left_out = 0;
    for seed in 0..60 {
        let mut random = Rng::with_seed(seed);
        let home = random_home(&mut random);
        if home.is_empty() {
            continue;
        }
        // What is said now counts for what is stored already.
        let bench = stored(&home).await;
        let mut patches: Vec<(&str, String)> = home
            .iter()
            .flat_map(|(id, it)| it.patch(&mut random).into_iter().map(move |it| (&**id, it)))
            .collect();
        random.shuffle(&mut patches);
        for (id, patch) in patches {
            let answer = bench.patch(&format!("/devices/{id}"), &patch).await;
            assert_eq!(answer.status, 200, "{patch}: {}", answer.text);
        }
        for metric in (0..=METRICS.len()).filter(|it| home.values().any(|device| device.has(*it))) {
            let told = format!("seed {seed} {}", name(metric));
            let asked = format!("metric={}&every=15m&fn=mean,min,max,count", name(metric));
            for path in ["/rooms/hall/series", "/homes/h/series", "/series"] {
                let answer = bench.get(&url(path, &asked)).await.json();
                check_rows(&answer, &home, metric, &told);
                check_left_out(&answer, &home, metric, &told);
            }
            left_out += home.values().filter(|it| it.reason(metric).is_some()).count();
            check_conditions(&bench, &home, metric, &told).await;
            check_devices(&bench, &home, metric, &told).await;
        }
    }
    assert!(left_out > 100, "{left_out}");
}

/// A room's episodes are of the devices that its rows are of, and a device's are its own.
async fn check_conditions(
    bench: &Bench,
    home: &BTreeMap<String, Model>,
    metric: usize,
    told: &str,
) {
    let is_of_room = |it: &Model| it.has(metric) && it.reason(metric).is_none();
    let expected: Vec<&String> =
        home.iter().filter(|(_, it)| is_of_room(it)).map(|(id, _)| id).collect();
    let asked = format!("{}=..100", name(metric));
    for path in ["/rooms/hall/conditions", "/homes/h/conditions"] {
        let answer = bench.get(&url(path, &asked)).await.json();
        assert_eq!(answer["devices"], json!(expected), "{told}");
        check_left_out(&answer, home, metric, told);
        let rows = answer["data"].as_array().expect("episodes").iter();
        let found: BTreeSet<&str> = rows.filter_map(|row| row["device_id"].as_str()).collect();
        assert_eq!(found, expected.iter().map(|id| id.as_str()).collect(), "{told}");
    }
    for id in home.iter().filter(|(_, it)| it.has(metric)).map(|(id, _)| id) {
        let answer = bench.get(&url(&format!("/devices/{id}/conditions"), &asked)).await.json();
        assert_eq!(answer["devices"], json!([id]), "{told}");
        assert!(answer["data"][0].is_object() && answer["left_out"].is_null(), "{told}");
    }
}

/// A device's own rows and those of all devices apart have what means leave out, and so has InfluxQL.
async fn check_devices(bench: &Bench, home: &BTreeMap<String, Model>, metric: usize, told: &str) {
    let asked = format!("metric={}&fn=mean", name(metric));
    let apart = bench.get(&url("/rooms/hall/series", &format!("{asked}&devices=1"))).await.json();
    assert!(apart["left_out"].is_null(), "{told}");
    let query = format!("SELECT mean(value) FROM {} GROUP BY device", name(metric));
    let query = query.replace(' ', "+");
    let influxql = bench.get(&format!("/query?db=home&q={query}")).await.json();
    let series = influxql["results"][0]["series"].as_array().expect("series").clone();
    let having: Vec<(&String, &Model)> = home.iter().filter(|(_, it)| it.has(metric)).collect();
    assert_eq!(
        (apart["data"].as_array().expect("rows").len(), series.len()),
        (having.len(), having.len()),
        "{told}"
    );
    for (n, (id, device)) in having.into_iter().enumerate() {
        let of_metric = device.values.iter().filter(|((_, it), _)| *it == metric);
        let expected = mean(&of_metric.map(|(_, value)| *value).collect::<Vec<_>>());
        let own = bench.get(&url(&format!("/devices/{id}/series"), &asked)).await.json();
        let row = &apart["data"][n];
        assert_eq!(row["device_id"], json!(id), "{told}");
        for found in [&row["value"], &own["data"][0]["value"], &series[n]["values"][0][1]] {
            assert!(close(found, expected), "{told} {id}: {found} {expected}");
        }
    }
}

/// Eight days of three devices, with the index by conditions: one is left out whichever plan answers.
#[tokio::test]
async fn the_index_by_conditions_is_asked_of_the_same_devices() {
    const DAYS: i64 = 8;
    let bench = Bench::on(MemoryDb::with_conditions_index(), false);
    let metric = |name: &str| SchemaMetric {
        name: given::metric(name),
        encoding: Encoding::Decimal(["-30", "100"].map(given::number).into()),
        bits: 10,
    };
    let schema = vec![metric("temperature"), metric("humidity")];
    let schema = domain::ConditionsSchema::new(1, schema).expect("a schema");
    let put = bench.store.put_conditions_schema(&schema, Expected::Absent, &invocation()).await;
    assert!(put.expect("memory"));
    assert!(bench.store.set_conditions_ready(1, &invocation()).await.expect("memory"));
    let indexing = Indexing::By(schema.into());
    let mut readings = Vec::new();
    for (id, temperature) in [("a", "21"), ("b", "22"), ("freezer", "-18")] {
        for quarter in 0..DAYS * 96 {
            // Seldom it is damp, so that the index costs less than all rollups.
            let humidity = if quarter % 200 == 7 { "90" } else { "50" };
            let values = [("temperature", temperature), ("humidity", humidity)];
            readings.push(numbers(id, (quarter - DAYS * 96) * 15, "hall", &values));
        }
    }
    bench.store(&readings).await;
    bench.seal(0, "UTC").await;
    for reading in &readings {
        let quarter = QuarterHour::of(reading.at);
        let rollup = Rollup::fold(std::iter::once(reading), &FoldRules::default());
        let indexed = indexing.of(Bucket::QuarterHour(quarter), &rollup);
        let stored = given::stored_quarter(&reading.device, quarter, rollup);
        given::put_first(&bench.store, &StoredRollup { indexed, ..stored }).await;
    }
    let patch = bench.patch("/devices/freezer", r#"{"kind": "freezer"}"#).await;
    assert_eq!(patch.status, 200);
    let asked = format!("from={}&to={}&explain=1", at_minute(-DAYS * 1_440), at_minute(0));
    for (conditions, plan) in
        [("temperature=-20..25&humidity=80..", "z-order"), ("humidity=80..", "plain")]
    {
        let of = async |path: &str| {
            bench.get(&format!("{path}/conditions?{asked}&{conditions}")).await.json()
        };
        let (room, own) = (of("/rooms/hall").await, of("/devices/freezer").await);
        assert_eq!(room["explain"]["plan"], plan, "{}", room["explain"]);
        assert_eq!(room["devices"], json!(["a", "b"]));
        let rows = |answer: &Value| answer["data"].as_array().expect("episodes").len();
        assert_eq!((rows(&room), rows(&own)), (8, 4), "{conditions}");
        assert_eq!(room["left_out"][0]["device_id"], "freezer");
    }
}
