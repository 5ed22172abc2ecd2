//! Energy beside meters that move, whatever is rolled up. All else is in `tests/cases/meters.txt`.

use std::collections::BTreeSet;

use chrono::TimeDelta;

use super::by_room::{ROOMS, random_readings, stored};
use super::series::numbers;
use super::*;

fn ids(rows: &Value) -> Vec<&str> {
    let rows = rows.as_array().map_or(&[][..], |rows| rows);
    rows.iter().map(|it| it["device_id"].as_str().expect("an id")).collect()
}

/// A plug that stays in the hall and counts 1 kWh in a quarter of an hour; its meter counts 10 and is in the hall from
/// the 4th hour to the 8th.
fn plug_and_moving_meter() -> Vec<Reading> {
    let mut readings = Vec::new();
    for quarter in 0..48 {
        let minute = quarter * 15 - 1_440;
        let (plug, meter) = ((1_000 + quarter).to_string(), (1_000 + 10 * quarter).to_string());
        let room = if (16..32).contains(&quarter) { "hall" } else { "loft" };
        readings.push(numbers("plug", minute, "hall", &[("cumulative_kwh_p", &plug)]));
        readings.push(numbers("meter", minute, room, &[("cumulative_kwh_p", &meter)]));
    }
    readings
}

fn total(answer: &Value) -> f64 {
    answer["total_kwh"].as_f64().unwrap_or(0.0)
}

/// The meter, and when it was in the rooms.
fn moved(meter: &str, from: i64, to: i64) -> Value {
    let during = json!([{"from": at_minute(from).to_string(), "to": at_minute(to).to_string()}]);
    json!([{"device_id": meter, "during": during}])
}

#[tokio::test]
async fn a_meter_counts_in_the_place_of_its_plug_if_it_was_there_for_half_of_the_range() {
    for (sealed, room_now) in [(None, "loft"), (Some(0), "loft"), (Some(-1_000), "hall")] {
        let bench = stored(&plug_and_moving_meter(), sealed).await;
        assert_eq!(bench.patch("/devices/plug", r#"{"behind": "meter"}"#).await.status, 200);
        let room = json!({"room": room_now}).to_string();
        assert_eq!(bench.patch("/devices/meter", &room).await.status, 200);
        let hall = async |from: i64, to: i64, further: &str| {
            let range =
                format!("from={}&to={}{further}", at_minute(from - 1_440), at_minute(to - 1_440));
            bench.get(&format!("/rooms/hall/energy?{range}")).await.json()
        };
        let told = format!("{sealed:?} {room_now}");
        let moved_meters = moved("meter", 240 - 1_440, 480 - 1_440);

        // Of nearly twelve hours it was there for four: the plug counts.
        let whole = hall(0, 705, "").await;
        assert_eq!((total(&whole), ids(&whole["devices"])), (47.0, vec!["plug"]), "{told}");
        let left_out = json!([{"device_id": "meter", "reason": "moved"}]);
        assert_eq!((&whole["left_out"], &whole["moved_meters"]), (&left_out, &moved_meters));
        let range = format!("from={}&to={}", at_minute(-1_440), at_minute(705 - 1_440));
        let url = format!("series?{range}&metric=cumulative_kwh_p&fn=increase");
        let series = bench.get(&format!("/rooms/hall/{url}")).await.json();
        let by_room = bench.get(&format!("/{url}&rooms=1")).await.json()["rooms"][0].clone();
        for answer in [&series, &by_room] {
            assert_eq!((&answer["left_out"], &answer["moved_meters"]), (&left_out, &moved_meters));
        }
        assert_eq!(series["data"][0]["value"], 47, "{told}");
        let csv = bench.get(&format!("/{url}&rooms=1&format=csv")).await;
        let is_behind = sealed.is_some_and(|sealed| sealed < -120);
        let lack =
            if is_behind { "rooms_lack, " } else { "" }.to_owned() + "left_out, moved_meters";
        assert_eq!(csv.header("x-rows-lack"), lack, "{told}");
        let apart = hall(0, 705, "&devices=1").await;
        assert_eq!((total(&apart), ids(&apart["devices"])), (47.0, vec!["meter", "plug"]));
        assert_eq!((&apart["counted_kwh"], &apart["rest_kwh"]), (&json!(47), &Value::Null));
        let rows = hall(0, 705, "&every=1h").await;
        let rows = rows["data"].as_array().expect("rows").iter();
        let kwh: Vec<f64> = rows.map(|row| row["kwh"].as_f64().unwrap_or(0.0)).collect();
        assert_eq!(kwh, [4., 4., 4., 4., 4., 4., 4., 4., 4., 4., 4., 3.], "{told}");

        // Of five hours it was there for four: the 15 steps between its readings there count.
        let most = hall(210, 510, "").await;
        assert_eq!((total(&most), ids(&most["devices"])), (150.0, vec!["meter"]), "{told}");
        let left_out = json!([{"device_id": "plug", "reason": "behind", "behind": "meter"}]);
        assert_eq!((&most["left_out"], &most["moved_meters"]), (&left_out, &moved_meters));
        let apart = hall(210, 510, "&devices=1&every=30m").await;
        assert_eq!((total(&apart), &apart["rest_kwh"]), (150.0, &Value::Null), "{told}");
        let rest = apart["rest"].as_array().expect("rows");
        assert_eq!((&rest[0]["kwh"], &rest[1]["kwh"]), (&Value::Null, &json!(18)), "{apart}");

        // Part by part it is all there, and no meter moved within a part.
        for (from, to, kwh) in [(0, 240, 16.0), (240, 480, 150.0), (480, 705, 15.0)] {
            let part = hall(from, to, "").await;
            assert_eq!((total(&part), &part["moved_meters"]), (kwh, &Value::Null), "{told}");
        }
    }
}

/// Wherever meters and the devices behind them move: a range in which no meter moved has parts that add up, whatever is
/// rolled up, and the times of `moved_meters` part any range into such.
#[tokio::test]
async fn what_rooms_count_beside_meters_that_stay_adds_up() {
    let mut found_moved = 0;
    for seed in 0..10 {
        let mut random = fastrand::Rng::with_seed(seed);
        let readings = random_readings(&mut random);
        let bench = stored(&readings, [None, Some(-1_440), Some(0)][random.usize(0..3)]).await;
        for (device, meter) in [("d0", "d2"), ("d1", "d3"), ("d2", "d3")] {
            let behind = json!({"behind": meter}).to_string();
            assert_eq!(bench.patch(&format!("/devices/{device}"), &behind).await.status, 200);
        }
        for room in ROOMS {
            let asked = async |path: &str, from: Timestamp, to: Timestamp| {
                bench.get(&format!("/rooms/{room}/{path}from={from}&to={to}")).await.json()
            };
            let series = "series?metric=cumulative_kwh_p&fn=increase&";
            let whole = asked("energy?", at_minute(-3 * 1_440), at_minute(0)).await;
            let mut edges = BTreeSet::from([at_minute(-3 * 1_440), at_minute(0)]);
            for meter in whole["moved_meters"].as_array().into_iter().flatten() {
                found_moved += 1;
                for stay in meter["during"].as_array().expect("stays") {
                    edges.extend([&stay["from"], &stay["to"]].map(instant));
                }
            }

            let edges: Vec<Timestamp> = edges.into_iter().collect();
            for part in edges.windows(2) {
                let answer = asked("energy?", part[0], part[1]).await;
                let told = format!("seed {seed} {room} {part:?}: {answer}");
                assert_eq!(answer["moved_meters"], Value::Null, "{told}");
                let rows = asked(series, part[0], part[1]).await;
                let increase = rows["data"][0]["value"].as_f64().unwrap_or(0.0);
                assert!((increase - total(&answer)).abs() < 1e-6, "{told} {rows}");

                let millis = part[1].since(part[0]).num_milliseconds();
                let cut = TimeDelta::milliseconds(random.i64(0..millis).max(1).min(millis - 1));
                let cut = part[0].saturating_add(cut);
                let (before, after) =
                    (asked("energy?", part[0], cut).await, asked("energy?", cut, part[1]).await);
                let sum = total(&before) + total(&after);
                assert!((sum - total(&answer)).abs() < 1e-6, "{told} {cut} {before} {after}");
            }
        }
    }
    assert!(found_moved > 10, "{found_moved}");
}

fn instant(value: &Value) -> Timestamp {
    given::at(value.as_str().expect("text"))
}

/// Whatever moves, the counted and the rest are the total, and each part of a range has its share of both.
#[tokio::test]
async fn counted_and_rest_are_the_total_beside_moving_meters_too() {
    let mut left_over = 0;
    for seed in 0..12 {
        let mut random = fastrand::Rng::with_seed(seed);
        let readings = random_readings(&mut random);
        let bench = stored(&readings, [None, Some(-1_440), Some(0)][random.usize(0..3)]).await;
        for (device, meter) in [("d0", "d2"), ("d1", "d3"), ("d2", "d3")] {
            let behind = json!({"behind": meter}).to_string();
            assert_eq!(bench.patch(&format!("/devices/{device}"), &behind).await.status, 200);
        }
        for of in ROOMS.iter().map(|room| format!("/rooms/{room}")).chain([String::new()]) {
            let url = format!("{of}/energy?from={}&to={}", at_minute(-3 * 1_440), at_minute(0));
            let apart = bench.get(&format!("{url}&every=1d&devices=1")).await.json();
            let sum = bench.get(&format!("{url}&every=1d")).await.json();
            assert_eq!(apart["total_kwh"], sum["total_kwh"], "seed {seed} {of}");
            let number = |it: &Value| it.as_f64().unwrap_or(0.0);
            if apart["rest_kwh"].is_number() {
                let both = number(&apart["counted_kwh"]) + number(&apart["rest_kwh"]);
                assert!((both - total(&sum)).abs() < 1e-6, "seed {seed} {of}: {apart}");
                left_over += 1;
            }
            let rows = apart["rest"].as_array().cloned().unwrap_or_default();
            if apart["rest_kwh"].is_number() && rows.iter().all(|it| it["kwh"].is_number()) {
                let sum: f64 = rows.iter().map(|it| number(&it["kwh"])).sum();
                assert!(
                    (sum - number(&apart["rest_kwh"])).abs() < 1e-6,
                    "seed {seed} {of}: {apart}"
                );
            }
        }
    }
    assert!(left_over > 6, "{left_over}");
}
