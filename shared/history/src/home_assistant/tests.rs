//! Tests of Home Assistant's databases: schemas as they were, written by SQLite here.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::sync::mpsc;
use std::thread;

use rusqlite::Connection;
use tempfile::{TempDir, tempdir};

use super::*;
use crate::point::{Point, Way};

/// Schema 25: attributes beside the states, times as texts.
const OLD: &str = "
    CREATE TABLE schema_changes (change_id INTEGER PRIMARY KEY, schema_version INTEGER, changed DATETIME);
    INSERT INTO schema_changes (schema_version) VALUES (25);
    CREATE TABLE state_attributes (attributes_id INTEGER PRIMARY KEY, hash BIGINT, shared_attrs TEXT);
    CREATE TABLE states (state_id INTEGER PRIMARY KEY, domain VARCHAR(64), entity_id VARCHAR(255), state VARCHAR(255),
        attributes TEXT, event_id INTEGER, last_changed DATETIME, last_updated DATETIME, old_state_id INTEGER,
        attributes_id INTEGER);
    CREATE TABLE statistics_meta (id INTEGER PRIMARY KEY, statistic_id VARCHAR(255), source VARCHAR(32),
        unit_of_measurement VARCHAR(255), has_mean BOOLEAN, has_sum BOOLEAN, name VARCHAR(255));
    CREATE TABLE statistics (id INTEGER PRIMARY KEY, created DATETIME, metadata_id INTEGER, start DATETIME, mean FLOAT,
        min FLOAT, max FLOAT, last_reset DATETIME, state FLOAT, sum FLOAT);";

/// Schema 50: entities in a table of their own, seconds, the kind of a mean; old columns stay and are empty.
const NEW: &str = "
    CREATE TABLE schema_changes (change_id INTEGER PRIMARY KEY, schema_version INTEGER, changed DATETIME);
    INSERT INTO schema_changes (schema_version) VALUES (43), (50);
    CREATE TABLE state_attributes (attributes_id INTEGER PRIMARY KEY, hash BIGINT, shared_attrs TEXT);
    CREATE TABLE states_meta (metadata_id INTEGER PRIMARY KEY, entity_id VARCHAR(255));
    CREATE TABLE states (state_id INTEGER PRIMARY KEY, entity_id CHAR(0), state VARCHAR(255), attributes CHAR(0),
        last_updated CHAR(0), last_updated_ts FLOAT, attributes_id INTEGER, metadata_id INTEGER);
    CREATE TABLE statistics_meta (id INTEGER PRIMARY KEY, statistic_id VARCHAR(255), source VARCHAR(32),
        unit_of_measurement VARCHAR(255), has_mean BOOLEAN, has_sum BOOLEAN, name VARCHAR(255), mean_type INTEGER);
    CREATE TABLE statistics (id INTEGER PRIMARY KEY, metadata_id INTEGER, start CHAR(0), start_ts FLOAT, mean FLOAT,
        min FLOAT, max FLOAT, last_reset_ts FLOAT, state FLOAT, sum FLOAT);
    CREATE TABLE statistics_short_term (id INTEGER PRIMARY KEY, metadata_id INTEGER, start_ts FLOAT, mean FLOAT);";

/// 2026-01-11T16:00:00Z.
const AT: i64 = 1_768_147_200;

/// The points as lines, and the notes.
fn read(schema: &str, rows: &str, storage: Storage) -> (Vec<String>, String) {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(&format!("{schema}{rows}")).unwrap();
    let (points, notes) = source(Database::of(connection), storage).unwrap().into_points();
    let line = |point: anyhow::Result<Point>| {
        let point = point.unwrap();
        let fields: Vec<_> =
            point.fields.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(point.nanos % 1_000_000, 0);
        format!("{} {} {}", point.series(), fields.join(","), point.nanos / 1_000_000 - AT * 1_000)
    };
    let lines = points.map(line).collect();
    (lines, notes.to_string())
}

const HOURS: &str = include_str!("tests/hours.sql");

#[test]
fn the_points_of_a_database_are_those_of_its_case() {
    let text = include_str!("tests/cases.txt");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("//"));
    let (mut rows, mut shown, mut expected) = (String::new(), "", Vec::new());
    let check = |shown: &str, rows: &str, expected: &[&str]| {
        let schema = if shown.starts_with("OLD") { OLD } else { NEW };
        let (points, notes) = read(schema, rows, Storage::default());
        let is_about = |line: &&str| line.starts_with("notes ") || line.starts_with("lacks ");
        let (about, lines): (Vec<&str>, Vec<&str>) = expected.iter().copied().partition(is_about);
        assert_eq!(points, lines, "{shown}");
        let wanted: Vec<&str> =
            about.iter().filter_map(|line| line.strip_prefix("notes ")).collect();
        match wanted.split_last() {
            Some((&"and nothing else", wanted)) => assert_eq!(notes, wanted.join("\n"), "{shown}"),
            _ => assert!(wanted.iter().all(|note| notes.contains(note)), "{shown}: {notes}"),
        }
        let mut lacking = about.iter().filter_map(|line| line.strip_prefix("lacks "));
        assert!(!lacking.any(|note| notes.contains(note)), "{shown}: {notes}");
    };

    for line in lines.chain(["END"]) {
        if let Some(row) = line.strip_prefix("    |") {
            rows += row;
        } else if let Some(line) = line.strip_prefix("    ") {
            expected.push(line);
        } else {
            if !shown.is_empty() {
                check(shown, &rows, &expected);
            }
            (shown, expected) = (line, Vec::new());
            rows = if line.contains(" HOURS:") { HOURS.to_owned() } else { String::new() };
        }
    }
}

#[test]
fn home_assistant_s_own_sums_are_noted_and_not_imported() {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(&format!("{NEW}{HOURS}")).unwrap();
    let (points, notes) =
        source(Database::of(connection), Storage::default()).unwrap().into_points();
    let points: Vec<Point> = points.collect::<anyhow::Result<_>>().unwrap();
    let sums = notes.own_sums();
    let of = |id: &str| {
        let sum = &sums[id];
        let months = sum.months.iter().map(|(month, (_, sum))| format!("{month} {sum}"));
        (sum.unit.clone().unwrap(), sum.first.1.to_string(), months.collect::<Vec<_>>())
    };
    let is = |unit: &str, first: &str, month: &str| {
        (unit.to_owned(), first.to_owned(), vec![month.to_owned()])
    };
    assert_eq!(of("sensor.meter"), is("Wh", "0", "2026-01 2"), "also of hours that have states");
    assert_eq!(of("tibber:consumption"), is("kWh", "0", "2026-01 4"));
    assert_eq!(sums.len(), 2, "a temperature has none");
    let hourly = points.iter().filter(|point| point.hour.is_some_and(|hour| hour.has_means_only));
    let entities: BTreeSet<String> = hourly.filter_map(Point::entity).collect();
    assert_eq!(entities.into_iter().collect::<Vec<_>>(), ["sensor.outside", "sensor.wind"]);
}

/// `SQLite` keeps a text in a column of numbers.
#[test]
fn a_row_that_cannot_be_read_is_named_and_the_others_are_read() {
    let connection = Connection::open_in_memory().unwrap();
    let rows = format!(
        "INSERT INTO schema_changes (schema_version) VALUES ('new');
         INSERT INTO states_meta VALUES (1, 'sensor.a');
         INSERT INTO states (state_id, metadata_id, state, last_updated_ts, attributes_id)
             VALUES (5, 1, '1', 'text', NULL), (6, 1, '2', {AT}, 'none'), (7, 1, '3', {AT}, NULL);
         INSERT INTO statistics_meta (id, statistic_id, source, has_mean)
             VALUES (1, 'sensor.b', 'recorder', 1), (2, 'sensor.c', 'recorder', 'yes');
         INSERT INTO statistics (id, metadata_id, start_ts, mean)
             VALUES (8, 1, {AT}, 'warm'), (9, 1, {AT}, 20.5), (10, 2, {AT}, 20.5);"
    );
    connection.execute_batch(&format!("{NEW}{rows}")).unwrap();
    let (points, notes) =
        source(Database::of(connection), Storage::default()).unwrap().into_points();
    let values = points.map(|point| point.unwrap().fields[0].1.clone());
    assert_eq!(values.collect::<Vec<_>>(), ["3", "20.5"]);
    assert_eq!(
        notes.take_refusals().shown(),
        [
            "state 5 of sensor.a cannot be read: its last_updated_ts is a value of type text",
            "state 6 of sensor.a cannot be read: its attributes_id is a value of type text",
            "the description of the statistics sensor.c cannot be read: its has_mean is a value of type text",
            "hour 8 of sensor.b cannot be read: its mean is a value of type text",
        ]
    );
}

#[test]
fn an_area_is_the_room_and_the_entity_alone_the_device() {
    let entities = br#"{"data": {"entities": [{"entity_id": "sensor.outside", "original_name": "Out", "area_id": "g"}]}}"#;
    let areas = br#"{"data": {"areas": [{"id": "g", "name": "My garden"}]}}"#;
    let storage = Storage::of(&[Some(entities.to_vec()), None, Some(areas.to_vec())]).unwrap();
    let (lines, _) = read(NEW, HOURS, storage.clone());
    let outside: Vec<_> = lines.iter().filter(|line| line.contains("outside")).collect();
    let expected = "°C,area=My\\ garden,domain=sensor,entity_id=outside value=20,friendly_name_str=\"Out\",state_class_str=\"measurement\"";
    assert!(outside[0].starts_with(expected), "{outside:?}");
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(&format!("{NEW}{HOURS}")).unwrap();
    let points = source(Database::of(connection), storage).unwrap().into_points().0;
    let ways: Vec<_> = points
        .map(|point| point.unwrap())
        .map(|it| (it.tags.contains("outside"), it.way))
        .collect();
    assert!(ways.contains(&(true, Way::Entity)) && ways.contains(&(false, Way::Plain)), "{ways:?}");
    assert!(
        !ways.contains(&(true, Way::Plain)) && !ways.contains(&(false, Way::Entity)),
        "{ways:?}"
    );
}

#[test]
fn a_database_in_use_is_copied_with_its_log_and_another_s_is_refused() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("home-assistant_v2.db");
    let writer = Connection::open(&path).unwrap();
    writer
        .execute_batch(&format!(
            "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; {NEW}{HOURS}"
        ))
        .unwrap();
    let temporary = tempdir().unwrap();
    let copy = Database::open(&path, TempDir::new_in(&temporary).unwrap()).unwrap();
    writer.execute_batch("DELETE FROM states; DELETE FROM statistics").unwrap();
    let points = source(copy, Storage::default()).unwrap().into_points().0.count();
    assert_eq!(points, 13);
    let left = std::fs::read_dir(&temporary).unwrap().count();
    assert_eq!(left, 0, "with SQLite's files beside the copy");
    drop(writer);
    let other = directory.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    let error = source(Database::open(&other, tempdir().unwrap()).unwrap(), Storage::default())
        .err()
        .unwrap();
    assert!(error.to_string().contains("not Home Assistant's"), "{error}");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.truncate(4_096);
    std::fs::write(&other, bytes).unwrap();
    let damaged = Database::open(&other, tempdir().unwrap()).and_then(|database| {
        source(database, Storage::default())?.into_points().0.collect::<anyhow::Result<Vec<_>>>()
    });
    assert!(damaged.is_err());
}

/// A backup of somebody else may have a view whose rows have no end.
#[test]
fn a_view_is_no_table_of_home_assistant() {
    let connection = Connection::open_in_memory().unwrap();
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS state_id, '1' AS state FROM n";
    connection.execute_batch(&format!("CREATE VIEW states AS {endless}")).unwrap();
    let error = source(Database::of(connection), Storage::default()).err().unwrap();
    assert!(error.to_string().contains("it has no table states"), "{error}");
}

#[test]
fn a_database_that_somebody_writes_to_is_one_moment_of_it() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("home-assistant_v2.db");
    let writer = Connection::open(&path).unwrap();
    writer
        .execute_batch(&format!(
            "PRAGMA journal_mode = WAL; {NEW}
             INSERT INTO states_meta VALUES (1, 'sensor.a'), (2, 'sensor.b');"
        ))
        .unwrap();
    let (stop, stopped) = mpsc::channel::<()>();
    let (begun, has_begun) = mpsc::channel();
    let thread = thread::spawn(move || {
        let mut n = 0;
        // Both entities, or neither of them.
        while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
            let at = AT + n;
            writer
                .execute_batch(&format!(
                    "BEGIN; INSERT INTO states (metadata_id, state, last_updated_ts) VALUES (1, '{n}', {at});
                     INSERT INTO states (metadata_id, state, last_updated_ts) VALUES (2, '{n}', {at}); COMMIT;"
                ))
                .unwrap();
            n += 1;
            if n == 50 {
                begun.send(()).unwrap();
            }
        }
        n
    });
    has_begun.recv().unwrap();
    for _ in 0..5 {
        let source =
            source(Database::open(&path, tempdir().unwrap()).unwrap(), Storage::default()).unwrap();
        let points: Vec<Point> = source.into_points().0.collect::<anyhow::Result<_>>().unwrap();
        let of = |name: &str| points.iter().filter(|it| it.tags.ends_with(name)).count();
        assert!(of("entity_id=a") >= 50);
        assert_eq!(of("entity_id=a"), of("entity_id=b"));
    }
    stop.send(()).unwrap();
    assert!(thread.join().unwrap() >= 50);
}

#[test]
fn a_database_with_a_broken_page_is_an_error_and_no_part_of_it() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("home-assistant_v2.db");
    let writer = Connection::open(&path).unwrap();
    writer
        .execute_batch(&format!(
            "{NEW} INSERT INTO states_meta VALUES (1, 'sensor.a');
             WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 20000)
             INSERT INTO states (metadata_id, state, last_updated_ts) SELECT 1, n, {AT} + n FROM n;"
        ))
        .unwrap();
    drop(writer);
    let whole = std::fs::read(&path).unwrap();
    let page = usize::from(u16::from_be_bytes([whole[16], whole[17]]));
    let pages = whole.len() / page;
    assert!(pages > 50);
    let read = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let source = source(Database::open(&path, tempdir().unwrap())?, Storage::default())?;
        source.into_points().0.collect::<anyhow::Result<Vec<_>>>()
    };
    assert_eq!(read(&whole).unwrap().len(), 20_000);
    let mut broken = whole.clone();
    broken[pages / 2 * page..][..page].fill(0xff);
    let error = format!("{:#}", read(&broken).unwrap_err());
    let expected = format!("{} cannot be read; is the database damaged?", path.display());
    assert!(error.starts_with(&expected), "{error}");
    // A file that ends early.
    let error = format!("{:#}", read(&whole[..pages / 2 * page]).unwrap_err());
    assert!(error.contains("damaged") || error.contains("malformed"), "{error}");
    // A compressed one: the directory is not to blame.
    let mut packed = flate2::read::GzEncoder::new(&whole[..], flate2::Compression::fast());
    let mut bytes = Vec::new();
    packed.read_to_end(&mut bytes).unwrap();
    let cut = flate2::read::GzDecoder::new(&bytes[..bytes.len() / 2]);
    let cut = Database::unpack(cut, Path::new("cut.db.gz"), tempdir().unwrap());
    let error = format!("{:#}", cut.err().unwrap());
    assert!(error.starts_with("cut.db.gz cannot be read: "), "{error}");
}
