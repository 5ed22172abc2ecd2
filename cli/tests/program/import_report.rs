//! What an import says afterwards: counts and sums by month, the gap before a live sender, and how to take it back.

use std::fmt::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::history::{http, import, said};
use crate::server::{self, PROGRAM, Server};

/// 2026-01-31T23:00:00Z, in seconds: an hour before a month ends.
const START: i64 = 1_769_900_400;

/// Two hours by minutes of a thermometer and a meter, from a minute on.
fn lines(minutes: std::ops::Range<i64>) -> String {
    minutes.fold(String::new(), |mut text, minute| {
        let at = START + 60 * minute;
        writeln!(text, "°C,domain=sensor,entity_id=warm value=20.{minute} {at}000000000").unwrap();
        writeln!(
            text,
            "kWh,domain=sensor,entity_id=meter value={},state_class_str=\"total_increasing\" {at}000000000",
            if minute == 30 { 0.0 } else { 100.5 + f64::from(i32::try_from(minute).unwrap()) }
        )
        .unwrap();
        text
    })
}

fn write(server: &Server, lines: &str) {
    let answer = http(server, "POST /write?db=home", lines);
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
}

fn body(server: &Server, path: &str) -> String {
    let answer = http(server, &format!("GET {path}"), "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// What is in the table, as people see it.
fn table(server: &Server) -> Vec<String> {
    let mut all = vec![body(server, "/devices"), body(server, "/rooms")];
    for device in ["sensor.warm", "sensor.meter", "sensor.old"] {
        let path =
            format!("/devices/{device}/readings?from=2020-01-01T00:00:00Z&to=2030-01-01T00:00:00Z");
        if all[0].contains(device) {
            // It may be deleted at this moment.
            let answer = http(server, &format!("GET {path}"), "");
            all.push(answer.split_once("\r\n\r\n").unwrap().1.to_owned());
        }
    }
    all
}

#[test]
fn counts_and_sums_of_each_month_are_compared_and_the_gap_is_named_until_it_is_filled() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("export.lp");
    let server = Server::start(&directory.path().join("data"));
    std::fs::write(&file, lines(0..100)).unwrap();
    // The live sender begins twenty minutes after the history's end.
    write(&server, &lines(120..130));
    let first = said(&file, &server, &[], 0);
    for expected in [
        "compared 4 months (Etc/UTC) of 2 metrics: all counts and sums are the source's",
        "\na gap is between the history and the live readings; to fill it, run the command once more",
        "sensor.meter: nothing between 2026-02-01T00:39:00.000Z and 2026-02-01T01:00:00.000Z",
        "export.lp.roomtide-report has the counts and sums",
    ] {
        assert!(first.contains(expected), "{expected:?} is not in {first}");
    }
    let report = std::fs::read_to_string(directory.path().join("export.lp.roomtide-report"));
    let report = report.unwrap();
    for expected in [
        // The zero takes no part in a counter.
        "# sensor.meter,energy,2026-01,59,7669.5,59,7669.5,0,0,equal",
        "# sensor.warm,temperature,2026-02,40,",
        // The live sender's ten are beside them.
        ",50,",
        "# sensor.meter is not taken back on days on which it had readings before: 2026-02-01",
        "take_back readings --from 2026-01-31T23:00:00.000Z --to 2026-01-31T23:59:00.001Z \"$@\" -- sensor.meter\n",
    ] {
        assert!(report.contains(expected), "{expected:?} is not in {report}");
    }
    // The newer export has the gap, too.
    std::fs::write(&file, lines(0..121)).unwrap();
    let second = said(&file, &server, &[], 0);
    assert!(!second.contains("a gap is"), "{second}");
    assert!(second.contains("2 have the source's counts and sums"), "{second}");
    assert!(second.contains("sensor.warm temperature 2026-02: source 61 with the sum"), "{second}");
    assert!(second.contains(": at least: "), "{second}");
    assert!(directory.path().join("export.lp.roomtide-report-2").exists());
    // What is there already is the source, to the last digit.
    std::fs::write(&file, lines(0..130)).unwrap();
    let third = said(&file, &server, &[], 0);
    assert!(third.contains("all counts and sums are the source's"), "{third}");
}

#[test]
fn a_day_whose_readings_are_in_no_rollup_is_not_taken_back() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("export.lp");
    let server = Server::start(&directory.path().join("data"));
    let kwh = |value: &str, at: i64| {
        format!(
            "kWh,domain=sensor,entity_id=meter value={value},state_class_str=\"total_increasing\" {at}000000000\n"
        )
    };
    let day = 86_400;
    // A zero takes no part in a counter, and so in no rollup.
    for (value, at) in [("100", 0), ("0", 3 * day), ("0", 4 * day), ("101", 9 * day)] {
        write(&server, &kwh(value, START + at));
    }
    let imported: String = (0..10).map(|n| kwh("102.5", START + n * day + 7)).collect();
    std::fs::write(&file, imported).unwrap();
    said(&file, &server, &[], 0);
    let report = directory.path().join("export.lp.roomtide-report");
    let text = std::fs::read_to_string(&report).unwrap();
    let kept = "2026-01-31 2026-02-03 2026-02-04 2026-02-09";
    assert!(text.contains(&format!("on which it had readings before: {kept}")), "{text}");
    let done = Command::new("sh").arg(&report).env("ROOMTIDE", PROGRAM).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let left = table(&server).concat();
    assert_eq!(
        left.matches("\"timestamp\"").count(),
        8,
        "four, and the imported ones of their days: {left}"
    );
}

#[test]
fn what_was_refused_is_not_missing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("export.lp");
    let server = Server::start(&directory.path().join("data"));
    let mut text = String::new();
    for minute in 0..3 {
        let at = START + 60 * minute;
        // A tag without a value cannot be read.
        writeln!(text, "m,host=a,zone= v=1 {at}000000000").unwrap();
        writeln!(text, "m,host=a v={minute} {at}000000000").unwrap();
    }
    std::fs::write(&file, text).unwrap();
    let said = said(&file, &server, &[], 3);
    assert!(said.contains("refused      3"), "{said}");
    assert!(
        said.contains("all counts and sums are the source's"),
        "refused lines do not count: {said}"
    );
}

#[test]
fn the_lines_of_the_report_take_an_import_back() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("export.lp");
    let server = Server::start(&directory.path().join("data"));
    // A device that was there, with readings of another day, and one of the history's second day. Both come at once:
    // the list may lack for a second what comes after the first.
    let value =
        |entity| format!("°C,domain=sensor,entity_id={entity} value=1 1768147200000000000\n");
    write(&server, &(value("warm") + &value("old")));
    let before = table(&server);
    assert_eq!(before.len(), 4, "two lists, and the readings of both");
    std::fs::write(&file, lines(0..100).replace("°C,domain", "°C,area=Hall,domain")).unwrap();
    let report = directory.path().join("report");
    let said = said(&file, &server, &["--report", report.to_str().unwrap()], 0);
    assert!(said.contains("all counts and sums are the source's"), "{said}");
    assert_ne!(table(&server), before);
    // A server without --auth asks for no token; the words have to reach each command.
    let mut script = Command::new("sh");
    let script = script
        .arg(&report)
        .args(["--token", "rt_x"])
        .env("ROOMTIDE", PROGRAM)
        .stdout(Stdio::null())
        .process_group(0);
    let mut script = script.spawn().unwrap();
    let mut back = table(&server);
    for _ in 0..200 {
        if back == before {
            break;
        }
        std::thread::sleep(Duration::from_millis(300));
        back = table(&server);
    }
    // It waits some minutes for the end of a device's deletion.
    let group = format!("-{}", script.id());
    assert!(Command::new("kill").args(["--", &group]).status().unwrap().success());
    script.wait().unwrap();
    assert_eq!(back, before);
}

/// A line of a meter that shows so many hundredths of a kWh.
fn meter_line(shown: u64, at: i64) -> String {
    let (whole, part) = (shown / 100, shown % 100);
    format!(
        "kWh,domain=sensor,entity_id=meter value={whole}.{part:02},state_class_str=\"total_increasing\" {at}000000000\n"
    )
}

/// 60 days of a meter by hours, in hundredths of a kWh: an outage of three days and a zero. Returns the lines and what
/// was used.
fn sixty_days() -> (String, u64) {
    let (mut seed, mut total, mut text) = (25_u64, 400_000_u64, String::new());
    let first = total;
    for hour in 0..60 * 24 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        total += if hour == 0 { 0 } else { (seed >> 33) % 71 };
        if (240..312).contains(&hour) {
            continue;
        }
        let shown = if hour == 700 { 0 } else { total };
        let at = 1_767_225_600 + 3_600 * hour;
        text += &meter_line(shown, at);
    }
    (text, total - first)
}

#[test]
fn the_dry_run_says_what_is_wrong_in_the_energy_and_the_server_counts_it_so() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("export.lp");
    let data = directory.path().join("data");
    let (lines, used) = sixty_days();
    std::fs::write(&file, lines).unwrap();
    let truth = format!("{}.{:02}", used / 100, used % 100);
    let truth = truth.trim_end_matches('0');
    let dry = into(&data, &file, &["--dry-run"]);
    for expected in [
        &format!("  sensor.meter energy: {truth} kWh, by the usual rule "),
        "1 zero or negative value left out: 2026-01-30T04:00:00.000Z",
        "1 gap of more than 2 hours, the longest of 3 days; ",
        "1 gap of more than 2 hours, the longest of 73.0 hours",
        "\nprovisioned  ",
    ] {
        assert!(dry.contains(expected), "{expected:?} is not in {dry}");
    }
    into(&data, &file, &[]);
    let server = Server::start(&data);
    let path = "/devices/sensor.meter/energy?from=2026-01-01T00:00:00Z&to=2026-03-02T00:00:00Z";
    let energy = body(&server, path);
    assert!(
        energy.contains(&format!(":{truth},")) || energy.contains(&format!(":{truth}}}")),
        "{energy}"
    );
}

#[test]
fn thinned_history_keeps_the_ends_of_quarters() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("export.lp");
    let server = Server::start(&directory.path().join("data"));
    // A kWh a minute is more than is believed.
    std::fs::write(&file, lines(31..151).replace("kWh,", "Wh,")).unwrap();
    let thin = ["--thin", "15m", "--thin-before", "2026-02-01T00:30:00Z"];
    let dry = said(&file, &server, &[&thin[..], &["--dry-run"]].concat(), 0);
    assert!(!dry.contains("--thin 15m "), "{dry}");
    assert!(said(&file, &server, &["--dry-run"], 0).contains("\n--thin 15m   "), "not thinned yet");
    let done = said(&file, &server, &thin, 0);
    // Minutes 31 to 89 are thinned: of the thermometer four quarters stay; of the meter the first value, and those at
    // minutes 45, 60 and 75 and the last. 61 minutes are not thinned.
    assert!(done.contains("131 points stored"), "{done}");
    assert!(done.contains("all counts and sums are the source's"), "{done}");
    let path = "/devices/sensor.meter/series?from=2026-01-31T23:45:00Z&to=2026-02-01T01:15:00Z&every=15m&fn=last&metric=energy_wh";
    let rows = body(&server, path);
    for value in ["145.5", "160.5", "189.5", "204.5", "219.5", "234.5"] {
        assert!(rows.contains(&format!("\"value\":{value}}}")), "{value}: {rows}");
    }
    let wrong = import(&server, &file, &["--thin", "15m"]);
    assert_eq!(wrong.0, Some(2), "--thin-before is missing");
}

/// Imports into a directory that no server has open, and returns what it says.
fn into(data: &Path, file: &Path, words: &[&str]) -> String {
    let mut import = Command::new(PROGRAM);
    import.arg("import").arg(file).args(words);
    if !words.contains(&"--dry-run") {
        import.arg("--data-dir").arg(data);
    }
    let (code, said) = server::run(&import);
    assert_eq!(code, Some(0), "{said}");
    said
}

/// Ten hours of a meter and of a power, whose values come at random times, with bursts, gaps, zeros and resets.
fn random_house(seed: u64) -> String {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut text, mut total, mut second) = (String::new(), 100_000, 0_i64);
    while second < 36_000 {
        second += match random.u8(..20) {
            0 => random.i64(900..6_000),
            1..=8 => random.i64(1..900),
            9..=11 => 900 - second.rem_euclid(900),
            _ => random.i64(1..61),
        };
        total += if random.bool() { 0 } else { random.i64(0..30) };
        match random.u8(..40) {
            0 => total = random.i64(1..50),
            1 => total -= random.i64(0..3),
            _ => {}
        }
        let shown = if random.u8(..30) == 0 { 0 } else { total.max(1) };
        let at = START + second;
        text += &meter_line(shown.unsigned_abs(), at);
        if random.bool() {
            let watts = random.i64(0..3_000);
            writeln!(text, "W,domain=sensor,entity_id=warm value={watts} {at}000000000").unwrap();
        }
    }
    text
}

/// The energy of rows in an answer, in kWh.
fn energies(answer: &str) -> Vec<f64> {
    let answer: serde_json::Value = serde_json::from_str(answer).unwrap();
    let rows = answer["data"].as_array().unwrap().iter().map(|row| &row["kwh"]);
    rows.chain([&answer["total_kwh"]]).map(|kwh| kwh.as_f64().unwrap_or_default()).collect()
}

#[test]
fn thinned_history_keeps_counters_exact() {
    let directory = tempfile::tempdir().unwrap();
    for seed in 0..4 {
        let file = directory.path().join(format!("{seed}.lp"));
        std::fs::write(&file, random_house(seed)).unwrap();
        let answers =
            [&["--thin", "15m", "--thin-before", "2026-02-01T06:10:00Z"][..], &[]].map(|options| {
                let data = directory.path().join(format!("{seed}-{}", options.len()));
                into(&data, &file, &[options, &["--again"]].concat());
                let server = Server::start(&data);
                let mut answers = Vec::new();
                for (device, metric) in [("sensor.meter", "energy"), ("sensor.warm", "power")] {
                    for every in ["15m", "1d"] {
                        let span = "from=2026-01-31T00:00:00Z&to=2026-02-03T00:00:00Z";
                        let path = format!(
                            "/devices/{device}/energy?metric={metric}&{span}&every={every}"
                        );
                        answers.push(energies(&body(&server, &path)));
                    }
                }
                answers
            });
        let [thinned, whole] = answers;
        for (thinned, whole) in thinned.concat().iter().zip(whole.concat()) {
            assert!((thinned - whole).abs() < 1e-8, "house {seed}: {thinned} is not {whole}");
        }
        assert!(whole.concat().iter().sum::<f64>() > 1.0, "there is energy");
        assert_eq!(thinned.concat().len(), whole.concat().len());
    }
}

/// A database of Home Assistant with long-term statistics and what more is said.
fn database_of_statistics(directory: &Path, more: &str) -> PathBuf {
    let file = directory.join("home-assistant_v2.db");
    let database = rusqlite::Connection::open(&file).unwrap();
    database
        .execute_batch(
            "CREATE TABLE schema_changes (change_id INTEGER PRIMARY KEY, schema_version INTEGER, changed DATETIME);
             INSERT INTO schema_changes (schema_version) VALUES (50);
             CREATE TABLE statistics_meta (id INTEGER PRIMARY KEY, statistic_id VARCHAR(255), source VARCHAR(32),
                unit_of_measurement VARCHAR(255), has_mean BOOLEAN, has_sum BOOLEAN, name VARCHAR(255), mean_type INTEGER);
             CREATE TABLE statistics (id INTEGER PRIMARY KEY, metadata_id INTEGER, start_ts FLOAT, mean FLOAT, min FLOAT,
                max FLOAT, last_reset_ts FLOAT, state FLOAT, sum FLOAT);",
        )
        .unwrap();
    database.execute_batch(more).unwrap();
    file
}

#[test]
fn the_registry_notes_until_when_there_are_hourly_means_only() {
    let directory = tempfile::tempdir().unwrap();
    let file = database_of_statistics(
        directory.path(),
        "CREATE TABLE states_meta (metadata_id INTEGER PRIMARY KEY, entity_id VARCHAR(255));
         CREATE TABLE states (state_id INTEGER PRIMARY KEY, state VARCHAR(255), last_updated_ts FLOAT,
            attributes_id INTEGER, metadata_id INTEGER);
         INSERT INTO statistics_meta VALUES (1, 'sensor.warm', 'recorder', '°C', 1, 0, NULL, 1),
            (2, 'sensor.meter', 'recorder', 'kWh', 0, 1, NULL, 0), (3, 'sensor.old', 'recorder', '°C', 1, 0, NULL, 1);
         INSERT INTO statistics (metadata_id, start_ts, mean, state, sum) VALUES
            (1, 1768147200, 20.5, NULL, NULL), (1, 1768150800, 21.5, NULL, NULL), (3, 1768150800, 1, NULL, NULL),
            (2, 1768147200, NULL, 100, 0), (2, 1768150800, NULL, 1, 900), (2, 1768154400, NULL, 2, 901);",
    );
    let server = Server::start(&directory.path().join("data"));
    // It had readings before: nobody knows whether these are means of hours.
    write(&server, "°C,domain=sensor,entity_id=old value=1 1768000000000000000");
    let dry = said(&file, &server, &["--dry-run"], 0);
    let expected = "sensor.meter energy: 2 kWh, by Home Assistant's sum 901 kWh\n";
    assert!(dry.contains(expected), "{dry}");
    let done = said(&file, &server, &[], 0);
    assert!(done.contains("noted until when 1 metric has hourly means only"), "{done}");
    assert!(done.contains("all counts and sums are the source's"), "{done}");
    let devices = body(&server, "/devices");
    assert_eq!(devices.matches("hourly_until").count(), 1, "{devices}");
    let warm = body(&server, "/devices/sensor.warm");
    assert!(warm.contains(r#""hourly_until":"2026-01-11T17:30:00.000Z""#), "{warm}");
}

/// Statistics of three hours, whose second one a live sender has: 2,000 W for some minutes.
#[test]
fn statistics_of_hours_that_the_table_has_finer_are_not_stored() {
    let directory = tempfile::tempdir().unwrap();
    let file = database_of_statistics(
        directory.path(),
        "INSERT INTO statistics_meta VALUES (1, 'sensor.pump', 'recorder', 'W', 1, 0, NULL, 1),
            (2, 'sensor.meter', 'recorder', 'kWh', 0, 1, NULL, 0);
         INSERT INTO statistics (metadata_id, start_ts, mean, state, sum) VALUES
            (1, 1768147200, 500, NULL, NULL), (1, 1768150800, 500, NULL, NULL), (1, 1768154400, 500, NULL, NULL),
            (2, 1768147200, NULL, 100, 0), (2, 1768150800, NULL, 101, 1), (2, 1768154400, NULL, 102, 2);",
    );
    let server = Server::start(&directory.path().join("data"));
    write(
        &server,
        "W,domain=sensor,entity_id=pump value=2000,state_class_str=\"measurement\" 1768150803200000000\n\
         W,domain=sensor,entity_id=pump value=0,state_class_str=\"measurement\" 1768151703200000000\n",
    );
    let dry = said(&file, &server, &["--dry-run"], 0);
    assert!(dry.contains("statistics   of hours for which the table has finer readings"), "{dry}");

    let readings = |device: &str| {
        let span = "from=2026-01-11T00:00:00Z&to=2026-01-12T00:00:00Z";
        let text = body(&server, &format!("/devices/{device}/readings?{span}"));
        text.matches("\"timestamp\"").count()
    };
    // The second time the table has the statistics of the other hours, which are no finer readings.
    for compared in ["all counts and sums are the source's", ""] {
        let done = said(&file, &server, &["--again"], 0);
        let expected = "left out     1 hours of statistics for which the table has finer readings";
        assert!(done.contains(expected), "{done}");
        assert!(done.contains(compared), "{done}");
        assert_eq!((readings("sensor.pump"), readings("sensor.meter")), (2 + 2 * 4, 3), "{done}");
    }
}
