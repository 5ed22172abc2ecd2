//! Days in fast motion: each maker's limit, its clock, and values that come late.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// The members of a request's query, as they are written there.
fn query_of(path: &str) -> BTreeMap<&str, &str> {
    let (_, query) = path.split_once('?').expect("a query");
    query.split('&').filter_map(|pair| pair.split_once('=')).collect()
}

/// Nature Remo with a meter: its own count of requests, also of another program of the account.
#[tokio::test(start_paused = true)]
async fn remo_never_gets_more_than_30_requests_in_5_minutes() {
    let world = World::new();
    let window = TimeDelta::minutes(5);
    let others: Arc<Mutex<Vec<Timestamp>>> = Arc::default();
    let (counted, start) = (Arc::clone(&others), at(START));
    let mut own: Vec<Timestamp> = Vec::new();
    world.play("api.nature.global", move |asked| {
        own.push(asked.at);
        // The maker's windows are fixed.
        let begins = start.saturating_add(window * i32::try_from(asked.at.since(start).num_minutes() / 5).expect("few"));
        let in_window = |all: &[Timestamp]| all.iter().filter(|at| **at >= begins).count();
        let used = in_window(&own) + in_window(&counted.lock().expect("no panic"));
        let reset = begins.saturating_add(window).as_millis() / 1_000;
        let status = if used > 30 { 429 } else { 200 };
        let minute = asked.at.since(start).num_minutes() / 10;
        let created = start.saturating_add(TimeDelta::minutes(minute * 10)).to_string();
        let body = if asked.path == "/1/devices" {
            json!([{"id": "a1", "name": "Living", "newest_events": {"te": {"val": minute, "created_at": created}}}])
        } else {
            json!([{"id": "i1"}, {"id": "b2", "smart_meter": {"echonetlite_properties": [{"epc": 231, "val": "500", "updated_at": created}]}}])
        };
        let left = 30_usize.saturating_sub(used).to_string();
        let headers = vec![
            ("date", http_date(asked.at)),
            ("x-rate-limit-remaining", left),
            ("x-rate-limit-reset", reset.to_string()),
        ];
        Fetched { status, headers, body: body.to_string().into_bytes() }
    });
    world.save("remo", json!({"kind": "remo"}), &[("token", SECRET)]).await;

    for minute in 0..1_440 {
        // Another program takes 15 of a window, at its beginning.
        if minute % 5 == 0 && minute % 60 < 30 {
            let now = world.clock.now();
            others.lock().expect("no panic").extend([now; 15]);
        }
        world.minutes(1).await;
        if minute % 7 == 0 {
            world.try_source("remo", json!({"kind": "remo"}), None).await;
        }
    }

    let times: Vec<_> = world.asked().iter().map(|(_, at, _)| *at).collect();
    assert!(most_within(&times, window) <= 30, "{}", most_within(&times, window));
    let mut all = times.clone();
    all.extend(others.lock().expect("no panic").iter());
    all.sort_unstable();
    assert!(times.len() > 2_000, "{}", times.len());
    assert_eq!(world.state("remo").await, SourceState::Ok);
    // An answer is delivered when it has changed: each ten minutes, of both requests.
    let delivered = world
        .events()
        .iter()
        .filter(|event| event.contains("\"dry\":false,\"") && event.contains("\"format\":\"remo\""))
        .count();
    assert!((2 * 140..=2 * 150).contains(&delivered), "{delivered}");
}

/// Plays SwitchBot with a hub, which has no number, and thermometers.
fn play_switchbot(world: &World, devices: usize) {
    let list: Vec<_> = (0..devices)
        .map(|n| json!({"deviceId": format!("C0FFEE{n:06}"), "deviceName": format!("D{n}"), "enableCloudService": true}))
        .collect();
    world.play("api.switch-bot.com", move |asked| {
        assert!(asked.headers.contains_key("sign") && asked.headers["authorization"] == SECRET);
        let body = match asked.path.strip_prefix("/v1.1/devices/") {
            None => json!({"statusCode": 100, "body": {"deviceList": list}}),
            Some(rest) => {
                let id = rest.trim_end_matches("/status");
                let kind = if id.ends_with("000000") { "Hub Mini" } else { "MeterPlus" };
                json!({"statusCode": 100, "body": {"deviceId": id, "deviceType": kind, "temperature": 21.4}})
            }
        };
        answer(asked.at, 200, &body)
    });
}

#[tokio::test(start_paused = true)]
async fn switchbot_never_gets_more_requests_than_its_calls_in_a_day() {
    for (devices, calls) in [(6, None), (13, None), (40, None), (13, Some(2_000))] {
        let world = World::new();
        play_switchbot(&world, devices);
        let settings = json!({"kind": "switchbot", "calls": calls});
        let secrets = [("token", SECRET), ("secret", "geheim-key")];
        world.save("bot", settings.clone(), &secrets).await;
        for hour in 0..26 {
            world.minutes(60).await;
            // Two tests an hour: 50 in a day, and three edits.
            for _ in 0..2 {
                world.try_source("bot", settings.clone(), None).await;
            }
            if hour % 8 == 0 {
                world.save("bot", settings.clone(), &secrets).await;
            }
        }

        let times: Vec<_> = world.asked().iter().map(|(_, at, _)| *at).collect();
        let most = most_within(&times, TimeDelta::hours(24));
        assert!(most <= calls.unwrap_or(9_000), "{devices} devices: {most}");
        assert!(most * 10 > calls.unwrap_or(6_000) * 5, "{devices} devices: {most}");
        let states = times.len();
        assert!(states > 0 && world.state("bot").await == SourceState::Ok, "{devices}");
        let hub = world.asked().iter().filter(|(.., path)| path.contains("000000/status")).count();
        assert!(hub <= 26 + 60, "a hub has no number: {hub}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_day_that_tests_and_edits_use_up_says_in_words_when_it_is_asked_again() {
    let world = World::new();
    play_switchbot(&world, 13);
    let settings = json!({"kind": "switchbot", "calls": 140});
    let secrets = [("token", SECRET), ("secret", "geheim-key")];
    world.save("bot", settings.clone(), &secrets).await;
    world.minutes(1).await;
    for pressed in 0..50 {
        world.try_source("bot", settings.clone(), None).await;
        if pressed % 20 == 0 {
            world.save("bot", settings.clone(), &secrets).await;
        }
    }

    world.minutes(200).await;
    assert_eq!(world.state("bot").await, SourceState::Limited);
    let error = world.stored("bot").await.status.error.unwrap_or_default();
    let words = "SwitchBot was asked as often as it may be in this time; asked again at 2026-03-11 00:00 UTC";
    assert_eq!(error, words);
    let today = world.asked().len();
    assert!((130..=140).contains(&today), "{today}");

    world.minutes(9 * 60).await;
    assert!(world.asked().len() > today, "it is asked again the next day");
    assert_eq!(world.state("bot").await, SourceState::Ok);
}

#[tokio::test(start_paused = true)]
async fn a_daily_limit_inside_a_good_answer_is_a_limit() {
    let world = World::new();
    world.play("api.switch-bot.com", |asked| {
        let body =
            json!({"statusCode": 190, "body": {}, "message": "Requests reached the daily limit"});
        answer(asked.at, 200, &body)
    });
    let secrets = [("token", SECRET), ("secret", "geheim-key")];
    world.save("bot", json!({"kind": "switchbot"}), &secrets).await;
    world.minutes(2).await;
    let stored = world.stored("bot").await;
    let error = stored.status.error.unwrap_or_default();
    assert!(
        error.starts_with(
            "SwitchBot has answered as often today as it does in a day; asked again at"
        ),
        "{error}"
    );
    assert_eq!(world.state("bot").await, SourceState::Limited);
}

/// Half hours that come a day late, some of them up to nine days late, over both changes of the clock.
#[tokio::test(start_paused = true)]
async fn octopus_half_hours_are_each_there_once_however_late_they_come() {
    for begin in ["2026-03-20T00:00:00Z", "2026-10-16T00:00:00Z"] {
        let world = World::new();
        world.clock.set(at(begin));
        let first = at(begin).saturating_add(-TimeDelta::days(30));
        let half = TimeDelta::minutes(30);
        // The half hour n is there a day after its end, each eleventh some days later.
        let comes = move |n: i64| {
            let late = if n % 11 == 0 { TimeDelta::days(n % 8 + 1) } else { TimeDelta::zero() };
            first
                .saturating_add(half * i32::try_from(n + 1).expect("few"))
                .saturating_add(TimeDelta::days(1) + late)
        };
        world.play("api.octopus.energy", move |asked| {
            let query = query_of(&asked.path);
            let time = |name: &str| at(&query[name].replace("%3A", ":"));
            let rows: Vec<_> = (0..48 * 60)
                .filter(|n| comes(*n) <= asked.at)
                .filter_map(|n| {
                    let start = first.saturating_add(half * i32::try_from(n).expect("few"));
                    (start >= time("period_from") && start < time("period_to")).then(|| {
                        json!({"consumption": f64::from(u16::try_from(n % 500).expect("few")) / 1000.0,
                            "interval_start": start.to_string().replace('Z', "+00:00")})
                    })
                })
                .collect();
            assert!(rows.len() <= 1_500);
            answer(asked.at, 200, &json!({"count": rows.len(), "next": null, "results": rows}))
        });
        let settings = json!({
            "kind": "octopus", "mpan": "1000000000000", "serial": "11L1111111",
            "since": first.to_string(),
        });
        world.save("flat", settings, &[("key", SECRET)]).await;
        for _ in 0..20 * 48 {
            world.clock.advance(Duration::from_secs(1_800));
            world.minute().await;
        }

        let now = world.clock.now();
        let whole = now.saturating_add(-TimeDelta::hours(4));
        let values = world.values();
        for n in 0..48 * 60 {
            let start = first.saturating_add(half * i32::try_from(n).expect("few"));
            let key = ("flat".to_owned(), start.to_string(), "current_w".to_owned());
            let expected = (comes(n) <= whole).then(|| (n % 500 * 2).to_string());
            if comes(n) <= whole || comes(n) > now {
                assert_eq!(values.get(&key), expected.as_ref(), "{begin} {n}");
            }
        }
        assert!(values.keys().all(|(device, _, metric)| device == "flat" && metric == "current_w"));
    }
}

#[tokio::test(start_paused = true)]
async fn prices_are_there_for_each_quarter_two_days_ahead_and_gaps_stay() {
    let world = World::new();
    world.play("api.energy-charts.info", |asked| {
        let midnight = at("2026-03-10T00:00:00Z").as_millis() / 1_000;
        // Hours of today and tomorrow; one hour is null, and one is not there.
        let hours: Vec<i64> = (0..48).filter(|hour| *hour != 20).collect();
        let times: Vec<_> = hours.iter().map(|hour| midnight + hour * 3_600).collect();
        let prices: Vec<_> = hours
            .iter()
            .map(|hour| {
                if *hour == 30 { Value::Null } else { json!(if *hour < 10 { -3.2 } else { -2.2 }) }
            })
            .collect();
        answer(asked.at, 200, &json!({"unix_seconds": times, "price": prices, "unit": "EUR / MWh"}))
    });
    world.save("price", json!({"kind": "price", "zone": "DE-LU"}), &[]).await;
    world.minutes(90).await;
    let values = world.values();
    assert_eq!(values.len(), 46 * 4, "{values:?}");
    let price = |time: &str| {
        let key = ("price-de-lu".to_owned(), time.to_owned(), "price".to_owned());
        values.get(&key).cloned()
    };
    assert_eq!(price("2026-03-10T09:45:00.000Z").as_deref(), Some("-0.0032"));
    assert_eq!(price("2026-03-11T23:45:00.000Z").as_deref(), Some("-0.0022"));
    assert_eq!(price("2026-03-10T20:00:00.000Z"), None, "a gap stays one");
    assert_eq!(price("2026-03-11T06:15:00.000Z"), None, "null is no price");
    assert!((2..=3).contains(&world.asked().len()), "each hour");
}

#[tokio::test(start_paused = true)]
async fn weather_ahead_of_now_is_no_reading_and_what_was_missed_is_asked_for() {
    let world = World::new();
    world.play("api.open-meteo.com", |asked| {
        let query = query_of(&asked.path);
        let time = |name: &str| {
            let text = query[name].replace("%3A", ":");
            at(&format!("{text}:00Z")).as_millis() / 1_000
        };
        let quarter = 900;
        let from = time("start_minutely_15").div_euclid(quarter) * quarter;
        let times: Vec<_> = (from..=time("end_minutely_15") + 3_600).step_by(900).collect();
        let temperatures: Vec<_> = times.iter().map(|time| time % 10_000 / 100).collect();
        let mut body = json!({"time": times, "temperature_2m": temperatures});
        for name in [
            "relative_humidity_2m",
            "dew_point_2m",
            "pressure_msl",
            "wind_speed_10m",
            "precipitation",
            "shortwave_radiation",
        ] {
            body[name] = vec![Value::Null; times.len()].into();
        }
        answer(asked.at, 200, &json!({"minutely_15": body}))
    });
    world
        .save("weather", json!({"kind": "weather", "latitude": 52.5, "longitude": "13.4"}), &[])
        .await;
    world.minutes(120).await;
    // The machine slept for two days.
    world.clock.advance(Duration::from_secs(48 * 3_600));
    world.minutes(120).await;
    let now = world.clock.now();
    let times: BTreeSet<_> = world.values().into_keys().map(|(_, time, _)| at(&time)).collect();
    assert!(times.iter().all(|time| *time <= now));
    let quarters = (now.since(at(START)).num_minutes() - 120) / 15;
    assert!(i64::try_from(times.len()).expect("few") >= quarters, "{} of {quarters}", times.len());
}

/// A window of the past that is not answered is asked for again, and not left out.
#[tokio::test(start_paused = true)]
async fn a_year_of_the_past_is_asked_for_window_by_window_also_where_one_fails() {
    let world = World::new();
    let first = at(START).saturating_add(-TimeDelta::days(200));
    let mut asked_so_far = 0;
    world.play("api.octopus.energy", move |asked| {
        asked_so_far += 1;
        if asked_so_far % 3 == 2 {
            return answer(asked.at, 503, &json!({}));
        }
        let query = query_of(&asked.path);
        let time = |name: &str| at(&query[name].replace("%3A", ":"));
        let days = (0..200).map(|day| first.saturating_add(TimeDelta::days(day)));
        let days = days.filter(|day| *day >= time("period_from") && *day < time("period_to"));
        let rows: Vec<_> = days
            .map(|day| json!({"consumption": 0.5, "interval_start": day.to_string()}))
            .collect();
        answer(asked.at, 200, &json!({"next": null, "results": rows}))
    });
    let settings = json!({
        "kind": "octopus", "mpan": "1000000000000", "serial": "11L1111111",
        "since": first.to_string(), "every": "15m",
    });
    world.save("flat", settings, &[("key", SECRET)]).await;
    world.minutes(180).await;
    assert_eq!(world.values().len(), 200);
}

/// Other programs of the account have the few requests that are left.
#[tokio::test(start_paused = true)]
async fn few_requests_that_are_left_are_left_to_others() {
    let world = World::new();
    let reset = at(START).saturating_add(TimeDelta::seconds(400));
    world.play("api.nature.global", move |asked| {
        let left = if asked.at < reset { "5" } else { "28" };
        let headers = vec![
            ("date", http_date(asked.at)),
            ("x-rate-limit-remaining", left.to_owned()),
            ("x-rate-limit-reset", (reset.as_millis() / 1_000).to_string()),
        ];
        Fetched { status: 200, headers, body: b"[]".to_vec() }
    });
    world.save("remo", json!({"kind": "remo", "meter": false}), &[("token", SECRET)]).await;
    world.minutes(8).await;
    let times: Vec<_> = world.asked().iter().map(|(_, at, _)| *at).collect();
    assert_eq!(times.iter().filter(|at| **at < reset).count(), 1, "{times:?}");
    assert!(times.len() > 1);
    assert_eq!(world.state("remo").await, SourceState::Ok);
}

/// 40 devices do not fit into a run: three minutes ask for them, each for the next ones, and nobody asks in vain.
#[tokio::test(start_paused = true)]
async fn many_devices_are_asked_some_at_once_and_a_minute_goes_on_where_the_last_one_ended() {
    let world = World::new();
    let list: Vec<_> = (0..40).map(|n| json!({"deviceId": format!("D{n:02}")})).collect();
    let asked_so_far = Arc::clone(&world.makers.asked);
    let most_at_once = Arc::new(AtomicUsize::new(0));
    let (most, answered) = (Arc::clone(&most_at_once), AtomicUsize::new(0));
    world.play("api.switch-bot.com", move |asked| {
        // Whoever is asked at once has the time to come.
        std::thread::sleep(Duration::from_millis(5));
        let under_way = asked_so_far.lock().expect("no panic").len();
        let under_way = under_way - answered.fetch_add(1, Ordering::SeqCst);
        most.fetch_max(under_way, Ordering::SeqCst);
        let body = match asked.path.strip_prefix("/v1.1/devices/") {
            None => json!({"statusCode": 100, "body": {"deviceList": list}}),
            // The limit of a day is reached with the 20th device of the second round.
            Some("D19/status")
                if asked.at > at("2026-03-10T12:07:00Z")
                    && asked.at < at("2026-03-10T12:20:00Z") =>
            {
                json!({"statusCode": 190, "message": "Requests reached the daily limit"})
            }
            Some(rest) => {
                let id = rest.trim_end_matches("/status");
                json!({"statusCode": 100, "body": {"deviceId": id, "temperature": 21.4}})
            }
        };
        answer(asked.at, 200, &body)
    });
    let secrets = [("token", SECRET), ("secret", "geheim-key")];
    world.save("bot", json!({"kind": "switchbot"}), &secrets).await;

    let mut by_minute = Vec::new();
    for _ in 0..90 {
        let before = world.asked().len();
        world.minutes(1).await;
        let paths = world.asked().split_off(before).into_iter().map(|(.., path)| path);
        let ids = paths.map(|path| path.replace("/v1.1/devices", "").replace("/status", ""));
        let mut ids: Vec<_> = ids.collect();
        // Four are asked at once, in any order.
        ids.sort();
        by_minute.push(ids);
    }
    let ids = |range: std::ops::Range<usize>| -> Vec<String> {
        range.map(|n| format!("/D{n:02}")).collect()
    };
    let list = vec![String::new()];
    assert_eq!(by_minute[..4], [list.clone(), ids(0..16), ids(16..32), ids(32..40)]);
    // Each 7 minutes again, until the limit is met. After it the round goes on with what was not answered.
    let runs: Vec<_> = by_minute[4..].iter().filter(|ids| !ids.is_empty()).cloned().collect();
    assert_eq!(runs[..2], [ids(0..16), ids(16..20)]);
    assert_eq!(runs[2..5], [ids(19..35), ids(35..40), list], "the round ends before a new list");
    assert!((2..=4).contains(&most_at_once.load(Ordering::SeqCst)), "{most_at_once:?}");
}
