//! What counts as the energy of devices, rooms and homes, by metrics and their roles.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use domain::{About, AboutMetric, DeviceUpdate, SourceField};
use table::{LookUpRegistry as _, UpdateRegistry as _};

use super::by_room::{ROOMS, random_readings, stored};
use super::series::numbers;
use super::*;

const RANGE: &str = "from=2026-01-11T16:00:00Z&to=2026-01-11T17:00:00Z";

/// Devices with an hour of readings in one room. A metric called `..._w...` is a power of so many W; another is a
/// counter that counts so many kWh.
async fn bench(devices: &[(&str, &[(&str, i32)])]) -> Bench {
    let bench = Bench::empty();
    for (device, metrics) in devices {
        let reading = |quarter: i32| {
            let value = |(name, amount): &(&str, i32)| {
                if name.contains("_w") {
                    f64::from(*amount)
                } else {
                    1000.0 + f64::from(amount * quarter) / 4.0
                }
            };
            let values: Vec<_> = metrics.iter().map(|it| (it.0, value(it).to_string())).collect();
            let values: Vec<_> = values.iter().map(|(name, it)| (*name, &**it)).collect();
            numbers(device, i64::from(quarter) * 15, "hall", &values)
        };
        let readings: Vec<_> = (0..=4).map(reading).collect();
        bench.store(&readings).await;
        for (metric, _) in *metrics {
            let settings = if metric.contains("_w") {
                json!({"unit": "W"})
            } else {
                json!({"kind": "counter", "unit": "kWh"})
            };
            bench.set(device, metric, &settings).await;
        }
    }
    bench
}

impl Bench {
    async fn set(&self, device: &str, metric: &str, settings: &Value) {
        let body = json!({"metrics": {metric: settings}}).to_string();
        let answer = self.patch(&format!("/devices/{device}"), &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }

    async fn energy(&self, of: &str, further: &str) -> Value {
        self.get(&format!("{of}/energy?{RANGE}{further}")).await.json()
    }

    /// Describes a metric as the value of a line of one value.
    async fn describe(&self, device: &str, metric: &str) {
        let id: DeviceId = given::device(device);
        let known = self.store.device(&id, &invocation()).await.expect("memory");
        let field = SourceField { measurement: "kWh".to_owned(), field: "value".to_owned() };
        let of_metric = AboutMetric { field: Some(field), ..AboutMetric::default() };
        let metrics = [(given::metric(metric), of_metric)].into();
        let about = Some(About { metrics, ..About::default() });
        let learned = DeviceUpdate { about, ..DeviceUpdate::default() };
        let known = known.expect("it is there");
        self.store.update_device(&known, &learned, &invocation()).await.expect("memory");
    }
}

fn ids(rows: &Value) -> Vec<&str> {
    let rows = rows.as_array().map_or(&[][..], |rows| rows);
    rows.iter().map(|it| it["device_id"].as_str().expect("an id")).collect()
}

const PHASES: [(&str, i32); 5] = [
    ("cumulative_kwh_p_a", 1),
    ("cumulative_kwh_p_b", 2),
    ("cumulative_kwh_p_c", 4),
    ("cumulative_kwh_n_a", 8),
    ("cumulative_kwh_n_b", 16),
];

#[tokio::test]
async fn phases_add_up_in_a_device_its_room_and_all_and_what_is_sold_stays_apart() {
    let bench =
        bench(&[("meter", &PHASES), ("relays", &[("current_w_a", 500), ("current_w_b", 1000)])])
            .await;
    let device = bench.energy("/devices/meter", "").await;
    assert_eq!((&device["total_kwh"], &device["total_kwh_sold"]), (&json!(7), &json!(24)));
    let counted = &device["devices"][0];
    assert_eq!(counted["metric"], "cumulative_kwh_p_a");
    assert_eq!(
        counted["metrics"],
        json!(["cumulative_kwh_p_a", "cumulative_kwh_p_b", "cumulative_kwh_p_c"])
    );
    assert_eq!(counted["metrics_sold"], json!(["cumulative_kwh_n_a", "cumulative_kwh_n_b"]));
    assert_eq!(counted["not_counted"], Value::Null);
    let relays = bench.energy("/devices/relays", "").await;
    assert_eq!((&relays["total_kwh"], &relays["source"]), (&json!(1.5), &json!("power")));
    for of in ["/rooms/hall", ""] {
        let all = bench.energy(of, "&every=15m").await;
        assert_eq!((&all["total_kwh"], &all["total_kwh_sold"]), (&json!(8.5), &json!(24)), "{of}");
        assert_has(&all["data"][0], &json!({"kwh": 2.125, "kwh_sold": 6}));
    }
    let one = bench.energy("/devices/meter", "&metric=cumulative_kwh_n_b").await;
    assert_eq!((&one["total_kwh"], &one["total_kwh_sold"]), (&json!(16), &Value::Null));
}

#[tokio::test]
async fn a_total_beside_its_phases_counts_alone_and_each_event_names_its_metric() {
    let mut metrics = PHASES.to_vec();
    metrics.push(("cumulative_kwh_p", 7));
    let bench = bench(&[("meter", &metrics)]).await;
    let device = bench.energy("/devices/meter", "").await;
    assert_eq!(device["total_kwh"], 7);
    let why = &device["devices"][0]["not_counted"];
    assert_eq!(why["cumulative_kwh_p_b"], "it is in cumulative_kwh_p");
    // What the total does not count has no event in the energy.
    let broken =
        [("cumulative_kwh_p", "1"), ("cumulative_kwh_n_b", "2"), ("cumulative_kwh_p_a", "3")];
    bench.store(&[numbers("meter", 59, "hall", &broken)]).await;
    let device = bench.energy("/devices/meter", "&events=1").await;
    let mut named: Vec<_> = device["events"]
        .as_array()
        .expect("events")
        .iter()
        .map(|it| it["metric"].as_str())
        .collect();
    named.dedup();
    named.sort_unstable();
    named.dedup();
    assert_eq!(named, [Some("cumulative_kwh_n_b"), Some("cumulative_kwh_p")]);
    assert!(device["data"][0]["flags"].as_array().expect("flags").contains(&json!("reset")));
}

#[tokio::test]
async fn a_device_with_nothing_but_what_it_sold_has_bought_nothing() {
    let bench = bench(&[("meter", &[("cumulative_kwh_n", 5), ("current_w", 1000)])]).await;
    for of in ["/devices/meter", "/rooms/hall"] {
        let energy = bench.energy(of, "").await;
        assert_has(&energy, &json!({"total_kwh": null, "total_kwh_sold": 5}));
    }
}

#[tokio::test]
async fn roles_decide_what_a_sum_holds_and_what_it_names() {
    let bench = bench(&[
        ("meter", &[("energy", 1), ("back", 2)]),
        ("roof", &[("energy", 4)]),
        ("battery", &[("charged", 8), ("discharged", 16)]),
        ("copy", &[("energy", 32)]),
        ("plug", &[("energy", 48)]),
    ])
    .await;
    assert_eq!(bench.energy("", "").await["total_kwh"], 111);
    for (device, metric, role) in [
        ("meter", "energy", "import"),
        ("meter", "back", "export"),
        ("roof", "energy", "production"),
        ("battery", "charged", "storage"),
        ("battery", "discharged", "storage"),
        ("copy", "energy", "none"),
        ("plug", "energy", "consumer"),
    ] {
        bench.set(device, metric, &json!({"role": role})).await;
        let shown = bench.get(&format!("/devices/{device}")).await.json();
        assert_eq!(shown["metrics"][metric]["role"], role);
    }
    let left_out = json!([
        {"device_id": "battery", "reason": "storage", "metrics": ["charged", "discharged"]},
        {"device_id": "copy", "reason": "none", "metrics": ["energy"]},
        {"device_id": "roof", "reason": "production", "metrics": ["energy"]},
    ]);
    for of in ["/rooms/hall", ""] {
        let sum = bench.energy(of, "").await;
        assert_eq!((&sum["total_kwh"], &sum["total_kwh_sold"]), (&json!(49), &json!(2)), "{of}");
        assert_eq!(sum["left_out"], left_out);
        assert_eq!(ids(&sum["devices"]), ["meter", "plug"]);
        let by_metric = bench.energy(of, "&metric=energy").await;
        assert_eq!(by_metric["total_kwh"], 49);
        assert_eq!(ids(&by_metric["left_out"]), ["copy", "roof"]);
    }
    let apart = bench.energy("", "&devices=1").await;
    assert_eq!(apart["total_kwh"], 49);
    assert_eq!(ids(&apart["data"]), ["meter", "plug", "roof"]);
    assert_eq!(apart["devices"][2]["role"], "production");
    // What was there and has moved since is named, too.
    let named = bench.energy("/rooms/hall", "").await["left_out"].clone();
    assert_eq!(bench.patch("/devices/roof", r#"{"room": "loft"}"#).await.status, 200);
    assert_eq!(bench.energy("/rooms/hall", "").await["left_out"], named);
    assert_eq!(bench.patch("/devices/roof", r#"{"room": "hall"}"#).await.status, 200);
    // Where it has measured nothing, it is not named.
    let loft = bench.energy("/rooms/loft", "").await;
    assert!(loft.get("left_out").is_none() && loft["status"] == 400, "{loft}");
    // Behind the meter the plug is left out for that; behind what produces it counts.
    for (meter, total) in [("meter", 1), ("roof", 49)] {
        let behind = json!({"behind": meter}).to_string();
        assert_eq!(bench.patch("/devices/plug", &behind).await.status, 200);
        assert_eq!(bench.energy("", "").await["total_kwh"], total, "{meter}");
    }
    let of = |device: &'static str| format!("/devices/{device}");
    let roof = bench.energy(&of("roof"), "").await;
    assert_eq!(
        (&roof["total_kwh"], &roof["devices"][0]["role"]),
        (&json!(4), &json!("production"))
    );
    assert_eq!(bench.energy(&of("copy"), "&metric=energy").await["total_kwh"], 32);
    for device in ["battery", "copy"] {
        let problem = bench.problem(&format!("{}/energy?{RANGE}", of(device))).await;
        assert!(problem.starts_with("400 metric: is needed"), "{problem}");
    }
    // A role is taken back by null.
    bench.set("copy", "energy", &json!({"role": null})).await;
    assert_eq!(bench.energy("", "").await["total_kwh"], 81);
}

#[tokio::test]
async fn a_role_needs_a_metric_of_energy_or_power() {
    let bench = Bench::empty();
    let metrics = [("current_w", "5"), ("temperature", "20")];
    bench.store(&[numbers("plug", 0, "hall", &metrics)]).await;
    bench.set("plug", "current_w", &json!({"role": "production"})).await;
    let body = r#"{"metrics": {"temperature": {"role": "import"}}}"#;
    let refused = bench.patch("/devices/plug", body).await;
    assert_eq!(
        refused.json()["detail"],
        "metrics.temperature.role: needs a counter in Wh, kWh or MWh, or a gauge in W, kW or MW"
    );
}

/// What a net meter counts through a fall and a new cycle, by readings and by the API.
#[tokio::test]
async fn a_net_meter_counts_its_falls_and_begins_again_with_its_cycle() {
    let bench = Bench::empty();
    let values = [("5", "1"), ("7", "1"), ("4", "1"), ("0", "2"), ("3", "2"), ("-1", "2")];
    let readings: Vec<_> = (0..)
        .step_by(10)
        .zip(values)
        .map(|(minute, (kwh, cycle))| {
            let values = [("cumulative_kwh_p", kwh), ("attr_last_reset", cycle)];
            numbers("meter", minute, "hall", &values)
        })
        .collect();
    bench.store(&readings).await;
    let reset = bench.energy("/devices/meter", "").await;
    // From 5 to 7 it counts 2. A counter that falls has begun again: to 4 it counts 4, and to 3 it counts 3.
    assert_eq!(reset["total_kwh"], 9);
    bench.set("meter", "cumulative_kwh_p", &json!({"net": true, "cycle": "attr_last_reset"})).await;
    let net = bench.energy("/devices/meter", "&events=1").await;
    // 2 and -3, nothing yet in the new cycle, then 3 and -4.
    assert_eq!(net["total_kwh"], -2);
    let events = net["events"].as_array().expect("events");
    assert_eq!(events.len(), 1, "{net}");
    assert_has(&events[0], &json!({"events": ["reset"], "timestamp": at_minute(30)}));
    let by_quarter = bench.energy("/devices/meter", "&every=15m").await;
    assert_eq!(by_quarter["total_kwh"], -2);
}

#[tokio::test]
async fn a_sum_names_what_it_is_unsure_of_where_there_are_several() {
    let bench = bench(&[
        ("sensor.house", &[("energy", 1)]),
        ("sensor.copy", &[("energy", 1)]),
        ("native", &[("cumulative_kwh_p", 1)]),
    ])
    .await;
    let unsure = |energy: &Value| -> Vec<String> {
        ids(&energy["unsure"]).into_iter().map(ToOwned::to_owned).collect()
    };
    assert_eq!(
        unsure(&bench.energy("", "").await),
        [""; 0],
        "nobody taught that they have one value"
    );
    bench.describe("sensor.house", "energy").await;
    bench.describe("sensor.copy", "energy").await;
    let bench = bench.again();
    let sum = bench.energy("", "").await;
    assert_eq!(sum["unsure"][0], json!({"device_id": "sensor.copy", "metrics": ["energy"]}));
    assert_eq!(
        (unsure(&sum), &sum["total_kwh"]),
        (vec!["sensor.copy".into(), "sensor.house".into()], &json!(3))
    );
    assert_eq!(unsure(&bench.energy("/devices/sensor.copy", "").await), [""; 0]);
    bench.patch("/devices/sensor.copy", r#"{"behind": "sensor.house"}"#).await;
    assert_eq!(
        unsure(&bench.energy("", "").await),
        [""; 0],
        "one is told, and so the other is a meter"
    );
    bench.patch("/devices/sensor.copy", r#"{"behind": null}"#).await;
    bench.set("sensor.house", "energy", &json!({"role": "import"})).await;
    assert_eq!(unsure(&bench.energy("", "").await), ["sensor.copy"]);
    bench.set("sensor.copy", "energy", &json!({"role": "none"})).await;
    assert_eq!(unsure(&bench.energy("", "").await), [""; 0]);
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
        assert_eq!(csv.header("x-rows-lack"), "left_out, moved_meters", "{told}");
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

/// A meter and its plug in the hall, which send in the first `quarters` of the twelve hours before the last day.
async fn meter_and_plug_in_the_hall(meter_quarters: i64) -> Bench {
    let mut readings = Vec::new();
    for quarter in 0..48 {
        let minute = quarter * 15 - 1_440;
        let (plug, meter) = ((1_000 + quarter).to_string(), (1_000 + 10 * quarter).to_string());
        readings.push(numbers("plug", minute, "hall", &[("cumulative_kwh_p", &plug)]));
        if quarter < meter_quarters {
            readings.push(numbers("meter", minute, "hall", &[("cumulative_kwh_p", &meter)]));
        }
    }
    let bench = stored(&readings, Some(0)).await;
    assert_eq!(bench.patch("/devices/plug", r#"{"behind": "meter"}"#).await.status, 200);
    bench
}

#[tokio::test]
async fn a_meter_that_is_younger_than_the_range_has_not_moved() {
    let bench = meter_and_plug_in_the_hall(48).await;
    for from in [-1_440, -2_880, -14_400] {
        let range = format!("from={}&to={}", at_minute(from), at_minute(705 - 1_440));
        let answer = bench.get(&format!("/rooms/hall/energy?{range}&devices=1")).await.json();
        assert_eq!((total(&answer), &answer["moved_meters"]), (470.0, &Value::Null), "{from}");
        assert_eq!(answer["rest_kwh"], 423, "{from}: {answer}");

        let url = format!("/rooms/hall/series?{range}&metric=cumulative_kwh_p&fn=increase");
        let series = bench.get(&url).await.json();
        assert_eq!(
            (&series["data"][0]["value"], &series["moved_meters"]),
            (&json!(470), &Value::Null)
        );
    }
}

#[tokio::test]
async fn a_meter_that_a_person_moved_after_its_last_reading_leaves_its_plug_to_the_room() {
    let bench = meter_and_plug_in_the_hall(8).await;
    let hall = async |from: i64, to: i64| {
        let range = format!("from={}&to={}", at_minute(from - 1_440), at_minute(to - 1_440));
        bench.get(&format!("/rooms/hall/energy?{range}")).await.json()
    };
    let after = hall(240, 480).await;
    assert_eq!(after["total_kwh"], Value::Null, "it is still there, and measures nothing: {after}");

    let moved_away = json!({"room": "loft", "room_since": at_minute(180 - 1_440).to_string()});
    let answer = bench.patch("/devices/meter", &moved_away.to_string()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let after = hall(240, 480).await;
    assert_eq!((total(&after), &after["left_out"]), (16.0, &Value::Null), "{after}");
    let before = hall(0, 120).await;
    assert_eq!((total(&before), &before["moved_meters"]), (70.0, &Value::Null), "{before}");
}

#[tokio::test]
async fn readings_say_where_a_meter_was_and_not_an_edit_that_is_dated_before_them() {
    let bench = meter_and_plug_in_the_hall(48).await;
    let moved_away = json!({"room": "loft", "room_since": at_minute(180 - 1_440).to_string()});
    let answer = bench.patch("/devices/meter", &moved_away.to_string()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);

    let range = format!("from={}&to={}", at_minute(-1_440), at_minute(705 - 1_440));
    let answer = bench.get(&format!("/rooms/hall/energy?{range}")).await.json();
    assert_eq!((total(&answer), &answer["moved_meters"]), (470.0, &Value::Null), "{answer}");
}

#[tokio::test]
async fn a_plug_that_has_moved_on_is_named_as_left_out_and_its_steps_there_are_no_events_of_the_sum()
 {
    let bench = Bench::empty();
    let kwh =
        |device, minute, room, value| numbers(device, minute, room, &[("cumulative_kwh_p", value)]);
    // The plug falls while the meter measures it too, and moves on; then the meter leaves.
    let plug = [("hall", "500"), ("hall", "2"), ("loft", "3"), ("loft", "4"), ("loft", "5")];
    let plug: Vec<_> =
        (0..).zip(plug).map(|(n, (room, it))| kwh("plug", n * 15, room, it)).collect();
    let meter = [("hall", "900"), ("hall", "903"), ("hall", "906"), ("loft", "909")];
    let meter: Vec<_> =
        (0..).zip(meter).map(|(n, (room, it))| kwh("meter", n * 15, room, it)).collect();
    bench.store(&[plug, meter].concat()).await;
    assert_eq!(bench.patch("/devices/plug", r#"{"behind": "meter"}"#).await.status, 200);
    let asked = format!("from={}&to={}&events=1", at_minute(0), at_minute(60));
    let of = async |room: &str, further: &str| {
        bench.get(&format!("/rooms/{room}/energy?{asked}{further}")).await.json()
    };
    let hall = of("hall", "").await;
    assert_eq!((total(&hall), ids(&hall["left_out"])), (6.0, vec!["plug"]), "{hall}");
    assert_eq!(hall["events"], json!([]), "{hall}");
    let apart = of("hall", "&devices=1").await;
    assert_eq!(apart["events"][0]["device_id"], "plug", "{apart}");
    // In the loft the meter was for a quarter of the time.
    let loft = of("loft", "").await;
    assert_eq!((total(&loft), ids(&loft["devices"])), (2.0, vec!["plug"]), "{loft}");
    assert_eq!(loft["moved_meters"], moved("meter", 45, 60), "{loft}");
}

#[tokio::test]
async fn a_power_that_is_held_when_its_meter_leaves_counts_once() {
    let bench = Bench::empty();
    let watts =
        |device, minute, room, value| numbers(device, minute, room, &[("current_w", value)]);
    let (meter, plug) = ([watts("meter", 0, "a", "1000"), watts("meter", 15, "b", "0")], "plug");
    bench.store(&meter).await;
    bench.store(&[watts(plug, 0, "a", "1000"), watts(plug, 15, "a", "0")]).await;
    assert_eq!(bench.patch("/devices/plug", r#"{"behind": "meter"}"#).await.status, 200);
    for (from, to, kwh) in
        [(-60, 60, 0.25), (0, 15, 0.25), (5, 10, 1.0 / 12.0), (10, 60, 1.0 / 12.0)]
    {
        let asked = format!("from={}&to={}", at_minute(from), at_minute(to));
        let answer = bench.get(&format!("/rooms/a/energy?{asked}")).await.json();
        assert!((total(&answer) - kwh).abs() < 1e-9, "{from} to {to}: {answer}");
    }
}

#[tokio::test]
async fn a_meter_that_moves_ahead_of_now_is_named() {
    let bench = Bench::empty();
    let kwh = |device, minute: i64, room, value: i64| {
        numbers(device, minute, room, &[("cumulative_kwh_p", &value.to_string())])
    };
    // It is minute 60.
    let plug = [-1, 0, 1, 2, 3, 4].map(|hour| kwh("plug", hour * 60, "hall", 100 + hour));
    let meter = [(-1, "hall"), (0, "hall"), (1, "hall"), (2, "hall"), (3, "loft"), (4, "loft")];
    let meter = meter.map(|(hour, room)| kwh("meter", hour * 60, room, 900 + hour * 10));
    bench.store(&[plug, meter].concat()).await;
    assert_eq!(bench.patch("/devices/plug", r#"{"behind": "meter"}"#).await.status, 200);
    let hall = async |from, to| {
        let range = format!("from={}&to={}", at_minute(from), at_minute(to));
        let answer = bench.get(&format!("/rooms/hall/energy?{range}")).await.json();
        (total(&answer), answer["moved_meters"].clone())
    };
    assert_eq!(hall(0, 240).await, (20.0, moved("meter", 0, 180)));
    assert_eq!(hall(0, 180).await, (20.0, Value::Null));
    assert_eq!(hall(180, 240).await, (1.0, Value::Null));
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

#[tokio::test]
async fn a_plug_counts_in_a_series_whose_metric_its_meter_lacks() {
    let bench = Bench::empty();
    let values = |minute, device, values: &[(&str, &str)]| numbers(device, minute, "hall", values);
    let both = [("current_w", "100"), ("cumulative_kwh_p", "5")];
    bench.store(&[values(0, "plug", &both), values(0, "meter", &both[1..])]).await;
    assert_eq!(bench.patch("/devices/plug", r#"{"behind": "meter"}"#).await.status, 200);
    let url = format!("/rooms/hall/series?from={}&to={}&metric=", at_minute(0), at_minute(15));
    let watts = bench.get(&format!("{url}current_w&fn=mean")).await.json();
    assert_eq!((&watts["data"][0]["value"], &watts["left_out"]), (&json!(100), &Value::Null));
    let all = bench.get(&format!("{url}current_w,cumulative_kwh_p&fn=last")).await.json();
    let left_out = json!([{
        "device_id": "plug", "reason": "behind", "behind": "meter", "metrics": ["cumulative_kwh_p"]
    }]);
    assert_eq!(all["left_out"], left_out, "{all}");
}

/// Of the range of [`bench`]: what is counted, what is left, and the rows of what is left.
fn rest(answer: &Value) -> (Value, Value, Value) {
    let rows = answer["rest"].as_array().map(|rows| rows.iter().map(|it| it["kwh"].clone()));
    let rows = rows.map_or(Value::Null, Iterator::collect);
    (answer["counted_kwh"].clone(), answer["rest_kwh"].clone(), rows)
}

#[tokio::test]
async fn what_a_meter_measured_and_no_device_behind_it_is_the_rest() {
    let bench = bench(&[
        ("meter", &[("energy", 20)]),
        ("floor", &[("energy", 12)]),
        ("fridge", &[("energy", 4)]),
        ("oven", &[("energy", 6)]),
        ("shed", &[("energy", 40)]),
        ("roof", &[("energy", 100)]),
    ])
    .await;
    bench.set("roof", "energy", &json!({"role": "production"})).await;
    let apart = bench.energy("", "&devices=1").await;
    assert_eq!(rest(&apart), (json!(82), Value::Null, Value::Null), "nothing is behind a meter");
    assert!(apart.get("rest_kwh").is_none());
    for (device, meter) in
        [("floor", "meter"), ("fridge", "floor"), ("oven", "meter"), ("roof", "meter")]
    {
        let behind = json!({"behind": meter}).to_string();
        assert_eq!(bench.patch(&format!("/devices/{device}"), &behind).await.status, 200);
    }
    for of in ["", "/rooms/hall"] {
        // The meter has 20, 4 and 6 of them are known, and the shed has 40.
        let apart = bench.energy(of, "&devices=1&every=15m").await;
        let rows = json!([2.5, 2.5, 2.5, 2.5]);
        assert_eq!(apart["total_kwh"], 60, "{of}");
        assert_eq!(rest(&apart), (json!(50), json!(10), rows), "{of}");
        assert_eq!(apart["rest"][1]["timestamp"], json!(at_minute(15)));
        let sum = bench.energy(of, "").await;
        assert!(sum.get("counted_kwh").is_none() && sum.get("rest").is_none(), "{of}");
    }
    let alone = bench.energy("/devices/meter", "").await;
    assert!(alone.get("counted_kwh").is_none());
}

#[tokio::test]
async fn of_a_meter_that_measured_nothing_the_rest_is_not_known() {
    let bench = bench(&[("meter", &[("current_w", 1000)]), ("plug", &[("current_w", 400)])]).await;
    assert_eq!(bench.patch("/devices/plug", r#"{"behind": "meter"}"#).await.status, 200);
    // From 18:00 on the meter is silent.
    let watts = [("current_w", "400")];
    let later: Vec<_> = (8..=12).map(|n| numbers("plug", n * 15, "hall", &watts)).collect();
    bench.store(&later).await;
    let asked = format!("from={}&to={}&every=1h&devices=1", at_minute(0), at_minute(180));
    let apart = bench.get(&format!("/energy?{asked}")).await.json();
    let (_, left, rows) = rest(&apart);
    assert_eq!(rows[0], json!(0.6), "{apart}");
    assert_eq!(rows[2], Value::Null, "{apart}");
    let number = |it: &Value| it.as_f64().expect("a number");
    let sum = number(&apart["counted_kwh"]) + number(&left);
    assert!((sum - number(&apart["total_kwh"])).abs() < 1e-12, "{apart}");
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

/// That others measured as much as the sum tells nothing of a meter that is silent in its place.
#[tokio::test]
async fn nobody_knows_the_rest_of_a_meter_that_is_silent() {
    let of = |device, minute, kwh| numbers(device, minute, "hall", &[("cumulative_kwh_p", kwh)]);
    let readings = [
        of("ma", 0, "100.1"),
        of("ma", 15, "100.2"),
        of("pa", 0, "1.1"),
        of("pa", 15, "1.2"),
        of("pa", 30, "1.25"),
        of("mb", 0, "1.1"),
        of("mb", 15, "1.2"),
        of("mb", 30, "1.35"),
        of("pb", 0, "1.1"),
        of("pb", 15, "1.2"),
        of("pb", 30, "1.3"),
    ];
    let bench = Bench::empty();
    bench.store(&readings).await;
    for (plug, meter) in [("pa", "ma"), ("pb", "mb")] {
        let behind = json!({"behind": meter}).to_string();
        assert_eq!(bench.patch(&format!("/devices/{plug}"), &behind).await.status, 200);
    }
    let of = async |from, to| {
        let range = format!("from={}&to={}", at_minute(from), at_minute(to));
        bench.get(&format!("/rooms/hall/energy?{range}&every=15m&devices=1")).await.json()
    };
    let silent = of(15, 30).await;
    assert_eq!(silent["total_kwh"], silent["counted_kwh"], "as it happens: {silent}");
    assert_eq!((&silent["rest_kwh"], &silent["rest"][0]["kwh"]), (&Value::Null, &Value::Null));
    let whole = of(0, 30).await;
    assert_eq!(whole["rest"][0]["kwh"], json!(0), "{whole}");
    assert_eq!(whole["rest"][1]["kwh"], Value::Null, "{whole}");
    assert_eq!(whole["rest_kwh"], json!(0), "both measured something: {whole}");
}
