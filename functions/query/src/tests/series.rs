//! Series where rollups are behind, or where much is sent. All else is in `tests/cases/series.txt`.

use chrono::TimeDelta;
use domain::{MAX_KNOWN_METRICS, MetricName};
use table::layout::Layout;
use table::{
    Backlog, DeviceGroups, KeepRollupState as _, LateMark, MarkLateChanges as _, QueueDepth,
};

use super::by_room::stored;
use super::*;

/// A quarter of an hour before [`at`]`(0)` is the start of a local day in UTC+8.
const START: &str = "2026-01-11T16:00:00.000Z";

pub(super) fn numbers(device: &str, minute: i64, room: &str, values: &[(&str, &str)]) -> Reading {
    given::reading(device, at_minute(minute), Some(room), values)
}

impl Bench {
    pub(super) async fn seal(&self, minute: i64, zone: &str) {
        given::seal(&self.store, zone, at_minute(minute)).await;
    }
}

fn hour(path: &str) -> String {
    format!("{path}?from={START}&to={}", at_minute(60))
}

/// The registry's room is the newest reading's; a late reading, and turns between two rooms, are elsewhere.
#[tokio::test]
async fn a_room_has_every_reading_that_names_it_whatever_the_devices_room_is_now() {
    for sealed in [None, Some(0), Some(30), Some(120)] {
        let room = |n: i64| if n % 2 == 0 { "even" } else { "odd" };
        let reading = |n| numbers("roamer", n, room(n), &[("temperature", "20")]);
        let bench = stored(&(0..60).map(reading).collect::<Vec<_>>(), sealed).await;
        for name in ["even", "odd"] {
            let path = format!("/rooms/{name}/series");
            let answer = bench.get(&format!("{}&fn=count&metric=temperature", hour(&path))).await;
            let count = &answer.json()["data"][0]["temperature"]["count"];
            assert_eq!(count, 30, "{name}, sealed until {sealed:?}: {}", answer.json());
        }
    }
}

#[tokio::test]
async fn events_that_are_left_out_are_told() {
    let bench = Bench::empty();
    let swinging = |device, n: i64| {
        numbers(device, n, "hall", &[("cumulative_kwh_p", if n % 2 == 0 { "50" } else { "1" })])
    };
    bench.store(&[swinging("one", 0), swinging("two", 0)]).await;
    let both = ["one", "two"].map(|device| (0..600).map(move |n| swinging(device, n)));
    let readings: Vec<Reading> = both.into_iter().flatten().collect();
    bench.store.put_readings(&readings, None, &invocation()).await;
    for (minutes, count, has_more) in [(300, 600, false), (600, 1_000, true)] {
        let url = format!("/energy?from={}&to={}&events=1", at_minute(0), at_minute(minutes));
        let energy = bench.get(&url).await.json();
        assert_eq!(energy["events"].as_array().map(Vec::len), Some(count), "{minutes} minutes");
        assert_eq!(energy["events_has_more"], has_more, "{minutes} minutes");
    }
    let without = bench.get(&hour("/energy")).await.json();
    assert_eq!(without.get("events_has_more"), None);
}

#[tokio::test]
async fn a_metric_beyond_those_that_are_kept_of_a_device_is_refused_as_such() {
    let bench = Bench::empty();
    let full = given::device_of([&reading("full", 0, "hall")]).changed(|it| {
        let names = (0..MAX_KNOWN_METRICS).map(|n| format!("m{n}").parse().expect("a name"));
        it.metrics = names.map(|name: MetricName| (name.clone(), (&name).into())).collect();
    });
    bench.store.register_device(&full.expect("a device"), &invocation()).await.expect("memory");
    let refused = bench.problem("/devices/full/series?metric=m256").await;
    let expected =
        "400 metric: m256 is not among the 256 metrics of full; a device has no more of them";
    assert_eq!(refused, expected);
}

#[tokio::test]
async fn health_tells_how_many_messages_wait() {
    let bench = Bench::empty();
    bench.seal(30, "Europe/Berlin").await;
    let depth = Some(QueueDepth { messages: 3, at: at_minute(31) });
    let advanced =
        bench.store.advance_sealed(&[0].into(), at_minute(45), depth, &invocation()).await;
    advanced.expect("memory");
    let busy = bench.get("/health?details=1").await.json();
    assert_eq!(busy["rollups"]["queue"], json!({"messages": 3, "at": at_minute(31)}));
}

#[tokio::test]
async fn an_answer_about_rooms_says_that_rollups_are_hours_behind() {
    let bench = Bench::house("of a meter that is reset").await;
    bench.seal(30, "UTC").await;
    let range = format!("from={}&to={}", at_minute(0), at_minute(200));
    for (minute, is_told) in [(149, false), (151, true)] {
        bench.clock.set(at_minute(minute));
        for (path, is_of_rooms) in
            [("/rooms/hall/series?", true), ("/series?rooms=1&", true), ("/series?", false)]
        {
            for every in ["5m", "1h"] {
                let answer = bench.get(&format!("{path}{range}&every={every}")).await.json();
                let lack = answer["rooms_lack"].as_str().unwrap_or_default();
                let is_lacking = lack.starts_with("rollups are hours behind");
                assert_eq!(is_lacking, is_told && is_of_rooms, "{path} {every}: {answer}");
            }
        }
        for (room, is_of_rooms) in [("%20AND%20room='hall'", true), ("", false)] {
            let query = format!(
                "/query?db=home&q=SELECT%20mean(value)%20FROM%20temperature%20WHERE%20time%3E='{}'%20AND%20time%3C'{}'\
                 {room}%20GROUP%20BY%20time(10m)",
                at_minute(0),
                at_minute(200)
            );
            let answer = bench.get(&query).await.json();
            let text = answer["results"][0]["messages"][0]["text"].as_str().unwrap_or_default();
            let is_lacking = text.starts_with("rollups are hours behind");
            assert_eq!(is_lacking, is_told && is_of_rooms, "{room}: {answer}");
        }
    }
}

/// The devices that were seen in the room are read. With the index, the room's own entries are.
#[tokio::test]
async fn readings_of_a_room_without_the_index_say_that_rollups_are_hours_behind() {
    let bench = Bench::house("of a meter that is reset").await;
    bench.seal(30, "UTC").await;
    let store = bench.store.with_layout(Layout { room_index: false, ..Layout::default() });
    let without = Bench::on(store, false);
    let path = format!("/rooms/hall/readings?from={}&to={}", at_minute(0), at_minute(200));
    for (minute, is_told) in [(149, false), (151, true)] {
        bench.clock.set(at_minute(minute));
        without.clock.set(at_minute(minute));
        assert!(bench.get(&path).await.json()["rooms_lack"].is_null());
        let lack = &without.get(&path).await.json()["rooms_lack"];
        assert_eq!(lack.is_string(), is_told, "{minute}: {lack}");
        let csv = without.get(&format!("{path}&format=csv")).await;
        assert_eq!(csv.header("x-rows-lack"), if is_told { "rooms_lack" } else { "" });
    }
}

#[tokio::test]
async fn an_answer_from_rollups_says_when_they_are_behind() {
    let bench = Bench::house("of a meter that is reset").await;
    bench.seal(30, "UTC").await;
    let now = bench.clock.now();
    let ago = |seconds| now.saturating_add(-TimeDelta::seconds(seconds));
    let range = format!("from={}&to={}", at_minute(0), at_minute(60));
    let by_rollups = [
        format!("/devices/warm/series?{range}&every=1h"),
        format!("/rooms/hall/energy?{range}"),
        format!("/devices/warm/conditions?{range}&temperature=20..30"),
    ];
    let query = |every: &str| {
        format!(
            "/query?db=home&q=SELECT%20mean(value)%20FROM%20temperature%20WHERE%20time%3E='{}'%20AND%20time%3C'{}'%20\
             GROUP%20BY%20time({every})",
            at_minute(0),
            at_minute(60)
        )
    };
    for path in &by_rollups {
        let answer = bench.get(path).await;
        assert_eq!((answer.status, answer.json().get("rollups_lack")), (200, None), "{path}");
    }
    let answer = bench.get(&query("15m")).await.json();
    assert_eq!(answer["results"][0].get("messages"), None, "{answer}");

    for (at, is_told) in [(ago(89), true), (ago(90), false)] {
        let backlog = Backlog { since: ago(600), at };
        bench.store.note_backlog(backlog, &invocation()).await.expect("memory");
        let late = bench.again();
        let lack = is_told.then(|| json!({"changes_since": backlog.since}));
        for path in &by_rollups {
            let answer = late.get(path).await.json();
            assert_eq!(answer.get("rollups_lack"), lack.as_ref(), "{path}: {answer}");
        }
        let by_readings = late.get(&format!("/devices/warm/series?{range}&every=5m")).await.json();
        assert_eq!(by_readings.get("rollups_lack"), None);
        // Which devices were in a room rollups tell.
        for path in ["/rooms/hall/series?", "/series?rooms=1&"] {
            let of_rooms = late.get(&format!("{path}{range}&every=5m")).await.json();
            assert_eq!(of_rooms.get("rollups_lack"), lack.as_ref(), "{of_rooms}");
        }
        let text =
            format!("rollups lag; they may lack changes of past readings since {}", backlog.since);
        let messages = is_told.then(|| json!([{"level": "warning", "text": text}]));
        let answer = late.get(&query("15m")).await.json();
        assert_eq!(answer["results"][0].get("messages"), messages.as_ref(), "{answer}");
        let answer = late.get(&query("10m")).await.json();
        assert_eq!(answer["results"][0].get("messages"), None, "{answer}");
        let of_room =
            query("10m").replace("%20AND%20time%3C", "%20AND%20room='hall'%20AND%20time%3C");
        let answer = late.get(&of_room).await.json();
        assert_eq!(answer["results"][0].get("messages"), messages.as_ref(), "{answer}");
    }
    // What is marked is told, by every instance at once, of its own time and of no readings.
    let mark = |from: i64, to: i64| LateMark {
        range: given::range(at_minute(from), at_minute(to)),
        groups: DeviceGroups::ALL,
        until: now.saturating_add(TimeDelta::seconds(10)),
    };
    for (version, (range, is_told)) in [((-60, 0), false), ((10, 20), true)].into_iter().enumerate()
    {
        let version = u64::try_from(version).expect("small");
        let marks = [mark(range.0, range.1)];
        bench.store.put_late_marks(&marks, version, &invocation()).await.expect("memory");
        let lack = is_told.then(|| json!({"changes_since": ago(90)}));
        for path in &by_rollups {
            let answer = bench.get(path).await;
            assert_eq!(answer.json().get("rollups_lack"), lack.as_ref(), "{path}");
            let caching = answer.header("cache-control");
            assert_eq!(caching == "private, no-cache", is_told, "{path}: {caching}");
        }
        let answer = bench.get(&query("15m")).await.json();
        assert_eq!(answer["results"][0].get("messages").is_some(), is_told, "{answer}");
    }
    let folded = bench.get("/health?details=1").await.json()["rollups"]["folded_until"].clone();
    assert_eq!(folded, json!(ago(90)));
    bench.store.put_late_marks(&[], 2, &invocation()).await.expect("memory");
    let depth = Some(QueueDepth { messages: 2, at: now });
    bench
        .store
        .advance_sealed(&[0].into(), at_minute(30), depth, &invocation())
        .await
        .expect("memory");
    let answer = bench.again().get(&by_rollups[0]).await.json();
    assert_eq!(answer["rollups_lack"], json!({"quarters": 2}));
    let answer = bench.again().get(&format!("{}&chunked=true", query("15m"))).await.json();
    let text = "rollups lag; they may lack 2 quarters of an hour";
    assert_eq!(answer["results"][0]["messages"][0]["text"], text, "{answer}");
}
