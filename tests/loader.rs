//! What a loader stores is, item by item, what the stream's functions make of the same requests. Knows no rule of a fold.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use domain::Timestamp;
use fastrand::Rng;
use http::Request;
use local::{Loader, Options, System};
use runtime::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use crate::engine::Table;

/// A request: its method, its path with the query, the type of its body, and the body.
type Asked = (&'static str, String, &'static str, String);

async fn start() -> System {
    let options = Options {
        listens: false,
        time_zone: "Europe/Berlin".parse().expect("a zone"),
        registry_max_age: std::time::Duration::ZERO,
        conditions_index: Some(true),
        ..Options::default()
    };
    Box::pin(System::start(options)).await.expect("starts")
}

fn request((method, path, content_type, body): &Asked) -> Request<Vec<u8>> {
    let request = Request::builder().method(*method).uri(path.as_str());
    let request = request.header("content-type", *content_type).body(body.clone().into_bytes());
    request.expect("a request")
}

/// The items by their keys, without what tells when and how often they were written.
async fn items(system: &System, before: &str) -> BTreeMap<(String, String), Value> {
    let mut items = BTreeMap::new();
    for mut item in Table::of(system).scan().await {
        let text =
            |item: &Value, name: &str| item[name]["S"].as_str().unwrap_or_default().to_owned();
        let (pk, sk) = (text(&item, "pk"), text(&item, "sk"));
        let is_rollup = pk.starts_with("ROLLUP#");
        // When a recent bucket is folded depends on the clock.
        let is_recent = is_rollup && sk.split_once('#').is_some_and(|(_, begin)| begin >= before);
        if is_recent || ["STATE#", "LATE#", "CONDITIONS#"].contains(&pk.as_str()) {
            continue;
        }
        // So does a month that has begun since: in which months a device was in a room is noted by the fold.
        let month = &before[..7];
        let [first, last] = ["first", "last"].map(|name| text(&item, name));
        let is_of_months = first.len() == month.len() && last.len() == month.len();
        let has_month_begun = SystemClock.now().to_string()[..7] != *month;
        if is_of_months && has_month_begun && first.as_str() > month {
            continue;
        }
        let attributes = item.as_object_mut().expect("an item");
        if is_of_months && has_month_begun && last.as_str() >= month {
            attributes.remove("last");
        }
        // What readings say of their device a loader tells the registry before it stores them.
        for of_the_way in ["ver", "_version", "_about"] {
            attributes.remove(of_the_way);
        }
        items.insert((pk, sk), item);
    }
    items
}

/// Readings of a house: devices that move, counters that start over, a day that is not over, gaps; some are sent in
/// line protocol, some merged, some twice.
fn house(rng: &mut Rng, now: Timestamp) -> Vec<Asked> {
    let mut asked = Vec::new();
    // The last Sunday of March: that day has 23 hours.
    let march = Timestamp::parse("2025-03-27T10:00:00Z", now).expect("a timestamp");
    let begins =
        [march, march.saturating_add(TimeDelta::days(40)), now.saturating_add(-TimeDelta::days(2))];
    for _ in 0..rng.usize(6..12) {
        let device = rng.usize(0..3);
        let begin = begins[rng.usize(..begins.len())];
        let (path, is_lines) = match rng.usize(0..5) {
            0 => ("/readings?merge=true", false),
            1 => ("/readings", false),
            2 => ("/api/v3/write_lp?precision=millisecond", true),
            _ => ("/readings?rooms=given", false),
        };
        // One for a request: the stays within a batch depend on where the stream cuts it.
        let room = format!("room-{}", rng.usize(0..3));
        let mut lines = String::new();
        let mut at = begin.saturating_add(TimeDelta::minutes(rng.i64(0..600)));
        let mut total = rng.f64() * 1000.0;
        for _ in 0..rng.usize(1..60) {
            at = at.saturating_add(TimeDelta::seconds(rng.i64(1..7_000)));
            if at >= now {
                break;
            }
            total = if rng.usize(0..15) == 0 { 0.0 } else { total + rng.f64() };
            let temperature = rng.i32(-200..300);
            let line = if is_lines {
                format!(
                    "climate,host=d{device} temperature={}.{},energy_kwh={total:.3} {}",
                    temperature / 10,
                    temperature.abs() % 10,
                    at.as_millis()
                )
            } else {
                let mut reading =
                    json!({"device_id": format!("d{device}"), "timestamp": at.to_string()});
                match rng.usize(0..4) {
                    0 => reading["temperature"] = json!(f64::from(temperature) / 10.0),
                    1 => reading["power_w"] = json!(temperature.abs()),
                    2 => reading["energy_kwh"] = json!((total * 1000.0).round() / 1000.0),
                    _ => {
                        reading["humidity"] = json!(50);
                        reading["energy_kwh"] = json!((total * 1000.0).round() / 1000.0);
                    }
                }
                if rng.usize(0..5) == 0 {
                    reading["room"] = json!(room);
                }
                reading.to_string()
            };
            lines.push_str(&line);
            lines.push('\n');
        }
        let content_type =
            if is_lines { "text/plain; charset=utf-8" } else { "application/x-ndjson" };
        if !lines.is_empty() {
            asked.push(("POST", path.to_owned(), content_type, lines));
        }
        if rng.usize(0..4) == 0 {
            // Again, as an import that was interrupted does.
            asked.extend(asked.last().cloned());
        }
    }
    asked
}

/// Sends a request to both, and asserts that both have the same items afterwards.
async fn step(ordinary: &System, (other, loader): (&System, &Loader), one: &Asked, before: &str) {
    let expected = ordinary.send(request(one)).await.expect("answers");
    let found = loader.send(request(one)).await.expect("answers");
    assert_eq!((expected.status(), expected.body()), (found.status(), found.body()));
    loader.store().await.expect("stored");
    // The other is not waited for: what is over is whole at once.
    ordinary.settle().await.expect("delivered");
    assert!(ordinary.dead_letters().is_empty(), "{:?}", ordinary.dead_letters());
    let (expected, found) = (items(ordinary, before).await, items(other, before).await);
    let keys: BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    let different = keys.into_iter().filter(|key| expected.get(*key) != found.get(*key));
    let shown = |key| format!("{key:?}\n  {:?}\n  {:?}", expected.get(key), found.get(key));
    let different: Vec<_> = different.map(shown).collect();
    assert!(different.is_empty(), "{}\nafter {one:?}", different.join("\n"));
}

async fn a_house_is_the_same(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let now = SystemClock.now();
    let before = now.saturating_add(-TimeDelta::days(5)).to_string();
    let (ordinary, other) = (start().await, start().await);
    let loader = other.loader().await.expect("a loader");
    let patch = json!({"metrics": {"energy_kwh": {"tolerance": 0.5}}}).to_string();
    let edit: Asked = ("PATCH", "/devices/d0".to_owned(), "application/json", patch);
    let mut asked = house(&mut rng, now);
    asked.push(edit);
    asked.extend(house(&mut rng, now));
    for one in &asked {
        Box::pin(step(&ordinary, (&other, &loader), one, &before)).await;
    }
    drop(loader);
    for system in [ordinary, other] {
        system.shutdown().await.expect("stops");
    }
}

#[tokio::test]
async fn houses_that_are_loaded_are_what_the_stream_makes_of_them() {
    for seed in 0..4 {
        println!("seed {seed}");
        Box::pin(a_house_is_the_same(seed)).await;
    }
}
