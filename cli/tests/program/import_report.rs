//! What an import says afterwards: counts and sums by month, the gap before a live sender, and how to take it back.

use std::fmt::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::history::{http, import};
use crate::server::Server;

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
            all.push(body(server, &path));
        }
    }
    all
}

fn said(file: &Path, server: &Server, words: &[&str], code: i32) -> String {
    let done = import(server, file, words);
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(code), "{said}{wrong}");
    said
}

#[test]
fn counts_and_sums_of_each_month_are_compared_and_the_gap_is_named_until_it_is_filled() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("export.lp");
    let server = Server::start(&directory.path().join("data"), &[]);
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
        "take_back readings sensor.meter --from 2026-01-31T23:00:00.000Z --to 2026-01-31T23:59:00.001Z",
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
fn what_was_refused_is_not_missing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("export.lp");
    let server = Server::start(&directory.path().join("data"), &[]);
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
    let server = Server::start(&directory.path().join("data"), &[]);
    // A device that was there, with readings of another day, and one of the history's second day.
    write(&server, "°C,domain=sensor,entity_id=warm value=1 1768147200000000000");
    write(&server, "°C,domain=sensor,entity_id=old value=1 1768147200000000000");
    let before = table(&server);
    std::fs::write(&file, lines(0..100).replace("°C,domain", "°C,area=Hall,domain")).unwrap();
    let report = directory.path().join("report");
    let said = said(&file, &server, &["--report", report.to_str().unwrap()], 0);
    assert!(said.contains("all counts and sums are the source's"), "{said}");
    assert_ne!(table(&server), before);
    let mut script = Command::new("sh");
    let script = script.arg(&report).stdout(Stdio::null()).process_group(0);
    let mut script = script.spawn().unwrap();
    let began = Instant::now();
    let back = loop {
        let back = table(&server);
        if back == before || began.elapsed() > Duration::from_secs(60) {
            break back;
        }
        std::thread::sleep(Duration::from_millis(300));
    };
    // It waits some minutes for the end of a device's deletion.
    let group = format!("-{}", script.id());
    assert!(Command::new("kill").args(["--", &group]).status().unwrap().success());
    script.wait().unwrap();
    assert_eq!(back, before);
}
