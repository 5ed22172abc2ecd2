//! Rows by room against the answers of the rooms themselves, and how many bytes a chart of a large house takes.

use std::io::Read as _;

use base64::Engine as _;
use fastrand::Rng;

use super::series::numbers;
use super::*;

pub(super) const ROOMS: [&str; 3] = ["attic", "hall", "loft"];
const DAYS: i64 = 3;

fn without_room(reading: Reading) -> Reading {
    let metrics = reading.metrics().clone();
    Reading::new(reading.device, reading.at, None, metrics).expect("a reading")
}

/// Readings of some devices, which move between rooms and are silent at times.
pub(super) fn random_readings(random: &mut Rng) -> Vec<Reading> {
    let mut readings = Vec::new();
    for n in 0..5 {
        let (mut room, mut kwh) = (random.usize(0..ROOMS.len()), 100);
        let mut minute = -DAYS * 1_440 + random.i64(0..200);
        while minute < 0 {
            if n > 1 && random.u8(0..20) == 0 {
                room = random.usize(0..ROOMS.len());
            }
            kwh += random.i64(0..3);
            // A meter says 0 while it boots, which does not count.
            let shown = if random.u8(0..15) == 0 { 0 } else { kwh };
            let values = [
                ("temperature", random.i64(-20..40).to_string()),
                ("cumulative_kwh_p", shown.to_string()),
                ("current_w", random.i64(0..900).to_string()),
            ];
            let values: Vec<(&str, &str)> = values
                .iter()
                .filter(|_| random.u8(0..4) > 0)
                .map(|(name, it)| (*name, &**it))
                .collect();
            if !values.is_empty() {
                let of_room = numbers(&format!("d{n}"), minute, ROOMS[room], &values);
                // The last device names no room in the end.
                let is_last = n == 4 && minute >= -1_440;
                readings.push(if is_last { without_room(of_room) } else { of_room });
            }
            minute +=
                if random.u8(0..25) == 0 { random.i64(300..1_500) } else { random.i64(3..50) };
        }
    }
    readings
}

/// Stores readings, and rolls up what is before a minute.
pub(super) async fn stored(readings: &[Reading], sealed: Option<i64>) -> Bench {
    let bench = Bench::empty();
    bench.store(readings).await;
    if let Some(sealed) = sealed {
        bench.roll_up(Zone::UTC, at_minute(sealed)).await;
    }
    bench
}

fn rows_of(answer: &Value) -> Vec<Value> {
    answer["data"].as_array().unwrap_or_else(|| panic!("rows: {answer}")).clone()
}

/// The rows that have a value.
fn having(rows: Vec<Value>, metric: &str) -> Vec<Value> {
    rows.into_iter().filter(|row| row[metric].is_object()).collect()
}

#[tokio::test]
async fn a_room_s_rows_are_those_that_the_room_itself_answers() {
    let (mut compared, mut moved) = (0, 0);
    for seed in 0..12 {
        let mut random = Rng::with_seed(seed);
        let readings = random_readings(&mut random);
        let sealed = [None, Some(-1_440), Some(0)][random.usize(0..3)];
        let bench = stored(&readings, sealed).await;
        assert_eq!(bench.patch("/devices/d0", r#"{"in_room_means": false}"#).await.status, 200);
        // What it measured in a room is the room's; since it measured in none it is by itself, too.
        assert_eq!(bench.patch("/devices/d4", r#"{"room": null}"#).await.status, 200);
        // Meters move too, and are silent at times.
        for (plug, meter) in [("d0", "d3"), ("d1", "d2"), ("d3", "d2")] {
            let behind = json!({"behind": meter}).to_string();
            assert_eq!(bench.patch(&format!("/devices/{plug}"), &behind).await.status, 200);
        }
        for room in ["attic", "hall"] {
            assert_eq!(
                bench.patch(&format!("/rooms/{room}"), r#"{"home": "h"}"#).await.status,
                200
            );
        }
        let from = at_minute(-DAYS * 1_440 + random.i64(0..1_000));
        for (metric, functions) in [
            ("temperature", "mean,min,max,count"),
            ("current_w", "mean,time_mean"),
            ("current_w", "max"),
            ("cumulative_kwh_p", "increase,last"),
            ("cumulative_kwh_p", "count"),
        ] {
            for every in ["&every=15m", "&every=1h", "&every=1d", ""] {
                let asked = format!(
                    "from={from}&to={}&metric={metric}&fn={functions}{every}",
                    at_minute(0)
                );
                let told = format!("seed {seed} {sealed:?} {asked}");
                let all = bench.get(&format!("/series?{asked}&rooms=1")).await.json();
                let home = bench.get(&format!("/homes/h/series?{asked}&rooms=1")).await.json();
                let mut expected = Vec::new();
                for (n, room) in ROOMS.iter().enumerate() {
                    let own = bench.get(&format!("/rooms/{room}/series?{asked}")).await;
                    if own.status == 400 {
                        continue;
                    }
                    let own = own.json();
                    let mut rows = having(rows_of(&own), metric);
                    rows.iter_mut().for_each(|row| row["room_id"] = json!(room));
                    compared += rows.len();
                    let of_room = |answer: &Value| -> Vec<Value> {
                        rows_of(answer).into_iter().filter(|row| row["room_id"] == *room).collect()
                    };
                    assert_eq!(of_room(&all), rows, "{told}");
                    assert_eq!(
                        of_room(&home),
                        if n < 2 { rows.clone() } else { Vec::new() },
                        "{told}"
                    );
                    let about = all["rooms"].as_array().expect("rooms").iter();
                    let about = about.clone().find(|it| it["room_id"] == *room);
                    if let Some(about) = about {
                        for member in ["devices", "left_out", "combine"] {
                            assert_eq!(about[member], own[member], "{told} {member}");
                        }
                    }
                    expected.extend(rows);
                }
                let alone = bench.get(&format!("/devices/d4/series?{asked}")).await.json();
                let is_alone =
                    readings.iter().any(|it| it.device.as_str() == "d4" && it.room.is_none());
                let alone = if is_alone { having(rows_of(&alone), metric) } else { Vec::new() };
                let rows = rows_of(&all);
                assert_eq!(rows.len(), expected.len() + alone.len(), "{told}");
                let found: Vec<Value> =
                    rows.into_iter().filter(|row| row["device_id"] == "d4").collect();
                moved += found.len();
                assert!(
                    found.iter().zip(&alone).all(|(row, own)| row[metric] == own[metric]),
                    "{told}"
                );
                assert!(rows_of(&home).iter().all(|row| row["room_id"].is_string()), "{told}");
            }
        }
    }
    assert!(compared > 5_000 && moved > 1_000, "{compared} {moved}");
}

/// A meter that sends nothing in the range was in the room all the same, until it was elsewhere.
#[tokio::test]
async fn what_a_silent_meter_measures_too_is_left_out_of_its_room_s_row() {
    let of = |device, minute, room, kwh| {
        numbers(device, minute, room, &[("cumulative_kwh_p", kwh), ("current_w", "90")])
    };
    let plug = [(-1_190, "9"), (-1_075, "10"), (-1_070, "10.1"), (-950, "10.3")];
    let plug = plug.map(|(minute, kwh)| of("plug", minute, "hall", kwh));
    let mut readings = vec![of("meter", -1_140, "hall", "100"), of("meter", -720, "hall", "107")];
    readings.extend([of("meter", -660, "attic", "108")]);
    readings.extend(plug);
    readings.sort_by_key(|reading| reading.at);
    for sealed in [None, Some(0)] {
        let bench = stored(&readings, sealed).await;
        assert_eq!(bench.patch("/devices/plug", r#"{"behind": "meter"}"#).await.status, 200);
        for (metric, functions) in
            [("cumulative_kwh_p", "count"), ("cumulative_kwh_p", "increase"), ("current_w", "max")]
        {
            for (from, to) in [(-1_080, -885), (-1_080, -600), (-1_200, -885)] {
                let asked = format!(
                    "from={}&to={}&metric={metric}&fn={functions}",
                    at_minute(from),
                    at_minute(to)
                );
                let own = bench.get(&format!("/rooms/hall/series?{asked}")).await.json();
                let all = bench.get(&format!("/series?{asked}&rooms=1")).await.json();
                let of_room = rows_of(&all).into_iter().find(|row| row["room_id"] == "hall");
                let value = of_room.map_or(Value::Null, |row| row[metric].clone());
                let told = format!("{sealed:?} {asked}: {all} {own}");
                assert_eq!(value, rows_of(&own)[0][metric], "{told}");
                let about = all["rooms"].as_array().expect("rooms").iter();
                let about = about.clone().find(|it| it["room_id"] == "hall").expect("it");
                assert_eq!(about["left_out"], own["left_out"], "{told}");
                assert_ne!(own["left_out"], Value::Null, "{told}");
            }
        }
    }
}

/// The step of a counter is no room's if the device was elsewhere between its values, though before the range.
#[tokio::test]
async fn a_visit_elsewhere_before_the_range_takes_the_step_from_the_room() {
    let counter = |minute, kwh| numbers("d", minute, "hall", &[("cumulative_kwh_p", kwh)]);
    let visit = numbers("d", -2_930, "attic", &[("temperature", "20")]);
    let readings = [counter(-2_940, "10"), visit, counter(-2_860, "12"), counter(-2_840, "12.5")];
    for stored_readings in [&readings[..], &readings[2..]] {
        for sealed in [None, Some(-1_440), Some(0)] {
            let bench = stored(stored_readings, sealed).await;
            for (from, every) in [(-2_900, "15m"), (-2_925, "1m"), (-2_880, "1h"), (-2_880, "1d")] {
                let asked = format!(
                    "from={}&to={}&metric=cumulative_kwh_p&fn=increase&every={every}",
                    at_minute(from),
                    at_minute(-2_830)
                );
                let own = bench.get(&format!("/rooms/hall/series?{asked}")).await.json();
                let own = having(rows_of(&own), "cumulative_kwh_p");
                let all = bench.get(&format!("/series?{asked}&rooms=1")).await.json();
                let all: Vec<Value> =
                    rows_of(&all).into_iter().filter(|row| row["room_id"] == "hall").collect();
                let increases = |rows: &[Value]| -> Vec<String> {
                    let of = |row: &Value| row["cumulative_kwh_p"]["increase"].to_string();
                    rows.iter().map(of).collect()
                };
                assert_eq!(increases(&all), increases(&own), "{sealed:?} {asked}");
                let sum: f64 =
                    own.iter().filter_map(|row| row["cumulative_kwh_p"]["increase"].as_f64()).sum();
                assert!((sum - 0.5).abs() < 1e-9, "{sum}: {sealed:?} {asked}");
            }
        }
    }
}

/// A device that is silent in the range is in the room in which the step was, and not in the one where it is now.
#[tokio::test]
async fn the_share_of_a_silent_device_is_the_room_s_in_which_it_was() {
    let values = |minute, room, kwh| {
        numbers("d", minute, room, &[("cumulative_kwh_p", kwh), ("current_w", "600")])
    };
    let readings = [
        values(-2_880, "attic", "100"),
        values(-2_280, "attic", "110"),
        values(-1_680, "hall", "120"),
        values(-1_440, "hall", "121"),
    ];
    for sealed in [None, Some(-1_440), Some(0)] {
        let bench = stored(&readings, sealed).await;
        for (from, to, wanted) in [
            (-2_760, -2_700, [Some(1.0), None]),
            (-2_160, -2_100, [None, None]),
            (-2_340, -2_220, [Some(1.0), None]),
            (-2_880, 0, [Some(10.0), Some(1.0)]),
        ] {
            let asked = format!(
                "from={}&to={}&metric=cumulative_kwh_p&fn=increase",
                at_minute(from),
                at_minute(to)
            );
            let all = bench.get(&format!("/series?{asked}&rooms=1")).await.json();
            let found = ["attic", "hall"].map(|room| {
                let mut rows = rows_of(&all).into_iter().filter(|row| row["room_id"] == room);
                rows.find_map(|row| row["cumulative_kwh_p"]["increase"].as_f64())
            });
            assert_eq!(found, wanted, "{sealed:?} {asked}: {all}");
        }
        let asked = format!(
            "from={}&to={}&metric=current_w&fn=time_mean",
            at_minute(-2_275),
            at_minute(-2_270)
        );
        let all = bench.get(&format!("/series?{asked}&rooms=1")).await.json();
        let rooms: Vec<Value> = rows_of(&all).iter().map(|row| row["room_id"].clone()).collect();
        assert_eq!(rooms, ["attic"], "{sealed:?}: {all}");
    }
}

/// A rollup names 32 rooms at most: what a device sent in others may be in no row.
#[tokio::test]
async fn a_device_that_has_been_in_more_rooms_than_rollups_name_is_named() {
    let of = |device: &str, number: i64| {
        numbers(device, number, &format!("{device}{number:02}"), &[("temperature", "20")])
    };
    // 40 rooms within a quarter of an hour.
    let third = |mut reading: Reading| {
        reading.at = at_minute(0).saturating_add(reading.at.since(at_minute(0)) / 3);
        reading
    };
    let count_of = |answer: &Value| -> i64 {
        rows_of(answer).iter().filter_map(|it| it["value"].as_i64()).sum()
    };
    for sealed in [None, Some(15)] {
        let readings: Vec<Reading> =
            (0..15).map(|n| of("few", n)).chain((0..40).map(|n| third(of("many", n)))).collect();
        let bench = stored(&readings, sealed).await;
        let asked =
            format!("from={}&to={}&metric=temperature&fn=count", at_minute(0), at_minute(15));
        let whole = bench.get(&format!("/series?rooms=1&{asked}")).await.json();
        assert_eq!(count_of(&whole), 55, "{whole}");
        assert_eq!(bench.send("DELETE", "/rooms/many35", json!({}), "").await.status, 200);
        let lacking = bench.get(&format!("/series?rooms=1&{asked}")).await.json();
        assert_eq!(
            (count_of(&lacking), &lacking["without_room"]),
            (54, &json!(["many"])),
            "{lacking}"
        );
    }
}

/// 200 devices in 40 rooms, a reading each quarter of an hour: as a chart of all rooms asks for a day.
#[tokio::test]
async fn a_chart_of_a_large_house_is_small() {
    let mut random = Rng::with_seed(1);
    let metrics = ["temperature", "humidity", "co2", "illuminance", "current_w"];
    let mut readings = Vec::new();
    for device in 0..200 {
        let mut values: Vec<i64> = metrics.iter().map(|_| random.i64(1_000..3_000)).collect();
        for quarter in 0..96 {
            values.iter_mut().for_each(|value| *value += random.i64(-20..21));
            let shown = values.iter().map(|value| format!("{}.{:02}", value / 100, value % 100));
            // As in the house that was measured, not every device has every metric.
            let shown: Vec<String> = shown.collect();
            let having = metrics.iter().zip(&shown).enumerate();
            let having = having.filter(|(n, _)| *n == 0 || (device + n) % 3 > 0);
            let having: Vec<(&str, &str)> = having.map(|(_, (name, it))| (*name, &**it)).collect();
            let room = format!("room-{}", device % 40);
            readings.push(numbers(
                &format!("device-{device}"),
                (quarter - 96) * 15,
                &room,
                &having,
            ));
        }
    }
    let bench = Bench::empty();
    bench.store(&readings).await;
    for metric in metrics {
        let asked = format!("from={}&to={}&metric={metric}", at_minute(-1_440), at_minute(0));
        let url = format!("/series?{asked}&every=30m&fn=mean,min,max&rooms=1");
        let answer = bench.send("GET", &url, json!({"accept-encoding": "gzip"}), "").await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let bytes = base64::prelude::BASE64_STANDARD.decode(&answer.text).expect("gzip as text");
        let mut text = String::new();
        flate2::read::GzDecoder::new(&*bytes).read_to_string(&mut text).expect("gzip");
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(rows_of(&answer).len(), 40 * 48, "{metric}");
        assert!(bytes.len() <= 60_000, "{metric} takes {} bytes", bytes.len());
    }
}
