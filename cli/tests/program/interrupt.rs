//! An import that is ended by Ctrl-C or killed: what is stored, and how it continues.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::server::{PROGRAM, Server};

#[test]
fn an_interrupted_import_says_what_is_stored_and_how_to_continue() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), &[]);
    let file = directory.path().join("readings.ndjson");
    let mut writer = std::io::BufWriter::new(std::fs::File::create(&file).unwrap());
    for n in 0..200_000 {
        let at = 1_768_147_200 + n;
        writeln!(writer, r#"{{"device_id": "d", "timestamp": {at}, "t": 1}}"#).unwrap();
    }
    writer.into_inner().unwrap();

    let mut import = Command::new(PROGRAM);
    let import = import.arg("import").arg(&file).args(["--url", &server.url, "--batch", "100"]);
    let mut import = import.stderr(Stdio::piped()).spawn().unwrap();
    // Until the first reading is stored.
    let latest = format!("{}/devices/d/latest", server.url);
    let is_stored = || ureq::get(&latest).call().is_ok();
    assert!((0..400).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        is_stored()
    }));
    std::thread::sleep(Duration::from_millis(200));
    let interrupt = Command::new("kill").args(["-INT", &import.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    assert_eq!(import.wait().unwrap().code(), Some(130));
    let stderr = BufReader::new(import.stderr.take().unwrap()).lines();
    let lines: Vec<String> = stderr.map(Result::unwrap).collect();
    let said = lines.last().unwrap();
    assert!(said.starts_with("roomtide: stopped; ") && said.ends_with(": interrupted"), "{said}");
    assert!(said.contains(" stored, the same command "), "{said}");
}

#[test]
fn a_shuffled_file_is_sent_by_time_and_continues_after_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), &[]);
    let file = directory.path().join("shuffled.ndjson");
    let count = 40_000;
    // A step that has no divisor in common with the count visits each second once.
    let lines = (0..count).map(|n| {
        let second = n * 17_389 % count;
        format!(r#"{{"device_id": "d", "timestamp": {}, "t": {second}}}"#, 1_768_147_200 + second)
    });
    std::fs::write(&file, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let import = || {
        let mut import = Command::new(PROGRAM);
        import.arg("import").arg(&file).args(["--url", &server.url]);
        import
    };

    let mut killed = import().stderr(Stdio::null()).spawn().unwrap();
    let state = directory.path().join("shuffled.ndjson.roomtide-import");
    assert!((0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        state.exists()
    }));
    killed.kill().unwrap();
    killed.wait().unwrap();
    let state: Value = serde_json::from_slice(&std::fs::read(&state).unwrap()).unwrap();
    let sent = state["acknowledged"].as_i64().unwrap();
    let newest = chrono::DateTime::from_timestamp(1_768_147_200 + sent - 1, 0).unwrap();
    let newest = newest.to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
    assert_eq!(state["witness"]["timestamp"], newest, "the oldest are sent first");

    let said = String::from_utf8(import().output().unwrap().stdout).unwrap();
    assert!(said.contains(&format!("{sent} lines are processed already")), "{said}");
    assert!(said.contains(&format!("{} readings stored", count - sent)), "{said}");
    let range = "from=2026-01-11T16:00:00Z&to=2026-01-13T00:00:00Z&limit=10000";
    let mut found = 0;
    let mut cursor = String::new();
    loop {
        let url = format!("{}/devices/d/readings?{range}{cursor}", server.url);
        let page = ureq::get(&url).call().unwrap().body_mut().read_to_string().unwrap();
        let page: Value = serde_json::from_str(&page).unwrap();
        for row in page["data"].as_array().unwrap() {
            assert_eq!(row["t"], found);
            found += 1;
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(found, count);
}
