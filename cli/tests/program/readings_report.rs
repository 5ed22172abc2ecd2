//! The comparison after an import of CSV and NDJSON that was killed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use domain::given;
use local::Options;

use crate::server::{PROGRAM, ROUND, ROUNDS, Server};

/// 2026-01-11T16:00:00Z, in seconds.
const START: i64 = 1_768_147_200;
/// The lines of an import that is killed after its first round.
const LINES: i64 = 3 * ROUND;

/// The file of this ending that an import puts beside its source.
fn beside(file: &Path, ending: &str) -> PathBuf {
    let name = format!("{}.{ending}", file.file_name().unwrap().to_str().unwrap());
    file.with_file_name(name)
}

fn report(file: &Path) -> String {
    std::fs::read_to_string(beside(file, "roomtide-report")).unwrap()
}

/// Begins an import, and kills it once it has noted how far it came.
fn import_and_kill(file: &Path, server: &Server) {
    let mut killed = Command::new(PROGRAM)
        .args(["import", "--url", &server.url])
        .args(ROUNDS)
        .arg(file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let state = beside(file, "roomtide-import");
    assert!((0..30_000).any(|_| {
        std::thread::sleep(Duration::from_millis(2));
        state.exists()
    }));
    killed.kill().unwrap();
    killed.wait().unwrap();
}

#[test]
fn a_killed_import_counts_the_whole_file_and_names_an_hour_that_somebody_else_wrote() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("data"));
    let file = directory.path().join("readings.csv");
    let mut text = "timestamp,device_id,t\n".to_owned();
    for n in 0..LINES {
        // The reading at which a round ends stands on two lines: the later wins, and both rounds send it.
        let second = if n >= ROUND { n - 1 } else { n };
        writeln!(text, "{},d,{}.5", START + second, n % 7).unwrap();
    }
    std::fs::write(&file, text).unwrap();
    import_and_kill(&file, &server);
    let other = format!(r#"{{"device_id": "d", "timestamp": {}, "t": 100}}"#, START + 60);
    server.send("POST", "/readings", &other);
    let resumed = server.import(&file, &ROUNDS, 4);
    assert!(resumed.contains("lines are processed already"), "{resumed}");
    let (sum, other) = sums();
    let count = LINES - 1;
    let named = format!(
        "d t 2026-01: source {count} with the sum {sum}, table {count} with the sum {other}: other values: "
    );
    assert!(resumed.contains(&named), "{named:?} is not in {resumed}");
    let row = format!("# d,t,2026-01,{count},{sum},{count},{other},0,0,other values\n");
    assert!(report(&file).contains(&row), "{row:?} is not in {}", report(&file));
    let again = server.import(&file, &ROUNDS, 0);
    assert!(again.contains("all counts and sums are the source's"), "{again}");
}

/// The sum of the file, and with another value at one instant.
fn sums() -> (String, String) {
    let tenths = |n: i64| 10 * (n % 7) + 5;
    // The last line of the first round is replaced by the one behind it.
    let all: i64 = (0..LINES).filter(|n| *n != ROUND - 1).map(tenths).sum();
    let other = all - tenths(60) + 1_000;
    let shown = |tenths: i64| {
        let text = format!("{}.{}", tenths / 10, tenths % 10);
        text.strip_suffix(".0").unwrap_or(&text).to_owned()
    };
    (shown(all), shown(other))
}

#[test]
fn what_the_server_refused_before_a_kill_is_not_missing() {
    let directory = tempfile::tempdir().unwrap();
    let earliest_timestamp = given::at("2026-01-01T00:00:00Z");
    let options = Options { earliest_timestamp, ..Options::default() };
    let server = Server::with(&directory.path().join("data"), options);
    let file = directory.path().join("readings.ndjson");
    let mut text = String::new();
    for n in 0..LINES {
        // The first ten are too old for the server.
        let second = if n < 10 { n - 86_400 * 300 } else { n };
        writeln!(text, r#"{{"device_id":"d","timestamp":{},"t":1}}"#, START + second).unwrap();
    }
    std::fs::write(&file, text).unwrap();
    import_and_kill(&file, &server);
    let resumed = server.import(&file, &ROUNDS, 3);
    for expected in [
        "10 readings refused by the server before",
        "all other counts and sums are the source's",
        "not compared: 10 readings, refused",
    ] {
        assert!(resumed.contains(expected), "{expected:?} is not in {resumed}");
    }
}
