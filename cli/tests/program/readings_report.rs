//! An import of CSV and NDJSON that was killed: the next run reads back what it stores.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use domain::given;
use local::Options;

use crate::server::{self, PROGRAM, ROUND, ROUNDS, Server};

/// 2026-01-11T16:00:00Z, in seconds.
const START: i64 = 1_768_147_200;
/// The lines of an import that is killed after its first round.
const LINES: i64 = 3 * ROUND;

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
    let name = format!("{}.roomtide-import", file.file_name().unwrap().to_str().unwrap());
    server::wait_for_stored_lines(&file.with_file_name(name));
    killed.kill().unwrap();
    killed.wait().unwrap();
}

#[test]
fn a_killed_import_goes_on_and_reads_back_what_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("data"));
    let file = directory.path().join("readings.csv");
    let mut text = "timestamp,device_id,t\n".to_owned();
    for n in 0..LINES {
        // The reading at which a round would end stands on two lines: both are in one round, and the later wins.
        let second = if n >= ROUND { n - 1 } else { n };
        writeln!(text, "{},d,{}.5", START + second, n % 7).unwrap();
    }
    std::fs::write(&file, text).unwrap();
    import_and_kill(&file, &server);

    let resumed = server.import(&file, &ROUNDS, 0);
    assert!(resumed.contains("lines are processed already"), "{resumed}");
    assert!(resumed.contains(": the table has all as they were sent\n"), "{resumed}");
    let again = server.import(&file, &ROUNDS, 0);
    let expected = format!("read back {} readings: the table has all", LINES - 1);
    assert!(again.contains(&expected), "{again}");
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
    for expected in
        ["10 readings refused by the server before", "the table has all as they were sent"]
    {
        assert!(resumed.contains(expected), "{expected:?} is not in {resumed}");
    }
}
