//! InfluxQL against what the real influxd answered: the files under `tests/influxql`, with and without rollups.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use domain::given::number;
use domain::{
    Bucket, Decimal, Device, DeviceId, FoldRules, MetricName, QuarterHour, Rollup, RoomId,
    SourceField, TimeRange, Zone,
};
use table::StoredRollup;

use super::*;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/influxql")
}

const LAST_HUMIDITY: &str = r#"{"results": [{"statement_id": 0, "series": [{
    "name": "humidity", "columns": ["time", "last"], "values": [[1768147500000, 46]]
}]}]}"#;

/// Where ours differs on purpose: the query, and what ours answers instead.
const DIFFERENT: [(&str, &str); 4] = [
    (
        "SELECT value FROM temperature WHERE device =~ /[/",
        r#"{"error": "error parsing query: error parsing regexp: found unclosed character class: `[` at line 1, char 46"}"#,
    ),
    // There is one retention policy, by whatever name.
    ("SELECT last(value) FROM nope.humidity", LAST_HUMIDITY),
    ("SELECT last(value) FROM humidity", LAST_HUMIDITY),
    // The recording server keeps all points in one shard.
    (
        "SHOW RETENTION POLICIES ON home",
        r#"{"results": [{"statement_id": 0, "series": [{
            "columns": ["name", "duration", "shardGroupDuration", "replicaN", "default"],
            "values": [["autogen", "0s", "168h0m0s", 1, true]]
        }]}]}"#,
    ),
];

/// The points of the file, as devices with their readings.
fn points() -> Vec<(Device, Vec<Reading>)> {
    type Point = (Option<RoomId>, BTreeMap<MetricName, Decimal>);
    let text = fs::read_to_string(folder().join("points.txt")).expect("a file");
    let mut readings: BTreeMap<(DeviceId, i64), Point> = BTreeMap::new();
    let mut taught: BTreeMap<DeviceId, domain::Source> = BTreeMap::new();
    for line in text.lines() {
        let [key, fields, time] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let mut key = key.split(',');
        let measurement = key.next().expect("a measurement");
        let tags: BTreeMap<String, String> = key
            .map(|tag| tag.split_once('=').expect("a tag"))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let is_native = tags.contains_key("device") && fields.starts_with("value=");
        let id = if is_native {
            tags["device"].clone()
        } else {
            tags.values().map(String::as_str).collect::<Vec<_>>().join(":")
        };
        let id = given::device(&id);
        let room = tags.get("room").map(|room| room.parse().expect("an id"));
        let at: i64 = time.parse().expect("a time");
        let reading = readings.entry((id.clone(), at)).or_insert((room, BTreeMap::new()));
        for field in fields.split(',') {
            let (name, value) = field.split_once('=').expect("a field");
            let metric = if is_native { measurement } else { name };
            let metric: MetricName = given::metric(metric);
            if !is_native {
                let source = taught.entry(id.clone()).or_default();
                source.tags.clone_from(&tags);
                let (measurement, field) = (measurement.to_owned(), name.to_owned());
                source.fields.insert(metric.clone(), SourceField { measurement, field });
            }
            reading.1.insert(metric, number(value));
        }
    }
    let mut devices: BTreeMap<DeviceId, Vec<Reading>> = BTreeMap::new();
    for ((id, at), (room, metrics)) in readings {
        let at = Timestamp::from_millis(at).expect("a time");
        let reading = Reading::new(id.clone(), at, room, metrics).expect("a reading");
        devices.entry(id).or_default().push(reading);
    }
    let with_device = |(id, readings): (DeviceId, Vec<Reading>)| {
        let source = taught.remove(&id).unwrap_or_default();
        let device = given::device_of(&readings).changed(|it| it.source = source);
        (device.expect("a device"), readings)
    };
    devices.into_iter().map(with_device).collect()
}

/// Rolls up all readings, up to a timestamp.
async fn roll_up(
    store: &MemoryDb,
    device: &Device,
    readings: &[Reading],
    zone: Zone,
    to: Timestamp,
) {
    let rules = FoldRules::of(device);
    let mut buckets: BTreeMap<Bucket, (TimeRange, Vec<&Reading>)> = BTreeMap::new();
    for reading in readings {
        let date = zone.date(reading.at);
        let day = (Bucket::Day(date), zone.day(date).expect("a day"));
        let quarter = QuarterHour::of(reading.at);
        for (bucket, range) in [day, (Bucket::QuarterHour(quarter), quarter.range())] {
            if range.to() <= to {
                buckets.entry(bucket).or_insert((range, Vec::new())).1.push(reading);
            }
        }
    }
    for (bucket, (range, readings)) in buckets {
        let rollup = Rollup::fold(readings, &rules);
        let zone = matches!(bucket, Bucket::Day(_)).then(|| zone.name().to_owned());
        let stored = given::stored_rollup(device.id(), bucket, range, rollup);
        given::put_first(store, &StoredRollup { zone, ..stored }).await;
    }
}

/// The home of the points, rolled up to a timestamp where one is given.
async fn home(rolled_up: Option<(&str, &str)>) -> Bench {
    let bench = Bench::empty();
    bench.clock.set(given::at("2026-01-20T00:00:00Z"));
    for (device, readings) in points() {
        bench.store.put_readings(&readings, None, &invocation()).await;
        bench.note_rooms(&readings).await;
        bench.store.register_device(&device, &invocation()).await.expect("memory");
        if let Some(room) = device.place().room() {
            given::register_room(&bench.store, room.as_str(), readings[0].at).await;
        }
        if let Some((zone, to)) = rolled_up {
            let to = given::at(to);
            roll_up(&bench.store, &device, &readings, given::zone(zone), to).await;
        }
    }
    if let Some((zone, to)) = rolled_up {
        let sealed = given::at(to);
        given::seal(&bench.store, zone, sealed).await;
    }
    bench
}

fn encoded(parameters: &Value) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    for (name, value) in parameters.as_object().expect("parameters") {
        form.append_pair(name, value.as_str().expect("a text"));
    }
    form.finish()
}

/// Whether two answers are the same but for the last digits of numbers.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().expect("a number"), b.as_f64().expect("a number"));
            (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_same(a, b)))
        }
        _ => a == b,
    }
}

async fn compare(bench: &Bench, what: &str) {
    let mut files: Vec<PathBuf> = fs::read_dir(folder().join("answers"))
        .expect("a folder")
        .map(|file| file.expect("a file").path())
        .collect();
    files.sort();
    assert!(files.len() >= 12, "{files:?}");
    let mut wrong = Vec::new();
    for file in files {
        let cases: Value =
            serde_json::from_str(&fs::read_to_string(&file).expect("a file")).expect("JSON");
        for case in cases.as_array().expect("cases") {
            let answer = bench.get(&format!("/query?{}", encoded(&case["parameters"]))).await;
            let query = case["parameters"]["q"].as_str().expect("a query");
            let expected = DIFFERENT.iter().find(|(it, _)| *it == query).map_or_else(
                || case["answer"].clone(),
                |(_, answer)| serde_json::from_str(answer).expect("JSON"),
            );
            if json!(answer.status) != case["status"] || !is_same(&answer.json(), &expected) {
                let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
                wrong.push(format!(
                    "{name}: {query}\n   ours  {} {}   real  {} {expected}\n",
                    answer.status, answer.text, case["status"]
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{what}: {} differ\n{}", wrong.len(), wrong.join(""));
}

#[tokio::test]
async fn answers_are_those_of_the_real_server() {
    compare(&home(None).await, "readings").await;
}

#[tokio::test]
async fn answers_from_rollups_are_those_of_the_real_server() {
    for (zone, to) in [
        ("UTC", "2026-01-15T00:00:00Z"),
        ("Asia/Tokyo", "2026-01-15T00:00:00Z"),
        ("Europe/Berlin", "2026-01-11T17:15:00Z"),
    ] {
        compare(&home(Some((zone, to))).await, &format!("{zone} to {to}")).await;
    }
}

async fn asked(bench: &Bench, parameters: &[(&str, &str)]) -> Answer {
    let parameters: serde_json::Map<String, Value> =
        parameters.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    bench.get(&format!("/query?{}", encoded(&Value::Object(parameters)))).await
}

async fn error_of(bench: &Bench, query: &str) -> String {
    let answer = asked(bench, &[("db", "home"), ("q", query)]).await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.text);
    let error = &answer.json()["results"][0]["error"];
    error.as_str().unwrap_or_else(|| panic!("{query}: {}", answer.text)).to_owned()
}

#[tokio::test]
async fn what_is_too_much_is_refused_before_anything_is_read() {
    let bench = home(Some(("UTC", "2026-01-15T00:00:00Z"))).await;
    let columns = vec!["mean(value)"; 51].join(", ");
    for (query, expected) in [
        (
            "SELECT mean(value) FROM temperature WHERE time >= 1768147200s GROUP BY time(1ns)",
            "max-select-buckets limit exceeded: (",
        ),
        (
            "SELECT mean(value) FROM temperature WHERE time > now() - 120d GROUP BY time(15m)",
            "/11000); narrow the time range or choose a longer interval",
        ),
        (&format!("SELECT {columns} FROM temperature"), "more than 50 columns"),
        (
            "SELECT mean(value), min(value), max(value), sum(value), last(value) FROM temperature WHERE \
             time > now() - 100d GROUP BY time(15m), device",
            "max-select-point limit exceeded: (",
        ),
        ("SELECT mean(value) FROM temperature GROUP BY time(40000d)", "not be longer than 36500d"),
    ] {
        let error = error_of(&bench, query).await;
        assert!(error.contains(expected), "{query}: {error}");
    }
}

#[tokio::test]
async fn what_would_cost_too_much_or_show_too_many_series_is_refused() {
    let bench = home(None).await;
    bench.clock.set(given::at("2028-01-20T00:00:00Z"));
    let error = error_of(&bench, "SELECT median(value) FROM temperature").await;
    assert!(error.starts_with("max-select-read-units limit exceeded: ("), "{error}");
    assert!(error.contains("/2000); narrow the time range"), "{error}");
    let of_a_day = "SELECT median(value) FROM temperature WHERE time > now() - 1d";
    let answer = asked(&bench, &[("db", "home"), ("q", of_a_day)]).await;
    assert_eq!(answer.text, "{\"results\":[{\"statement_id\":0}]}\n");
    for n in 0..501 {
        given::register_devices_of(&bench.store, &[reading(&format!("many-{n}"), 0, "r")]).await;
    }
    bench.clock.set(given::at("2028-01-20T01:00:00Z"));
    let query = "SELECT mean(value) FROM /.*/ WHERE time > now() - 1h GROUP BY device";
    let error = error_of(&bench, query).await;
    assert!(error.starts_with("max-select-series limit exceeded: (5"), "{error}");
}

#[tokio::test]
async fn a_device_counts_in_each_room_for_its_time_there() {
    let bench = Bench::empty();
    bench.clock.set(given::at("2026-01-20T00:00:00Z"));
    let readings: Vec<Reading> =
        (0..40).map(|minute| reading("a", minute, if minute < 25 { "r" } else { "s" })).collect();
    bench.store(&readings).await;
    let device = given::device_of(&readings);
    let to = given::at("2026-01-19T00:00:00Z");
    roll_up(&bench.store, &device, &readings, Zone::UTC, to).await;
    given::seal(&bench.store, "UTC", to).await;
    for (condition, expected) in [("", json!([25, 15])), ("WHERE room = 's'", json!([15]))] {
        let query = format!("SELECT count(value) FROM temperature {condition} GROUP BY room");
        let answer = asked(&bench, &[("db", "home"), ("epoch", "s"), ("q", &query)]).await.json();
        let series = answer["results"][0]["series"].as_array().expect("series").clone();
        let counts: Vec<Value> = series.iter().map(|it| it["values"][0][1].clone()).collect();
        assert_eq!(json!(counts), expected, "{answer}");
    }
}

#[tokio::test]
async fn a_condition_finds_rooms_that_are_not_registered() {
    let bench = Bench::empty();
    bench.clock.set(given::at("2026-01-20T00:00:00Z"));
    let readings: Vec<Reading> = (0..40)
        .map(|minute| reading("a", minute, if minute < 25 { "lost" } else { "s" }))
        .collect();
    bench.store.put_readings(&readings, None, &invocation()).await;
    bench.note_rooms(&readings).await;
    given::register_devices_of(&bench.store, &readings).await;
    let s = "s".parse().expect("an id");
    given::register_room(&bench.store, "s", readings[0].at).await;
    let device = given::device_of(&readings);
    let to = given::at("2026-01-19T00:00:00Z");
    for is_folded in [false, true] {
        if is_folded {
            roll_up(&bench.store, &device, &readings, Zone::UTC, to).await;
            given::seal(&bench.store, "UTC", to).await;
        }
        for condition in [
            "room = 'lost'",
            "room =~ /^(lost|attic)$/",
            "room =~ /^los/",
            "room != 's'",
            "room != '' AND room != 's'",
            "(room = 'attic' OR room = 'lost') AND device = 'a'",
        ] {
            let query = format!("SELECT count(value) FROM temperature WHERE {condition}");
            let answer = asked(&bench, &[("db", "home"), ("q", &query)]).await.json();
            let count = &answer["results"][0]["series"][0]["values"][0][1];
            assert_eq!(*count, json!(25), "{condition}: {answer}");
        }
    }
    assert_eq!(device.place().room(), Some(&s));
}

#[tokio::test]
async fn a_tag_that_is_no_part_of_the_id_is_that_of_each_reading() {
    let bench = Bench::empty();
    bench.clock.set(given::at("2026-01-20T00:00:00Z"));
    let moved = |id: &str| [reading(id, 0, "a"), reading(id, 5, "b"), reading(id, 9, "b")];
    // Of the second, the room is a part of the id: its readings were in another room since somebody said so.
    for (id, taught) in [("t1", "b"), ("t2:a", "a")] {
        let readings = moved(id);
        bench.store.put_readings(&readings, None, &invocation()).await;
        bench.note_rooms(&readings).await;
        let tags = [("sensor", id), ("room", taught)].map(|(name, it)| (name.into(), it.into()));
        let field = SourceField { measurement: "air".into(), field: "t".into() };
        let fields = [(given::metric("temperature"), field)].into();
        let source = domain::Source { tags: tags.into(), fields, ..domain::Source::default() };
        let device = given::device_of(&readings).changed(|it| it.source = source).expect("one");
        bench.store.register_device(&device, &invocation()).await.expect("memory");
    }
    let counts = async |query: &str| {
        let answer = asked(&bench, &[("db", "home"), ("q", query)]).await.json();
        let series = answer["results"][0]["series"].as_array().cloned().unwrap_or_default();
        let of = |it: &Value| (it["tags"]["room"].clone(), it["values"][0][1].clone());
        json!(series.iter().map(of).collect::<Vec<_>>())
    };
    let count = |rest: &str| format!("SELECT count(t) FROM air WHERE sensor = {rest}");
    assert_eq!(counts(&count("'t1' GROUP BY room")).await, json!([["a", 1], ["b", 2]]));
    assert_eq!(counts(&count("'t1' AND room = 'a'")).await, json!([[null, 1]]));
    assert_eq!(counts(&count("'t1' AND room = 'c'")).await, json!([]));
    assert_eq!(counts(&count("'t2:a' GROUP BY room")).await, json!([["a", 3]]));
    assert_eq!(counts(&count("'t2:a' AND room = 'b'")).await, json!([]));
}

#[tokio::test]
async fn what_roomtide_lacks_is_refused_by_name() {
    let bench = home(None).await;
    for (query, name) in [
        ("SELECT sample(value, 2) FROM temperature", "sample()"),
        ("SELECT holt_winters(mean(value), 2, 2) FROM temperature", "holt_winters()"),
        ("DROP MEASUREMENT temperature", "DROP MEASUREMENT"),
        ("DELETE FROM temperature", "DELETE"),
        ("SELECT value INTO x FROM temperature", "SELECT INTO"),
        ("CREATE USER x WITH PASSWORD 'y'", "CREATE USER"),
    ] {
        let error = error_of(&bench, query).await;
        assert_eq!(error, format!("{name} is not supported by Roomtide"), "{query}");
    }
    let two = "SELECT foo(value) FROM temperature; SHOW DATABASES";
    let answer = asked(&bench, &[("db", "home"), ("q", two)]).await.json();
    assert_eq!(answer["results"][0]["error"], "undefined function foo()");
    assert_eq!(answer["results"][1], json!({"statement_id": 1, "error": "not executed"}));
}

/// A device that line protocol wrote: the metrics of its measurement's fields, and readings a minute apart.
async fn write_lines(
    bench: &Bench,
    id: &str,
    tags: &[(&str, &str)],
    fields: &[(&str, &str, &str)],
    rows: &[&[Option<i64>]],
) {
    let metric = |name: &str| -> MetricName { given::metric(name) };
    let id: DeviceId = given::device(id);
    let mut readings = Vec::new();
    for (n, row) in rows.iter().enumerate() {
        let cells = fields.iter().zip(*row).filter_map(|((name, ..), value)| {
            Some((metric(name), Decimal::parse(&(*value)?.to_string()).expect("a number")))
        });
        let at = 1_768_147_200_000 + 60_000 * i64::try_from(n).expect("a few");
        let at = Timestamp::from_millis(at).expect("a time");
        let metrics: BTreeMap<_, _> = cells.collect();
        if !metrics.is_empty() {
            readings.push(Reading::new(id.clone(), at, None, metrics).expect("a reading"));
        }
    }
    bench.store.put_readings(&readings, None, &invocation()).await;
    let field = |(name, measurement, field): &(&str, &str, &str)| {
        let [measurement, field] = [measurement, field].map(|it| (*it).to_owned());
        (metric(name), SourceField { measurement, field })
    };
    let tags = tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let fields = fields.iter().map(field).collect();
    let source = domain::Source { tags, fields, ..domain::Source::default() };
    let device = given::device_of(&readings).changed(|it| it.source = source).expect("a device");
    bench.store.register_device(&device, &invocation()).await.expect("memory");
}

/// The values of the one series of an answer, without their times.
async fn values_of(bench: &Bench, query: &str) -> Value {
    let answer = asked(bench, &[("db", "home"), ("epoch", "ms"), ("q", query)]).await.json();
    let rows = answer["results"][0]["series"][0]["values"].as_array().cloned();
    let rows = rows.unwrap_or_else(|| panic!("{query}: {answer}"));
    json!(rows.iter().map(|row| row.as_array().expect("a row")[1..].to_vec()).collect::<Vec<_>>())
}

/// `pw,device=x value=12,quality=0,volts=230`, with points that lack a field: two devices hold what is one series.
#[tokio::test]
async fn the_fields_of_a_point_are_joined_again() {
    let bench = Bench::empty();
    bench.clock.set(given::at("2026-01-20T00:00:00Z"));
    let tags = [("device", "x")];
    let values = [Some(12), Some(13), None, Some(15)];
    let whole: Vec<[Option<i64>; 1]> = values.iter().map(|it| [*it]).collect();
    let whole: Vec<&[Option<i64>]> = whole.iter().map(|it| &it[..]).collect();
    write_lines(&bench, "x", &tags, &[("pw", "pw", "value")], &whole).await;
    let rest: [&[Option<i64>]; 4] =
        [&[Some(0), Some(230)], &[Some(1), Some(231)], &[Some(1), Some(232)], &[Some(1), None]];
    let fields = [("quality", "pw", "quality"), ("volts", "pw", "volts")];
    write_lines(&bench, "x::pw", &tags, &fields, &rest).await;
    // A device of the same tags behind a prefix is a series of its own.
    write_lines(&bench, "cabin:x", &tags, &[("pw", "pw", "value")], &[&[Some(99)]]).await;
    for (query, expected) in [
        ("SELECT value FROM pw WHERE quality = 1", json!([[13], [15]])),
        ("SELECT sum(value) FROM pw WHERE quality = 1", json!([[28]])),
        ("SELECT value * quality FROM pw WHERE volts > 0", json!([[0], [13], [null]])),
        (
            "SELECT * FROM pw WHERE value < 99 OR volts > 0",
            json!([["x", 0, 12, 230], ["x", 1, 13, 231], ["x", 1, null, 232], ["x", 1, 15, null],]),
        ),
        ("SELECT last(value), volts, quality FROM pw", json!([[15, null, 1]])),
        ("SELECT first(quality), value FROM pw", json!([[0, 12]])),
        ("SELECT max(volts), value FROM pw", json!([[232, null]])),
        (
            "SELECT value, volts FROM pw ORDER BY time DESC LIMIT 2",
            json!([[15, null], [null, 232]]),
        ),
        ("SELECT count(value), count(quality) FROM pw", json!([[4, 4]])),
        (
            "SELECT mean(v) FROM (SELECT value * quality AS v FROM pw WHERE quality = 1)",
            json!([[14]]),
        ),
    ] {
        assert_eq!(values_of(&bench, query).await, expected, "{query}");
    }
}

/// Points of several series come out of a subquery in the order of time, as the real server answers: `LIMIT`, `ORDER BY`
/// and what looks at neighbours depend on it.
#[tokio::test]
async fn transformed_points_of_a_subquery_come_in_the_order_of_time() {
    let bench = Bench::empty();
    bench.clock.set(given::at("2026-01-20T00:00:00Z"));
    let rows = |values: [Option<i64>; 8]| values.map(|it| [it]);
    let alpha = rows([Some(20), None, Some(21), None, Some(22), None, Some(23), None]);
    let beta = rows([None, Some(10), None, Some(12), None, Some(14), None, Some(16)]);
    for (name, rows) in [("alpha", &alpha), ("beta", &beta)] {
        let rows: Vec<&[Option<i64>]> = rows.iter().map(<[_; 1]>::as_slice).collect();
        write_lines(&bench, name, &[("host", name)], &[("t", "t", "value")], &rows).await;
    }
    for (query, expected) in [
        (
            "SELECT cumulative_sum(x) FROM (SELECT difference(value) AS x FROM t GROUP BY host)",
            json!([[1], [3], [4], [6], [7], [9]]),
        ),
        (
            "SELECT x FROM (SELECT difference(value) AS x FROM t GROUP BY host) LIMIT 2",
            json!([[1], [2]]),
        ),
        (
            "SELECT x FROM (SELECT cumulative_sum(value) AS x FROM t GROUP BY host) ORDER BY time DESC LIMIT 3",
            json!([[16], [23], [30]]),
        ),
    ] {
        assert_eq!(values_of(&bench, query).await, expected, "{query}");
    }
}

/// `inv,host=a FOUT=50` and later `inv,host=a Fout=60` are one metric; a dashboard may ask by either name.
#[tokio::test]
async fn a_field_is_found_whatever_its_case() {
    let bench = Bench::empty();
    bench.clock.set(given::at("2026-01-20T00:00:00Z"));
    let rows: [&[Option<i64>]; 2] = [&[Some(50)], &[Some(60)]];
    write_lines(&bench, "a::inv", &[("host", "a")], &[("fout", "inv", "FOUT")], &rows).await;
    write_lines(&bench, "b::inv", &[("host", "b")], &[("fout", "inv", "Fout")], &[&[Some(70)]])
        .await;
    for (query, expected) in [
        ("SELECT Fout FROM inv WHERE host = 'a'", json!([[50], [60]])),
        ("SELECT FOUT FROM inv WHERE host = 'a'", json!([[50], [60]])),
        ("SELECT max(fout) FROM inv", json!([[70]])),
        ("SELECT mean(FOUT) FROM inv WHERE Fout > 55", json!([[65]])),
        ("SELECT max(f) FROM (SELECT fOUT AS f FROM inv)", json!([[70]])),
    ] {
        assert_eq!(values_of(&bench, query).await, expected, "{query}");
    }
    let none = asked(&bench, &[("db", "home"), ("q", "SELECT Fou FROM inv")]).await;
    assert_eq!(none.text, "{\"results\":[{\"statement_id\":0}]}\n");
}

/// A field whose name has a unit had a metric of that name before it was understood.
#[tokio::test]
async fn a_field_with_a_unit_is_the_metric_that_it_is_now() {
    let bench = Bench::empty();
    bench.clock.set(given::at("2026-01-20T00:00:00Z"));
    let changed = [("a", "temperature_c", "temperature_C"), ("b", "atmp", "atmp")];
    for (id, old, field) in changed {
        let fields = [(old, "sky", field), ("temperature", "sky", field)];
        let rows: [&[Option<i64>]; 2] = [&[Some(19), None], &[None, Some(20)]];
        write_lines(&bench, id, &[("id", id)], &fields, &rows).await;
    }
    for (id, _, field) in changed {
        let query = format!("SELECT {field} FROM sky WHERE id = '{id}'");
        assert_eq!(values_of(&bench, &query).await, json!([[20]]), "{query}");
    }
}

/// Times at the edges of what is representable, in every place where a query may have them.
#[tokio::test]
async fn windows_far_away_are_answered_or_refused() {
    let bench = home(Some(("UTC", "2026-01-15T00:00:00Z"))).await;
    let times = [
        "9223372036854775806",
        "-9223372036854775808",
        "0",
        "7200000000s",
        "9200000000s",
        "'2262-04-11T00:00:00Z'",
        "'1678-01-01T00:00:00Z'",
        "'9999-12-31T23:59:59Z'",
        "now() + 36500d",
    ];
    for (from, to) in times.iter().flat_map(|from| times.iter().map(move |to| (from, to))) {
        for rest in [
            "GROUP BY time(36500d, -36499d)",
            "GROUP BY time(1w) fill(linear) tz('Europe/Berlin')",
            "GROUP BY time(5h, 3h) fill(previous) ORDER BY time DESC tz('Pacific/Apia')",
            "GROUP BY device ORDER BY time DESC",
        ] {
            let range = format!("time >= {from} AND time <= {to}");
            for columns in
                ["mean(value)", "elapsed(last(value)), integral(value, 1ns)", "top(value, 2)"]
            {
                let query = format!("SELECT {columns} FROM temperature WHERE {range} {rest}");
                let around = format!(
                    "SELECT sum(mean) FROM (SELECT mean(value) FROM temperature) WHERE {range} {rest}"
                );
                for query in [query, around] {
                    let answer = asked(&bench, &[("db", "home"), ("q", &query)]).await;
                    assert_eq!(answer.status, 200, "{query}: {}", answer.text);
                }
            }
        }
    }
}

#[tokio::test]
async fn an_answer_has_the_form_that_is_asked_for() {
    let bench = home(None).await;
    let query = [("db", "home"), ("q", "SELECT value FROM humidity"), ("epoch", "s")];
    let whole = asked(&bench, &query).await;
    assert_eq!(whole.header("x-influxdb-version"), "1.8.10");
    assert_eq!(
        whole.text,
        "{\"results\":[{\"statement_id\":0,\"series\":[{\"name\":\"humidity\",\"columns\":[\"time\",\"value\"],\
         \"values\":[[1768147200,45],[1768147200,50.5],[1768147500,46]]}]}]}\n"
    );

    // Clients that ask for several documents read until the end, and one is an end.
    let chunked = [&query[..], &[("chunked", "true"), ("chunk_size", "2")]].concat();
    assert_eq!(asked(&bench, &chunked).await.text, whole.text);
    let url = "/influx/query?db=home&epoch=s&q=SELECT+value+FROM+humidity";
    let csv = bench.send("GET", url, json!({"accept": "application/csv"}), "").await;
    assert_eq!((csv.header("content-type"), &csv.text), ("application/json", &whole.text));

    let pretty = [&query[..], &[("pretty", "true")]].concat();
    let text = asked(&bench, &pretty).await.text;
    assert!(
        text.starts_with("{\n    \"results\": [\n        {\n            \"statement_id\": 0,"),
        "{text}"
    );
}

#[tokio::test]
async fn a_query_comes_in_a_form_as_well_and_unknown_parameters_are_ignored() {
    let bench = home(None).await;
    let form = "q=SELECT+last(value)+FROM+humidity%3B&epoch=s&whatever=1";
    let answer = bench.send("POST", "/query?db=home&u=x&rp=", json!({}), form).await;
    let series = &answer.json()["results"][0]["series"][0];
    assert_eq!(series["values"], json!([[1_768_147_500, 46]]), "{}", answer.text);
    let url = "/query?q=CREATE+DATABASE+%22x%22";
    assert_eq!(
        bench.send("POST", url, json!({}), "").await.text,
        "{\"results\":[{\"statement_id\":0}]}\n"
    );
    let twice = "/query?q=SHOW%20DATABASES&q=SELEC";
    assert_eq!(bench.get(twice).await.status, 200, "the first counts");
    let refused = bench.send("POST", "/query?db=home", json!({}), "q=SELEC").await;
    assert_eq!(refused.status, 400);
    assert!(refused.header("x-influxdb-error").starts_with("error parsing query: found SELEC"));
}

#[tokio::test]
async fn a_token_that_writes_may_ask_for_databases_only() {
    let bench = Bench::new_with(true).await;
    let scope = Scope::Write(["a".parse().expect("an id")].into());
    bench.store.add_token(&given::token("writer", scope), &invocation()).await.expect("memory");
    let headers = || json!({"authorization": format!("Token {}", given::secret("writer"))});
    for (query, status) in [
        ("SHOW+DATABASES", 200),
        ("CREATE+DATABASE+x", 200),
        ("SHOW+MEASUREMENTS", 403),
        ("SHOW+DATABASES;SELECT+*+FROM+t", 403),
    ] {
        let answer = bench.send("GET", &format!("/query?db=x&q={query}"), headers(), "").await;
        assert_eq!(answer.status, status, "{query}: {}", answer.text);
    }
    assert_eq!(bench.get("/query?db=x&q=SHOW+DATABASES").await.status, 401);
}
