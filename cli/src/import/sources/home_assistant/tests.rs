//! Tests of Home Assistant's databases: schemas as they were, written by SQLite here.

use std::sync::mpsc;
use std::thread;

use rusqlite::Connection;
use tempfile::{TempDir, tempdir};

use super::*;
use crate::import::sources::{Point, Way};

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
    let Source { points, notes, .. } = source(Database::of(connection), storage).unwrap();
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

#[test]
fn a_half_migrated_database_has_rows_of_both_schemas() {
    let rows = format!(
        "INSERT INTO state_attributes VALUES (1, 0, '{{\"unit_of_measurement\": \"°C\", \"device_class\": \"temperature\"}}');
         ALTER TABLE states ADD COLUMN last_updated_ts FLOAT;
         ALTER TABLE states ADD COLUMN metadata_id INTEGER;
         CREATE TABLE states_meta (metadata_id INTEGER PRIMARY KEY, entity_id VARCHAR(255));
         INSERT INTO states_meta VALUES (7, 'sensor.new');
         INSERT INTO states (entity_id, state, attributes, last_updated) VALUES
            ('light.hall', 'on', '{{\"brightness\": 25, \"friendly_name\": \"Hall \\\"1\\\"\"}}', '2026-01-11 16:00:00.250000');
         INSERT INTO states (entity_id, state, attributes_id, last_updated) VALUES
            ('sensor.old', '21.50', 1, '2026-01-11 16:00:01.000000');
         INSERT INTO states (metadata_id, state, attributes_id, last_updated_ts) VALUES (7, '-3', 1, {AT}.5);
         INSERT INTO states (entity_id, state, last_updated) VALUES ('sensor.old', NULL, '2026-01-11 16:00:02.000000'),
            ('sensor.old', 'unavailable', '2026-01-11 16:00:03.000000'), ('sensor.old', 'nan', '2026-01-11 16:00:03.000000'),
            ('weather.home', 'sunny', '2026-01-11 16:00:03.000000'), (NULL, '1', '2026-01-11 16:00:03.000000'),
            ('sensor.old', '1', NULL);",
    );
    let (lines, notes) = read(OLD, &rows, Storage::default());
    assert_eq!(
        lines,
        [
            "light.hall,domain=light,entity_id=hall value=1,brightness=25,friendly_name_str=\"Hall \\\"1\\\"\" 250",
            "°C,domain=sensor,entity_id=old value=21.5,device_class_str=\"temperature\" 1000",
            "°C,domain=sensor,entity_id=new value=-3,device_class_str=\"temperature\" 500",
        ]
    );
    let expected = [
        "database     Home Assistant, schema 25",
        "left out     1 states of entities that were removed",
        "left out     1 states that are no finite numbers",
        "left out     1 states that are texts, without a number in their attributes",
        "left out     1 states that are unknown or unavailable",
        "left out     1 states without a time",
        "left out     1 states without an entity",
    ];
    assert_eq!(notes, expected.join("\n"));
}

/// Three hours of a meter in Wh, a temperature, an angle and a supplier, and states from the third hour on.
fn hours() -> String {
    let mut rows = format!(
        "INSERT INTO state_attributes VALUES (1, 0, '{{\"unit_of_measurement\": \"kWh\", \"device_class\": \"energy\", \
            \"state_class\": \"total_increasing\"}}');
         INSERT INTO states_meta VALUES (1, 'sensor.meter');
         INSERT INTO states (metadata_id, state, attributes_id, last_updated_ts) VALUES (1, '5', 1, {});
         INSERT INTO statistics_short_term (start_ts) VALUES (1), (2);
         INSERT INTO statistics_meta VALUES (1, 'sensor.meter', 'recorder', 'Wh', 0, 1, NULL, 0),
            (2, 'sensor.outside', 'recorder', '°C', 1, 0, NULL, 1), (3, 'sensor.wind', 'recorder', '°', NULL, 0, NULL, 2),
            (4, 'tibber:consumption', 'tibber', 'kWh', 0, 1, 'Tibber', 0), (5, 'sensor.none', 'recorder', NULL, 0, 0, NULL, 0);",
        AT + 2 * 3_600 + 60,
    );
    for (hour, sum) in [(0, 1.5), (1, 2.0), (2, 4.0)] {
        let start = AT + hour * 3_600;
        let state = 1_000 + hour * 500;
        rows += &format!(
            "INSERT INTO statistics (metadata_id, start_ts, state, sum) VALUES (1, {start}, {state}, {hour}),
                (4, {start}, {}, {sum});
             INSERT INTO statistics (metadata_id, start_ts, mean, min, max) VALUES (2, {start}, 20.{hour}, 1, 30),
                (3, {start}, 35{hour}.5, NULL, NULL);",
            [1.5, 0.5, 2.0][usize::try_from(hour).unwrap()],
        );
    }
    rows
}

#[test]
fn the_mean_of_a_power_stands_at_each_quarter_of_its_hour() {
    let rows = format!(
        "INSERT INTO statistics_meta VALUES (1, 'sensor.plug', 'recorder', 'W', 1, 0, NULL, 1);
         INSERT INTO statistics (metadata_id, start_ts, mean) VALUES (1, {AT}, 120.5), (1, {}, 60);",
        AT + 3_600
    );
    let (lines, _) = read(NEW, &rows, Storage::default());
    let mean = "state_class_str=\"measurement\"";
    let quarters = [120.5, 120.5, 120.5, 120.5, 60.0, 60.0, 60.0, 60.0].into_iter().zip(0..);
    let expected = quarters.map(|(value, n)| {
        format!("W,domain=sensor,entity_id=plug value={value},{mean} {}", n * 900_000)
    });
    assert_eq!(lines, expected.collect::<Vec<_>>());
}

#[test]
fn a_series_has_means_if_the_old_or_the_new_column_says_so() {
    // Schema 49 adds `mean_type`: before it is filled, with both, and after the old column was emptied.
    for (has_mean, mean_type, expected) in [
        ("1", "0", 1),
        ("1", "NULL", 1),
        ("1", "1", 1),
        ("NULL", "1", 1),
        ("NULL", "2", 1),
        ("0", "0", 0),
        ("NULL", "0", 0),
    ] {
        let rows = format!(
            "INSERT INTO statistics_meta VALUES (1, 'sensor.a', 'recorder', '°C', {has_mean}, 0, NULL, {mean_type});
             INSERT INTO statistics (metadata_id, start_ts, mean) VALUES (1, {AT}, 20.5);"
        );
        let (lines, notes) = read(NEW, &rows, Storage::default());
        assert_eq!(lines.len(), expected, "{has_mean} {mean_type}: {lines:?}");
        let is_left_out = notes.contains("1 statistics without state and mean: sensor.a");
        assert_eq!(is_left_out, expected == 0, "{has_mean} {mean_type}: {notes}");
    }
}

#[test]
fn statistics_fill_the_hours_without_a_state() {
    let (lines, notes) = read(NEW, &hours(), Storage::default());
    let meter = "kWh,domain=sensor,entity_id=meter";
    let class = "device_class_str=\"energy\",state_class_str=\"total_increasing\"";
    let mean = "state_class_str=\"measurement\"";
    let tibber = "kWh,domain=tibber,entity_id=consumption";
    let of_tibber = "friendly_name_str=\"Tibber\",state_class_str=\"total_increasing\"";
    let half = 1_800_000;
    let mut expected = vec![
        format!("{meter} value=5,{class} 7260000"),
        format!("{meter} value=1,{class} 3600000"),
        format!("{meter} value=1.5,{class} 7200000"),
    ];
    let of_means = [
        ("°C,domain=sensor,entity_id=outside", ["20", "20.1", "20.2"]),
        ("°,domain=sensor,entity_id=wind", ["350.5", "351.5", "352.5"]),
    ];
    for (series, values) in of_means {
        expected.extend(values.iter().zip(0..).map(|(value, hour)| {
            format!("{series} value={value},{mean} {}", hour * 2 * half + half)
        }));
    }
    expected.extend(
        ["1", "2.5", "3", "5"]
            .iter()
            .zip(0..)
            .map(|(value, hour)| format!("{tibber} value={value},{of_tibber} {}", hour * 2 * half)),
    );
    assert_eq!(lines, expected);
    let expected = [
        "database     Home Assistant, schema 50",
        "left out     1 hours that have states",
        "left out     6 pairs of min and max of hours",
        "left out     2 statistics of five minutes; states have them",
        "left out     1 statistics without state and mean: sensor.none",
    ];
    assert_eq!(notes, expected.join("\n"));
}

/// Such as one of a clock that was not set: it says nothing of the hours that follow.
#[test]
fn a_single_old_state_takes_no_hour_but_its_own() {
    for old in ["12.5".to_owned(), format!("({AT} - 7200)"), format!("({AT} + 60)")] {
        let rows = format!(
            "INSERT INTO states_meta VALUES (1, 'sensor.a');
             INSERT INTO state_attributes VALUES (1, 0, '{{\"unit_of_measurement\": \"°C\"}}');
             INSERT INTO states (metadata_id, state, attributes_id, last_updated_ts) VALUES (1, '1', 1, {old});
             INSERT INTO statistics_meta VALUES (1, 'sensor.a', 'recorder', '°C', 1, 0, NULL, 1);
             INSERT INTO statistics (metadata_id, start_ts, mean) VALUES (1, {AT}, 20.5), (1, {AT} + 3600, 21.5);"
        );
        let (lines, notes) = read(NEW, &rows, Storage::default());
        let is_within = old.contains('+');
        assert_eq!(lines.len(), if is_within { 2 } else { 3 }, "{lines:?}");
        assert_eq!(notes.contains("1 hours that have states"), is_within, "{notes}");
    }
}

#[test]
fn what_line_protocol_cannot_say_takes_no_value_along() {
    let rows = format!(
        "INSERT INTO states_meta VALUES (1, 'sensor.count'), (2, 'sensor.odd');
         INSERT INTO state_attributes VALUES (1, 0, '{{\"unit_of_measurement\": \"#\"}}'),
            (2, 0, '{{\"unit_of_measurement\": \"W\\\\\", \"time\": 3, \"\": 4}}');
         INSERT INTO states (metadata_id, state, attributes_id, last_updated_ts) VALUES (1, '7', 1, {AT}), (2, '8', 2, {AT});"
    );
    let (lines, _) = read(NEW, &rows, Storage::default());
    assert_eq!(
        lines,
        [
            "sensor.count,domain=sensor,entity_id=count value=7 0",
            "W,domain=sensor,entity_id=odd value=8 0"
        ]
    );
}

#[test]
fn home_assistant_s_own_sums_are_noted_and_not_imported() {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(&format!("{NEW}{}", hours())).unwrap();
    let Source { points, notes, .. } =
        source(Database::of(connection), Storage::default()).unwrap();
    assert!(points.count() > 0);
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
    let last = (AT + 2 * 3_600 + 1_800) * 1_000_000_000;
    let hourly = notes.hourly();
    assert_eq!(hourly.get("sensor.outside"), Some(&last));
    assert_eq!(hourly.keys().collect::<Vec<_>>(), ["sensor.outside", "sensor.wind"]);
}

#[test]
fn attributes_with_the_names_of_a_state_s_fields_get_another() {
    let rows = format!(
        "INSERT INTO states_meta VALUES (1, 'fan.a');
         INSERT INTO state_attributes VALUES (1, 0, '{{\"a\": 1, \"state\": 2, \"value\": 3}}');
         INSERT INTO states (metadata_id, state, attributes_id, last_updated_ts) VALUES (1, 'on', 1, {AT}),
            (1, 'auto', 1, {AT}), (1, '7', 1, {AT});"
    );
    let (lines, _) = read(NEW, &rows, Storage::default());
    let fields =
        ["value=1,a=1,state_=2,value_=3", "a=1,state_=2,value=3", "value=7,a=1,state=2,value_=3"];
    assert_eq!(lines, fields.map(|fields| format!("fan.a,domain=fan,entity_id=a {fields} 0")));
}

#[test]
fn a_unit_that_is_not_converted_exactly_is_refused_by_name() {
    let rows = hours().replace("'recorder', 'Wh'", "'recorder', 'MJ'");
    let (lines, notes) = read(NEW, &rows, Storage::default());
    assert_eq!(lines.iter().filter(|line| line.contains("meter")).count(), 1, "{lines:?}");
    let expected =
        "left out     3 hours of sensor.meter in MJ, which is not converted exactly to kWh";
    assert!(notes.contains(expected), "{notes}");
}

#[test]
fn an_external_meter_keeps_its_state_and_a_reset_its_number() {
    let rows =
        hours().replace("(4, ", "(6, ").replace("(6, 'tibber:consumption'", "(6, 'grid:reading'")
            + "UPDATE statistics SET state = sum + 100 WHERE metadata_id = 6;
           UPDATE statistics_meta SET unit_of_measurement = 'kWh' WHERE id = 1;
           UPDATE statistics SET last_reset_ts = 1704067200 WHERE metadata_id = 1;";
    let (lines, _) = read(NEW, &rows, Storage::default());
    let grid: Vec<_> = lines.iter().filter(|line| line.contains("domain=grid")).collect();
    assert!(
        grid.len() == 3 && grid[0].contains("value=101.5,") && grid[2].contains("value=104,"),
        "{grid:?}"
    );
    assert!(lines[1].contains("value=1000,last_reset=2.0240101e17,"), "{}", lines[1]);
}

#[test]
fn an_area_is_the_room_and_the_entity_alone_the_device() {
    let entities = br#"{"data": {"entities": [{"entity_id": "sensor.outside", "original_name": "Out", "area_id": "g"}]}}"#;
    let areas = br#"{"data": {"areas": [{"id": "g", "name": "My garden"}]}}"#;
    let storage = Storage::of(&[Some(entities.to_vec()), None, Some(areas.to_vec())]).unwrap();
    let (lines, _) = read(NEW, &hours(), storage.clone());
    let outside: Vec<_> = lines.iter().filter(|line| line.contains("outside")).collect();
    let expected = "°C,area=My\\ garden,domain=sensor,entity_id=outside value=20,friendly_name_str=\"Out\",state_class_str=\"measurement\"";
    assert!(outside[0].starts_with(expected), "{outside:?}");
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(&format!("{NEW}{}", hours())).unwrap();
    let points = source(Database::of(connection), storage).unwrap().points;
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
            "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; {NEW}{}",
            hours()
        ))
        .unwrap();
    let temporary = tempdir().unwrap();
    let copy = Database::open(&path, TempDir::new_in(&temporary).unwrap()).unwrap();
    writer.execute_batch("DELETE FROM states; DELETE FROM statistics").unwrap();
    let points = source(copy, Storage::default()).unwrap().points.count();
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
        source(database, Storage::default())?.points.collect::<anyhow::Result<Vec<_>>>()
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
        let points: Vec<Point> = source.points.collect::<anyhow::Result<_>>().unwrap();
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
        source.points.collect::<anyhow::Result<Vec<_>>>()
    };
    assert_eq!(read(&whole).unwrap().len(), 20_000);
    let mut broken = whole.clone();
    broken[pages / 2 * page..][..page].fill(0xff);
    let error = format!("{:#}", read(&broken).unwrap_err());
    assert!(error.contains("is the database damaged?"), "{error}");
    // A file that ends early.
    let error = format!("{:#}", read(&whole[..pages / 2 * page]).unwrap_err());
    assert!(error.contains("damaged") || error.contains("malformed"), "{error}");
}
