//! Ctrl-C while a file is imported: what is stored, and how to go on.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

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
    assert_eq!(import.wait().unwrap().code(), Some(1));
    let stderr = BufReader::new(import.stderr.take().unwrap()).lines();
    let lines: Vec<String> = stderr.map(Result::unwrap).collect();
    let said = lines.last().unwrap();
    assert!(said.starts_with("roomtide: stopped; ") && said.ends_with(": interrupted"), "{said}");
    assert!(said.contains(" stored, the same command "), "{said}");
}
